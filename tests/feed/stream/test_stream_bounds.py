"""Where a stream begins and ends whose user said so by version or by time."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from support.faulty_store import Fault, FaultyStore
from support.logs import (
    Action,
    a_log,
    a_source,
    add,
    at,
    batches,
    commit_path,
    delivered,
    info,
    log_of,
    metadata,
    protocol,
    put,
    remove,
)
from tablefeed.errors import IllegalOptionError, TableError, VersionNotFoundError
from tablefeed.feed.arguments import Bound
from tablefeed.feed.snapshot.table_log import TableLog
from tablefeed.feed.stream.source import StreamSource
from tablefeed.feed.stream.stream_bounds import Ending
from tablefeed.feed.upkeep.delta_checkpoint import write_checkpoint
from tablefeed.log.plan import Limits
from tablefeed.model.actions import Version
from tablefeed.model.offset import Offset
from tablefeed.store.local import LocalStore

NO_LIMITS = Limits()
HOUR_S = 3600
T0_S = 1_704_067_200
"""2024-01-01 00:00:00 UTC."""


def commit_at(folder: Path, version: int, at_s: float) -> None:
    os.utime(folder / commit_path(version), (at_s, at_s))


@pytest.fixture
def hourly(tmp_path: Path) -> TableLog:
    """Four versions, committed each hour from 2024-01-01 00:00 UTC on; the file of version 1 is "b", and so on."""
    versions: dict[str, list[Action]] = {
        "v0": [protocol(), metadata(), add("a")],
        "v1": [add("b")],
        "v2": [add("c")],
        "v3": [add("d")],
    }
    log = a_log(LocalStore(str(tmp_path)), **versions)
    for version in range(4):
        commit_at(tmp_path, version, T0_S + version * HOUR_S)
    return log


# --- beginning at a time ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("timestamp", "first"),
    [
        ("2023-12-31 23:59:59", 0),
        ("2024-01-01", 0),
        ("2024-01-01 00:00:00.001", 1),
        ("2024-01-01 01:59:59.999", 2),
        ("2024-01-01 02:00:00", 2),
        ("2024-01-01T03:00:00+01:00", 2),
        ("2024-01-01 03:00:00 UTC", 3),
    ],
)
def test_a_stream_begins_with_the_first_commit_at_or_after_its_time(
    hourly: TableLog, timestamp: str, first: int
) -> None:
    source = a_source(hourly, starting_timestamp=timestamp)

    assert source.initial() == at(first)
    assert delivered(source, at(first), source.latest(at(first), NO_LIMITS)) == ["a", "b", "c", "d"][first:]


def test_a_time_before_the_log_begins_is_its_earliest_commit_that_is_left(hourly: TableLog) -> None:
    source = a_source(hourly, starting_timestamp="1999-01-01")
    assert source._begun.version > 1
    hourly.store.delete(commit_path(0))

    assert source.initial() == at(1)


def test_a_time_after_the_newest_commit_is_refused(hourly: TableLog) -> None:
    source = a_source(hourly, starting_timestamp="2024-01-01 03:00:00.001")

    with pytest.raises(TableError, match=r"2024-01-01 03:00:00\.001.*after the newest commit") as caught:
        source.initial()
    assert caught.value.error_class == "DELTA_TIMESTAMP_GREATER_THAN_COMMIT"


@pytest.mark.parametrize(
    ("option", "given"),
    [
        ("startingTimestamp", {"starting_timestamp": "last week"}),
        ("endingTimestamp", {"starting_version": 0, "ending_timestamp": "soon"}),
    ],
)
def test_a_text_that_is_no_time_is_refused_when_the_query_begins(
    hourly: TableLog, option: str, given: dict[str, Any]
) -> None:
    with pytest.raises(IllegalOptionError, match=rf"^\[DELTA_TIMESTAMP_INVALID\].*'{option}'"):
        a_source(hourly, **given).initial()


def test_in_commit_timestamps_decide_where_the_table_keeps_them(tmp_path: Path) -> None:
    features = protocol(1, 7, writerFeatures=["inCommitTimestamp"])
    log = a_log(
        LocalStore(str(tmp_path)),
        v0=[info(inCommitTimestamp=1000), features, metadata(configuration={"delta.enableInCommitTimestamps": "true"})],
        v1=[info(inCommitTimestamp=2000), add("b")],
        v2=[info(inCommitTimestamp=3000), add("c")],
    )

    assert a_source(log, starting_timestamp="1970-01-01 00:00:02").initial() == at(1)
    assert a_source(log, starting_timestamp="1970-01-01 00:00:02.001").initial() == at(2)


def test_the_beginning_by_time_is_asked_of_the_log_once_and_stays(hourly: TableLog, tmp_path: Path) -> None:
    store = FaultyStore(hourly.store)
    source = a_source(log_of(store), starting_timestamp="2024-01-01 02:00:00")
    before = source.initial()
    put(hourly.store, 4, [add("e")])
    commit_at(tmp_path, 2, T0_S)
    since = len(store.calls)

    assert source.initial() == before == at(2)
    assert store.calls[since:] == []


def test_a_restart_does_not_ask_where_a_new_query_would_begin(hourly: TableLog) -> None:
    restarted = a_source(hourly, starting_timestamp="2999-01-01")

    end = restarted.latest(at(2), NO_LIMITS)

    assert end == at(4)
    assert delivered(restarted, at(2), end) == ["c", "d"]


@pytest.mark.parametrize(
    ("time", "zone", "first", "said"),
    [
        ("2024-01-01 02:00:00", None, 2, [("WARNING", "UTC")]),
        ("2024-01-01 02:00:00", "Europe/Berlin", 1, [("INFO", "Europe/Berlin")]),
        ("2024-01-01T02:00:00Z", "Asia/Tokyo", 2, []),
    ],
)
def test_a_time_keeps_its_zone_or_is_in_the_users_or_in_utc_and_the_log_says_so_once(
    hourly: TableLog,
    caplog: pytest.LogCaptureFixture,
    *,
    time: str,
    zone: str | None,
    first: int,
    said: list[tuple[str, str]],
) -> None:
    source = a_source(hourly, starting_timestamp=time, time_zone=zone and ZoneInfo(zone))
    with caplog.at_level(logging.INFO, logger="tablefeed"):
        assert source.initial() == source.initial() == at(first)

    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        (level, f"option=startingTimestamp value={time} has no time zone, read in {name}") for level, name in said
    ]


# --- ending ----------------------------------------------------------------------------------------------------------


def to_the_end(source: StreamSource, start: Offset, limits: Limits = NO_LIMITS) -> tuple[Offset, list[str]]:
    """Where a query comes to rest, and the files that it delivered on the way."""
    found = batches(source, start, limits)
    return found[-1][0] if found else start, [file for _, files in found for file in files]


@pytest.mark.parametrize(
    ("options", "rests_at", "files"),
    [
        ({"starting_version": 1, "ending_version": 2}, at(3), ["b", "c"]),
        ({"starting_version": 1, "ending_version": 1}, at(2), ["b"]),
        ({"starting_version": 1, "ending_version": 99}, at(4), ["b", "c", "d"]),
        ({"starting_version": 1, "starting_bound_inclusive": False, "ending_version": 2}, at(3), ["c"]),
        ({"starting_version": 1, "ending_version": 2, "ending_bound_inclusive": False}, at(2), ["b"]),
        ({"starting_version": 3, "starting_bound_inclusive": False}, at(4), []),
        ({"starting_version": "latest", "starting_bound_inclusive": False}, at(4), []),
        ({"starting_version": 1, "ending_version": 1, "ending_bound_inclusive": False}, at(1), []),
        ({"starting_timestamp": "2024-01-01T01:00Z", "starting_bound_inclusive": False}, at(4), ["c", "d"]),
        ({"starting_timestamp": "2024-01-01T03:00Z", "starting_bound_inclusive": False}, at(4), []),
        ({"starting_timestamp": "2024-01-01T00:30Z", "starting_bound_inclusive": False}, at(4), ["b", "c", "d"]),
        ({"starting_version": 1, "ending_timestamp": "2024-01-01T02:00Z"}, at(3), ["b", "c"]),
        ({"starting_version": 1, "ending_timestamp": "2024-01-01T02:59:59.999Z"}, at(3), ["b", "c"]),
        (
            {"starting_version": 1, "ending_timestamp": "2024-01-01T02:00Z", "ending_bound_inclusive": False},
            at(2),
            ["b"],
        ),
        (
            {"starting_version": 1, "ending_timestamp": "2024-01-01T02:00:00.0001Z", "ending_bound_inclusive": False},
            at(3),
            ["b", "c"],
        ),
        ({"starting_timestamp": "2024-01-01T01:10Z", "ending_timestamp": "2024-01-01T01:50Z"}, at(2), []),
        ({"starting_version": "latest", "ending_version": 2}, at(4), []),
    ],
)
def test_nothing_outside_the_bounds_is_delivered(
    hourly: TableLog, options: dict[str, Any], rests_at: Offset, files: list[str]
) -> None:
    for limits in (NO_LIMITS, Limits(files=1)):
        source = a_source(hourly, **options)
        assert to_the_end(source, source.initial(), limits) == (rests_at, files)
        bounded = a_source(hourly, **options)
        bounded.bound_now()
        assert to_the_end(bounded, bounded.initial(), limits) == (rests_at, files)


@pytest.mark.parametrize(
    ("options", "files"),
    [
        ({"ending_version": 0}, ["a"]),
        ({"ending_version": 1}, ["a", "b"]),
        ({"ending_version": 3}, ["a", "b", "c", "d"]),
        ({"ending_version": 2, "ending_bound_inclusive": False}, ["a", "b"]),
        ({"ending_timestamp": "2024-01-01T01:30Z"}, ["a", "b"]),
    ],
)
def test_a_query_without_a_start_begins_with_the_table_as_it_was_at_its_end(
    hourly: TableLog, options: dict[str, Any], files: list[str]
) -> None:
    source = a_source(hourly, **options)
    start = source.initial()

    assert start == at(len(files) - 1, in_snapshot=True)
    assert to_the_end(source, start) == (at(len(files)), files)


def test_a_first_batch_of_such_a_query_is_the_same_after_a_restart_though_the_table_grew(hourly: TableLog) -> None:
    before = a_source(hourly, ending_version=3)
    start = before.initial()
    put(hourly.store, 4, [add("e")])
    restarted = a_source(hourly, ending_version=3)

    assert restarted.initial() == start == at(3, in_snapshot=True)
    assert to_the_end(restarted, start) == (at(4), ["a", "b", "c", "d"])


@pytest.mark.parametrize(
    "options",
    [
        {"starting_version": 2, "ending_version": 1},
        {"starting_version": 3, "ending_version": 0},
        {"starting_version": 2, "starting_bound_inclusive": False, "ending_version": 1},
        {"starting_version": 2, "ending_timestamp": "2024-01-01T01:30Z"},
        {"starting_timestamp": "2024-01-01T02:00Z", "ending_version": 1},
        {"starting_timestamp": "2024-01-01T02:30Z", "ending_timestamp": "2024-01-01T01:30Z"},
        {"starting_version": 0, "ending_timestamp": "1999-01-01T00:00Z"},
        {"ending_timestamp": "1999-01-01T00:00Z"},
        {"ending_version": 0, "ending_bound_inclusive": False},
    ],
)
def test_an_end_before_the_start_is_refused_when_the_query_begins(hourly: TableLog, options: dict[str, Any]) -> None:
    with pytest.raises(IllegalOptionError, match="is before the start, which is version") as caught:
        a_source(hourly, **options).initial()
    assert caught.value.error_class == "DELTA_INVALID_CDC_RANGE"
    assert caught.value.option == ("endingTimestamp" if "ending_timestamp" in options else "endingVersion")
    assert ("endingBoundInclusive=false" in str(caught.value)) == ("ending_bound_inclusive" in options)


def test_a_version_that_is_not_there_cannot_be_left_behind_either(hourly: TableLog) -> None:
    with pytest.raises(VersionNotFoundError, match="Version 4 of"):
        a_source(hourly, starting_version=4, starting_bound_inclusive=False).initial()


def test_a_version_that_was_cleaned_up_can_be_left_behind_and_not_begun_with(hourly: TableLog) -> None:
    write_checkpoint(log_of(hourly.store).load(Version(2)))
    for version in (0, 1):
        hourly.store.delete(commit_path(version))

    assert a_source(hourly, starting_version=1, starting_bound_inclusive=False).initial() == at(2)
    with pytest.raises(VersionNotFoundError, match="Version 1 of"):
        a_source(hourly, starting_version=1).initial()


def test_what_comes_after_the_end_is_neither_read_nor_judged(hourly: TableLog) -> None:
    source = a_source(hourly, starting_version=2, ending_version=3)
    start = source.initial()
    put(hourly.store, 4, [remove("a"), add("rewritten")])
    hourly.store.replace(commit_path(5), b"not a commit")

    assert to_the_end(source, start) == (at(4), ["c", "d"])


def test_a_version_still_to_come_ends_the_query_when_it_has_come(hourly: TableLog) -> None:
    source = a_source(hourly, starting_version=3, ending_version=4)
    assert to_the_end(source, at(3)) == (at(4), ["d"])
    put(hourly.store, 4, [add("e")])
    put(hourly.store, 5, [remove("a")])

    assert to_the_end(source, at(4)) == (at(5), ["e"])


def test_a_time_still_to_come_ends_the_query_before_the_first_commit_after_it(hourly: TableLog, tmp_path: Path) -> None:
    source = a_source(hourly, starting_version=3, ending_timestamp="2024-01-01T05:00Z")
    assert to_the_end(source, at(3)) == (at(4), ["d"])
    for version, name in ((4, "e"), (5, "f"), (6, "g")):
        put(hourly.store, version, [add(name)])
        commit_at(tmp_path, version, T0_S + version * HOUR_S)
    put(hourly.store, 7, [remove("a")])

    assert to_the_end(source, at(4), Limits(files=1)) == (at(6), ["e", "f"])
    assert to_the_end(a_source(hourly, ending_timestamp="2024-01-01T05:00Z"), at(6)) == (at(6), [])


def test_a_commit_before_a_time_still_to_come_is_delivered_at_once(hourly: TableLog, tmp_path: Path) -> None:
    source = a_source(hourly, starting_version=3, ending_timestamp="2024-01-01T05:00Z")
    assert to_the_end(source, at(3)) == (at(4), ["d"])
    put(hourly.store, 4, [add("e")])
    commit_at(tmp_path, 4, T0_S + 4 * HOUR_S)

    assert to_the_end(source, at(4)) == (at(5), ["e"])


def test_a_commit_that_is_not_listed_yet_is_not_delivered_before_it_is_known_to_be_in_time(
    hourly: TableLog, tmp_path: Path
) -> None:
    lists_late = Fault(operation="list", at=3, when="short")  # the third listing lacks the newest commit
    store = FaultyStore(hourly.store, faults=[lists_late])
    ending = Ending(Bound(timestamp="2024-01-01T04:30Z"), log_of(store).load())
    for version in (4, 5):
        put(hourly.store, version, [add(f"of version {version}")])
        commit_at(tmp_path, version, T0_S + version * HOUR_S)

    assert (ending.is_past(Version(5)), ending.last) == (True, None)
    assert (ending.is_past(Version(5)), ending.last) == (True, 4)
    assert not ending.is_past(Version(4))


def test_a_time_that_falls_back_does_not_bring_a_commit_before_the_end(hourly: TableLog, tmp_path: Path) -> None:
    source = a_source(hourly, starting_version=3, ending_timestamp="2024-01-01T03:00Z")
    put(hourly.store, 4, [add("e")])
    commit_at(tmp_path, 4, T0_S)

    assert to_the_end(source, at(3)) == (at(4), ["d"])


def test_a_query_at_its_end_asks_the_store_nothing_and_says_so_once(
    hourly: TableLog, caplog: pytest.LogCaptureFixture
) -> None:
    store = FaultyStore(hourly.store)
    source = a_source(log_of(store), starting_version=0, ending_version=1)
    end = source.latest(source.initial(), NO_LIMITS)
    since = len(store.calls)

    with caplog.at_level(logging.INFO, logger="tablefeed"):
        for _ in range(3):
            assert source.latest(end, NO_LIMITS) == end == at(2)

    assert store.calls[since:] == []
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("WARNING", f"url={source.url} version=1 was the last of this query, which now stays idle")
    ]


@pytest.mark.parametrize("start", [at(3), at(3, 1), at(2, in_snapshot=True), at(3, 1, in_snapshot=True), at(9)])
@pytest.mark.parametrize("options", [{"ending_version": 1}, {"ending_timestamp": "2024-01-01T01:00Z"}])
def test_a_restart_beyond_the_end_stays_where_it_is(hourly: TableLog, start: Offset, options: dict[str, Any]) -> None:
    for source in (a_source(hourly, **options), a_source(hourly, **options)):
        assert source.latest(start, NO_LIMITS) == start
        source.bound_now()
        assert source.latest(start, NO_LIMITS) == start


def test_a_restart_beyond_an_end_whose_commits_are_gone_stays_where_it_is(hourly: TableLog) -> None:
    source = a_source(hourly, ending_timestamp="2024-01-01T00:30Z")
    assert source._begun.version > 1
    hourly.store.delete(commit_path(0))
    hourly.store.delete(commit_path(1))

    assert source.latest(at(2), NO_LIMITS) == at(2)


def test_a_batch_that_was_logged_before_an_end_was_set_is_delivered_as_it_was_logged(hourly: TableLog) -> None:
    assert delivered(a_source(hourly, ending_version=1), at(1), at(3)) == ["b", "c"]


def test_a_first_batch_behind_the_newest_commits_time_is_empty_and_is_so_when_it_is_run_again(hourly: TableLog) -> None:
    def reader() -> StreamSource:
        return a_source(hourly, starting_timestamp="2024-01-01 03:00:00", starting_bound_inclusive=False)

    source = reader()
    start = source.initial()
    put(hourly.store, 4, [add("e")])
    end = source.latest(start, NO_LIMITS)
    put(hourly.store, 5, [add("f")])
    restarted = reader()

    assert start == end == at(4)
    assert delivered(restarted, restarted.initial(), end) == []
    assert delivered(restarted, end, restarted.latest(end, NO_LIMITS)) == ["e", "f"]
