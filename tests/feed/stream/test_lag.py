"""How far a stream is behind its table, what finding that out costs, and how Spark is told."""

from __future__ import annotations

import json

import pytest

from support.faulty_store import Fault, FaultyStore
from support.logs import (
    NOW_MS,
    a_log,
    a_source,
    a_table,
    add,
    asked,
    at,
    commit_path,
    delivered,
    info,
    log_of,
    metadata,
    protocol,
    put,
    remove,
)
from tablefeed.errors import StoreError
from tablefeed.feed.snapshot.table_log import TableLog
from tablefeed.feed.snapshot.tail import CACHED_ACTIONS
from tablefeed.feed.stream.lag import READ_AHEAD, Lag, lag_from_json, lag_to_json
from tablefeed.feed.stream.source import StreamSource
from tablefeed.log.admission import ChangePolicy
from tablefeed.log.plan import Limits
from tablefeed.model.offset import Offset
from tablefeed.store.memory import MemoryStore

IN_COMMIT = {"delta.enableInCommitTimestamps": "true"}


def committed_s(seconds: int) -> dict[str, object]:
    """A commitInfo that says when it was committed, in seconds since NOW_MS."""
    return info(inCommitTimestamp=NOW_MS + 1000 * seconds)


def lag_at(source: StreamSource, start: Offset, limits: Limits) -> tuple[Offset, Lag]:
    """Plans a batch and asks for the lag right after it, as Spark does."""
    end = source.latest(start, limits)
    return end, source.lag(end, now_ms=NOW_MS)


def a_backlog(versions: int) -> tuple[FaultyStore, TableLog]:
    """A table whose stream from version 0 is so many appends of one file behind."""
    inner = MemoryStore("orders")
    a_table(inner)
    for version in range(1, versions + 1):
        put(inner, version, [add(f"f{version}", size=100)])
    store = FaultyStore(inner)
    return store, log_of(store)


def test_each_batch_leaves_what_comes_after_it_and_the_last_one_leaves_nothing() -> None:
    log = a_log(
        v0=[committed_s(-60), protocol(), metadata(configuration=IN_COMMIT)],
        v1=[committed_s(-40), add("a", size=10), add("b", size=20)],
        v2=[committed_s(-30), add("c", size=40)],
        v3=[committed_s(-20), add("d", size=80)],
    )
    source = a_source(log, starting_version=0)

    told: list[tuple[Offset, int, float | None, int | None, int | None]] = []
    end = at(0)
    for _ in range(4):
        end, lag = lag_at(source, end, Limits(files=1))
        told.append((end, lag.versions_behind, lag.seconds_behind, lag.files_outstanding, lag.bytes_outstanding))
        source.delivered(end)

    assert told == [
        (at(1, 1), 3, 40.0, 3, 140),
        (at(2), 2, 30.0, 2, 120),
        (at(3), 1, 20.0, 1, 80),
        (at(4), 0, 0.0, 0, 0),
    ]


def test_what_comes_after_the_end_of_a_stream_is_no_lag() -> None:
    _, log = a_backlog(5)
    source = a_source(log, starting_version=1, ending_version=3)

    end, lag = lag_at(source, source.initial(), Limits(files=1))
    assert (end, lag.versions_behind, lag.files_outstanding) == (at(2), 2, 2)
    end, lag = lag_at(source, end, Limits())
    assert (end, lag.versions_behind, lag.files_outstanding) == (at(4), 0, 0)


def test_the_initial_snapshot_is_one_version_and_its_percent_is_of_bytes_and_reaches_100_behind_it() -> None:
    log = a_log(
        v0=[protocol(), metadata(), add("a", size=10, modified=1), add("b", size=20, modified=2)],
        v1=[add("c", size=30, modified=3)],
    )
    source = a_source(log)
    start = source.initial()
    put(log.store, 2, [add("d", size=5)])

    told: list[tuple[Offset, int, int | None, int | None, float | None]] = []
    end = start
    for _ in range(4):
        end, lag = lag_at(source, end, Limits(files=1))
        told.append((end, lag.versions_behind, lag.files_outstanding, lag.bytes_outstanding, lag.snapshot_percent))
        source.delivered(end)

    assert told == [
        (at(1, 1, in_snapshot=True), 2, 3, 55, 16.6),
        (at(1, 2, in_snapshot=True), 2, 2, 35, 50.0),
        (at(2), 1, 1, 5, 100.0),
        (at(3), 0, 0, 0, 100.0),
    ]


def test_nothing_is_left_of_a_snapshot_whose_last_file_was_delivered() -> None:
    source = a_source(a_log(v0=[protocol(), metadata(), add("a", size=10), add("b", size=20)]))

    lag = source.lag(at(0, 2, in_snapshot=True), now_ms=NOW_MS)

    assert (lag.files_outstanding, lag.bytes_outstanding, lag.snapshot_percent) == (0, 0, 100.0)


def test_a_stream_that_begins_without_a_snapshot_tells_no_percent() -> None:
    source = a_source(a_log(v0=[protocol(), metadata(), add("a")]), starting_version=0)

    _, lag = lag_at(source, at(0), Limits())

    assert lag.snapshot_percent is None


def test_files_count_where_they_would_be_delivered() -> None:
    log = a_log(
        v0=[protocol(), metadata()],
        v1=[add("a"), add("b")],
        v2=[remove("a"), add("a2", size=100)],
        v3=[remove("b", data_change=False), add("b2", size=1000, data_change=False)],
        v4=[add("c", size=7)],
    )

    def outstanding(policy: ChangePolicy) -> tuple[int, int | None, int | None]:
        _, lag = lag_at(a_source(log, starting_version=0, policy=policy), at(0), Limits(files=1))
        return lag.versions_behind, lag.files_outstanding, lag.bytes_outstanding

    assert outstanding(ChangePolicy(skip_change_commits=True)) == (4, 2, 17)
    assert outstanding(ChangePolicy(ignore_changes=True)) == (4, 3, 117)


def test_a_commit_that_the_stream_will_refuse_leaves_files_unknown_and_the_rest_told() -> None:
    log = a_log(v0=[protocol(), metadata()], v1=[add("a"), add("b")], v2=[remove("a")], v3=[add("c")])

    _, lag = lag_at(a_source(log, starting_version=0), at(0), Limits(files=1))

    assert (lag.versions_behind, lag.files_outstanding, lag.bytes_outstanding) == (3, None, None)


def test_a_commit_without_a_time_of_its_own_is_as_old_as_its_log_file() -> None:
    _, log = a_backlog(3)
    second = log.head(at(2).version)
    assert second is not None
    source = a_source(log, starting_version=0)
    end = source.latest(at(0), Limits(files=1))

    assert source.lag(end, now_ms=second.modified_ms + 2500).seconds_behind == 2.5


def test_a_commit_of_a_clock_that_is_ahead_is_of_now() -> None:
    log = a_log(v0=[protocol(), metadata()], v1=[add("a")], v2=[committed_s(10), add("b")])

    _, lag = lag_at(a_source(log, starting_version=0), at(0), Limits(files=1))

    assert (lag.versions_behind, lag.seconds_behind) == (1, 0.0)


def test_an_idle_stream_asks_the_store_nothing_for_its_lag() -> None:
    store, log = a_backlog(3)
    source = a_source(log)
    end, _ = lag_at(source, source.initial(), Limits())
    source.delivered(end)
    since = len(store.calls)

    for _ in range(100):
        _, lag = lag_at(source, end, Limits())
        assert lag.versions_behind == 0

    assert asked(store, since) == [f"stat {commit_path(4)}"] * 100  # what `latest` asks by itself


def test_a_stream_that_is_behind_asks_by_name_what_came_and_when_and_reads_a_few_commits_ahead_once() -> None:
    store, log = a_backlog(20)
    source = a_source(log, starting_version=0)
    end = source.latest(at(0), Limits(files=1))
    since = len(store.calls)

    source.lag(end, now_ms=NOW_MS)

    # The next commit, 2, was read by `latest`, which looks one commit beyond a spent limit.
    assert asked(store, since) == [
        f"stat {commit_path(21)}",
        f"read {commit_path(3)}",  # the file of commit 3 was found by `latest`
        f"stat {commit_path(2 + READ_AHEAD)}",
        f"stat {commit_path(3)}",  # it was not replaced meanwhile, nor is the last one at the end
        *[f"read {commit_path(version)}" for version in range(4, 3 + READ_AHEAD)],
        f"stat {commit_path(2)}",
        f"stat {commit_path(2 + READ_AHEAD)}",
    ]
    source.tasks(at(0), end)
    source.delivered(end)
    since = len(store.calls)

    everything = source.latest(end, Limits())
    assert len(delivered(source, end, everything)) == 19
    assert [line for line in asked(store, since) if line.startswith("read")] == [
        f"read {commit_path(version)}" for version in range(3 + READ_AHEAD, 21)
    ]


def test_files_are_unknown_while_more_commits_are_unread_than_may_be_and_known_a_few_batches_later() -> None:
    _, log = a_backlog(2 * READ_AHEAD + 5)
    source = a_source(log, starting_version=0)

    files: list[int | None] = []
    end = at(0)
    for _ in range(4):
        end, lag = lag_at(source, end, Limits(files=1))
        source.delivered(end)
        files.append(lag.files_outstanding)

    assert files == [None, None, 18, 17]


def test_nothing_is_read_ahead_where_it_would_not_be_kept_for_the_stream() -> None:
    store, log = a_backlog(5)
    source = a_source(log, starting_version=0)
    end = source.latest(at(0), Limits(files=1))
    source._tail._cached_actions = CACHED_ACTIONS // 2
    since = len(store.calls)

    lag = source.lag(end, now_ms=NOW_MS)

    assert (lag.versions_behind, lag.files_outstanding) == (4, None)
    assert [line for line in asked(store, since) if line.startswith("read")] == []


@pytest.mark.parametrize("new", [0, 1, 2, 3, 4, 5, 8, 15, 100])
def test_versions_that_came_while_the_stream_was_behind_are_found_in_few_steps_and_without_listing(new: int) -> None:
    store, log = a_backlog(10)
    source = a_source(log, starting_version=0)
    end, before = lag_at(source, at(0), Limits(files=1))
    for version in range(11, 11 + new):
        put(store, version, [add(f"g{version}")])
    since = len(store.calls)

    end, lag = lag_at(source, end, Limits(files=1))

    assert (before.versions_behind, lag.versions_behind) == (9, 8 + new)
    asked_now = asked(store, since)
    assert not [line for line in asked_now if line.startswith("list")]
    # The file of the newest commit read ahead is compared three times and noted twice.
    assert len([line for line in asked_now if line.startswith("stat")]) <= 3 + 2 * new.bit_length() + 1 + 5


def test_a_commit_that_came_since_the_end_of_the_log_was_last_seen_is_not_overlooked() -> None:
    store, log = a_backlog(3)
    source = a_source(log, starting_version=0)
    source.bound_now()
    end, lag = lag_at(source, at(0), Limits(files=1))
    assert lag.versions_behind == 2
    put(store, 4, [add("d")])

    # The bound keeps `latest` from looking again.
    end, lag = lag_at(source, end, Limits(files=1))

    assert (end, lag.versions_behind, lag.files_outstanding) == (at(3), 2, 2)


def test_a_store_that_fails_is_an_error_of_ours() -> None:
    inner = MemoryStore("orders")
    a_log(inner, v0=[protocol(), metadata()], v1=[add("a")], v2=[add("b")])
    store = FaultyStore(inner, faults=[Fault(operation="stat", name=commit_path(3), at=2)])
    source = a_source(log_of(store), starting_version=0)
    end = source.latest(at(0), Limits(files=1))

    with pytest.raises(StoreError):
        source.lag(end, now_ms=NOW_MS)


def test_spark_is_told_the_offset_behind_the_newest_version_and_the_lag_beside_it() -> None:
    lag = Lag(
        url="s3://lake/orders",
        versions_behind=3,
        seconds_behind=1.5,
        files_outstanding=None,
        bytes_outstanding=None,
        snapshot_percent=100.0,
    )

    told = lag_to_json(lag, at(4, 2))

    assert json.dumps(told) == (
        '{"sourceVersion": 1, "reservoirId": "11111111-1111-1111-1111-111111111111", "reservoirVersion": 7, '
        '"index": -1, "isStartingVersion": false, "table": "s3://lake/orders", "lag": {"versionsBehind": 3, '
        '"secondsBehind": 1.5, "numFilesOutstanding": null, "numBytesOutstanding": null, "snapshotPercent": 100.0}}'
    )
    assert lag_from_json(json.dumps(told)) == lag


@pytest.mark.parametrize("wrong", ["true", '"3"', "[3]", "null"])
def test_what_should_be_a_number_in_a_report_and_is_none_is_not_known(wrong: str) -> None:
    text = '{"table":"t","lag":{"versionsBehind":%s,"secondsBehind":%s,"numFilesOutstanding":7}}'

    assert lag_from_json(text % (wrong, 1.5)) is None
    assert lag_from_json(text % (3, wrong)) == Lag(
        url="t",
        versions_behind=3,
        seconds_behind=None,
        files_outstanding=7,
        bytes_outstanding=None,
        snapshot_percent=None,
    )


@pytest.mark.parametrize(
    "text",
    [None, "", "null", "7", "not JSON", '{"topic":{"0":5}}', '{"table":"t","lag":{}}', '{"table":7,"lag":{"x":1}}'],
)
def test_what_another_source_tells_is_no_lag(text: str | None) -> None:
    assert lag_from_json(text) is None
