"""`tablefeed.changes` with a deduplication mode: what commits put in and took out, of tables that recorded nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable, write_deltalake

import tablefeed
from support.logs import LONG_ID, Action, add, metadata, protocol
from support.recorded import VECTORS, cdc, changed_ids, data_file, log, recorded, removed, schema, vector
from tablefeed.errors import (
    ChangeDataError,
    IllegalOptionError,
    SchemaChangedError,
    TableError,
    UnsupportedOptionError,
)

ALL: dict[str, Any] = {"deduplication_mode": "none"}
CHANGED: dict[str, Any] = {"deduplication_mode": "dropCarryovers"}
UPDATED: dict[str, Any] = CHANGED | {"compute_updates": True}


@pytest.fixture
def orders(tmp_path: Path) -> Path:
    """By delta-rs, which rewrites whole files: rows 1, 2, 3 made, 2 updated, 3 deleted, packed with a fourth."""
    url = str(tmp_path)
    write_deltalake(url, pa.table({"id": [1, 2, 3], "price": [0.5, -0.0, None]}))
    table = DeltaTable(url)
    table.update(updates={"price": "0.0"}, predicate="id = 2")
    table.delete("id = 3")
    write_deltalake(url, pa.table({"id": [4], "price": [float("nan")]}), mode="append")
    DeltaTable(url).optimize.compact()
    return tmp_path


def test_everything_that_a_commit_put_in_is_inserted_and_all_that_it_took_out_deleted(orders: Path) -> None:
    assert changed_ids(orders, **ALL) == [
        *[(0, "insert", 1), (0, "insert", 2), (0, "insert", 3)],
        *[(1, "delete", 1), (1, "delete", 2), (1, "delete", 3)],
        *[(1, "insert", 1), (1, "insert", 2), (1, "insert", 3)],
        *[(2, "delete", 1), (2, "delete", 2), (2, "delete", 3), (2, "insert", 1), (2, "insert", 2)],
        (3, "insert", 4),
    ]


def test_rows_that_were_carried_over_are_left_out(orders: Path) -> None:
    assert changed_ids(orders, **CHANGED) == [
        *[(0, "insert", 1), (0, "insert", 2), (0, "insert", 3)],
        *[(1, "delete", 2), (1, "insert", 2)],  # -0.0 became 0.0
        (2, "delete", 3),
        (3, "insert", 4),
    ]


def test_a_row_is_carried_over_only_where_every_column_is_the_same_whatever_columns_are_asked_for(orders: Path) -> None:
    rows = tablefeed.changes(orders, start_version=1, end_version=1, columns=["id"], **CHANGED).read_all()

    assert rows.to_pydict() == {"id": [2, 2]}


@pytest.mark.parametrize("arguments", [{}, ALL, CHANGED])
def test_rows_of_which_no_column_is_asked_for_are_counted_all_the_same(
    tmp_path: Path, arguments: dict[str, Any]
) -> None:
    one, two = data_file(tmp_path, "1.parquet", id=[1, 2]), data_file(tmp_path, "2.parquet", id=[2, 3])
    table = log(tmp_path, v0=[protocol(), recorded(), add(one)], v1=[removed(one), add(two)])

    for condition in (None, pc.field("id") < 3):
        all_columns = tablefeed.changes(table, filter=condition, **arguments).read_all()
        none = tablefeed.changes(table, columns=[], filter=condition, **arguments).read_all()
        assert (none.num_columns, none.num_rows) == (0, all_columns.num_rows)


def test_rows_of_a_table_without_columns_are_carried_over_one_for_one(tmp_path: Path) -> None:
    two, one = data_file(tmp_path, "2.parquet", other=[1, 2]), data_file(tmp_path, "1.parquet", other=[1])
    table = log(tmp_path, v0=[protocol(), metadata(schema()), add(two)], v1=[removed(two), add(one)])

    rows = tablefeed.changes(table, columns=["_change_type", "_commit_version"], **CHANGED).read_all()

    assert rows.to_pydict() == {"_change_type": ["insert", "insert", "delete"], "_commit_version": [0, 0, 1]}


def test_recorded_changes_are_not_looked_at(tmp_path: Path) -> None:
    one, two = data_file(tmp_path, "1.parquet", id=[1, 2]), data_file(tmp_path, "2.parquet", id=[2, 3])
    changes = data_file(tmp_path, "_change_data/c.parquet", id=[9], _change_type=["insert"])
    table = log(
        tmp_path, v0=[protocol(), recorded(), add(one)], v1=[cdc(changes), removed(one), add(two)], v2=[cdc(changes)]
    )

    assert changed_ids(table, start_version=1, **CHANGED) == [(1, "delete", 1), (1, "insert", 3)]


def test_deletion_vectors_count_by_their_difference_here_too(tmp_path: Path) -> None:
    file, moved = data_file(tmp_path, "a.parquet", id=[1, 2, 3, 4]), data_file(tmp_path, "b.parquet", id=[3, 5])
    table = log(
        tmp_path,
        v0=[VECTORS, metadata(), add(file, deletionVector=vector(0))],
        v1=[removed(file, deletionVector=vector(0)), add(file, deletionVector=vector(0, 1, 2)), add(moved)],
    )

    assert changed_ids(table, **ALL) == [
        *[(0, "insert", 2), (0, "insert", 3), (0, "insert", 4)],
        *[(1, "delete", 2), (1, "delete", 3), (1, "insert", 3), (1, "insert", 5)],
    ]
    assert changed_ids(table, start_version=1, **CHANGED) == [(1, "delete", 2), (1, "insert", 5)]


def test_rows_carried_over_to_another_partition_are_other_rows(tmp_path: Path) -> None:
    one, two = data_file(tmp_path, "1.parquet", id=[1, 2]), data_file(tmp_path, "2.parquet", id=[1])
    by_day = metadata(schema(("id", "long"), ("day", "string")), partition_columns=["day"])
    a: dict[str, Any] = {"partitionValues": {"day": "a"}}
    b: dict[str, Any] = {"partitionValues": {"day": "b"}}
    table = log(tmp_path, v0=[protocol(), by_day, add(one, **a)], v1=[removed(one, **a), add(two, **b)])

    assert changed_ids(table, start_version=1, **CHANGED) == [(1, "delete", 1), (1, "delete", 2), (1, "insert", 1)]


# --- schemas -------------------------------------------------------------------------------------------------------


def test_rows_come_in_the_schema_of_the_end(tmp_path: Path) -> None:
    write_deltalake(str(tmp_path), pa.table({"id": [1]}))
    write_deltalake(str(tmp_path), pa.table({"id": [2], "new": [2]}), mode="append", schema_mode="merge")

    assert tablefeed.changes(tmp_path, end_version=0, **CHANGED).schema.names[:2] == ["id", "_change_type"]
    assert tablefeed.changes(tmp_path, columns=["new"], **CHANGED).read_all()["new"].to_pylist() == [None, 2]


def test_rows_that_one_schema_cannot_read_are_refused(tmp_path: Path) -> None:
    write_deltalake(str(tmp_path), pa.table({"id": [1]}))
    write_deltalake(str(tmp_path), pa.table({"id": ["one"]}), mode="overwrite", schema_mode="overwrite")

    with pytest.raises(SchemaChangedError) as caught:
        changed_ids(tmp_path, **CHANGED)
    assert caught.value.error_class == "DELTA_CHANGELOG_SCHEMA_CHANGE_IN_RANGE"
    assert changed_ids(tmp_path, end_version=0, **CHANGED) == [(0, "insert", 1)]


# --- updates -------------------------------------------------------------------------------------------------------

ROW_ID = "_row-id-col-1"
TRACKED = protocol(1, 7, writerFeatures=["rowTracking", "domainMetadata"])


def tracked(text: str = LONG_ID, **configuration: str) -> Action:
    """The metadata of a table that tracks its rows."""
    properties = {"delta.enableRowTracking": "true", "delta.rowTracking.materializedRowIdColumnName": ROW_ID}
    return metadata(text, configuration=properties | configuration)


def added(file: str, first_id: int, **more: Any) -> Action:
    return add(file, baseRowId=first_id, defaultRowCommitVersion=0, **more)


def taken(file: str, first_id: int, **more: Any) -> Action:
    return removed(file, baseRowId=first_id, defaultRowCommitVersion=0, **more)


def updates(path: Path, **bounds: int) -> list[tuple[str, int, str]]:
    """Change, id and state of each row, sorted."""
    rows = tablefeed.changes(path, **bounds, **UPDATED).read_all()  # type: ignore[arg-type]  # one keyword of many
    return sorted(zip(*(rows[name].to_pylist() for name in ("_change_type", "id", "state")), strict=True))


ID_STATE = schema(("id", "long"), ("state", "string"))


def test_a_row_that_is_taken_out_and_put_in_changed_is_updated(tmp_path: Path) -> None:
    """Rows 10 to 13 in one file; 11 is updated, 12 deleted, 13 carried over, and a new one is 20."""
    before = data_file(tmp_path, "1.parquet", id=[0, 1, 2, 3], state=["new"] * 4)
    ids = {ROW_ID: [11, 10, None, 13]}  # a row without an id of its own has one by its place
    after = data_file(tmp_path, "2.parquet", id=[1, 0, 9, 3], state=["sent", "new", "new", "new"], **ids)
    table = log(
        tmp_path,
        v0=[TRACKED, tracked(ID_STATE), added(before, 10)],
        v1=[taken(before, 10), added(after, 18)],
    )

    assert updates(table, start_version=1) == [
        ("delete", 2, "new"),
        ("insert", 9, "new"),
        ("update_postimage", 1, "sent"),
        ("update_preimage", 1, "new"),
    ]


def test_equal_rows_are_told_apart_by_their_ids(tmp_path: Path) -> None:
    """Of two rows that look the same, the second is updated: the first, not it, was carried over."""
    before = data_file(tmp_path, "1.parquet", id=[1, 1], state=["new", "new"])
    after = data_file(tmp_path, "2.parquet", id=[1, 1], state=["new", "sent"], **{ROW_ID: [0, 1]})
    table = log(tmp_path, v0=[TRACKED, tracked(ID_STATE), added(before, 0)], v1=[taken(before, 0), added(after, 2)])

    assert updates(table, start_version=1) == [("update_postimage", 1, "sent"), ("update_preimage", 1, "new")]


def test_a_row_that_is_replaced_by_an_equal_one_is_another(tmp_path: Path) -> None:
    one, two = (data_file(tmp_path, f"{name}.parquet", id=[1], state=["new"]) for name in (1, 2))
    table = log(tmp_path, v0=[TRACKED, tracked(ID_STATE), added(one, 0)], v1=[taken(one, 0), added(two, 1)])

    assert updates(table, start_version=1) == [("delete", 1, "new"), ("insert", 1, "new")]
    assert tablefeed.changes(table, start_version=1, **CHANGED).read_all().num_rows == 0


def test_the_place_of_a_row_counts_those_that_are_deleted_before_it(tmp_path: Path) -> None:
    before = data_file(tmp_path, "1.parquet", id=[0, 1, 2], state=["new"] * 3)
    after = data_file(tmp_path, "2.parquet", id=[2], state=["sent"], **{ROW_ID: [7]})
    dv = protocol(3, 7, readerFeatures=["deletionVectors"], writerFeatures=["deletionVectors", "rowTracking"])
    gone, more = {"deletionVector": vector(0)}, {"deletionVector": vector(0, 2)}
    table = log(
        tmp_path,
        v0=[dv, tracked(ID_STATE), added(before, 5, **gone)],
        v1=[taken(before, 5, **gone), added(before, 5, **more), added(after, 9)],
    )

    assert updates(table, start_version=1) == [("update_postimage", 2, "sent"), ("update_preimage", 2, "new")]


def test_an_update_needs_a_table_that_tracks_its_rows(orders: Path) -> None:
    with pytest.raises(TableError, match="does not track its rows") as caught:
        tablefeed.changes(orders, **UPDATED)
    assert caught.value.error_class == "DELTA_CHANGELOG_REQUIRES_ROW_TRACKING"


def test_rows_must_have_been_tracked_all_the_time(tmp_path: Path) -> None:
    off = metadata(ID_STATE)
    renamed = tracked(ID_STATE, **{"delta.rowTracking.materializedRowIdColumnName": "another"})
    table = log(tmp_path, v0=[TRACKED, off], v1=[tracked(ID_STATE)], v2=[renamed], v3=[off], v4=[tracked(ID_STATE)])

    for start, version in ((0, 0), (1, 2), (4, None)):
        if version is None:
            assert updates(table, start_version=start) == []
            continue
        with pytest.raises(ChangeDataError, match=f"versions {start} to 4 .* cannot be computed") as caught:
            updates(table, start_version=start)
        assert caught.value.version == version
        assert caught.value.error_class == "DELTA_CHANGELOG_ROW_TRACKING_DISABLED_IN_RANGE"


def test_a_file_without_row_ids_is_refused_where_they_are_needed(tmp_path: Path) -> None:
    one, two = (data_file(tmp_path, f"{name}.parquet", id=[name], state=["new"]) for name in (1, 2))
    table = log(tmp_path, v0=[TRACKED, tracked(ID_STATE), add(one)], v1=[removed(one), added(two, 1)])

    assert updates(table, end_version=0) == [("insert", 1, "new")]
    with pytest.raises(ChangeDataError, match="does not say which ids the rows of the file"):
        updates(table)


def test_row_ids_are_found_in_a_mapped_table_too(tmp_path: Path) -> None:
    names = {"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": "col-1"}
    text = json.dumps(
        {"type": "struct", "fields": [{"name": "id", "type": "long", "nullable": True, "metadata": names}]}
    )
    mapping = protocol(2, 7, writerFeatures=["columnMapping", "rowTracking"])
    before = data_file(tmp_path, "1.parquet", **{"col-1": [1]})
    after = data_file(tmp_path, "2.parquet", **{"col-1": [2], ROW_ID: [3]})
    table = log(
        tmp_path,
        v0=[mapping, tracked(text, **{"delta.columnMapping.mode": "name"}), added(before, 3)],
        v1=[taken(before, 3), added(after, 4)],
    )

    assert changed_ids(table, start_version=1, **UPDATED) == [(1, "update_postimage", 2), (1, "update_preimage", 1)]


# --- arguments -----------------------------------------------------------------------------------------------------


def test_net_changes_are_refused_by_name(orders: Path) -> None:
    with pytest.raises(UnsupportedOptionError, match="netChanges"):
        tablefeed.changes(orders, deduplication_mode="netChanges")  # type: ignore[arg-type]  # what it is not


@pytest.mark.parametrize("mode", ["dropcarryovers", "", 1, ["none"], pa.array(["none"])])
def test_another_mode_is_refused(orders: Path, mode: Any) -> None:
    with pytest.raises(IllegalOptionError, match="must be None, 'none' or 'dropCarryovers'"):
        tablefeed.changes(orders, deduplication_mode=mode)


@pytest.mark.parametrize("mode", [None, "none"])
def test_updates_are_told_only_where_carried_rows_are_left_out(orders: Path, mode: Any) -> None:
    with pytest.raises(IllegalOptionError, match="needs the deduplication mode 'dropCarryovers'"):
        tablefeed.changes(orders, deduplication_mode=mode, compute_updates=True)
