"""A stream whose initial snapshot goes by event time: what its batches hold, its offsets, and who may continue it."""

from __future__ import annotations

import itertools
import json
import logging
import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tablefeed
from support import logs
from support.logs import NOW_MS, TABLE_ID, Action, a_log, a_source, add, at, delivered, metadata, protocol, put
from support.recorded import recorded, schema
from support.tracking import Checkpoint, passed, reached
from tablefeed.errors import IllegalOptionError, OffsetError
from tablefeed.feed.changes.java_regex import java_regex
from tablefeed.feed.scan.delta_task import DeltaColumns
from tablefeed.feed.scan.task import read_task
from tablefeed.feed.snapshot.open_log import open_log
from tablefeed.feed.snapshot.table_log import TableLog
from tablefeed.feed.stream.event_time import EventTimes, event_time_field
from tablefeed.feed.stream.source import StreamSource
from tablefeed.log.plan import Limits
from tablefeed.model.actions import Version
from tablefeed.model.offset import EventTime, Offset
from tablefeed.model.schema import Field, Primitive, Struct
from tablefeed.store import LocalStore

ROWS = schema(("id", "long"), ("at", "timestamp"), ("day", "timestamp_ntz"))
NTZ = protocol(3, 7, readerFeatures=["timestampNtz"], writerFeatures=["timestampNtz", "changeDataFeed"])
SECOND_US = 1_000_000
ONE, TO_THE_END = Limits(files=1), Limits()


def seconds(path: str, low: int, high: int, *, nulls: int = 0, **more: Any) -> Action:
    """A file whose rows are between two seconds of the first minute of 1970."""
    stats = {
        "numRecords": 10,
        "minValues": {"at": f"1970-01-01T00:00:{low:02d}.000Z"},
        "maxValues": {"at": f"1970-01-01T00:00:{high:02d}.000Z"},
        "nullCount": {"at": nulls},
    }
    return add(path, stats=json.dumps(stats), **more)


def by_time(before_us: int, *, version: int = 1, column: str = "at") -> Offset:
    return Offset(
        table_id=TABLE_ID,
        version=Version(version),
        in_snapshot=True,
        event_time=EventTime(column=column, before_us=before_us),
    )


def newest_first() -> TableLog:
    """Files whose order of modification is that of time backwards."""
    return a_log(
        v0=[NTZ, metadata(ROWS), seconds("c", 20, 25, modified=1), seconds("b", 10, 15, modified=2)],
        v1=[seconds("a", 0, 5, modified=3)],
    )


def batches(source: StreamSource, start: Offset, limits: Limits) -> list[list[str]]:
    return [files for _, files in logs.batches(source, start, limits)]


# --- what a batch holds ----------------------------------------------------------------------------------------------


def test_files_come_in_the_order_of_their_rows_and_then_the_commits() -> None:
    log = newest_first()
    source = a_source(log, event_time_column="at")
    start = source.initial()
    put(log.store, 2, [seconds("late", 0, 5)])

    assert start == at(1, in_snapshot=True)
    assert batches(source, start, ONE) == [["a"], ["b"], ["c"], ["late"]]
    assert batches(source, start, Limits(files=2)) == [["a", "b"], ["c"], ["late"]]
    assert batches(a_source(log), start, ONE) == [["c"], ["b"], ["a"], ["late"]]


def test_a_batch_ends_a_millisecond_behind_its_last_file_which_statistics_cut_off() -> None:
    source = a_source(newest_first(), event_time_column="at")

    assert source.latest(source.initial(), ONE) == by_time(5 * SECOND_US + 1000 + 1)


@pytest.mark.parametrize(("limits", "count"), [(Limits(size_bytes=10), 3), (Limits(rows=10), 3), (Limits(rows=5), 6)])
def test_bytes_and_rows_are_limits_too(limits: Limits, count: int) -> None:
    source = a_source(newest_first(), event_time_column="at", limits=limits)

    assert len(batches(source, source.initial(), limits)) == count


def test_a_file_that_is_too_much_for_a_batch_is_read_by_several() -> None:
    log = a_log(v0=[NTZ, metadata(ROWS)], v1=[seconds("all", 0, 59), seconds("end", 50, 59)])
    source = a_source(log, event_time_column="at")

    assert batches(source, source.initial(), ONE) == [["all", "end"], ["all", "end"]]


def test_without_a_limit_the_snapshot_and_what_follows_it_is_one_batch_even_from_its_middle() -> None:
    log = newest_first()
    put(log.store, 2, [seconds("late", 0, 5)])
    source, start = a_source(log, event_time_column="at"), at(1, in_snapshot=True)

    assert source.latest(start, TO_THE_END) == at(3)
    assert delivered(source, start, at(3)) == ["a", "b", "c", "late"]
    assert delivered(source, source.latest(start, ONE), at(3)) == ["b", "c", "late"]


def test_what_is_there_now_ends_a_query_that_takes_it_in_steps() -> None:
    log = newest_first()
    source = a_source(log, event_time_column="at")
    start = source.initial()
    put(log.store, 2, [seconds("late", 0, 5)])
    source.bound_now()
    first = source.latest(start, ONE)
    put(log.store, 3, [seconds("later", 0, 5)])

    assert batches(source, first, ONE) == [["b"], ["c"], ["late"]]


def test_files_of_which_nothing_is_known_are_in_every_batch_and_one_without_times_in_the_first() -> None:
    log = a_log(
        v0=[NTZ, metadata(ROWS), add("unknown"), seconds("some", 20, 25, nulls=3)],
        v1=[add("none", stats='{"numRecords":2,"nullCount":{"at":2}}'), seconds("a", 0, 5), seconds("b", 10, 15)],
    )
    source = a_source(log, event_time_column="at")

    found = batches(source, source.initial(), ONE)

    def where(name: str) -> list[int]:
        return [index for index, batch in enumerate(found) if name in batch]

    assert len(found) == 5
    assert where("unknown") == [0, 1, 2, 3, 4]
    assert where("none") == [0]
    assert where("some") == [0, 3, 4]  # for its rows without a time, and for the others


def test_a_table_without_statistics_is_one_batch_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    source = a_source(a_log(v0=[NTZ, metadata(ROWS), add("a"), add("b")]), event_time_column="AT")

    with caplog.at_level(logging.WARNING, logger="tablefeed"):
        assert batches(source, source.initial(), ONE) == [["a", "b"]]

    assert [record.getMessage() for record in caplog.records] == [
        "url=memory:orders version=0 has no statistics of at: the whole table is one batch"
    ]


def test_an_empty_table_is_no_reason_to_stand_still() -> None:
    log = a_log(v0=[NTZ, metadata(ROWS)])
    source = a_source(log, event_time_column="at")

    assert source.latest(source.initial(), ONE) == at(1)


def test_partition_values_say_exactly_where_a_file_is() -> None:
    days = [add(f"d{day}", partitionValues={"day": f"2024-01-0{day} 00:00:00"}) for day in (3, 1, 2)]
    log = a_log(v0=[NTZ, metadata(ROWS, partition_columns=["day"]), *days])
    source = a_source(log, event_time_column="day")

    assert batches(source, source.initial(), ONE) == [["d1"], ["d2"], ["d3"]]


def test_where_and_exclude_regex_leave_out_files_that_count() -> None:
    source = a_source(
        newest_first(),
        event_time_column="at",
        where="at >= TIMESTAMP'1970-01-01 00:00:10Z'",
        exclude=java_regex("^b$", option="excludeRegex"),
    )

    start = source.initial()
    ends = [start]
    while ends[-1].in_snapshot:
        ends.append(source.latest(ends[-1], ONE))

    assert [delivered(source, *pair) for pair in itertools.pairwise(ends)] == [[], [], ["c"]]


def test_with_a_named_start_there_is_no_snapshot_to_order() -> None:
    source = a_source(newest_first(), event_time_column="at", starting_version=0)

    assert batches(source, source.initial(), TO_THE_END) == [["a", "b", "c"]]


def test_a_batch_reads_no_more_than_the_rows_of_its_time(tmp_path: Path) -> None:
    times = [0, 1, 2, 3, None, 7]
    rows = pa.table({"id": range(6), "at": pa.array(times, pa.timestamp("s", "UTC")).cast(pa.timestamp("us", "UTC"))})
    tablefeed.append(tmp_path, rows)
    log = open_log(str(tmp_path))
    options: dict[str, Any] = {"event_time_column": "at", "limits": Limits(rows=3), "where": "id <> 1"}
    source = a_source(log, **options)
    start, found = source.initial(), []
    while start.in_snapshot:
        end = a_source(log, **options).latest(start, Limits(rows=3))
        found.append(ids(source, start, end))
        start = end

    assert found == [[0, 2, 3, 4], [5]]


def test_a_task_is_sent_though_its_time_is_beyond_the_last_year_of_python() -> None:
    field = Field("at", Primitive("timestamp"), nullable=True)
    times = EventTimes(field, schema=Struct((field,)), columns=DeltaColumns(partitions={}))
    year_11476_us = 300_000_000_000_000_000
    at = pa.table({"at": pa.array([year_11476_us - 1, year_11476_us], pa.timestamp("us", "UTC"))})

    rows = times.rows(year_11476_us, None, None)
    assert rows is not None
    sent = pickle.loads(pickle.dumps(rows))  # noqa: S301 - our own bytes

    assert at.filter(sent.condition)["at"].cast(pa.int64()).to_pylist() == [year_11476_us]
    assert (sent.predicate, sent.fields) == (rows.predicate, rows.fields)


def ids(source: StreamSource, start: Offset, end: Offset) -> list[int]:
    found = [read_task(task, pa.schema([("id", pa.int64())])) for task in source.tasks(start, end)]
    return sorted(id_ for batches in found for batch in batches for id_ in batch["id"].to_pylist())


def test_a_snapshot_of_row_changes_goes_by_event_time_too() -> None:
    log = a_log(
        v0=[NTZ, recorded(ROWS), seconds("c", 20, 25, modified=1), seconds("b", 10, 15, modified=2)],
        v1=[seconds("a", 0, 5, modified=3)],
    )
    source = a_source(log, event_time_column="at", change_feed=True)

    start = source.initial()
    put(log.store, 2, [seconds("late", 0, 5)])

    assert batches(source, start, ONE)[:3] == [["a"], ["b"], ["c"]]
    assert source.latest(start, TO_THE_END) == at(3)
    assert delivered(source, start, at(3)) == ["a", "b", "c", "late"]


# --- restarts --------------------------------------------------------------------------------------------------------


def test_a_first_batch_that_was_planned_and_not_done_is_the_same_though_the_table_grew() -> None:
    log = newest_first()
    planned = a_source(log, event_time_column="at")
    end = planned.latest(planned.initial(), ONE)
    put(log.store, 2, [seconds("late", 0, 5)])

    again = a_source(log, event_time_column="at")

    assert again.initial() == at(2, in_snapshot=True)
    assert delivered(again, again.initial(), end) == ["a"]


def test_of_columns_whose_names_differ_in_case_the_one_as_it_is_written_counts() -> None:
    lower, upper = (Field(name, Primitive("timestamp"), nullable=True) for name in ("at", "At"))

    assert event_time_field("At", Struct((lower, upper))) == upper


def test_a_batch_that_ends_where_it_begins_is_empty() -> None:
    source = a_source(newest_first(), event_time_column="at")
    middle = source.latest(source.initial(), ONE)

    assert delivered(source, middle, middle) == []


BY_FILES = at(1, 2, in_snapshot=True)


@pytest.mark.parametrize(
    ("offset", "column", "remedy"),
    [
        (by_time(0), None, "Set withEventTimeOrder=true and eventTimeColumn=at until"),
        (by_time(0), "day", "Set withEventTimeOrder=true and eventTimeColumn=at until"),
        (BY_FILES, "at", "Set withEventTimeOrder=false until"),
    ],
)
def test_the_order_cannot_be_changed_within_the_snapshot(offset: Offset, column: str | None, remedy: str) -> None:
    source = a_source(newest_first(), event_time_column=column)

    for call in (
        lambda: source.latest(offset, ONE),
        lambda: source.tasks(offset, at(2)),
        lambda: source.tasks(at(1, in_snapshot=True), offset),
    ):
        with pytest.raises(OffsetError, match=remedy):
            call()


def test_before_its_first_row_and_behind_its_last_the_snapshot_has_any_order() -> None:
    log = newest_first()
    begin, behind = at(1, in_snapshot=True), at(2)
    put(log.store, 2, [seconds("late", 0, 5)])

    for column in (None, "at", "day"):
        source = a_source(log, event_time_column=column)
        assert delivered(source, begin, behind) == ["a", "b", "c"]
        assert delivered(source, behind, at(3)) == ["late"]


@pytest.mark.parametrize(
    "end", [at(0, in_snapshot=True), at(1), by_time(9, version=0), at(1, in_snapshot=True), by_time(-1)]
)
def test_a_batch_of_two_snapshots_or_that_goes_back_is_refused(end: Offset) -> None:
    source = a_source(newest_first(), event_time_column="at")

    with pytest.raises(OffsetError, match="contradict each other"):
        source.tasks(by_time(0), end)


def test_a_stream_that_tracks_metadata_stops_at_a_change_behind_the_snapshot_and_goes_on(tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path / "table"))
    files = [seconds("c", 20, 25), seconds("b", 10, 15), seconds("a", 0, 5)]
    a_log(store, v0=[NTZ, metadata(ROWS), *files])
    query = Checkpoint(tmp_path / "table", tmp_path / "checkpoint")
    source = query.source(event_time_column="at")
    steps = query.batches(source, ONE)

    assert [next(steps), next(steps)] == [by_time(5_001_001, version=0), by_time(15_001_001, version=0)]
    more = schema(("id", "long"), ("at", "timestamp"), ("day", "timestamp_ntz"), ("more", "long"))
    put(store, 1, [metadata(more), seconds("later", 0, 5)])
    query.evolves(event_time_column="at", limits=ONE)
    query.start(event_time_column="at", limits=ONE)

    assert query.files == [["a"], ["b"], ["c"], [], [], ["later"]]
    assert query.ends[2:] == [at(1), reached(1), passed(1), at(2)]


# --- the column ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("column", "said"),
    [
        ("nope", "must be a column of the table: id, at, day"),
        ("id", "must be a column of type timestamp or timestamp_ntz"),
        ("s.at", "must be a column of the table"),
        ("", "must be a column of the table"),
    ],
)
def test_a_column_without_times_is_refused_before_a_row_is_read(column: str, said: str) -> None:
    with pytest.raises(IllegalOptionError, match=said) as caught:
        a_source(newest_first(), event_time_column=column)
    assert caught.value.option == "eventTimeColumn"


# --- how far it is ---------------------------------------------------------------------------------------------------


def test_the_lag_counts_the_files_still_to_open_and_the_bytes_that_lie_ahead() -> None:
    source = a_source(newest_first(), event_time_column="at")
    end, told = source.initial(), []
    while end.in_snapshot:
        end = source.latest(end, ONE)
        lag = source.lag(end, now_ms=NOW_MS)
        told.append((lag.files_outstanding, lag.bytes_outstanding, lag.snapshot_percent))

    assert told == [(2, 20, 33.3), (1, 10, 66.6), (0, 0, 100.0)]
