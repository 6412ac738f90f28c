"""What expected.json says of the changes of a table: its recorded feed, or that it has none, and its rows' own."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

import tablefeed
from support.digest import MODULUS
from tablefeed.errors import ChangeDataError, SchemaChangedError, TablefeedError, UnsupportedFeatureError

if TYPE_CHECKING:
    from corpus.verdict import Check, Digest, Expected

REFUSED_AS_IN_DELTA_SPARK = frozenset({"kernelrs-data/table-with-cdf"})
"""Tables whose newest schema forbids a null that the start of the range allows: Delta-Spark reads no changes with it.
The reader of expected.json does not look; no row tells the two apart, for there is none."""


UNTOLD = frozenset(
    {
        "kernelrs-data/table-with-cdf 2",  # removes a file that never was
    }
)
"""Versions whose changes cannot be told from the log and its files; expected.json has them from snapshots."""


def change_checks(table: str, expected: Expected, folder: Path, digest: Digest) -> Iterator[tuple[str, Check]]:
    """What is to be looked at, by name."""
    for bounds in expected["cdf"]:
        check = _refused if table in REFUSED_AS_IN_DELTA_SPARK else _recorded
        yield f"changes {bounds}", partial(check, expected, folder, digest, bounds=bounds)
    if not expected["cdf"]:
        yield "changes", partial(_unrecorded, folder)
    for version, told in expected.get("net", {}).items():
        if not _removes(folder, version):
            continue  # what it adds is inserted, as a stream of it has shown
        if f"{table} {version}" in UNTOLD:
            yield f"changes of {version}", partial(_untold, folder, int(version))
        elif told.keys() == {"added", "removed"}:  # what else is there tells of another schema
            yield f"changes of {version}", partial(_net, told, folder, digest, int(version))


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


def _net(told: Expected, folder: Path, digest: Digest, version: int) -> Iterator[str]:
    """Nothing but the rows that a version adds and removes; and where carried rows are left in, they weigh nothing."""
    added, removed = ((told[side]["rows"], told[side]["hash"]) for side in ("added", "removed"))
    for mode in ("dropCarryovers", "none"):
        rows = tablefeed.changes(folder, start_version=version, end_version=version, deduplication_mode=mode).read_all()
        inserted, deleted = (digest(_of(rows, change)) for change in ("insert", "delete"))
        if mode == "dropCarryovers" and (inserted, deleted) != (added, removed):
            yield f"rows are {(inserted, deleted)}, not {(added, removed)}"
        if _weight(inserted, deleted) != _weight(added, removed):
            yield f"rows with those carried over are {(inserted, deleted)}, which do not come to {(added, removed)}"


def _removes(folder: Path, version: str) -> bool:
    commit = folder / "_delta_log" / f"{int(version):020d}.json"
    return commit.exists() and '"remove"' in commit.read_text(encoding="utf-8")


def _of(rows: pa.Table, change: str) -> pa.Table:
    kept = rows.filter(pc.equal(rows["_change_type"], change))
    return kept.drop_columns(["_change_type", "_commit_version", "_commit_timestamp"])


def _weight(inserted: tuple[int, str], deleted: tuple[int, str]) -> tuple[int, int]:
    return inserted[0] - deleted[0], (int(inserted[1], 16) - int(deleted[1], 16)) % MODULUS


def _untold(folder: Path, version: int) -> Iterator[str]:
    try:
        tablefeed.changes(folder, start_version=version, end_version=version, deduplication_mode="none").read_all()
    except UnsupportedFeatureError:
        raise
    except TablefeedError:
        return
    yield "were told"


def _unrecorded(folder: Path) -> Iterator[str]:
    """Tables of which expected.json has no changes record none."""
    try:
        tablefeed.changes(folder)
    except ChangeDataError as error:
        if error.error_class != "DELTA_MISSING_CHANGE_DATA":
            yield f"were refused otherwise: {error}"
    else:
        yield "were read, though none were recorded"
