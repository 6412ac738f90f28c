"""Where a stream begins and ends whose user said so by version or by time."""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from feed.logs import Action, a_log, a_source, add, at, commit_path, delivered, info, log_of, metadata, protocol, put
from tablefeed.errors import IllegalOptionError, TableError
from tablefeed.feed.table_log import TableLog
from tablefeed.log.plan import Limits
from tablefeed.store import FaultyStore
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
    source._newest()
    hourly.store.delete(commit_path(0))

    assert source.initial() == at(1)


def test_a_time_after_the_newest_commit_is_refused(hourly: TableLog) -> None:
    source = a_source(hourly, starting_timestamp="2024-01-01 03:00:00.001")

    with pytest.raises(TableError, match=r"2024-01-01 03:00:00\.001.*after the newest commit") as caught:
        source.initial()
    assert caught.value.error_class == "DELTA_TIMESTAMP_GREATER_THAN_COMMIT"


def test_a_text_that_is_no_time_is_refused_when_the_query_begins(hourly: TableLog) -> None:
    with pytest.raises(IllegalOptionError, match=r"^\[DELTA_TIMESTAMP_INVALID\].*'startingTimestamp'"):
        a_source(hourly, starting_timestamp="last week").initial()


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


def test_a_schema_that_changed_behind_a_time_is_told_as_one_behind_a_start(hourly: TableLog) -> None:
    two = {"name": "n", "type": "long", "nullable": True, "metadata": {}}
    source = a_source(hourly, starting_timestamp="2024-01-01")
    start = source.initial()
    put(hourly.store, 4, [metadata(json.dumps({"type": "struct", "fields": [two]}))])

    with pytest.raises(Exception, match=r"^\[DELTA_SCHEMA_CHANGED_WITH_STARTING_OPTIONS\]"):
        source.latest(start, NO_LIMITS)


def test_a_time_without_a_zone_is_utc_and_the_log_says_so_once(
    hourly: TableLog, caplog: pytest.LogCaptureFixture
) -> None:
    source = a_source(hourly, starting_timestamp="2024-01-01 02:00:00")
    with caplog.at_level(logging.INFO, logger="tablefeed"):
        source.initial()
        source.initial()

    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("WARNING", "option=startingTimestamp value=2024-01-01 02:00:00 names no time zone, read in UTC")
    ]


def test_a_time_without_a_zone_is_in_the_zone_that_the_user_chose(
    hourly: TableLog, caplog: pytest.LogCaptureFixture
) -> None:
    zone = ZoneInfo("Europe/Berlin")
    with caplog.at_level(logging.INFO, logger="tablefeed"):
        assert a_source(hourly, starting_timestamp="2024-01-01 02:00:00", time_zone=zone).initial() == at(1)

    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("INFO", "option=startingTimestamp value=2024-01-01 02:00:00 names no time zone, read in Europe/Berlin")
    ]


def test_a_time_with_a_zone_keeps_it_and_nothing_is_said(hourly: TableLog, caplog: pytest.LogCaptureFixture) -> None:
    zone = ZoneInfo("Asia/Tokyo")
    with caplog.at_level(logging.INFO, logger="tablefeed"):
        assert a_source(hourly, starting_timestamp="2024-01-01T02:00:00Z", time_zone=zone).initial() == at(2)

    assert caplog.records == []
