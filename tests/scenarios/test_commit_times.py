"""When rows were committed, and what a commit says of that, as InCommitTimestampSuite has it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from scenarios.queries import Stream
from scenarios.tables import Table
from support.logs import NOW_MS, Action, a_log, a_write, actions_of, info, metadata, protocol, put, still
from tablefeed.feed.commit.loop import commit

FEATURES = ["inCommitTimestamp", "changeDataFeed", "appendOnly", "invariants"]


def own_ms(version: int) -> int:
    """The time that a commit gives itself."""
    return version * 7_000_000


def file_s(version: int) -> int:
    """The time of its log file."""
    return (version + 1) * 100


@pytest.mark.parametrize("enabled_at", [1, 4, 7])
def test_rows_are_dated_by_their_commit_once_it_dates_itself_and_by_its_log_file_before(
    tmp_path: Path, enabled_at: int
) -> None:
    table = Table(tmp_path / "table").create("id", kind="long", enableChangeDataFeed="true")
    dated = {
        "delta.enableInCommitTimestamps": "true",
        "delta.inCommitTimestampEnablementVersion": str(enabled_at),
        "delta.inCommitTimestampEnablementTimestamp": str(own_ms(enabled_at)),
    }
    for version in range(1, 8):
        own = info(inCommitTimestamp=own_ms(version))
        if version == enabled_at:
            table.configuration |= dated
            table.commit(own, protocol(1, 7, writerFeatures=FEATURES), table.metadata)
        else:
            table.commit(*([own] if version > enabled_at else []), table.added((version,)))
    for version in range(table.version + 1):
        os.utime(table.path / f"_delta_log/{version:020}.json", (file_s(version),) * 2)

    planner = Stream.on(table.path, readChangeFeed="true", startingVersion="0").frame().reader()
    end = planner.latestOffset(planner.initialOffset(), planner.getDefaultReadLimit())
    times: dict[int, Any] = {}
    for task in planner.partitions(planner.initialOffset(), end):
        for batch in planner.read(task):
            times |= {row["_commit_version"]: row["_commit_timestamp"].timestamp() for row in batch.to_pylist()}
    planner.stop()

    data = [version for version in range(1, 8) if version != enabled_at]
    assert times == {v: own_ms(v) / 1000 if v >= enabled_at else file_s(v) for v in data}


# --- writes ----------------------------------------------------------------------------------------------------------

DATES = protocol(1, 7, writerFeatures=["appendOnly", "invariants", "inCommitTimestamp"])


def enabled(*, at_ms: int) -> list[Action]:
    """The commit, at version 1, from which on commits date themselves."""
    told = {
        "delta.enableInCommitTimestamps": "true",
        "delta.inCommitTimestampEnablementVersion": "1",
        "delta.inCommitTimestampEnablementTimestamp": str(at_ms),
    }
    return [info(inCommitTimestamp=at_ms), DATES, metadata(configuration=told)]


@pytest.mark.parametrize(
    ("at_ms", "expected"),
    [
        (NOW_MS + 1_000, [NOW_MS + 1_001, NOW_MS + 1_002]),
        (NOW_MS + 100_000_000, [NOW_MS + 100_000_001, NOW_MS + 100_000_002]),
        (NOW_MS, [NOW_MS + 1, NOW_MS + 2]),
        (NOW_MS - 100_000, [NOW_MS, NOW_MS + 1]),
    ],
    ids=["ahead", "far ahead", "at once", "behind"],
)
@pytest.mark.parametrize("when", ["before", "after"])
def test_commits_behind_the_one_that_begins_to_date_them_are_later_each(
    at_ms: int, expected: list[int], when: str
) -> None:
    """Whether their writes began before it or after, and whatever the clock says."""
    log = a_log(v0=[protocol(), metadata()])
    if when == "after":
        put(log.store, 1, enabled(at_ms=at_ms))
    known = log.load()
    writes = [a_write(log, known, name) for name in ("a", "b")]
    if when == "before":
        put(log.store, 1, enabled(at_ms=at_ms))

    for each in writes:
        commit(log, known, each, still())

    told = [actions_of(log, version)[0]["commitInfo"]["inCommitTimestamp"] for version in (2, 3)]
    assert told == expected
    since = log.load().metadata.configuration
    assert since["delta.inCommitTimestampEnablementVersion"] == "1"
    assert since["delta.inCommitTimestampEnablementTimestamp"] == str(at_ms)
