from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from tablefeed.log.cleanup import expired
from tablefeed.model.actions import Version
from tablefeed.model.logfile import LogFile, LogFileKind


def a_file(name: str, kind: LogFileKind, version: int, *, at: int = 0, **more: Any) -> LogFile:
    return LogFile(name=name, kind=kind, version=Version(version), size_bytes=1, modified_ms=at, **more)


def commits(*times: int, first: int = 0) -> list[LogFile]:
    return [a_file(f"{v}.json", LogFileKind.COMMIT, v, at=at) for v, at in enumerate(times, first)]


def checkpoint(version: int) -> LogFile:
    return a_file(f"{version}.checkpoint.parquet", LogFileKind.CHECKPOINT, version, at=10**9)


def gone(listing: Iterable[LogFile], cutoff_ms: int) -> tuple[int, list[str]] | None:
    cleanup = expired(listing, cutoff_ms=cutoff_ms)
    return None if cleanup is None else (cleanup.kept, [file.name for file in cleanup.files])


def test_all_before_the_newest_checkpoint_that_is_no_newer_than_the_cutoff_goes() -> None:
    log = [*commits(10, 20, 30, 40, 50), checkpoint(1), checkpoint(2), checkpoint(4)]

    assert gone(log, 30) == (2, ["0.json", "1.json", "1.checkpoint.parquet"])
    assert gone(log, 39) == gone(log, 30)
    assert gone(log, 29) == (1, ["0.json"])


def test_a_commit_goes_before_the_checkpoint_that_hides_it_from_readers_without_its_features() -> None:
    v2 = a_file("1.checkpoint.id.json", LogFileKind.CHECKPOINT_V2, 1)

    cleanup = gone([*commits(10, 20, 30), checkpoint(0), v2, checkpoint(2)], 100)

    assert cleanup == (2, ["0.json", "0.checkpoint.parquet", "1.json", "1.checkpoint.id.json"])


def test_without_a_checkpoint_that_is_old_enough_all_stays() -> None:
    assert gone([*commits(10, 20, 30), checkpoint(2)], 29) is None
    assert gone(commits(10, 20, 30), 100) is None
    assert gone([*commits(10, 20), checkpoint(0)], 100) is None


def test_the_newest_checkpoint_stays_however_old_it_is() -> None:
    assert gone([*commits(10, 20, 30), checkpoint(1)], 10**8) == (1, ["0.json"])


def test_a_checkpoint_that_lacks_a_part_is_none() -> None:
    part = a_file("2.part", LogFileKind.CHECKPOINT_PART, 2, part=1, part_count=2)

    assert gone([*commits(10, 20, 30), checkpoint(1), part], 100) == (1, ["0.json"])


def test_checksums_compactions_and_broken_checkpoints_go_with_their_versions() -> None:
    log = [
        *commits(10, 20, 30),
        checkpoint(2),
        a_file("1.crc", LogFileKind.CHECKSUM, 1),
        a_file("2.crc", LogFileKind.CHECKSUM, 2),
        a_file("1.part", LogFileKind.CHECKPOINT_PART, 1, part=1, part_count=2),
        a_file("0.2.compacted.json", LogFileKind.COMPACTION, 0, last_version=2),
        a_file("2.3.compacted.json", LogFileKind.COMPACTION, 2, last_version=3),
    ]

    assert gone(log, 100) == (2, ["0.json", "0.2.compacted.json", "1.json", "1.crc", "1.part", "2.3.compacted.json"])


def test_a_commit_is_never_older_than_the_one_before_it() -> None:
    assert gone([*commits(10, 500, 30, 40), checkpoint(2)], 100) is None
    assert gone([*commits(10, 500, 30, 40), checkpoint(2)], 501) == (2, ["0.json", "1.json"])


@pytest.mark.parametrize("missing", [2, 3])
def test_where_commits_are_missing_after_the_checkpoint_all_stays(missing: int) -> None:
    log = [file for file in commits(10, 20, 30, 40, 50) if file.version != missing]

    assert gone([*log, checkpoint(2)], 100) is None


def test_the_order_of_the_listing_and_a_name_that_is_in_it_twice_do_not_matter() -> None:
    log = [*commits(10, 20, 30), checkpoint(1)]

    assert gone([*reversed(log), *log], 100) == (1, ["0.json"])


def test_a_checkpoint_that_cannot_be_read_is_passed_over_for_the_one_before_it() -> None:
    log = [*commits(10, 20, 30, 40), checkpoint(1), checkpoint(2)]

    cleanup = expired(log, cutoff_ms=100, unreadable=frozenset({"2.checkpoint.parquet"}))

    assert cleanup is not None
    assert (cleanup.kept, [file.name for file in cleanup.files]) == (1, ["0.json"])


def test_the_commits_that_a_compaction_covers_must_be_readable_before_it_goes() -> None:
    compaction = a_file("0.3.compacted.json", LogFileKind.COMPACTION, 0, last_version=3)

    cleanup = expired([*commits(10, 20, 30, 40, 50), checkpoint(1), compaction], cutoff_ms=20)

    assert cleanup is not None
    assert [file.name for file in cleanup.base.commits] == ["2.json", "3.json"]
