"""A stream with `ignoreAddedColumns`: what it goes on over, what it delivers then, and what stops it all the same."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.logs import (
    Action,
    a_log,
    a_source,
    add,
    at,
    batches,
    col,
    delivered,
    meta,
    protocol,
    put,
    source_options,
    struct,
)
from support.recorded import cdc, data_file, recorded
from support.recorded import log as a_log_on_disk
from tablefeed.errors import SchemaChangedError, SchemaMismatchError
from tablefeed.feed.scan.task import read_task
from tablefeed.feed.snapshot.open_log import open_log
from tablefeed.feed.snapshot.table_log import TableLog
from tablefeed.feed.stream.source import StreamSource
from tablefeed.log.plan import Limits
from tablefeed.model.offset import Offset

ALL = Limits()
ID = pa.schema([("id", pa.int64())])
MAPPED = {"delta.columnMapping.mode": "name"}
BY_ID = {"delta.columnMapping.mode": "id"}


def array(of: object) -> dict[str, object]:
    return {"type": "array", "elementType": of, "containsNull": True}


def a_map(key: object, value: object) -> dict[str, object]:
    return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": True}


def going_on(log: TableLog, **options: Any) -> StreamSource:
    return a_source(log, ignore_added_columns=True, **options)


def read(source: StreamSource, start: Offset, end: Offset, schema: pa.Schema) -> list[dict[str, Any]]:
    batches = [batch for task in source.tasks(start, end) for batch in read_task(task, schema)]
    return sorted(pa.Table.from_batches(batches, schema).to_pylist(), key=lambda row: row["id"])


# --- what it delivers ------------------------------------------------------------------------------------------------


def nested(member: pa.StructType) -> pa.Schema:
    return pa.schema([("id", pa.int64()), ("s", member), ("l", pa.list_(member)), ("m", pa.map_(pa.string(), member))])


NARROW = nested(pa.struct([("a", pa.int64())]))
WIDE = pa.schema([("more", pa.string()), *nested(pa.struct([("b", pa.string()), ("a", pa.int64())]))])
FIRST = {"id": 1, "s": {"a": 1}, "l": [{"a": 2}], "m": [("k", {"a": 3})]}
LATER = {
    "more": "new",
    "id": 2,
    "s": {"b": "x", "a": None},
    "l": [{"b": "y", "a": 5}, None, {"b": "z", "a": None}],
    "m": [("k", {"b": "w", "a": 6}), ("none", None)],
}
LATER_NARROW = {"id": 2, "s": {"a": None}, "l": [{"a": 5}, None, {"a": None}], "m": [("k", {"a": 6}), ("none", None)]}


def test_rows_of_another_writer_with_new_members_at_every_depth_come_without_them_until_the_restart(
    tmp_path: Path,
) -> None:
    deltalake.write_deltalake(str(tmp_path), pa.Table.from_pylist([FIRST], NARROW))
    log = open_log(str(tmp_path))
    source = going_on(log)
    first = source.latest(source.initial(), ALL)
    before = pa.schema(log.load().arrow_schema)
    deltalake.write_deltalake(str(tmp_path), pa.Table.from_pylist([LATER], WIDE), mode="append", schema_mode="merge")

    end = source.latest(first, ALL)
    restarted = going_on(log)

    assert read(source, source.initial(), first, before) == [FIRST]
    assert read(source, first, end, before) == [LATER_NARROW]
    assert restarted.latest(end, ALL) == end
    assert read(restarted, first, end, log.load().arrow_schema) == [LATER]


def test_files_with_names_of_their_own_are_read_without_new_members_too(tmp_path: Path) -> None:
    def member(*columns: dict[str, object]) -> dict[str, object]:
        return array(struct(col("a", id=3, physicalName="c3"), *columns))

    def columns(*more: dict[str, object]) -> list[dict[str, object]]:
        return [col("id", id=1, physicalName="c1"), col("l", member(*more), id=2, physicalName="c2")]

    def field(name: str, kind: pa.DataType, number: int) -> pa.Field:
        return pa.field(name, kind, metadata={"PARQUET:field_id": str(number)})

    element = pa.struct([field("c4", pa.string(), 4), field("c3", pa.int64(), 3)])
    stored = pa.schema([field("c9", pa.string(), 5), field("c2", pa.list_(element), 2), field("c1", pa.int64(), 1)])
    pq.write_table(pa.Table.from_pylist([{"c9": "new", "c2": [{"c4": "x", "c3": 7}], "c1": 1}], stored), tmp_path / "f")
    size = (tmp_path / "f").stat().st_size
    for mode in (MAPPED, BY_ID):
        a_log_on_disk(tmp_path, v0=[protocol(2, 5), meta(*columns(), configuration=mode)])
        (tmp_path / "_delta_log" / f"{1:020d}.json").unlink(missing_ok=True)
        log = open_log(str(tmp_path))
        source = going_on(log)
        source.latest(source.initial(), ALL)
        schema = log.load().arrow_schema
        more = columns(col("b", "string", id=4, physicalName="c4"))
        changed = meta(col("top", "string", id=5, physicalName="c9"), *more, configuration=mode)
        a_log_on_disk(tmp_path, v1=[changed, add("f", size=size)])

        assert read(source, at(1), source.latest(at(1), ALL), schema) == [{"id": 1, "l": [{"a": 7}]}]


def test_a_predicate_and_statistics_speak_of_the_columns_that_are_read() -> None:
    log = a_log(v0=[protocol(), meta(col("id"))])
    source = going_on(log, where="id > 5")
    source.latest(source.initial(), ALL)

    def stats(low: int, high: int) -> str:
        bounds = {"minValues": {"new": "a", "id": low}, "maxValues": {"new": "z", "id": high}}
        return json.dumps({"numRecords": 2, **bounds, "nullCount": {"new": 0, "id": 0}})

    put(log.store, 1, [meta(col("new", "string"), col("id")), add("a", stats=stats(1, 5)), add("b", stats=stats(1, 6))])

    assert delivered(source, at(1), source.latest(at(1), ALL)) == ["b"]


def test_changes_of_rows_come_in_the_schema_of_before(tmp_path: Path) -> None:
    log = open_log(str(a_log_on_disk(tmp_path, v0=[protocol(), recorded()])))
    source = going_on(log, change_feed=True)
    source.latest(source.initial(), ALL)
    wide = recorded()["metaData"] | {"schemaString": json.dumps(struct(col("id"), col("new", "string")))}
    new = data_file(tmp_path, "new.parquet", id=[1], new=["x"])
    change = data_file(
        tmp_path, "change.parquet", new=["x", "y"], _change_type=["update_preimage", "update_postimage"], id=[1, 1]
    )
    a_log_on_disk(tmp_path, v1=[{"metaData": wide}, add(new)], v2=[cdc(change)])

    kind = pa.schema([("id", pa.int64()), ("_change_type", pa.string())])
    found = read(source, at(1), source.latest(at(1), ALL), kind)

    assert sorted(row["_change_type"] for row in found) == ["insert", "update_postimage", "update_preimage"]
    assert {row["id"] for row in found} == {1}


def test_an_added_column_of_a_name_that_the_change_feed_gives_is_refused() -> None:
    log = a_log(v0=[protocol(), recorded()])
    source = going_on(log, change_feed=True)
    source.latest(source.initial(), ALL)
    named = json.dumps(struct(col("id"), col("_Change_Type", "string")))
    put(log.store, 1, [{"metaData": recorded()["metaData"] | {"schemaString": named}}, add("a")])

    with pytest.raises(SchemaMismatchError, match="Rename the column"):
        source.latest(at(1), ALL)


# --- what it goes on over --------------------------------------------------------------------------------------------


def test_columns_are_told_once_each_with_the_version_that_brought_them(caplog: pytest.LogCaptureFixture) -> None:
    log = a_log(v0=[protocol(), meta(col("id"), col("s", struct(col("a"))))])
    source = going_on(log)
    source.latest(source.initial(), ALL)
    one = [col("id"), col("s", struct(col("a"), col("b"))), col("new", "string")]
    put(log.store, 1, [meta(*one), add("a"), add("b")])
    put(log.store, 2, [meta(*one, configuration={"owner": "me"}), add("c")])
    put(log.store, 3, [meta(*one, col("newer")), add("d")])

    with caplog.at_level(logging.WARNING):
        found = batches(source, at(1), Limits(files=1))

    assert [files for _, files in found] == [["a"], ["b"], ["c"], ["d"]]
    assert [record.getMessage() for record in caplog.records] == [
        f"url=memory:orders version={version} columns={columns} were added and are not read until this query is "
        "started again"
        for version, columns in ((1, "s.b, new"), (3, "s.b, new, newer"))
    ]


def test_a_stream_from_before_columns_that_it_has_goes_on_to_columns_that_it_has_not() -> None:
    log = a_log(
        v0=[protocol(), meta(col("id")), add("a")],
        v1=[meta(col("id"), col("known")), add("b")],
    )
    source = going_on(log, starting_version=0)
    assert delivered(source, at(0), source.latest(at(0), ALL)) == ["a", "b"]
    put(log.store, 2, [meta(col("id"), col("known"), col("new")), add("c")])

    assert delivered(source, at(2), source.latest(at(2), ALL)) == ["c"]


@pytest.mark.parametrize("configuration", [{}, MAPPED])
def test_a_dataframe_from_before_the_column_goes_on_in_its_own_schema(configuration: dict[str, str]) -> None:
    known, new = col("id", id=1, physicalName="c1"), col("new", id=2, physicalName="c2")
    log = a_log(v0=[protocol(2, 5), meta(known, configuration=configuration), add("a")])
    analysed = log.load().schema
    put(log.store, 1, [meta(known, new, configuration=configuration), add("b")])

    for starting_version, begins in ((None, at(1, in_snapshot=True)), (0, at(0)), (1, at(1))):
        options = source_options(ignore_added_columns=True, starting_version=starting_version)
        source = StreamSource(log, read_schema=analysed, options=options, clock=lambda: 0.0)
        assert source.initial() == begins
        assert delivered(source, begins, source.latest(begins, ALL)) == (["b"] if begins == at(1) else ["a", "b"])


def test_a_column_that_was_added_and_goes_again_under_the_stream_is_none_of_its() -> None:
    known = col("id", id=1, physicalName="c1")
    log = a_log(v0=[protocol(2, 5), meta(known, configuration=MAPPED)])
    source = going_on(log)
    source.latest(source.initial(), ALL)
    put(log.store, 1, [meta(known, col("new", id=2, physicalName="c2"), configuration=MAPPED), add("a")])
    put(log.store, 2, [meta(known, col("newer", id=2, physicalName="c2"), configuration=MAPPED), add("b")])
    put(log.store, 3, [meta(known, configuration=MAPPED), add("c")])

    assert delivered(source, at(1), source.latest(at(1), ALL)) == ["a", "b", "c"]


def test_mapping_that_is_turned_on_with_the_column_is_gone_over() -> None:
    log = a_log(v0=[protocol(2, 5), meta(col("id"))])
    source = going_on(log)
    source.latest(source.initial(), ALL)
    columns = col("id", id=1, physicalName="id"), col("new", id=2, physicalName="c2")
    put(log.store, 1, [meta(*columns, configuration=MAPPED), add("a")])

    assert delivered(source, at(1), source.latest(at(1), ALL)) == ["a"]


# --- what stops it ---------------------------------------------------------------------------------------------------

KNOWN = (col("id", nullable=False), col("s", struct(col("a", "integer"))), col("m", a_map(struct(col("k")), "long")))
ID_, S, M = KNOWN
STOPS = {
    "a column added and one spelt otherwise": (col("ID", nullable=False), S, M, col("new")),
    "a member spelt otherwise": (ID_, col("s", struct(col("A", "integer"))), M),
    "a column that may not be null": (*KNOWN, col("new", nullable=False)),
    "a column added and one gone": (ID_, S, col("new")),
    "a member added and one gone": (ID_, col("s", struct(col("b"))), M),
    "a column added and one widened": (ID_, col("s", struct(col("a", "long"))), M, col("new")),
    "a column added and one of another type": (col("id", "string", nullable=False), S, M, col("new")),
    "a column added and one that may be null now": (col("id"), S, M, col("new")),
    "a column that may be null now": (col("id"), S, M),
    "a member of a key": (ID_, S, col("m", a_map(struct(col("k"), col("new")), "long"))),
}
A, B = col("a", id=1, physicalName="c1"), col("b", id=2, physicalName="c2")
MAPPED_STOPS = {
    "renamed": meta(col("z", id=1, physicalName="c1"), B, configuration=MAPPED),
    "another of its name": meta(
        col("a", id=3, physicalName="c3"), B, col("new", id=4, physicalName="c4"), configuration=MAPPED
    ),
    "names exchanged": meta(col("b", id=1, physicalName="c1"), col("a", id=2, physicalName="c2"), configuration=MAPPED),
    "mapping turned off": meta(col("a"), col("b"), col("new")),
}
OTHER_ID = meta(A, col("b", id=7, physicalName="c2"), configuration=BY_ID)


@pytest.mark.parametrize(
    ("before", "change", "said"),
    [
        *(pytest.param(meta(*KNOWN), meta(*changed), None, id=name) for name, changed in STOPS.items()),
        pytest.param(
            meta(*KNOWN),
            meta(*KNOWN, col("day"), partition_columns=["day"]),
            "partitioned by day",
            id="another partitioning",
        ),
        *(
            pytest.param(meta(A, B, configuration=MAPPED), changed, None, id=name)
            for name, changed in MAPPED_STOPS.items()
        ),
        pytest.param(meta(A, B, configuration=BY_ID), OTHER_ID, "its id in files changed", id="another id in files"),
    ],
)
def test_whatever_else_changes_stops_it(before: Action, change: Action, said: str | None) -> None:
    log = a_log(v0=[protocol(2, 5), before])
    source = going_on(log)
    source.latest(source.initial(), ALL)
    put(log.store, 1, [change, add("a")])

    with pytest.raises(SchemaChangedError, match=said):
        source.latest(at(1), ALL)


def test_a_column_that_files_have_by_another_id_stops_a_stream_without_the_option_too() -> None:
    log = a_log(v0=[protocol(2, 5), meta(A, B, configuration=BY_ID)])
    source = a_source(log)
    source.latest(source.initial(), ALL)
    put(log.store, 1, [OTHER_ID, add("a")])

    with pytest.raises(SchemaChangedError, match="its id in files changed"):
        source.latest(at(1), ALL)


def test_a_column_that_was_dropped_before_the_query_began_is_no_added_one() -> None:
    log = a_log(
        v0=[protocol(), meta(col("id"))],
        v1=[meta(col("id"), col("gone")), add("a")],
        v2=[meta(col("id")), add("b")],
    )
    source = going_on(log, starting_version=0)

    with pytest.raises(SchemaChangedError, match="later startingVersion"):
        source.latest(at(0), ALL)
