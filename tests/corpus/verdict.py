"""Holds one Delta table of the corpus against expected.json: what was right, what was refused, what was wrong.

Asks only the public API. A table is refused where a version of it was, for a feature that it has and that is refused
at present (`REFUSED_FEATURES`); any other error counts as wrong unless the corpus expects one, and so does any error
that is not ours.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

import tablefeed
from corpus.change_checks import change_checks
from support.digest import table_digest
from tablefeed.errors import TablefeedError, UnsupportedFeatureError

Digest = Callable[[pa.Table], tuple[int, str]]
Expected = Mapping[str, Any]  # Any: JSON of another hand, described in the corpus's README

REFUSED_FEATURES = frozenset(
    {
        "catalogManaged",
        "catalogOwned",  # what catalogManaged was called before it had a name
        "reader version 5 and writer version 7",
    }
)
"""What a table may be refused for. A feature that comes to be handled leaves this list."""

NEWEST_VERSION_ONLY = frozenset({"kernelrs-data-tar/300k-add-files-100-col-partitioned"})
"""Tables of which each version takes seconds."""

GONE_AS_IN_DELTA_SPARK = frozenset(
    {
        "kernelrs-golden-tar/canonicalized-paths-normal-a",
        "kernelrs-golden-tar/canonicalized-paths-normal-b",
        "kernelrs-golden-tar/canonicalized-paths-special-a",
    }
)
"""Tables whose version 1 removes `/x` as `file:/x`. To Delta-Spark, for whose tests they were made, and to us that is
one file, gone; expected.json has it from a reader that compares the text (tests/peer asks the JAR)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """How one table was met: the `refused` features, and a line for each thing that was `wrong`."""

    refused: frozenset[str]
    wrong: tuple[str, ...]


def judge(table: str, expected: Expected, *, root: Path, digest: Digest = table_digest) -> Verdict:
    """Reads each version that `expected` lists of `root`/`table`, what a stream of it delivers, and its changes."""
    refused: set[str] = set()
    wrong: list[str] = []
    for what, check in _checks(table, expected, root / table, digest):
        try:
            wrong += [f"{what}: {line}" for line in check()]
        except UnsupportedFeatureError as error:
            refused.update(error.features)
            if not set(error.features) <= REFUSED_FEATURES & _features(expected):
                wrong.append(f"{what}: refused for what it has not, or what is not to be refused: {error}")
        except TablefeedError as error:
            if not _has_none(expected, root / table, what):
                wrong.append(f"{what}: {type(error).__name__}: {error}")
        except Exception as error:  # noqa: BLE001 (the rule under test is that none of these comes out)
            wrong.append(f"{what}: an error that is not ours: {error!r}")
    return Verdict(refused=frozenset(refused), wrong=tuple(wrong))


Check = Callable[[], Iterator[str]]


def _checks(table: str, expected: Expected, folder: Path, digest: Digest) -> Iterator[tuple[str, Check]]:
    """What is to be looked at, by name: versions are numbers."""
    newest = str(expected["latest"])
    for version in sorted(expected["snapshots"], key=int):
        if version == newest or table not in NEWEST_VERSION_ONLY:
            yield version, partial(_version, table, expected, version, folder=folder, digest=digest)
    if table not in NEWEST_VERSION_ONLY and _is_in_the_log(folder, newest):
        yield newest, partial(_newest, expected, folder)
    if expected.get("append_stream"):
        yield "append_stream", partial(_appends, expected, folder, digest)
    if table not in NEWEST_VERSION_ONLY and not _has_none(expected, folder, newest):
        yield from change_checks(table, expected, folder, digest)


def _version(table: str, expected: Expected, version: str, *, folder: Path, digest: Digest) -> Iterator[str]:
    opened = tablefeed.open_table(folder, version=int(version))
    if opened.version != int(version):
        yield f"opened as {opened.version}"
    files, rows = expected["files"].get(version, {}), expected["snapshots"][version]
    if expected.get("must_refuse"):
        yield f"was opened, though it has {expected['must_refuse']}"
    if table in GONE_AS_IN_DELTA_SPARK and version == "1":
        files = {"active": 0, "bytes": 0, "paths_sha256": paths_sha256([])}
    if "active" in files:
        yield from _different("files", _files(opened), (files["active"], files["bytes"], files["paths_sha256"]))
    if "hash" in rows:
        yield from _different("rows", digest(opened.to_batches().read_all()), (rows["rows"], rows["hash"]))


def _newest(expected: Expected, folder: Path) -> Iterator[str]:
    opened = tablefeed.open_table(folder)
    info = expected["info"]
    yield from _different("newest version", opened.version, expected["latest"])
    yield from _different("partition columns", opened.partition_columns, tuple(info["partition_columns"]))
    for app_id, txn_version in info["txn_apps"].items():
        yield from _different(f"txn of {app_id}", opened.txn_version(app_id), txn_version)


def _appends(expected: Expected, folder: Path, digest: Digest) -> Iterator[str]:
    rows = tablefeed.appends(folder, start_version=0, skip_change_commits=True).read_all()
    stream = expected["append_stream"]
    yield from _different("rows", digest(rows), (stream["rows"], stream["hash"]))


def _files(table: tablefeed.Table) -> tuple[int, int, str]:
    paths: list[str] = []
    size_bytes = 0
    for batch in table.files():
        paths += batch["path"].to_pylist()
        size_bytes += pc.sum(batch["size_bytes"]).as_py() or 0
    return len(paths), size_bytes, paths_sha256(paths)


def paths_sha256(paths: list[str]) -> str:
    """The digest that expected.json keeps of decoded paths: sorted, one a line."""
    return hashlib.sha256("\n".join(sorted(paths)).encode()).hexdigest()


def _different(what: str, found: object, expected: object) -> Iterator[str]:
    if found != expected:
        yield f"{what} are {found}, not {expected}"


def _features(expected: Expected) -> set[str]:
    """What the corpus says that a reader of the table needs, in our words."""
    info = expected["info"]
    by_sign = {"colmap": "columnMapping", "dv": "deletionVectors", "type-widening": "typeWidening"}
    signs = {feature if feature in by_sign else feature.partition("-")[0] for feature in info["features"]}
    versions = f"reader version {info['min_reader']} and writer version {info['min_writer']}"
    return {*info["reader_features"], *(by_sign[sign] for sign in signs & by_sign.keys()), versions}


def _has_none(expected: Expected, folder: Path, what: str) -> bool:
    """Whether the corpus has no such version: readers failed there too, or the folder lacks its log files."""
    if expected.get("must_refuse") or "error" in expected["files"].get(what, {}):
        return True
    return what.isdigit() and not _is_in_the_log(folder, what)


def _is_in_the_log(folder: Path, version: str) -> bool:
    return any((folder / "_delta_log").glob(f"{int(version):020d}.*"))
