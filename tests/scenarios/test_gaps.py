"""Log files that are gone: of commits that a stream still has to read, and of the snapshot that it begins with.

DeltaSourceSuite's "incremental", "initial snapshot" and "fail on missing trailing commit".
"""

from __future__ import annotations

from pathlib import Path

import pytest
from deltalake import DeltaTable

from scenarios.streams import append, commit, commit_file, grown, stream
from support.logs import add, at, delivered, log_of, protocol
from support.recorded import data_file, recorded
from tablefeed.errors import LogError, LogGapError
from tablefeed.feed.stream.source import StreamSource
from tablefeed.feed.stream.source_options import SourceOptions
from tablefeed.log.plan import Limits
from tablefeed.store.local import LocalStore


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return tmp_path / "table"


def checkpoint_files(table: Path) -> list[Path]:
    return sorted((table / "_delta_log").glob("*.checkpoint*.parquet"))


def ten_rows(table: Path, times: int) -> Path:
    for _ in range(times):
        append(table, *range(10))
    return table


# --- the trailing commit ---------------------------------------------------------------------------------------------


def three_versions(table: Path) -> None:
    """Versions 0 and 1 have a file, version 2 three."""
    file = [data_file(table, f"{n}.parquet", id=[n]) for n in range(5)]
    commit(table, 0, protocol(1, 4), recorded(), add(file[0]))
    commit(table, 1, add(file[1]))
    commit(table, 2, *(add(name) for name in file[2:]))


def source_of(table: Path, *, change_feed: bool, limits: Limits) -> StreamSource:
    log = log_of(LocalStore(str(table)))
    options = SourceOptions(starting_version=0, change_feed=change_feed, limits=limits)
    return StreamSource(log, read_schema=log.load().schema, options=options, clock=lambda: 0.0)


CHANGE_FEED = pytest.mark.parametrize("change_feed", [True, False], ids=lambda value: f"readChangeFeed={value}")


@CHANGE_FEED
@pytest.mark.parametrize("mid_version", [True, False], ids=lambda value: f"midVersionEndOffset={value}")
def test_fail_on_a_trailing_commit_that_disappears_between_latest_offset_and_get_batch(
    table: Path,
    change_feed: bool,  # noqa: FBT001 (what the scenario is named by)
    mid_version: bool,  # noqa: FBT001
) -> None:
    three_versions(table)
    limits = Limits(files=3 if mid_version else None)
    source = source_of(table, change_feed=change_feed, limits=limits)
    end = source.latest(source.initial(), limits)
    assert end == (at(2, 1) if mid_version else at(3))
    DeltaTable(str(table)).create_checkpoint()
    commit_file(table, 2).unlink()
    restarted = source_of(table, change_feed=change_feed, limits=limits)

    with pytest.raises(LogError, match="ends at version 1, but this batch ends at version 2") as caught:
        restarted.tasks(restarted.initial(), end)
    assert caught.value.error_class == "DELTA_STREAMING_TRAILING_COMMIT_MISSING"


@CHANGE_FEED
def test_an_empty_batch_from_start_index_at_or_behind_end_index_is_no_missing_trailing_commit(
    table: Path,
    change_feed: bool,  # noqa: FBT001 (what the scenario is named by)
) -> None:
    three_versions(table)
    source = source_of(table, change_feed=change_feed, limits=Limits())

    assert delivered(source, at(2, 2), at(2, 2)) == []
    assert delivered(source, at(2, 3), at(2, 2)) == []


# --- commits that a stream still has to read -------------------------------------------------------------------------


@pytest.mark.parametrize("lost", [1, 2], ids=["first commit file missing", "commit file gap between versions"])
def test_incremental_a_missing_commit_file_fails_the_query(table: Path, lost: int) -> None:
    query = stream(ten_rows(table, 1))
    query.run()
    DeltaTable(str(ten_rows(table, 3))).create_checkpoint()
    commit_file(table, lost).unlink()

    with pytest.raises(LogGapError, match="failOnDataLoss") as caught:
        query.run()
    assert (caught.value.expected, caught.value.found) == (lost, lost + 1)
    assert caught.value.error_class == "DELTA_MISSING_FILES_UNEXPECTED_VERSION"


@pytest.mark.parametrize("lost", [1, 2], ids=["first commit file missing", "commit file gap between versions"])
def test_incremental_a_missing_commit_file_is_passed_over_with_fail_on_data_loss_false(table: Path, lost: int) -> None:
    query = stream(ten_rows(table, 1), failOnDataLoss="false")
    query.run()
    DeltaTable(str(ten_rows(table, 3))).create_checkpoint()
    commit_file(table, lost).unlink()

    query.run()

    assert query.rows == sorted([*range(10)] * 3)


# --- the snapshot that it begins with --------------------------------------------------------------------------------


def test_initial_snapshot_commit_file_missing_but_checkpoint_intact_succeeds(table: Path) -> None:
    DeltaTable(str(ten_rows(table, 4))).create_checkpoint()
    commit_file(table, 1).unlink()
    query = stream(table)

    query.run()

    assert query.rows == sorted([*range(10)] * 4)


@pytest.mark.parametrize("lost", [0, 1])
def test_initial_snapshot_both_checkpoint_and_commit_file_missing_fails(table: Path, lost: int) -> None:
    DeltaTable(str(ten_rows(table, 4))).create_checkpoint()
    for file in checkpoint_files(table):
        file.unlink()
    commit_file(table, lost).unlink()

    with pytest.raises(LogError) as caught:
        stream(table).frame()
    assert caught.value.error_class == "DELTA_MISSING_PART_FILES"


def test_initial_snapshot_checkpoint_missing_but_all_commit_files_intact_succeeds(table: Path) -> None:
    DeltaTable(str(ten_rows(table, 4))).create_checkpoint()
    for file in checkpoint_files(table):
        file.unlink()
    query = stream(table)

    query.run()

    assert query.rows == sorted([*range(10)] * 4)


def test_initial_snapshot_log_retention_deletes_old_files_mid_stream_and_the_restart_fails(table: Path) -> None:
    query = stream(grown(table, *range(4)), maxFilesPerTrigger="1")
    query.run_until(batches=1)
    assert query.ends[0] == (3, 0, True)
    DeltaTable(str(grown(table, *range(4, 14)))).create_checkpoint()
    for version in range(4):
        commit_file(table, version).unlink()

    with pytest.raises(LogError) as caught:
        query.run()
    assert caught.value.error_class == "DELTA_LOG_FILE_NOT_FOUND_FOR_STREAMING_SOURCE"


def test_a_stream_starts_from_a_corrupt_checkpoint(table: Path) -> None:
    DeltaTable(str(grown(table, 1, 2, 3, 4, 5))).create_checkpoint()
    append(table, 6)
    checkpoint_files(table)[-1].unlink()
    query = stream(table)

    query.run()

    assert query.rows == [1, 2, 3, 4, 5, 6]


def test_old_files_of_a_snapshot_may_be_deleted_without_update(table: Path) -> None:
    query = stream(grown(table, 0, 1, 2))
    DeltaTable(str(table)).create_checkpoint()
    live = query.start()
    live.processAllAvailable()
    for version in (0, 1):
        commit_file(table, version).unlink()
    grown(table, 3, 4)

    live.processAllAvailable()

    assert query.rows == [0, 1, 2, 3, 4]
