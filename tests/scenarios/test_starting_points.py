"""Where a stream begins: `startingVersion`, `startingTimestamp` and the options beside them (DeltaSourceSuite)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from deltalake import DeltaTable

from scenarios.streams import append, commit, commit_file, stream
from support.logs import add, info, metadata, protocol
from support.recorded import data_file
from tablefeed.errors import IllegalOptionError, OptionError, TableError, VersionNotFoundError

START_S = 1_594_795_800
"""2020-07-14 23:50:00 in Los Angeles."""
MINUTE_S = 60
ROW_TRACKING = protocol(1, 7, writerFeatures=["rowTracking", "domainMetadata"])


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return tmp_path / "table"


def generate_commits(table: Path, *at_s: int) -> Path:
    """Commits of the rows 0 to 9, 10 to 19 and so on, by their version, at these times."""
    version = DeltaTable(str(table)).version() + 1 if table.exists() else 0
    for number, second in enumerate(at_s, version):
        append(table, *range(number * 10, number * 10 + 10))
        os.utime(commit_file(table, number), (second, second))
    return table


def two_commits(table: Path) -> Path:
    return generate_commits(table, START_S, START_S + 20 * MINUTE_S)


def without_version_0_behind_a_checkpoint(table: Path) -> Path:
    commit(table, 2, info(operation="SET TBLPROPERTIES"))
    DeltaTable(str(table)).create_checkpoint()
    commit_file(table, 0).unlink()
    return table


# --- startingVersion -------------------------------------------------------------------------------------------------


def test_starting_version(table: Path) -> None:
    two_commits(table)

    def rows(version: int) -> list[int]:
        query = stream(table, startingVersion=str(version))
        query.run()
        return query.rows

    assert rows(0) == list(range(20))
    assert rows(1) == list(range(10, 20))
    with pytest.raises(IllegalOptionError, match="Invalid value '-1' for option 'startingVersion'"):
        rows(-1)
    with pytest.raises(VersionNotFoundError, match="Version 2 of"):
        rows(2)
    without_version_0_behind_a_checkpoint(table)
    with pytest.raises(VersionNotFoundError, match="Version 0 of"):
        rows(0)
    assert rows(1) == list(range(10, 20))


@pytest.mark.parametrize("row_tracking", [True, False])
def test_starting_version_is_ignored_when_restarting_from_a_checkpoint(
    table: Path,
    row_tracking: bool,  # noqa: FBT001 (what the scenario is named by)
) -> None:
    """Files of row tracking: an action stands behind a commit's last file."""

    def write(version: int) -> None:
        files = [add(data_file(table, f"{version}-{n}.parquet", id=[10 * version + n]), baseRowId=n) for n in (0, 1)]
        domain = {"domain": "delta.rowTracking", "configuration": '{"rowIdHighWaterMark":1}', "removed": False}
        commit(table, version, *files, *([{"domainMetadata": domain}] if row_tracking else []))

    commit(table, 0, ROW_TRACKING, metadata(configuration={"delta.enableRowTracking": str(row_tracking).lower()}))
    for version in (1, 2):
        write(version)
    query = stream(table, startingVersion="2")
    query.run()
    assert query.rows == [20, 21]
    write(3)
    DeltaTable(str(table)).create_checkpoint()
    query.run()
    assert query.rows == [20, 21, 30, 31]
    write(4)
    for version in (0, 1, 2):
        commit_file(table, version).unlink()

    query.run()

    assert query.rows == [20, 21, 30, 31, 40, 41]
    with pytest.raises(VersionNotFoundError, match="3 to 4"):
        stream(table, startingVersion="2").run()


def test_starting_version_specific_version_new_commits_arrive_after_stream_initialization(table: Path) -> None:
    append(table, 1, 2, 3)
    append(table, 4, 5, 6)
    query = stream(table, startingVersion="1", maxFilesPerTrigger="1")
    live = query.start()
    live.processAllAvailable()
    assert query.rows == [4, 5, 6]
    append(table, 7, 8, 9)
    append(table, 10, 11, 12)

    live.processAllAvailable()

    assert query.rows == list(range(4, 13))


def test_starting_version_user_defined_start_works_with_merge_schema(table: Path) -> None:
    append(table, id=[0])
    append(table, id=[10], id2=[10])
    append(table, id=[20], id2=[20], id3=[20])

    assert stream(table, startingVersion="1").run() == [[(10, 10, None), (20, 20, 20)]]


def test_starting_version_should_work_with_rate_limits(table: Path) -> None:
    commit(table, 0, protocol(), metadata(), *(add(data_file(table, f"0-{n}", id=[n])) for n in (0, 1)))
    commit(table, 1, *(add(data_file(table, f"1-{n}", id=[5 + n])) for n in (0, 1)))
    query = stream(table, startingVersion="1", maxFilesPerTrigger="1")

    query.start().processAllAvailable()

    assert query.batches == [[5], [6]]
    assert query.ends == [(1, 0, False), (2, -1, False)]


# --- latest ----------------------------------------------------------------------------------------------------------


def test_starting_version_latest(table: Path) -> None:
    append(table, *range(10))
    query = stream(table, startingVersion="latest")
    live = query.start()
    live.processAllAvailable()
    assert query.rows == []
    append(table, *range(10, 15))
    live.processAllAvailable()
    assert query.rows == list(range(10, 15))
    append(table, *range(15, 20))
    append(table, *range(20, 25))
    live.processAllAvailable()

    assert query.rows == list(range(10, 25))


def test_starting_version_latest_defined_before_started_is_where_the_query_starts(table: Path) -> None:
    append(table, *range(10))
    query = stream(table, startingVersion="latest")
    defined = query.frame()
    append(table, *range(10, 20))
    live = query.start(defined)
    live.processAllAvailable()
    assert query.rows == []
    append(table, *range(20, 25))
    live.processAllAvailable()

    assert query.rows == list(range(20, 25))


def test_starting_version_latest_works_on_defined_but_empty_table(table: Path) -> None:
    commit(table, 0, protocol(), metadata())
    query = stream(table, startingVersion="latest")
    live = query.start()
    live.processAllAvailable()
    assert query.rows == []
    append(table, *range(5), name="id")
    live.processAllAvailable()

    assert query.rows == list(range(5))


# --- startingTimestamp -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("timestamp", "first"),
    [
        ("2020-07-14", 0),
        ("2020-07-14 23:40:00", 0),
        ("2020-07-14 23:50:00", 0),
        ("2020-07-14 23:50:01", 10),
        ("2020-07-15", 10),
        ("2020-07-15 00:00:00", 10),
        ("2020-07-15 00:10:00", 10),
    ],
)
def test_starting_timestamp(table: Path, timestamp: str, first: int) -> None:
    query = stream(two_commits(table), startingTimestamp=timestamp, timeZone="America/Los_Angeles")

    query.run()

    assert query.rows == list(range(first, 20))


@pytest.mark.parametrize(
    ("timestamp", "error_class"),
    [
        ("2020-07-15 00:10:01", "DELTA_TIMESTAMP_GREATER_THAN_COMMIT"),
        ("2020-07-16", "DELTA_TIMESTAMP_GREATER_THAN_COMMIT"),
        ("i am not a timestamp", "DELTA_TIMESTAMP_INVALID"),
    ],
)
def test_a_starting_timestamp_after_the_last_commit_or_none_at_all_is_refused(
    table: Path, timestamp: str, error_class: str
) -> None:
    query = stream(two_commits(table), startingTimestamp=timestamp, timeZone="America/Los_Angeles")

    with pytest.raises((TableError, IllegalOptionError)) as caught:
        query.run()
    assert caught.value.error_class == error_class


def test_a_starting_timestamp_before_what_is_left_of_the_log_is_its_first_commit(table: Path) -> None:
    without_version_0_behind_a_checkpoint(two_commits(table))
    query = stream(table, startingTimestamp="2020-07-14", timeZone="America/Los_Angeles")

    query.run()

    assert query.rows == list(range(10, 20))


def test_starting_timestamp_with_mid_history_ict(table: Path) -> None:
    """The time lies after the mtimes of all commits but before the in-commit timestamp of the first that has one."""
    hour = 60 * MINUTE_S
    switched_on = {"delta.inCommitTimestampEnablementVersion": "3", "delta.enableInCommitTimestamps": "true"}
    at_ms = (START_S + 2 * hour) * 1000
    switched_on |= {"delta.inCommitTimestampEnablementTimestamp": str(at_ms)}
    with_ict = protocol(1, 7, writerFeatures=["inCommitTimestamp"])
    file = [add(data_file(table, f"{version}.parquet", id=[version])) for version in range(6)]
    commit(table, 0, protocol(), metadata(), file[0])
    commit(table, 1, file[1])
    commit(table, 2, file[2])
    commit(table, 3, info(inCommitTimestamp=at_ms), with_ict, metadata(configuration=switched_on))
    commit(table, 4, info(inCommitTimestamp=at_ms + hour * 1000), file[4])
    commit(table, 5, info(inCommitTimestamp=at_ms + 2 * hour * 1000), file[5])
    for version in range(6):
        second = START_S + version * 20 * MINUTE_S
        os.utime(commit_file(table, version), (second, second))
    query = stream(table, startingTimestamp="2020-07-15 01:11:00", timeZone="America/Los_Angeles")

    query.run()

    assert query.rows == [4, 5]


def test_starting_version_and_starting_timestamp_are_both_set(table: Path) -> None:
    with pytest.raises(OptionError, match="'startingVersion'") as caught:
        stream(two_commits(table), startingVersion="0", startingTimestamp="2020-07-15").run()
    assert caught.value.error_class == "DELTA_STARTING_VERSION_AND_TIMESTAMP_BOTH_SET"
