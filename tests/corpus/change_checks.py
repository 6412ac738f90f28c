"""What expected.json says of the changes of a table: its recorded feed, or that it has none."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import tablefeed
from tablefeed.errors import ChangeDataError, SchemaChangedError

if TYPE_CHECKING:
    from corpus.verdict import Check, Digest, Expected

REFUSED_AS_IN_DELTA_SPARK = frozenset({"kernelrs-data/table-with-cdf"})
"""Tables whose newest schema forbids a null that the start of the range allows: Delta-Spark reads no changes with it.
The reader of expected.json does not look; no row tells the two apart, for there is none."""


def change_checks(table: str, expected: Expected, folder: Path, digest: Digest) -> Iterator[tuple[str, Check]]:
    """What is to be looked at, by name."""
    for bounds in expected["cdf"]:
        check = _refused if table in REFUSED_AS_IN_DELTA_SPARK else _recorded
        yield f"changes {bounds}", partial(check, expected, folder, digest, bounds=bounds)
    if not expected["cdf"]:
        yield "changes", partial(_unrecorded, folder)


def _recorded(expected: Expected, folder: Path, digest: Digest, *, bounds: str) -> Iterator[str]:
    start, end = map(int, bounds.split("-"))
    rows = tablefeed.changes(folder, start_version=start, end_version=end).read_all()
    found, told = digest(rows.drop_columns(["_commit_timestamp"])), expected["cdf"][bounds]
    if found != (told["rows"], told["hash"]):
        yield f"rows are {found}, not {(told['rows'], told['hash'])}"


def _refused(_: Expected, folder: Path, __: Digest, *, bounds: str) -> Iterator[str]:
    start, end = map(int, bounds.split("-"))
    try:
        tablefeed.changes(folder, start_version=start, end_version=end).read_all()
    except SchemaChangedError:
        return
    yield "were read"


def _unrecorded(folder: Path) -> Iterator[str]:
    """Tables of which expected.json has no changes record none."""
    try:
        tablefeed.changes(folder)
    except ChangeDataError as error:
        if error.error_class != "DELTA_MISSING_CHANGE_DATA":
            yield f"were refused otherwise: {error}"
    else:
        yield "were read, though none were recorded"
