"""When the rows of a stream of changes were committed, as InCommitTimestampSuite has it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from feed.logs import info, protocol
from scenarios.queries import Stream
from scenarios.tables import Table

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
