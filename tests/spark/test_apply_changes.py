"""`tablefeed.spark.apply_changes`: change events applied to a table by a stream or a batch, also on Connect."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import tablefeed
import tablefeed.spark
from feed.rows.test_apply_changes import FED, NEEDED, Event, a_target, apply, events, rows
from feed.rows.test_delete_and_update import unnamed_files
from tablefeed import AlreadyApplied, Committed
from tablefeed.errors import (
    DataFileError,
    EqualSequencesError,
    IllegalOptionError,
    InvalidEventsError,
    InvalidRowsError,
    MissingPathError,
    SchemaMismatchError,
    TablefeedError,
    UnsupportedOptionError,
)
from tablefeed.model.actions import Version

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ARGUMENTS: dict[str, Any] = {
    "keys": "id",
    "sequence_by": "ts",
    "apply_as_deletes": "op = 'd'",
    "except_column_list": ["op"],
}


def feed(path: Path, *commits: list[Event]) -> Path:
    """A table of events, each list of them one commit."""
    for commit in commits:
        tablefeed.append(path, events(*commit))
    return path


def run(session: SparkSession, source: Path, target: str, checkpoint: Path, **more: Any) -> str:
    """Applies all that is there, one commit of the source a batch; gives the query's id."""
    stream = session.readStream.format("tablefeed").option("maxFilesPerTrigger", 1).load(str(source))
    return applied(stream, target, checkpoint, **{**ARGUMENTS, **more})


def applied(stream: DataFrame, target: str, checkpoint: Path, **arguments: Any) -> str:
    """Applies all that a stream has now; gives the query's id."""
    query = tablefeed.spark.apply_changes(
        stream, target, **arguments, checkpoint_location=str(checkpoint), trigger={"availableNow": True}
    )
    assert not isinstance(query, Committed | AlreadyApplied)
    query.awaitTermination()
    return str(query.id)


def batch(session: SparkSession, *given: Event) -> DataFrame:
    return session.createDataFrame(list(given), "id long, v string, ts long, op string")


def txns(target: str) -> list[tuple[str, int]]:
    """The txns of the commits, in their order."""
    lines = [
        json.loads(line)
        for path in sorted((Path(target) / "_delta_log").glob("*.json"))
        for line in path.read_text().splitlines()
    ]
    return [(line["txn"]["appId"], line["txn"]["version"]) for line in lines if "txn" in line]


def test_texts_become_instants_in_the_zone_that_is_given(spark: SparkSession, tmp_path: Path) -> None:
    target = str(tmp_path / "target")
    columns = {"id": pa.int64(), "v": pa.timestamp("us", "UTC"), "ts": pa.int64()}
    tablefeed.append(target, pa.schema(list(columns.items())).empty_table(), properties=NEEDED)
    changes = batch(spark, (1, "2024-06-01 23:00:00", 1, "u"))
    tablefeed.spark.apply_changes(changes, target, **ARGUMENTS, time_zone="Europe/Berlin")
    assert rows(target) == [(1, datetime(2024, 6, 1, 21, tzinfo=UTC), 1)]


@pytest.mark.parametrize("tasks", [1, 3])
def test_a_batch_has_the_same_outcome_in_any_number_of_tasks(spark: SparkSession, tmp_path: Path, tasks: int) -> None:
    target, beside = a_target(tmp_path), a_target(tmp_path / "beside")
    first: list[Event] = [(number, "a", number % 7 * 2, "ud"[number % 3 == 0]) for number in range(60)]
    second: list[Event] = [(number, "b", 3, "u") for number in range(0, 80, 2)]
    for given in (first, second):
        tablefeed.spark.apply_changes(batch(spark, *given), target, **ARGUMENTS, tasks=tasks)
        apply(beside, *given)
    assert rows(target) == rows(beside)


def test_keys_that_become_equal_in_the_type_of_the_table_are_one_key_in_any_number_of_tasks(
    spark: SparkSession, tmp_path: Path
) -> None:
    target = a_target(tmp_path)
    texts = [("0" * zeros + "7", str(zeros), zeros, "u") for zeros in range(9)]
    given = spark.createDataFrame(texts, "id string, v string, ts long, op string")
    tablefeed.spark.apply_changes(given, target, **ARGUMENTS, tasks=5)
    assert rows(target) == [(7, "8", 8)]


def test_texts_are_divided_as_the_instants_that_they_are_in_the_zone_that_is_given(
    spark: SparkSession, tmp_path: Path
) -> None:
    target = str(tmp_path / "target")
    columns = {"id": pa.timestamp("us", "UTC"), "v": pa.string(), "ts": pa.int64()}
    tablefeed.create(target, pa.schema(list(columns.items())), properties=NEEDED)
    alike = ["2024-03-31 01:30:00Z", "2024-03-31 03:30:00", "2024-03-30 20:30:00-05:00", "2024-03-31 03:30"]
    texts = [(text, str(at), at, "u") for at, text in enumerate(alike)]
    given = spark.createDataFrame(texts, "id string, v string, ts long, op string")
    tablefeed.spark.apply_changes(given, target, **ARGUMENTS, time_zone="Europe/Berlin", tasks=5)
    assert rows(target) == [(datetime(2024, 3, 31, 1, 30, tzinfo=UTC), "3", 3)]


def test_what_is_a_truncate_in_the_zone_that_is_given_takes_the_rows_of_all_tasks(
    spark: SparkSession, tmp_path: Path
) -> None:
    target = str(tmp_path / "target")
    columns = {"id": pa.int64(), "ts": pa.timestamp("us", "UTC")}
    tablefeed.create(target, pa.schema(list(columns.items())), properties=NEEDED)
    at = [(number, datetime(2024, 6, 1, 12 + number, tzinfo=UTC)) for number in range(12)]
    given = spark.createDataFrame(at, "id long, ts timestamp")
    midnight = "date_format(ts, 'yyyy-MM-dd HH:mm') = '2024-06-02 00:00'"
    arguments: dict[str, Any] = {"keys": "id", "sequence_by": "ts", "apply_as_truncates": midnight}
    tablefeed.spark.apply_changes(given, target, **arguments, time_zone="Europe/Berlin", tasks=5)
    assert rows(target) == [(11, datetime(2024, 6, 1, 23, tzinfo=UTC))]
    assert not unnamed_files(target)


def test_a_truncate_takes_rows_whatever_task_their_key_would_be_in(spark: SparkSession, tmp_path: Path) -> None:
    target = a_target(tmp_path)
    apply(target, *((number, "a", 1 + number % 2 * 8, "u") for number in range(10)))
    given = batch(spark, (0, None, 5, "t"), (20, "late", 4, "u"), (21, "b", 6, "u"))
    tablefeed.spark.apply_changes(given, target, **ARGUMENTS, apply_as_truncates="op = 't'", tasks=4)
    assert [row[0] for row in rows(target)] == [1, 21, 3, 5, 7, 9]


def test_a_batch_with_a_txn_is_applied_once(session: SparkSession, tmp_path: Path) -> None:
    target = a_target(tmp_path)
    given = batch(session, (1, "a", 1, "u"))
    once: dict[str, Any] = {"app_id": "job", "txn_version": 1}
    assert tablefeed.spark.apply_changes(given, target, **ARGUMENTS, **once) == Committed(version=Version(1))
    again = tablefeed.spark.apply_changes(given, target, **ARGUMENTS, **once)
    assert again == AlreadyApplied(version=Version(1), recorded_txn_version=1)


def test_a_history_is_kept_by_a_stream(spark: SparkSession, tmp_path: Path) -> None:
    target = a_target(tmp_path, scd_type=2)
    source = feed(tmp_path / "source", [(1, "a", 10, "u")], [(1, "b", 20, "u")], [(1, "late", 15, "u")])
    run(spark, source, target, tmp_path / "c", stored_as_scd_type=2, except_column_list=["op", "ts"])
    assert rows(target) == [(1, "a", 10, 15), (1, "b", 20, None), (1, "late", 15, 20)]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"checkpoint_location": None}, MissingPathError),
        ({"app_id": "job", "txn_version": 1}, UnsupportedOptionError),
        ({"keys": "nope"}, TablefeedError),
        ({"except_column_list": None}, SchemaMismatchError),
        ({"trigger": {"never": True}}, IllegalOptionError),
        ({"trigger": {"processingTime": "soon"}}, IllegalOptionError),
        ({"trigger": {"processingTime": 5}}, IllegalOptionError),
        ({"trigger": "once"}, IllegalOptionError),
        ({"query_name": 5}, IllegalOptionError),
    ],
    ids=["no checkpoint", "a txn", "keys", "columns", "trigger", "time", "number", "text", "name"],
)
def test_a_stream_that_cannot_be_applied_is_refused_before_it_starts(
    spark: SparkSession, tmp_path: Path, arguments: dict[str, Any], error: type[Exception]
) -> None:
    target = a_target(tmp_path)
    stream = spark.readStream.format("tablefeed").load(str(feed(tmp_path / "source", [(1, "a", 1, "u")])))
    given = {**ARGUMENTS, "checkpoint_location": str(tmp_path / "checkpoint"), **arguments}
    with pytest.raises(error):
        tablefeed.spark.apply_changes(stream, target, **given)
    assert not spark.streams.active


@pytest.mark.parametrize(("name", "source"), [("__failed", None), ("FAILED", "debezium"), ("ORDER", "debezium")])
def test_a_name_of_a_column_that_is_added_on_the_way_is_refused_before_a_task_runs(
    spark: SparkSession, tmp_path: Path, name: str, source: Any
) -> None:
    target = a_target(tmp_path)
    changes = spark.sql(f"SELECT 1L AS id, 'a' AS v, 1L AS ts, 'x' AS `{name}`, '{{}}' AS value")
    arguments: dict[str, Any] = {"sequence_by": "ts"} if source is None else {"source": source}
    with pytest.raises(SchemaMismatchError, match=f"have a column (__)?{name}, a name that tablefeed uses itself"):
        tablefeed.spark.apply_changes(changes, target, keys="id", **arguments)


def test_rows_that_are_no_data_frame_are_refused_by_name(tmp_path: Path) -> None:
    target = a_target(tmp_path)
    given: Any = events((1, "a", 1, "u"))
    with pytest.raises(IllegalOptionError, match="'Table' for option 'changes': it is no DataFrame of Spark"):
        tablefeed.spark.apply_changes(given, target, **ARGUMENTS)
    with pytest.raises(IllegalOptionError, match="'Table' for option 'snapshots': it is no DataFrame of Spark"):
        tablefeed.spark.apply_changes_from_snapshot((given, 1), target, keys="id")


def test_the_rows_of_a_bad_batch_end_the_query_and_nothing_is_committed(spark: SparkSession, tmp_path: Path) -> None:
    target = a_target(tmp_path)
    source = feed(tmp_path / "source", [(1, "a", 1, "u"), (1, "b", 1, "u")])
    with pytest.raises(Exception, match="Make sequence_by finer"):
        run(spark, source, target, tmp_path / "checkpoint")
    assert (tablefeed.open_table(target).version, pa.table(tablefeed.open_table(target).to_arrow()).num_rows) == (0, 0)


def test_a_batch_that_one_task_refuses_leaves_no_file_of_the_other_tasks(session: SparkSession, tmp_path: Path) -> None:
    target = a_target(tmp_path)
    given = batch(session, *((number, "a", 1, "u") for number in range(20)), (7, "other", 1, "u"))
    with pytest.raises(EqualSequencesError, match="Make sequence_by finer"):
        tablefeed.spark.apply_changes(given, target, **ARGUMENTS, tasks=4)
    assert not unnamed_files(target)


def test_a_file_that_only_a_task_misses_is_named_by_our_error_and_no_other_file_is_left(
    spark: SparkSession, tmp_path: Path
) -> None:
    target = a_target(tmp_path)
    apply(target, (1, "a", 1, "u"))
    named = set(Path(target).glob("*.parquet"))
    for path in named:
        path.unlink()
    with pytest.raises(DataFileError, match="is gone"):
        tablefeed.spark.apply_changes(
            batch(spark, *((n, "b", 2, "u") for n in range(20))), target, **ARGUMENTS, tasks=4
        )
    assert not set(Path(target).glob("*.parquet"))


@pytest.mark.parametrize(("text", "error"), [("{", InvalidEventsError), ('{"after": {"v": 5}}', InvalidRowsError)])
def test_an_envelope_that_a_task_cannot_open_is_refused_by_our_error(
    spark: SparkSession, tmp_path: Path, text: str, error: type[TablefeedError]
) -> None:
    target = a_target(tmp_path)
    with pytest.raises(error, match=f"{target}.*(is no JSON|no value of column v)"):
        tablefeed.spark.apply_changes(
            spark.createDataFrame([(text,)], "value string"), target, keys="id", source="debezium", tasks=2
        )
    assert not unnamed_files(target)


def test_a_session_may_distinguish_the_columns_of_changes_and_table_by_their_case(
    spark: SparkSession, tmp_path: Path
) -> None:
    target, snapshots = a_target(tmp_path), a_target(tmp_path / "snapshots")
    tablefeed.append(snapshots, pa.table({"id": [2], "v": ["old"], "ts": [0]}))
    changes = spark.createDataFrame([(1, "a", 1)], "ID long, v string, TS long")
    before = spark.conf.get("spark.sql.caseSensitive")
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        tablefeed.spark.apply_changes(changes, target, keys="id", sequence_by="ts")
        tablefeed.spark.apply_changes_from_snapshot((changes, 1), snapshots, keys="id")
    finally:
        spark.conf.set("spark.sql.caseSensitive", str(before))
    assert rows(target) == rows(snapshots) == [(1, "a", 1)]


@pytest.mark.parametrize(
    ("kind", "declared", "value"),
    [("STRING", "char(3)", "d  "), ("STRING COLLATE UTF8_LCASE", None, "D"), ("STRING", "char(1)", "d")],
    ids=["CHAR(3)", "a collation", "CHAR(1)"],
)
def test_a_delete_by_rules_of_text_that_arrow_lacks_is_never_taken_for_an_upsert(
    spark: SparkSession, tmp_path: Path, kind: str, declared: str | None, value: str
) -> None:
    target = a_target(tmp_path)
    apply(target, (1, "a", 1, "u"))
    metadata = {} if declared is None else {"__CHAR_VARCHAR_TYPE_STRING": declared}
    plain = spark.sql(f"SELECT 1L AS id, 'b' AS v, 2L AS ts, CAST('{value}' AS {kind}) AS op")
    changes = plain.withMetadata("op", metadata)
    assert changes.where("op = 'd'").count() == 1
    if declared == "char(1)":
        tablefeed.spark.apply_changes(changes, target, **ARGUMENTS)
        assert rows(target) == []
        return
    with pytest.raises(IllegalOptionError, match="a CHAR or a collated column is compared by rules of its own"):
        tablefeed.spark.apply_changes(changes, target, **ARGUMENTS)
    options = {"keys": "id", "sequenceBy": "ts", "applyAsDeletes": "op = 'd'", "exceptColumnList": "op"}
    with pytest.raises(Exception, match="a CHAR or a collated column is compared by rules of its own"):
        changes.write.format("tablefeed").options(**options).mode("append").save(target)
    assert rows(target) == [(1, "a", 1)]


def test_a_column_of_a_type_that_arrow_lacks_is_refused_by_our_error(spark: SparkSession, tmp_path: Path) -> None:
    target = a_target(tmp_path)
    changes = spark.sql("SELECT 1L AS id, INTERVAL '1' MONTH AS v, 1L AS ts")
    with pytest.raises(SchemaMismatchError, match=f"{target} have a column of a type that no table has"):
        tablefeed.spark.apply_changes(changes, target, keys="id", sequence_by="ts")


def test_events_of_debezium_are_divided_by_the_keys_in_their_envelopes(session: SparkSession, tmp_path: Path) -> None:
    target, given = a_target(tmp_path), []
    for number in range(12):
        after = {"id": number % 4, "v": str(number), "ts": number}
        event = {"before": None, "after": after, "op": "c", "source": {"connector": "postgresql", "lsn": number}}
        given.append((json.dumps(event),))
    gone = {"before": {"id": 3}, "after": None, "op": "d", "source": {"connector": "postgresql", "lsn": 20}}
    changes = session.createDataFrame([*given[6:], (json.dumps(gone),), *given[:6]], "value string")
    tablefeed.spark.apply_changes(changes, target, keys="id", source="debezium", tasks=3)
    assert rows(target) == [(0, "8", 8), (1, "9", 9), (2, "10", 10)]


def test_a_stream_of_a_change_feed_needs_only_its_keys(session: SparkSession, tmp_path: Path) -> None:
    source, target = str(tmp_path / "origin"), a_target(tmp_path)
    tablefeed.append(source, events((1, "a", 1, "u"), (2, "b", 1, "u")).drop_columns(["op"]), properties=FED)
    tablefeed.update(source, {"id": "id + 10", "v": "'A'"}, "id = 1")
    stream = session.readStream.format("tablefeed").option("readChangeFeed", "true").load(source)
    applied(stream, target, tmp_path / "checkpoint", keys="id", source="tablefeed")
    tablefeed.delete(source, "id = 2")
    feed = session.read.format("tablefeed").option("readChangeFeed", "true").option("startingVersion", 2).load(source)
    tablefeed.spark.apply_changes(feed, target, keys="id", source="tablefeed")
    assert rows(target) == rows(source) == [(11, "A", 1)]


def test_snapshots_are_applied_in_their_order_by_several_tasks(session: SparkSession, tmp_path: Path) -> None:
    target = a_target(tmp_path, scd_type=2)
    first, second = [(number, "a") for number in range(9)], [(number, "ab"[number % 2]) for number in range(3, 12)]

    def after(latest: int | None) -> tuple[DataFrame, int] | None:
        if latest == 20:
            return None
        given, version = (first, 10) if latest is None else (second, 20)
        return session.createDataFrame(given, "id int, v string"), version

    arguments: dict[str, Any] = {"keys": "id", "stored_as_scd_type": 2, "tasks": 3}
    done = tablefeed.spark.apply_changes_from_snapshot(after, target, **arguments)
    older = (session.createDataFrame(first, "id int, v string"), 15)
    with pytest.raises(InvalidEventsError, match="AUTOCDC_SNAPSHOT_OUT_OF_ORDER"):
        tablefeed.spark.apply_changes_from_snapshot(older, target, **arguments)
    found = tablefeed.open_table(target).to_arrow().to_pylist()
    now = sorted((row["id"], row["v"]) for row in found if row["__END_AT"] is None)
    assert (done, now) == (Committed(version=Version(2)), second)
    assert sorted(row["id"] for row in found if row["__END_AT"] == 20) == [0, 1, 2, 3, 5, 7]


@pytest.mark.parametrize(
    ("key", "first", "second", "left"),
    [
        (pa.int64(), "9007199254740993L", "5D", 5),
        (pa.string(), "'x'", "7L", "7"),
        (pa.timestamp("us", "UTC"), "'2024-06-01 02:00'", "date'2024-06-01'", datetime(2024, 5, 31, 22, tzinfo=UTC)),
    ],
)
def test_a_key_of_a_snapshot_and_one_that_it_lacks_are_never_cast_to_a_type_between_them(
    spark: SparkSession, tmp_path: Path, key: pa.DataType, first: str, second: str, left: object
) -> None:
    target = str(tmp_path / "target")
    tablefeed.create(target, pa.schema([("id", key), ("v", pa.int32())]), properties=NEEDED)
    for version, given in enumerate([first, second]):
        snapshot = (spark.sql(f"SELECT {given} AS ID, {version} AS v"), version)
        arguments: dict[str, Any] = {"keys": "id", "time_zone": "Europe/Berlin", "tasks": 3}
        tablefeed.spark.apply_changes_from_snapshot(snapshot, target, **arguments)
    assert rows(target) == [(left, 1)]


def test_columns_may_have_a_backtick_and_a_dot_in_their_names(session: SparkSession, tmp_path: Path) -> None:
    target, key, value = str(tmp_path / "target"), "a`b.c", "v.w"
    tablefeed.create(target, pa.schema([(key, pa.int64()), (value, pa.string())]), properties=NEEDED)
    for version, ids in enumerate(([1, 2], [2, 3])):
        snapshot = session.createDataFrame([(each, "x") for each in ids], "`a``b.c` long, `v.w` string")
        tablefeed.spark.apply_changes_from_snapshot((snapshot, version), target, keys=key, tasks=2)
        assert rows(target) == [(each, "x") for each in ids]


def test_26_columns_that_the_table_lacks_are_added_by_the_commit_of_several_tasks(
    spark: SparkSession, tmp_path: Path
) -> None:
    target = a_target(tmp_path, properties={"delta.columnMapping.mode": "name"})
    apply(target, (1, "a", 1, "u"))
    changes = batch(spark, (1, "A", 2, "u"), (2, "b", 2, "u"), (3, "c", 2, "u")).selectExpr("*", "id * 10 AS x")
    tablefeed.spark.apply_changes(changes, target, **ARGUMENTS, merge_schema=True, tasks=3)
    assert rows(target) == [(1, "A", 2, 10), (2, "b", 2, 20), (3, "c", 2, 30)]
    assert tablefeed.open_table(target).version == 2


@pytest.mark.parametrize(
    ("meanwhile", "left"),
    [
        (lambda target: tablefeed.optimize(target), [(1, "A", 2), (2, "B", 1), (4, "d", 1), (5, "e", 1)]),
        (lambda target: tablefeed.delete(target, "id = 2"), [(1, "A", 2), (4, "d", 1), (5, "e", 1)]),
        (
            # Spark's tasks cannot import functions of this file.
            lambda target: tablefeed.apply_changes(
                target,
                pa.table({"id": [1, 4], "v": ["newer", None], "ts": [3, 3], "op": ["u", "d"]}),
                keys="id",
                sequence_by="ts",
                apply_as_deletes="op = 'd'",
                except_column_list=["op"],
            ),
            [(1, "newer", 3), (2, "B", 1), (5, "e", 1)],
        ),
    ],
    ids=["optimize", "other rows", "the same keys"],
)
def test_tasks_apply_their_events_again_where_another_commit_comes_between(
    spark: SparkSession, tmp_path: Path, meanwhile: Callable[[str], object], left: list[tuple[Any, ...]]
) -> None:
    target = a_target(tmp_path)
    apply(target, (1, "a", 1, "u"), (2, "B", 1, "u"), (3, "c", 1, "u"))
    apply(target, (5, "e", 1, "u"), (6, None, 1, "d"))
    happened = tmp_path / "happened"

    def rival(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        if not happened.exists():
            happened.touch()
            meanwhile(target)
        yield from batches

    given = batch(spark, (1, "A", 2, "u"), (3, None, 2, "d"), (4, "d", 1, "u")).coalesce(1)
    changes = given.mapInArrow(rival, given.schema)
    assert tablefeed.spark.apply_changes(changes, target, **ARGUMENTS, tasks=2) == Committed(version=Version(4))
    assert rows(target) == left
    assert not unnamed_files(target)


def test_a_backfill_beside_a_stream_leaves_what_is_newer_and_is_done_once(spark: SparkSession, tmp_path: Path) -> None:
    target, checkpoint = a_target(tmp_path), tmp_path / "checkpoint"
    source = feed(tmp_path / "source", [(1, "live", 10, "u"), (2, None, 10, "d")])
    run(spark, source, target, checkpoint)
    backfill = batch(spark, *((key, "old", 5, "u") for key in (1, 2, 3, 4)))
    once: dict[str, Any] = {**ARGUMENTS, "app_id": "backfill", "txn_version": 0}
    tablefeed.spark.apply_changes(backfill, target, **once)
    feed(source, [(3, "live", 11, "u"), (4, None, 4, "d")])
    run(spark, source, target, checkpoint)
    assert isinstance(tablefeed.spark.apply_changes(backfill, target, **once), AlreadyApplied)
    assert rows(target) == [(1, "live", 10), (3, "live", 11), (4, "old", 5)]


def test_a_change_feed_is_applied_also_where_all_its_commits_have_one_time(spark: SparkSession, tmp_path: Path) -> None:
    """Rows move to other partitions, and a commit replaces rows of one key."""
    source, target = tmp_path / "source", str(tmp_path / "target")
    empty = pa.schema([("id", pa.int64()), ("v", pa.string()), ("p", pa.string())]).empty_table()
    tablefeed.append(source, empty, partition_by=["p"], properties=FED)
    tablefeed.append(target, empty, partition_by=["p"], properties=NEEDED)
    tablefeed.append(source, pa.table({"id": [1, 2, 3, 4], "v": ["a"] * 4, "p": ["x", "x", "y", "y"]}))
    tablefeed.update(source, {"p": "'y'", "v": "'moved'"}, "id IN (1, 2)")
    tablefeed.delete(source, "id IN (2, 4)")
    tablefeed.append(source, pa.table({"id": [4, 5], "v": ["again"] * 2, "p": ["x", None]}))
    replaced = spark.createDataFrame([(3, "replaced", "y")], "id long, v string, p string")
    replaced.write.format("tablefeed").mode("overwrite").option("replaceWhere", "id IN (1, 3)").save(str(source))
    for commit in (source / "_delta_log").glob("*.json"):
        os.utime(commit, (1_700_000_000, 1_700_000_000))

    stream = spark.readStream.format("tablefeed").option("readChangeFeed", "true").option("startingVersion", 0)
    changes = stream.option("maxFilesPerTrigger", 2).load(str(source))
    applied(changes, target, tmp_path / "checkpoint", keys="id", source="tablefeed")
    assert rows(target) == rows(str(source)) == [(3, "replaced", "y"), (4, "again", "x"), (5, "again", None)]
