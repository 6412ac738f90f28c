"""What a stream and a batch read with `where` open and deliver: offsets, limits and indexes stay what they are."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tablefeed
from support.logs import Action, a_log, a_source, add, at, col, delivered, meta, metadata, protocol, put, struct
from support.recorded import cdc, data_file, log, recorded, removed
from tablefeed.errors import IllegalOptionError
from tablefeed.feed.api.differences import differences
from tablefeed.feed.scan.snapshot_tasks import snapshot_tasks
from tablefeed.feed.scan.task import ScanTask, read_task
from tablefeed.feed.snapshot.open_log import open_log
from tablefeed.feed.snapshot.table_log import TableLog
from tablefeed.log.plan import Limits

ID = pa.schema([("id", pa.int64())])
KIND = pa.schema([("kind", pa.string())])
CHANGES = pa.schema([("id", pa.int64()), ("_change_type", pa.string())])
TO_THE_END = Limits()


def bounded(path: str, low: int, high: int, **more: Any) -> Action:
    stats = {"numRecords": 2, "minValues": {"id": low}, "maxValues": {"id": high}, "nullCount": {"id": 0}}
    return add(path, stats=json.dumps(stats), **more)


def ten_apart() -> TableLog:
    return a_log(
        v0=[protocol(), metadata(), bounded("a", 0, 9, modified=1), bounded("b", 10, 19, modified=2)],
        v1=[bounded("c", 20, 29, modified=3), add("unknown", modified=4)],
    )


def rows(tasks: Sequence[ScanTask], schema: pa.Schema) -> list[tuple[object, ...]]:
    batches = [batch for task in tasks for batch in read_task(task, schema)]
    assert all(batch.schema.equals(schema) and batch.num_rows for batch in batches)
    return sorted(tuple(row.values()) for batch in batches for row in batch.to_pylist())


def test_a_file_that_is_ruled_out_is_not_read_and_keeps_its_number() -> None:
    log, where = ten_apart(), "id BETWEEN 10 AND 15"
    source = a_source(log, where=where)
    start, without = source.initial(), a_source(log)

    for limits in (Limits(files=1), Limits(files=2), Limits(size_bytes=25), TO_THE_END):
        assert source.latest(start, limits) == without.latest(start, limits)
    assert delivered(source, start, at(1, 1, in_snapshot=True)) == []
    assert delivered(source, at(1, 1, in_snapshot=True), at(1, 2, in_snapshot=True)) == ["b"]
    assert delivered(source, start, at(2)) == ["b", "unknown"]


def test_of_later_commits_too_files_are_ruled_out() -> None:
    log = ten_apart()
    source = a_source(log, starting_version=0, where="id >= 20")
    put(log.store, 2, [bounded("d", 0, 9), bounded("e", 15, 25)])

    assert source.latest(at(0), Limits(files=1)) == at(0, 1)
    assert source.latest(at(0), TO_THE_END) == at(3)
    assert delivered(source, at(0), at(0, 1)) == []
    assert delivered(source, at(0), at(3)) == ["c", "e", "unknown"]
    assert delivered(source, at(2, 1), at(3)) == ["e"]


def test_limits_by_rows_count_what_is_ruled_out() -> None:
    source = a_source(ten_apart(), limits=Limits(rows=3), where="id = 12")

    end = source.latest(source.initial(), Limits(rows=3))

    assert end == at(1, 2, in_snapshot=True)
    assert delivered(source, source.initial(), end) == ["b"]


def test_a_restart_with_another_predicate_goes_on_at_the_same_offset() -> None:
    log = ten_apart()
    first = a_source(log, starting_version=0, where="id < 0")
    middle = first.latest(at(0), Limits(files=2))

    assert (middle, delivered(first, at(0), middle)) == (at(1), [])
    assert delivered(a_source(log, starting_version=0), middle, at(2)) == ["c", "unknown"]


@pytest.fixture
def orders(tmp_path: Path) -> Path:
    """Partitions a, b and null; two rows in each of the first two."""
    for kind, first in (("a", 1), ("b", 3)):
        tablefeed.append(tmp_path, pa.table({"id": [first, first + 1], "kind": [kind, kind]}), partition_by=["kind"])
    tablefeed.append(tmp_path, pa.table({"id": [5], "kind": pa.array([None], pa.string())}))
    return tmp_path


@pytest.mark.parametrize(
    ("where", "ids"),
    [
        ("kind = 'a'", [1, 2]),
        ("kind IS NULL OR id = 3", [3, 5]),
        ("NOT kind = 'a'", [3, 4]),
        ("id > 1 AND id <= 3", [2, 3]),
        ("id > 100", []),
    ],
)
def test_a_stream_and_a_batch_read_deliver_the_rows_of_which_it_is_true(
    orders: Path, where: str, ids: list[int]
) -> None:
    source = a_source(open_log(str(orders)), where=where)
    start = source.initial()
    batch = snapshot_tasks(str(orders), version=2, storage_options={}, where=where)

    assert rows(source.tasks(start, source.latest(start, TO_THE_END)), ID) == [(id_,) for id_ in ids]
    assert rows(batch, ID) == [(id_,) for id_ in ids]


def test_what_it_names_need_not_be_among_the_columns_that_are_delivered(orders: Path) -> None:
    tasks = snapshot_tasks(str(orders), version=2, storage_options={}, where="id IN (2, 3)")

    assert rows(tasks, KIND) == [("a",), ("b",)]


def test_partitions_that_are_ruled_out_are_never_opened(orders: Path) -> None:
    for path in orders.glob("kind=a/*.parquet"):
        path.unlink()

    assert rows(snapshot_tasks(str(orders), version=2, storage_options={}, where="kind <> 'a'"), ID) == [(3,), (4,)]


def test_of_changes_rows_are_left_out_and_no_file_is(tmp_path: Path) -> None:
    one, two = data_file(tmp_path, "one.parquet", id=[1]), data_file(tmp_path, "two.parquet", id=[2])
    change = data_file(tmp_path, "change.parquet", id=[2, 20], _change_type=["update_preimage", "update_postimage"])
    new = data_file(tmp_path, "new.parquet", id=[20])
    log(
        tmp_path,
        v0=[protocol(), recorded(), bounded(one, 7, 7), add(two)],
        v1=[cdc(change), removed(two), add(new)],
    )
    source = a_source(open_log(str(tmp_path)), change_feed=True, starting_version=0, where="id < 20")

    found = source.tasks(at(0), source.latest(at(0), Limits(files=9)))

    assert sorted(file.path for task in found for file in task.files) == [change, one, two]
    assert rows(found, CHANGES) == [(1, "insert"), (2, "insert"), (2, "update_preimage")]
    whole = a_source(open_log(str(tmp_path)), change_feed=True, where="id = 1")
    assert delivered(whole, whole.initial(), at(2)) == [new, one]


def test_of_changes_it_may_name_the_tables_columns_alone(tmp_path: Path) -> None:
    log(tmp_path, v0=[protocol(), recorded(), add(data_file(tmp_path, "one.parquet", id=[1]))])
    source = a_source(open_log(str(tmp_path)), change_feed=True, where="_change_type = 'insert'")

    with pytest.raises(IllegalOptionError, match="names '_change_type', but the table has id"):
        source.tasks(source.initial(), at(1))


def test_a_column_is_named_as_the_table_names_it_whatever_files_and_statistics_do(tmp_path: Path) -> None:
    adds = []
    for low in (0, 10):
        members = pa.array([{"col-x": low}, {"col-x": low + 1}], pa.struct([("col-x", pa.int32())]))
        path = data_file(tmp_path, f"{low}.parquet", **{"col-id": [low, low + 1], "col-s": members})
        bounds = {"minValues": {"col-s": {"col-x": low}}, "maxValues": {"col-s": {"col-x": low + 1}}}
        adds.append(add(path, stats=json.dumps({"numRecords": 2, **bounds}), modified=low))
    inner = struct(col("x", "integer", id=1, physicalName="col-x"))
    columns = col("id", id=1, physicalName="col-id"), col("s", inner, id=1, physicalName="col-s")
    named = meta(*columns, configuration={"delta.columnMapping.mode": "name"})
    log(tmp_path, v0=[protocol(2, 5), named, *adds])
    source = a_source(open_log(str(tmp_path)), where="s.x = 11")
    tasks = source.tasks(source.initial(), at(1))

    assert [file.path for task in tasks for file in task.files] == ["10.parquet"]
    assert rows(tasks, ID) == [(11,)]


@pytest.mark.parametrize("key", [("__CHAR_VARCHAR_TYPE_STRING", "char(5)"), ("__COLLATIONS", {"c": "icu.UNICODE_CI"})])
@pytest.mark.parametrize(
    "read",
    [
        lambda path, asked: tablefeed.open_table(path).to_arrow(filter=asked),
        lambda path, asked: tablefeed.open_table(path).plan(filter=asked),
        lambda path, asked: tablefeed.appends(path, filter=asked),
        lambda path, asked: tablefeed.changes(path, filter=asked),
        lambda path, asked: differences(str(path), str(path), filter=asked),
    ],
    ids=["to_arrow", "plan", "appends", "changes", "differences"],
)
def test_a_filter_in_sql_knows_what_spark_compares_by_rules_of_its_own(
    tmp_path: Path, read: Callable[[Path, str], object], key: tuple[str, object]
) -> None:
    schema = json.dumps(struct(col("c", "string", notes=dict([key]))))
    log(tmp_path, v0=[protocol(), recorded(schema), add(data_file(tmp_path, "one.parquet", c=["ab   "]))])

    assert tablefeed.open_table(tmp_path).to_arrow(filter="c IS NOT NULL").num_rows == 1
    with pytest.raises(IllegalOptionError, match="by rules of its own"):
        read(tmp_path, "c = 'ab'")
