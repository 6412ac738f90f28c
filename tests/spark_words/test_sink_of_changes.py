"""The writers of change events (`keys`): what they refuse, and what they make of the messages of tasks. No JVM."""

from __future__ import annotations

import json
import pickle
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql.types import LongType, StringType, StructType, TimestampType

import tablefeed
from feed.rows.test_apply_changes import FED, NEEDED, Event, a_target, apply, events, rows, state_files
from pyspark_tablefeed import DefaultSource
from tablefeed.errors import (
    CommitError,
    ConflictError,
    ConflictingOptionsError,
    DataFileError,
    EqualSequencesError,
    IllegalOptionError,
    OptionError,
    SchemaMismatchError,
    TableNotFoundError,
    UnsupportedOptionError,
)
from tablefeed.feed.rows.divided import EVENTS_DIR, Sizes
from tablefeed.model.actions import Txn
from tablefeed.spark.changes.keyed_sink import BatchOfChangesWriter, EventsSetAside, StreamOfChangesWriter
from tablefeed.spark.options import parse_options

EVENTS = StructType().add("id", LongType()).add("v", StringType()).add("ts", LongType()).add("op", StringType())
OPTIONS = {"keys": "id", "sequenceBy": "ts", "applyAsDeletes": "op = 'd'", "exceptColumnList": "op"}
FILES = Sizes(report=0, task=1_000, group=4_000)


def a_writer(url: str, **options: str) -> StreamOfChangesWriter:
    """As Spark makes one, to plan a batch and once more to commit it; a task has its events in files."""
    writer = DefaultSource({"path": url, **OPTIONS, **options}).streamWriter(EVENTS, overwrite=False)
    assert isinstance(writer, StreamOfChangesWriter)
    writer._changes = replace(writer._changes, sizes=FILES)
    return writer


def ran(writer: StreamOfChangesWriter, tasks: Sequence[Sequence[Event]], *, batch_id: int = 0) -> list[EventsSetAside]:
    """The messages of the tasks, as Spark moves them."""
    in_tasks: StreamOfChangesWriter = pickle.loads(pickle.dumps(writer))  # noqa: S301 - our own
    txn = Txn(app_id="query", txn_version=batch_id)
    messages = [
        in_tasks._changes.set_aside(iter(events(*given).to_batches(max_chunksize=10)), txn, task=task)
        for task, given in enumerate(tasks)
    ]
    found: list[EventsSetAside] = pickle.loads(pickle.dumps(messages))  # noqa: S301 - our own
    return found


def event_files(url: str) -> list[str]:
    return sorted(path.name for path in (Path(url) / EVENTS_DIR).glob("*"))


def test_texts_become_instants_in_the_zone_of_the_option(tmp_path: Path) -> None:
    url = str(tmp_path / "target")
    columns = {"id": pa.int64(), "v": pa.timestamp("us", "UTC"), "ts": pa.int64()}
    tablefeed.append(url, pa.schema(list(columns.items())).empty_table(), properties=NEEDED)

    with pytest.raises(SchemaMismatchError, match="timeZone"):
        a_writer(url)
    writer = a_writer(url, timeZone="Europe/Berlin")
    writer.commit(ran(writer, [[(1, "2024-06-01 23:00:00", 1, "u")]]), 0)

    assert rows(url) == [(1, datetime(2024, 6, 1, 21, tzinfo=UTC), 1)]


def test_a_batch_ends_as_apply_changes_does_in_one_commit_and_is_applied_once(tmp_path: Path) -> None:
    url, beside = a_target(tmp_path), a_target(tmp_path / "beside")
    first: list[list[Event]] = [[(key, "a", key % 7, "u") for key in range(start, 300, 3)] for start in range(3)]
    second: list[list[Event]] = [
        [(key, "b", 13, "ud"[key % 2]) for key in range(0, 400, 5)],
        [(key, "c", 14, "u") for key in range(0, 400, 7)],
    ]
    for batch_id, tasks in enumerate([first, second, second]):
        messages = ran(a_writer(url), tasks, batch_id=min(batch_id, 1))
        a_writer(url, userMetadata="nightly").commit(messages, min(batch_id, 1))
        assert event_files(url) == []
    apply(beside, *[event for task in first for event in task], apply_as_truncates=None)
    apply(beside, *[event for task in second for event in task], apply_as_truncates=None)

    assert rows(url) == rows(beside)
    now = tablefeed.open_table(url)
    assert (now.version, now.txn_version("query")) == (2, 1)
    [about] = now.history(1)
    assert (about.fields["operation"], about.fields["userMetadata"]) == ("MERGE", "nightly")


def test_a_batch_that_is_killed_between_its_tasks_and_its_commit_changes_nothing(tmp_path: Path) -> None:
    url = a_target(tmp_path)
    given: list[list[Event]] = [[(key, "a", 1, "u") for key in range(100)]]
    ran(a_writer(url), given)
    assert (tablefeed.open_table(url).version, rows(url), len(event_files(url))) == (0, [], 1)
    a_writer(url).commit(ran(a_writer(url), given), 0)
    assert (tablefeed.open_table(url).version, len(rows(url)), len(event_files(url))) == (1, 100, 1)


def test_a_batch_that_fails_in_one_group_of_keys_leaves_nothing_of_the_others(tmp_path: Path) -> None:
    url = a_target(tmp_path)
    given: list[Event] = [*((key, "a", 1, "u") for key in range(300)), (7, "b", 1, "u")]
    with pytest.raises(EqualSequencesError, match="Make sequenceBy finer"):
        a_writer(url).commit(ran(a_writer(url), [given]), 0)
    assert (tablefeed.open_table(url).version, event_files(url), state_files(url)) == (0, [], set())
    assert not list(Path(url).glob("*.parquet"))


@pytest.mark.parametrize("failed", [True, False], ids=["a task failed", "a commit was tried"])
def test_an_abort_deletes_the_events_and_a_commit_that_still_runs_takes_none_of_them(
    tmp_path: Path, *, failed: bool
) -> None:
    url = a_target(tmp_path)
    messages = ran(a_writer(url), [[(key, "a", 1, "u") for key in range(100)]])
    a_writer(url).abort([*messages, *([None] if failed else [])], 0)
    assert event_files(url) == []
    with pytest.raises(DataFileError, match="Run the batch again"):
        a_writer(url).commit(messages, 0)
    assert tablefeed.open_table(url).version == 0


def test_columns_that_change_between_tasks_and_commit_end_the_batch(tmp_path: Path) -> None:
    url = a_target(tmp_path)
    messages = ran(a_writer(url, exceptColumnList="op, v"), [[(1, "a", 1, "u")]])
    with pytest.raises(ConflictError, match="Run the batch again"):
        a_writer(url).commit(messages, 0)
    assert tablefeed.open_table(url).version == 0


def test_a_batch_without_events_records_its_number_unless_that_is_unwanted(tmp_path: Path) -> None:
    url = a_target(tmp_path)
    a_writer(url).commit(ran(a_writer(url), [[], []]), 0)
    a_writer(url).commit(ran(a_writer(url), [[]], batch_id=1), 1)
    a_writer(url, recordEmptyBatches="false").commit(ran(a_writer(url), [[]], batch_id=2), 2)
    now = tablefeed.open_table(url)
    assert (now.version, now.txn_version("query"), now.to_arrow().num_rows) == (2, 1, 0)


def test_a_commit_without_the_report_of_a_task_is_refused(tmp_path: Path) -> None:
    url = a_target(tmp_path)
    messages = ran(a_writer(url), [[(1, "a", 1, "u")]])
    with pytest.raises(CommitError, match="1 of 2 tasks did not report"):
        a_writer(url).commit([*messages, None], 0)


def test_a_history_is_kept_where_it_is_asked_for(tmp_path: Path) -> None:
    url = a_target(tmp_path, scd_type=2)
    options = {"storedAsScdType": "2", "exceptColumnList": "op, ts", "trackHistoryColumnList": "v"}
    given: list[Event] = [(1, "a", 10, "u"), (1, "b", 20, "u"), (1, "b", 25, "u"), (1, None, 30, "d")]
    a_writer(url, **options).commit(ran(a_writer(url, **options), [given[::2], given[1::2]]), 0)
    assert rows(url) == [(1, "a", 10, 20), (1, "b", 20, 30)]


def test_a_batch_write_is_applied_once_by_its_txn(tmp_path: Path) -> None:
    url = a_target(tmp_path)
    for _ in range(2):
        options = {"path": url, **OPTIONS, "txnAppId": "job", "txnVersion": "3"}
        writer = DefaultSource(options).writer(EVENTS, overwrite=False)
        assert isinstance(writer, BatchOfChangesWriter)
        batches = iter(events((1, "a", 1, "u")).to_batches())
        message = writer._changes.set_aside(batches, Txn(app_id="job", txn_version=3), task=0)
        writer.commit([message])
    assert (tablefeed.open_table(url).version, tablefeed.open_table(url).txn_version("job")) == (1, 3)


def test_the_changes_of_a_known_source_need_only_keys(tmp_path: Path) -> None:
    """The old image of an update that changes the key deletes the row of that key, whatever task has it."""
    source, url = a_target(tmp_path, properties=FED), a_target(tmp_path / "copy")
    apply(source, (1, "a", 1, "u"), (2, "b", 1, "u"))
    tablefeed.update(source, {"id": "id + 1", "v": "'new'"}, "id = 2")
    feed = tablefeed.changes(source, start_version=1).read_all()
    schema = StructType().add("id", LongType()).add("v", StringType()).add("ts", LongType())
    schema = schema.add("_change_type", StringType()).add("_commit_version", LongType())
    options = {"path": url, "keys": "id", "source": "Tablefeed"}
    writer = DefaultSource(options).streamWriter(schema.add("_commit_timestamp", TimestampType()), overwrite=False)
    assert isinstance(writer, StreamOfChangesWriter)
    txn = Txn(app_id="query", txn_version=0)
    rows_of_tasks = [feed.slice(at, 1).to_batches() for at in (3, 0, 2, 1)]
    messages = [writer._changes.set_aside(iter(b), txn, task=task) for task, b in enumerate(rows_of_tasks)]
    writer.commit(messages, 0)
    assert rows(url) == [(1, "a", 1), (3, "new", 1)]


def test_the_columns_that_a_table_lacks_are_added_where_that_is_asked_for(tmp_path: Path) -> None:
    url = a_target(tmp_path)
    with pytest.raises(SchemaMismatchError, match=r"exceptColumnList, or .* mergeSchema"):
        a_writer(url, exceptColumnList="v")
    options = {"mergeSchema": "true", "exceptColumnList": "v"}
    a_writer(url, **options).commit(ran(a_writer(url, **options), [[(1, "a", 1, "u")], [(2, "b", 1, "x")]]), 0)
    assert rows(url) == [(1, None, 1, "u"), (2, None, 1, "x")]


def test_events_of_debezium_meet_by_the_keys_in_their_envelopes_whatever_task_has_them(tmp_path: Path) -> None:
    url = a_target(tmp_path)

    def event(lsn: int, **sides: object) -> str:
        source = {"connector": "postgresql", "lsn": lsn}
        return json.dumps({"before": None, "after": None, "op": "u", "source": source, **sides})

    given = [
        event(30, op="d", before={"id": 3}),
        event(20, before={"id": 1}, after={"id": 7, "v": "moved", "ts": 2}),
        *(event(number, op="c", after={"id": number, "v": "a", "ts": 1}) for number in range(5)),
    ]
    options = {"path": url, "keys": "id", "source": "debezium"}
    writer = DefaultSource(options).streamWriter(StructType().add("value", StringType()), overwrite=False)
    assert isinstance(writer, StreamOfChangesWriter)
    writer._changes = replace(writer._changes, sizes=Sizes(report=0, task=1, group=1))
    tasks = [iter(pa.table({"value": given[at::3]}).to_batches(max_chunksize=1)) for at in range(3)]
    txn = Txn(app_id="query", txn_version=0)
    writer.commit([writer._changes.set_aside(rows, txn, task=task) for task, rows in enumerate(tasks)], 0)
    assert rows(url) == [(0, "a", 1), (2, "a", 1), (4, "a", 1), (7, "moved", 2)]


REFUSED: list[tuple[dict[str, str], type[Exception], str]] = [
    ({"columnList": "id"}, ConflictingOptionsError, "exceptColumnList"),
    (
        {"ignoreNullUpdates": "true", "ignoreNullUpdatesColumnList": "v"},
        ConflictingOptionsError,
        "'ignoreNullUpdates' and 'ignoreNullUpdatesColumnList'",
    ),
    (
        {"trackHistoryColumnList": "v", "trackHistoryExceptColumnList": "v"},
        ConflictingOptionsError,
        "'trackHistoryColumnList' and 'trackHistoryExceptColumnList'",
    ),
    ({"trackHistoryExceptColumnList": "v"}, IllegalOptionError, "'storedAsScdType': it keeps no history"),
    ({"keys": "nope"}, IllegalOptionError, "'keys'"),
    ({"sequenceBy": "nope"}, IllegalOptionError, "'sequenceBy'"),
    ({"applyAsDeletes": "nope = 1"}, OptionError, "applyAsDeletes"),
    ({"exceptColumnList": "ts"}, SchemaMismatchError, "exceptColumnList"),
    ({"source": "kafka"}, IllegalOptionError, "'source'"),
    ({"ties": "first"}, IllegalOptionError, "'ties'"),
    ({"storedAsScdType": "3"}, IllegalOptionError, "'storedAsScdType'"),
    ({"partitionBy": "id"}, UnsupportedOptionError, "'partitionBy'"),
    ({"overwriteSchema": "true"}, UnsupportedOptionError, "'overwriteSchema'"),
    ({"compactevery": "2"}, UnsupportedOptionError, "'compactEvery'"),
    ({"delta.appendOnly": "true"}, UnsupportedOptionError, "'delta.appendOnly'"),
    ({"sequenceby_": "x"}, OptionError, "Did you mean 'sequenceBy'"),
]


@pytest.mark.parametrize(("options", "error", "text"), REFUSED, ids=["+".join(each[0]) for each in REFUSED])
def test_options_that_exclude_each_other_or_mean_nothing_are_refused_by_name(
    tmp_path: Path, options: dict[str, str], error: type[Exception], text: str
) -> None:
    url = a_target(tmp_path)
    with pytest.raises(error, match=text):
        a_writer(url, **options)


def test_an_overwrite_and_a_missing_sequence_or_table_are_refused_by_name(tmp_path: Path) -> None:
    url = a_target(tmp_path)
    with pytest.raises(UnsupportedOptionError, match=r"'keys'.* Use append mode"):
        DefaultSource({"path": url, **OPTIONS}).streamWriter(EVENTS, overwrite=True)
    with pytest.raises(IllegalOptionError, match=r"sequenceBy.* unless source"):
        DefaultSource({"path": url, "keys": "id"}).streamWriter(EVENTS, overwrite=False)
    with pytest.raises(TableNotFoundError):
        a_writer(str(tmp_path / "none"))
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("direction", ["stream write", "batch write"])
def test_what_events_mean_is_not_passed_over_in_a_write_without_keys(direction: str) -> None:
    with pytest.raises(UnsupportedOptionError, match=r"'sequenceBy'.*Set keys"):
        parse_options({"sequenceby": "ts"}, direction)


def test_a_value_that_does_not_fit_ends_the_task_and_leaves_no_file(tmp_path: Path) -> None:
    url = str(tmp_path / "narrow")
    tablefeed.append(url, pa.schema([("id", pa.int8()), ("ts", pa.int64())]).empty_table(), properties=NEEDED)
    writer = a_writer(url, exceptColumnList="op, v")
    with pytest.raises(Exception, match=r"CAST_OVERFLOW"):
        ran(writer, [[(key, None, 1, "u") for key in range(300)]])
    assert event_files(url) == []
