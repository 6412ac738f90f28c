"""A table that we made in delta-rs's hands, and in ours again: each reads what both wrote, whoever rewrote it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError

import tablefeed
from tablefeed.feed.snapshot.open_log import open_log


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """How a table is made, and whether delta-rs compacts such a table."""

    properties: Mapping[str, str] = field(default_factory=dict)
    partition_by: tuple[str, ...] = ()
    is_compacted: bool = True


KINDS: Mapping[str, Kind] = {
    "plain": Kind(),
    "partitioned": Kind(partition_by=("p",)),
    "column mapping": Kind(properties={"delta.columnMapping.mode": "name"}, is_compacted=False),
    "column mapping, partitioned": Kind(
        properties={"delta.columnMapping.mode": "name"}, partition_by=("p",), is_compacted=False
    ),
    "deletion vectors": Kind(properties={"delta.enableDeletionVectors": "true"}),
    "change data feed": Kind(properties={"delta.enableChangeDataFeed": "true"}),
    "constraint": Kind(properties={"delta.constraints.positive": "id >= 0"}),
    "v2 checkpoint": Kind(properties={"delta.checkpointPolicy": "v2"}),
}

ONLY_READ: Mapping[str, str] = {
    "row tracking": "delta.enableRowTracking",
    "in-commit timestamps": "delta.enableInCommitTimestamps",
    "icebergCompatV2": "delta.enableIcebergCompatV2",
}
"""Kinds that delta-rs reads and refuses to write, by the property that makes them."""


def rows_of(*ids: int) -> pa.Table:
    columns = {"id": pa.array(ids, pa.int64()), "name": [f"n{n}" for n in ids], "p": [f"{n % 2} %/" for n in ids]}
    return pa.table(columns)


def expected(*ids: int, changed: int | None = None) -> list[tuple[object, ...]]:
    return [(n, "changed" if n == changed else f"n{n}", f"{n % 2} %/") for n in sorted(ids)]


def told(rows: pa.Table) -> list[tuple[object, ...]]:
    return sorted(tuple(row[name] for name in ("id", "name", "p")) for row in rows.to_pylist())


def ours(path: Path) -> list[tuple[object, ...]]:
    return told(tablefeed.open_table(path).to_arrow())


def theirs(path: Path) -> list[tuple[object, ...]]:
    rows = QueryBuilder().register("t", DeltaTable(str(path))).execute("SELECT * FROM t").read_all()
    return told(pa.table(rows))


def made(path: Path, kind: Kind) -> str:
    """A table of two commits of ours, with the ids 0 to 9."""
    tablefeed.append(path, rows_of(*range(5)), properties=kind.properties, partition_by=kind.partition_by)
    tablefeed.append(path, rows_of(*range(5, 10)))
    return str(path)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_delta_rs_changes_and_maintains_a_table_of_ours_and_we_go_on(tmp_path: Path, kind: Kind) -> None:
    location = made(tmp_path, kind)
    assert theirs(tmp_path) == expected(*range(10))

    write_deltalake(location, rows_of(10, 11), mode="append")
    assert DeltaTable(location).delete("id = 1")["num_deleted_rows"] == 1
    assert DeltaTable(location).update(predicate="id = 2", updates={"name": "'changed'"})["num_updated_rows"] == 1
    left = (0, *range(2, 12))
    assert ours(tmp_path) == theirs(tmp_path) == expected(*left, changed=2)
    if kind.is_compacted:
        assert DeltaTable(location).optimize.compact()["numFilesRemoved"] > 1
    else:
        with pytest.raises(DeltaError, match="Column mapping is not supported for write operation 'OPTIMIZE'"):
            DeltaTable(location).optimize.compact()
    DeltaTable(location).create_checkpoint()
    gone = DeltaTable(location).vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    assert len(gone) > 1
    before = open_log(location).load().version

    tablefeed.append(tmp_path, rows_of(12, 13))

    assert ours(tmp_path) == theirs(tmp_path) == expected(*left, 12, 13, changed=2)
    assert told(tablefeed.appends(tmp_path, start_version=before + 1).read_all()) == expected(12, 13)
    operations = ["WRITE", "WRITE", "WRITE", "DELETE", "UPDATE", *(["OPTIMIZE"] if kind.is_compacted else [])]
    operations += ["VACUUM START", "VACUUM END", "WRITE"]
    assert [entry["operation"] for entry in reversed(DeltaTable(location).history())] == operations
    assert [entry.operation for entry in tablefeed.open_table(tmp_path).history()] == operations[::-1]


def test_a_file_in_a_directory_beyond_ascii_is_gone_for_us_when_delta_rs_removes_it_though_not_for_itself(
    tmp_path: Path,
) -> None:
    # We write such characters as Delta-Spark does, as they are. delta-rs removes the file under another spelling of
    # the same name, and then looks for the same spelling.
    tablefeed.append(tmp_path, pa.table({"id": [1, 2], "p": ["ü", "ü"]}), partition_by="p")

    DeltaTable(str(tmp_path)).delete("id = 1")

    assert tablefeed.open_table(tmp_path).to_arrow()["id"].to_pylist() == [2]
    assert sorted(DeltaTable(str(tmp_path)).to_pyarrow_table()["id"].to_pylist()) == [1, 2, 2]


WRITES: Mapping[str, Callable[[str], object]] = {
    "append": lambda location: write_deltalake(location, rows_of(20), mode="append"),
    "delete": lambda location: DeltaTable(location).delete("id = 1"),
    "update": lambda location: DeltaTable(location).update(predicate="id = 2", updates={"name": "'x'"}),
}


@pytest.mark.parametrize("property_name", ONLY_READ.values(), ids=ONLY_READ)
def test_delta_rs_reads_a_table_of_ours_that_it_must_not_write_and_leaves_it_as_it_is(
    tmp_path: Path, property_name: str
) -> None:
    location = made(tmp_path, Kind(properties={property_name: "true"}))

    for write in WRITES.values():
        with pytest.raises(CommitFailedError, match="Unsupported table features required"):
            write(location)
    DeltaTable(location).create_checkpoint()
    tablefeed.append(tmp_path, rows_of(10))

    assert ours(tmp_path) == theirs(tmp_path) == expected(*range(11))
