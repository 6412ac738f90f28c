"""Eight processes at one table: every commit that was acknowledged is there once, and the log is in order after it."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest

import tablefeed
from support.maintained import ids
from support.writers import (
    all_at_once,
    by_delta_rs,
    by_tablefeed,
    checkpoint_versions,
    checksum_count,
    forget_commits_before,
    rows_by_delta_rs,
    versions_in_log,
    wrong_checksums,
)
from tablefeed.feed.upkeep.background import wait_until_done

pytestmark = pytest.mark.slow

DAY_S = 86_400
EACH = 12


def a_table(path: Path) -> str:
    tablefeed.append(path, pa.table({"id": pa.array([], pa.int64())}))
    return str(path)


def shares(count: int, *, first: int = 0) -> list[range]:
    return [range(first + EACH * n, first + EACH * (n + 1)) for n in range(count)]


def test_of_the_appends_of_eight_processes_none_fails_and_each_is_there_once(tmp_path: Path) -> None:
    location = a_table(tmp_path / "orders")

    versions = all_at_once(location, [(by_tablefeed, rows) for rows in shares(8)])

    assert sorted(versions) == list(range(1, 97)), "every version was acknowledged to one writer"
    assert versions_in_log(location) == list(range(97))
    assert len(list(Path(location).glob("*.parquet"))) == 96, "a lost race writes no file again"
    assert rows_by_delta_rs(location) == ids(location) == list(range(96))
    assert_what_is_beside_the_commits_is_right(location)


def assert_what_is_beside_the_commits_is_right(location: str) -> None:
    assert wrong_checksums(location) == {}
    assert checksum_count(location) > 0
    newest = checkpoint_versions(location)[-1]
    assert newest >= 80, "the newest checkpoint is no more than an interval behind, and a race"
    forget_commits_before(location, newest)
    assert rows_by_delta_rs(location) == ids(location) == list(range(96))


def test_processes_of_ours_and_of_delta_rs_at_one_table_lose_nothing_of_each_other(tmp_path: Path) -> None:
    location = a_table(tmp_path / "orders")
    ours = [(by_tablefeed, rows) for rows in shares(5)]
    theirs = [(by_delta_rs, rows) for rows in shares(3, first=60)]

    versions = all_at_once(location, [*ours, *theirs])

    assert len(versions) == len(set(versions)) == 60
    assert versions_in_log(location) == list(range(97))
    assert rows_by_delta_rs(location) == ids(location) == list(range(96))
    assert wrong_checksums(location) == {}
    forget_commits_before(location, checkpoint_versions(location)[-1])
    assert rows_by_delta_rs(location) == ids(location) == list(range(96))


def test_processes_that_clean_the_log_up_at_the_same_time_leave_a_log_that_is_read(tmp_path: Path) -> None:
    location = a_table(tmp_path / "orders")
    for row in range(25):
        tablefeed.append(location, pa.table({"id": [row]}))
        wait_until_done()
    for log_file in (tmp_path / "orders" / "_delta_log").iterdir():
        old = log_file.stat().st_mtime - 40 * DAY_S
        os.utime(log_file, (old, old))

    versions = all_at_once(location, [(by_tablefeed, rows) for rows in shares(8, first=25)])

    assert sorted(versions) == list(range(26, 122))
    assert versions_in_log(location) == list(range(20, 122)), "what is older than the oldest checkpoint kept is gone"
    assert rows_by_delta_rs(location) == ids(location) == list(range(121))
