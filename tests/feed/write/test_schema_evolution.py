"""What a write leaves in the log of the table whose schema it changes, and who may have changed it meanwhile."""

from __future__ import annotations

import json
import pickle
import re
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

import tablefeed
from support.commits import a_write, commit_behind, commit_files, committed, delta_plan, still
from support.logs import (
    TABLE_ID,
    Action,
    a_log,
    a_table,
    actions_of,
    add,
    col,
    meta,
    metadata,
    protocol,
    put,
    said,
    struct,
)
from tablefeed import errors
from tablefeed.feed.commit.loop import commit
from tablefeed.feed.snapshot.table_log import TableLog
from tablefeed.feed.write.write_rules import WriteRules
from tablefeed.log.conflicts import WriteKind
from tablefeed.store import LocalStore

MERGE = WriteRules(merges_schema=True)
REPLACE = WriteRules(overwrites_schema=True)
WITH_NEW = pa.schema([("id", pa.int64()), ("new", pa.string())])
NAME = {"delta.columnMapping.mode": "name"}


def kinds(log: TableLog, version: int) -> list[str]:
    return [kind for action in actions_of(log, version) for kind in action]


def columns(meta: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {field["name"]: field for field in json.loads(meta["schemaString"])["fields"]}


def newest(path: Path, kind: str) -> dict[str, Any]:
    """What the newest commit says in its one action of a kind."""
    (value,) = said(path, tablefeed.open_table(path).version, kind)
    return dict(value)


def rows(path: Path) -> list[dict[str, Any]]:
    return sorted(tablefeed.open_table(path).to_arrow().to_pylist(), key=str)


# --- the metaData that is written ------------------------------------------------------------------------------------


def test_a_new_column_is_one_metadata_before_the_files_and_all_else_in_it_stays() -> None:
    key = col("id", notes={"comment": "key", "unknown": {"deep": [1]}})
    told = meta(key, configuration={"delta.appendOnly": "true", "mine": "x"})
    told["metaData"] |= {"name": "orders", "description": "all", "createdTime": 5, "futureField": {"a": 1}}
    log = a_log(v0=[protocol(), told])

    commit_files(log, "a", schema=WITH_NEW, rules=MERGE, txn=("q", 0))

    assert kinds(log, 1) == ["commitInfo", "metaData", "txn", "add"]
    (after,) = said(log, 1, "metaData")
    assert json.loads(after["schemaString"])["fields"] == [key, col("new", "string")]
    assert after == {**told["metaData"], "schemaString": after["schemaString"]}


def test_a_write_that_may_change_the_schema_and_does_not_writes_no_metadata() -> None:
    log = a_table()

    commit_files(log, "a", rules=MERGE)
    commit_files(log, "b", kind=WriteKind.OVERWRITE, rules=REPLACE)

    assert [kinds(log, version) for version in (1, 2)] == [["commitInfo", "add"], ["commitInfo", "add", "remove"]]


def test_a_plan_that_changes_metadata_reaches_tasks_and_the_commit() -> None:
    log = a_table()
    plan = delta_plan(a_write(log, log.load(), schema=WITH_NEW, rules=MERGE))

    assert pickle.loads(pickle.dumps(plan)) == plan  # noqa: S301 - our own
    assert plan.metadata is not None
    assert plan.metadata.table_id == TABLE_ID


# --- beside others ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("theirs", "named"),
    [
        (meta(col("id"), col("new", "string")), "its schema has the new column new; run the write again"),
        (meta(col("id", notes={"c": 1})), "its schema changed the column id; run the write again"),
    ],
)
def test_a_rivals_change_of_the_schema_the_same_or_another_excludes_ours_and_the_next_run_heals(
    theirs: Action, named: str
) -> None:
    log = a_table()

    with pytest.raises(errors.ConflictError, match=f"DELTA_METADATA_CHANGED.*{named}"):
        commit_behind(log, [theirs], schema=WITH_NEW, rules=MERGE, txn=("q", 3))
    outcome, after = commit_files(log, "again", schema=WITH_NEW, rules=MERGE, txn=("q", 3))

    assert (outcome, after.schema.names) == (committed(2), ("id", "new"))


def test_a_rivals_rows_do_not_exclude_a_change_of_the_schema() -> None:
    assert commit_behind(a_table(), [add("theirs")], schema=WITH_NEW, rules=MERGE)[0] == committed(2)


def test_a_batch_run_again_after_it_changed_the_schema_is_a_replay() -> None:
    log = a_table()
    snapshot = log.load()
    first = a_write(log, snapshot, "first", schema=WITH_NEW, rules=MERGE, txn=("q", 3))
    commit(log, snapshot, first, still())

    state = log.load()
    again = a_write(log, state, "again", schema=WITH_NEW, rules=MERGE, txn=("q", 3))
    stale, _ = commit(log, snapshot, first, still())
    planned_anew, _ = commit(log, state, again, still())

    assert (stale, planned_anew) == (stale, stale)
    assert log.load().version == 1


# --- rows and files --------------------------------------------------------------------------------------------------


def test_new_columns_and_members_are_read_by_delta_rs_as_null_in_older_rows(tmp_path: Path) -> None:
    tablefeed.append(tmp_path, pa.table({"id": [1], "s": [{"x": 1}]}))

    tablefeed.append(tmp_path, pa.table({"ID": ["2"], "s": [{"y": "q", "X": 2.0}], "n": [b"z"]}), merge_schema=True)

    expected = [{"id": 1, "s": {"x": 1, "y": None}, "n": None}, {"id": 2, "s": {"x": 2, "y": "q"}, "n": b"z"}]
    assert rows(tmp_path) == expected
    assert sorted(DeltaTable(str(tmp_path)).to_pyarrow_table().to_pylist(), key=str) == expected


def test_a_value_that_does_not_fit_leaves_neither_a_file_nor_a_version(tmp_path: Path) -> None:
    tablefeed.append(tmp_path, pa.table({"id": pa.array([1], pa.int32()), "s": [{"n": 1}]}))
    files = sorted(tmp_path.rglob("*.parquet"))

    for bad, words in (({"id": [2, 2**31]}, "column 'id'.*the value 2147483648"), ({"s": [{"n": "x"}]}, "'s.n'.*'x'")):
        with pytest.raises(errors.InvalidRowsError, match=words):
            tablefeed.append(tmp_path, pa.table(bad))

    assert sorted(tmp_path.rglob("*.parquet")) == files
    assert tablefeed.open_table(tmp_path).version == 0


def test_partition_values_are_those_of_the_cast_value(tmp_path: Path) -> None:
    day = pa.table({"id": [1], "day": pa.array([19_000], pa.date32())})
    tablefeed.append(tmp_path, day, partition_by=["day"])

    tablefeed.append(tmp_path, pa.table({"id": [2], "day": ["2024-2-9"]}))

    added = newest(tmp_path, "add")
    assert added["partitionValues"] == {"day": "2024-02-09"}
    assert added["path"].startswith("day=2024-02-09/")


def test_days_and_texts_are_read_as_moments_in_a_zone_that_is_given_and_in_none_else(tmp_path: Path) -> None:
    tablefeed.append(tmp_path, pa.table({"at": pa.array([0], pa.timestamp("us", "UTC"))}))
    text = pa.table({"at": ["2024-07-01 12:00:00"]})

    with pytest.raises(errors.SchemaMismatchError, match="timeZone"):
        tablefeed.append(tmp_path, text)
    tablefeed.append(tmp_path, text, time_zone="Europe/Berlin")

    assert [str(row["at"]) for row in rows(tmp_path)] == ["1970-01-01 00:00:00+00:00", "2024-07-01 10:00:00+00:00"]


def test_an_overwrite_may_replace_schema_and_partitioning_and_keeps_the_table(tmp_path: Path) -> None:
    tablefeed.append(tmp_path, pa.table({"id": [1], "p": ["a"]}), partition_by=["p"], properties={"mine": "x"})
    before, rows = newest(tmp_path, "metaData"), pa.table({"q": [1], "id": ["x"]})

    tablefeed.append(tmp_path, rows, mode="overwrite", overwrite_schema=True, partition_by=["Q"])

    after = newest(tmp_path, "metaData")
    assert [(name, field["type"]) for name, field in columns(after).items()] == [("q", "long"), ("id", "string")]
    assert after["partitionColumns"] == ["q"]
    assert all(after[key] == before[key] for key in ("id", "createdTime", "configuration"))
    assert DeltaTable(str(tmp_path)).to_pyarrow_table().to_pylist() == [{"q": 1, "id": "x"}]


def test_an_overwrite_without_leave_to_change_the_schema_casts_to_it(tmp_path: Path) -> None:
    tablefeed.append(tmp_path, pa.table({"id": [1]}))
    tablefeed.append(tmp_path, pa.table({"id": ["2"]}), mode="overwrite")

    assert rows(tmp_path) == [{"id": 2}]


def test_a_column_without_a_type_gets_that_of_the_rows_where_columns_are_added(tmp_path: Path) -> None:
    void, member = col("v", "void"), col("s", struct(col("n"), col("v", "void")))
    told = meta(col("id"), void, member, configuration={"delta.enableTypeWidening": "true"})
    a_log(LocalStore(str(tmp_path)), v0=[WIDENING, told])
    tablefeed.append(tmp_path, pa.table({"id": [1], "s": [{"n": 1}]}))
    typed = pa.table({"id": [2], "V": [["x"]], "s": [{"n": 2, "v": 2.5}]})

    with pytest.raises(errors.SchemaMismatchError, match=r"'v' .* is void, .* mergeSchema"):
        tablefeed.append(tmp_path, typed)
    tablefeed.append(tmp_path, typed, merge_schema=True)

    after = columns(newest(tmp_path, "metaData"))
    assert after["v"] == col("v", {"type": "array", "elementType": "string", "containsNull": True})
    assert after["s"] == col("s", struct(col("n"), col("v", "double")))
    assert rows(tmp_path) == [
        {"id": 1, "v": None, "s": {"n": 1, "v": None}},
        {"id": 2, "v": ["x"], "s": {"n": 2, "v": 2.5}},
    ]


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_a_column_of_the_rows_without_a_type_is_null_in_a_column_of_the_table(
    tmp_path: Path, mode: Literal["append", "overwrite"]
) -> None:
    """Arrow gives this type to a column in which all is null, as of `pa.Table.from_pylist`."""
    moment = pa.array([None], pa.timestamp("us", "UTC"))
    first = {"id": [1], "day": ["a"], "at": moment, "s": [{"x": "b", "n": 1}], "tags": [["c"]]}
    tablefeed.append(tmp_path, pa.table(first), partition_by=["day"])

    without_types = pa.Table.from_pylist([{"id": 2, "DAY": None, "at": None, "s": {"x": None, "n": 2}, "tags": []}])
    tablefeed.append(tmp_path, without_types, mode=mode)

    assert rows(tmp_path)[-1] == {"id": 2, "day": None, "at": None, "s": {"x": None, "n": 2}, "tags": []}


def test_a_column_of_the_rows_without_a_type_is_refused_where_the_column_must_not_be_null(tmp_path: Path) -> None:
    tablefeed.create(tmp_path, pa.schema([pa.field("id", pa.int64()), pa.field("v", pa.string(), nullable=False)]))

    with pytest.raises(errors.InvalidRowsError, match="NOT NULL constraint violated for column: v"):
        tablefeed.append(tmp_path, pa.table({"id": [1], "v": pa.nulls(1)}))


# --- refusals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("new", "configuration", "error_class"),
    [
        (("clock", pa.timestamp("us")), {}, "DELTA_FEATURES_REQUIRE_MANUAL_ENABLEMENT"),
        (("nothing", pa.null()), {}, "DELTA_NULL_SCHEMA_IN_STREAMING_WRITE"),
        (("a b", pa.string()), {}, "DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES"),
        (("_change_type", pa.string()), {"delta.enableChangeDataFeed": "true"}, "RESERVED_CDC_COLUMNS_ON_WRITE"),
    ],
    ids=str,
)
def test_a_column_that_the_table_cannot_have_is_refused(
    new: tuple[str, pa.DataType], configuration: dict[str, str], error_class: str
) -> None:
    log = a_log(v0=[protocol(1, 4), metadata(configuration=configuration)])

    named = f"{error_class}.*{new[0].replace('clock', 'timestampNtz')}"
    with pytest.raises((errors.SchemaMismatchError, errors.UnsupportedFeatureError), match=named):
        a_write(log, log.load(), schema=pa.schema([("id", pa.int64()), new]), rules=MERGE)


WIDENING = protocol(3, 7, readerFeatures=["typeWidening"], writerFeatures=["typeWidening"])


def test_a_wider_type_is_told_of_in_the_column_where_the_table_allows_it() -> None:
    key = col("id", "integer", notes={"comment": "key"})
    log = a_log(v0=[WIDENING, meta(key, configuration={"delta.enableTypeWidening": "true"})])
    fixed = a_write(log, log.load(), "b")

    commit_files(log, "a", rules=MERGE)

    changes = {"comment": "key", "delta.typeChanges": [{"fromType": "integer", "toType": "long"}]}
    assert columns(said(log, 1, "metaData")[0])["id"] == col("id", notes=changes)
    assert delta_plan(fixed).metadata is None, "without mergeSchema the rows are cast"


@pytest.mark.parametrize(
    ("features", "configuration", "named"),
    [
        (["typeWidening-preview"], {}, "has the preview of type widening"),
        (["typeWidening", "checkConstraints"], {"delta.constraints.c": "ID > 0"}, "CONSTRAINT_DATA_TYPE_MISMATCH"),
    ],
    ids=["preview", "constraint"],
)
def test_a_type_is_not_widened_where_others_rest_on_it(
    features: list[str], configuration: dict[str, str], named: str
) -> None:
    readers = [name for name in features if name.startswith("typeWidening")]
    told = meta(col("id", "integer"), configuration={"delta.enableTypeWidening": "true", **configuration})
    log = a_log(v0=[protocol(3, 7, readerFeatures=readers, writerFeatures=features), told])

    with pytest.raises((errors.UnsupportedFeatureError, errors.SchemaMismatchError), match=named):
        a_write(log, log.load(), rules=MERGE)


# --- mapped columns --------------------------------------------------------------------------------------------------


def test_a_new_table_maps_its_columns_where_its_properties_say_so(tmp_path: Path) -> None:
    nested = {"a b": [1], "p": ["x"], "s": [[{"k": 1}]]}
    tablefeed.append(tmp_path, pa.table(nested), partition_by=["P"], properties=NAME)

    told, added = newest(tmp_path, "metaData"), newest(tmp_path, "add")
    by_name = columns(told)
    inner = by_name["s"]["type"]["elementType"]["fields"][0]
    fields = [by_name["a b"], by_name["p"], by_name["s"], inner]
    assert [f["metadata"]["delta.columnMapping.id"] for f in fields] == [1, 2, 3, 4]
    physical = [f["metadata"]["delta.columnMapping.physicalName"] for f in fields]
    assert all(re.fullmatch(r"col-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", name) for name in physical)
    assert told["configuration"] == {**NAME, "delta.columnMapping.maxColumnId": "4"}
    assert told["partitionColumns"] == ["p"]
    assert added["partitionValues"] == {physical[1]: "x"}
    assert re.fullmatch(r"[A-Za-z0-9]{2}/part-00000-.*", added["path"])
    stats = json.loads(added["stats"])
    assert stats["minValues"] == {physical[0]: 1}
    assert stats["nullCount"] == {physical[0]: 0, physical[2]: 0}
    file = pq.ParquetFile(tmp_path / added["path"]).schema_arrow
    assert [(f.name, f.metadata[b"PARQUET:field_id"]) for f in file] == [(physical[0], b"1"), (physical[2], b"3")]
    member = file.field(1).type.value_type.field(0)
    assert (member.name, member.metadata[b"PARQUET:field_id"]) == (physical[3], b"4")
    assert rows(tmp_path) == [{"a b": 1, "p": "x", "s": [{"k": 1}]}]


def test_new_columns_of_a_mapped_table_get_the_next_ids_and_the_others_keep_theirs(tmp_path: Path) -> None:
    tablefeed.append(tmp_path, pa.table({"id": [1], "s": [{"x": 1}]}), properties=NAME)
    old = columns(newest(tmp_path, "metaData"))

    tablefeed.append(tmp_path, pa.table({"s": [{"y z": 2}], "new": [3], "id": [2]}), merge_schema=True)

    after = newest(tmp_path, "metaData")
    assert after["configuration"]["delta.columnMapping.maxColumnId"] == "5"
    new = columns(after)
    assert list(new) == ["id", "s", "new"]
    assert new["id"] == old["id"]
    assert new["s"]["metadata"] == old["s"]["metadata"]
    assert new["s"]["type"]["fields"][0] == old["s"]["type"]["fields"][0]
    assert new["s"]["type"]["fields"][1]["metadata"]["delta.columnMapping.id"] == 4
    assert new["new"]["metadata"]["delta.columnMapping.id"] == 5
    assert rows(tmp_path) == [
        {"id": 1, "s": {"x": 1, "y z": None}, "new": None},
        {"id": 2, "s": {"x": None, "y z": 2}, "new": 3},
    ]


def test_an_overwritten_schema_keeps_the_mapping_of_what_stays_and_gives_no_id_twice(tmp_path: Path) -> None:
    tablefeed.append(tmp_path, pa.table({"a": [1], "b": ["x"], "c": [1]}), properties=NAME)
    before = columns(newest(tmp_path, "metaData"))

    tablefeed.append(tmp_path, pa.table({"d": [1], "b": ["y"], "a": ["z"]}), mode="overwrite", overwrite_schema=True)

    told = newest(tmp_path, "metaData")
    after = columns(told)
    assert after["b"] == before["b"]
    assert [after[name]["metadata"]["delta.columnMapping.id"] for name in ("d", "a")] == [4, 5]
    assert told["configuration"]["delta.columnMapping.maxColumnId"] == "5"
    assert rows(tmp_path) == [{"d": 1, "b": "y", "a": "z"}]


def test_the_largest_id_is_what_columns_have_where_the_property_says_less() -> None:
    told = {**NAME, "delta.columnMapping.maxColumnId": "3"}
    log = a_log(v0=[protocol(2, 5), meta(col("id", id=7, physicalName="id"), configuration=told)])

    changed = delta_plan(a_write(log, log.load(), schema=WITH_NEW, rules=MERGE)).metadata

    assert changed is not None
    assert changed.configuration["delta.columnMapping.maxColumnId"] == "8"


def test_an_id_that_is_no_number_gives_no_new_column() -> None:
    told = {**NAME, "delta.columnMapping.maxColumnId": "x"}
    log = a_log(v0=[protocol(2, 5), meta(col("id", id=1, physicalName="id"), configuration=told)])

    with pytest.raises(errors.LogError, match="'x', which is not a number"):
        a_write(log, log.load(), schema=WITH_NEW, rules=MERGE)


def test_no_user_sets_the_largest_id(tmp_path: Path) -> None:
    with pytest.raises(errors.IllegalOptionError, match="DELTA_CANNOT_MODIFY_TABLE_PROPERTY"):
        tablefeed.append(tmp_path, pa.table({"id": [1]}), properties={**NAME, "delta.columnMapping.maxColumnId": "9"})


def test_a_null_that_is_not_allowed_is_named_as_users_name_its_column(tmp_path: Path) -> None:
    key = col("key", nullable=False, id=1, physicalName="col-1")
    put(LocalStore(str(tmp_path)), 0, [protocol(2, 5), meta(key, configuration=NAME)])

    with pytest.raises(errors.InvalidRowsError, match="column: key"):
        tablefeed.append(tmp_path, pa.table({"key": pa.array([None], pa.int64())}))
