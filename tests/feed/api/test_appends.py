"""`tablefeed.appends`: the rows that a stream would deliver, between two versions, in commit order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable, write_deltalake

import tablefeed
from support.logs import add, commit_path, metadata, protocol
from support.recorded import data_file, log
from tablefeed import errors


@pytest.fixture
def orders(tmp_path: Path) -> Path:
    """A row a version, 0 to 3."""
    for row in range(4):
        write_deltalake(str(tmp_path), pa.table({"id": [row], "day": [str(row)]}), mode="append", partition_by=["day"])
    return tmp_path


def ids(path: Path, **arguments: Any) -> list[int]:
    found: list[int] = tablefeed.appends(path, **arguments).read_all()["id"].to_pylist()
    return found


@pytest.mark.parametrize(
    ("bounds", "rows"),
    [
        ({}, [0, 1, 2, 3]),
        ({"start_version": 1}, [1, 2, 3]),
        ({"end_version": 1}, [0, 1]),
        ({"start_version": 1, "end_version": 2}, [1, 2]),
        ({"start_version": 3, "end_version": 3}, [3]),
    ],
)
def test_both_bounds_are_included_and_none_is_as_far_as_the_log_reaches(
    orders: Path, bounds: dict[str, int], rows: list[int]
) -> None:
    assert ids(orders, **bounds) == rows


def test_a_process_that_goes_on_reading_does_not_read_the_earlier_commits_again(orders: Path) -> None:
    assert ids(orders, start_version=3) == [3]
    write_deltalake(str(orders), pa.table({"id": [4], "day": ["4"]}), mode="append", partition_by=["day"])
    for version in range(3):
        (orders / commit_path(version)).write_text("no commit")
    assert ids(orders, start_version=4) == [4]


@pytest.mark.parametrize(
    ("bounds", "error", "said"),
    [
        ({"start_version": 4}, errors.VersionNotFoundError, "its log holds versions 0 to 3"),
        ({"start_version": -1}, errors.VersionNotFoundError, "its log holds versions 0 to 3"),
        ({"end_version": 4}, errors.VersionNotFoundError, "its log holds versions 0 to 3"),
        ({"start_version": 2, "end_version": 1}, errors.IllegalOptionError, "must be at least start_version, 2"),
    ],
)
def test_bounds_that_are_none_are_refused(
    orders: Path, bounds: dict[str, Any], error: type[tablefeed.TablefeedError], said: str
) -> None:
    with pytest.raises(error, match=said):
        tablefeed.appends(orders, **bounds)


def test_columns_and_a_filter_choose_what_comes(orders: Path) -> None:
    reader = tablefeed.appends(orders, columns=["id"], filter=pc.field("day") > "1")

    assert reader.read_all().to_pydict() == {"id": [2, 3]}
    with pytest.raises(errors.SchemaMismatchError, match="has no column 'price'"):
        tablefeed.appends(orders, columns=["price"])


def test_a_version_that_deletes_rows_is_refused_unless_it_is_said_what_to_do(orders: Path) -> None:
    DeltaTable(str(orders)).delete("day = '2'")
    write_deltalake(str(orders), pa.table({"id": [9], "day": ["9"]}), mode="append")

    with pytest.raises(errors.ChangeRefusedError, match=r"DELTA_SOURCE_IGNORE_DELETE.*Version 4"):
        tablefeed.appends(orders).read_all()
    assert ids(orders, ignore_deletes=True) == [0, 1, 2, 3, 9]
    assert ids(orders, start_version=5) == [9]


def test_a_version_that_rewrites_rows_is_refused_unless_it_is_said_what_to_do(orders: Path) -> None:
    write_deltalake(str(orders), pa.table({"id": [20, 21], "day": ["5", "5"]}), mode="append")
    DeltaTable(str(orders)).update(updates={"id": "99"}, predicate="id = 20")

    with pytest.raises(errors.ChangeRefusedError, match="DELTA_SOURCE_TABLE_IGNORE_CHANGES"):
        ids(orders, start_version=4, ignore_deletes=True)
    assert ids(orders, start_version=4, skip_change_commits=True) == [20, 21]
    assert sorted(ids(orders, start_version=4, ignore_changes=True)) == [20, 21, 21, 99]


def test_rows_on_the_two_sides_of_a_change_of_type_are_read_apart(tmp_path: Path) -> None:
    write_deltalake(str(tmp_path), pa.table({"id": [1]}))
    write_deltalake(str(tmp_path), pa.table({"id": ["one"]}), mode="overwrite", schema_mode="overwrite")

    with pytest.raises(errors.SchemaChangedError, match="Read the versions before and after the change separately"):
        tablefeed.appends(tmp_path, skip_change_commits=True).read_all()


def test_a_commit_that_vanishes_while_rows_are_read_is_no_end(orders: Path) -> None:
    reader = tablefeed.appends(orders)
    (orders / commit_path(2)).unlink()

    with pytest.raises(errors.LogGapError, match="while the log was read"):
        reader.read_all()


def test_a_file_that_a_version_adds_twice_is_delivered_once(tmp_path: Path) -> None:
    file = data_file(tmp_path, "a.parquet", id=[1, 2])
    log(tmp_path, v0=[protocol(), metadata(), add(file), add(file)])

    assert ids(tmp_path) == tablefeed.open_table(tmp_path).to_arrow()["id"].to_pylist() == [1, 2]
