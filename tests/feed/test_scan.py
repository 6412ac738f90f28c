"""How files become tasks: balanced, large ones in shares, each row in one of them."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tablefeed.feed.scan import MOST_SHARES, ScanFile, ScanTask, TableColumns, balanced_tasks, read_task, shared

MB = 1 << 20
NO_COLUMNS = TableColumns(partitions={})


def a_file(size_bytes: int, path: str = "a.parquet") -> ScanFile:
    return ScanFile(path=path, size_bytes=size_bytes, partition_values={})


def tasks(*files: ScanFile) -> list[ScanTask]:
    return balanced_tasks(files, url="t", storage_options={}, columns=NO_COLUMNS)


def test_a_file_of_a_tasks_worth_is_read_whole() -> None:
    assert shared(a_file(128 * MB), most_bytes=128 * MB) == [(a_file(128 * MB), 128 * MB)]
    assert shared(a_file(0), most_bytes=128 * MB) == [(a_file(0), 0)]


def test_a_larger_file_is_shared_and_its_ends_are_open() -> None:
    shares = shared(a_file(300), most_bytes=128)

    assert [(file.share, size) for file, size in shares] == [((None, 100), 100), ((100, 200), 100), ((200, None), 100)]


def test_a_file_of_two_gigabytes_is_the_work_of_many_tasks() -> None:
    found = tasks(a_file(2048 * MB))

    assert len(found) == max(16, os.cpu_count() or 1)
    assert all(len(task.files) == 1 for task in found)


def test_a_log_that_claims_an_impossible_size_makes_no_more_shares_than_a_terabyte_has() -> None:
    assert len(shared(a_file(2**63 - 1), most_bytes=128 * MB)) == MOST_SHARES


def test_small_files_are_not_shared_and_stay_with_others_in_a_task() -> None:
    found = tasks(*(a_file(MB, f"{number}.parquet") for number in range(100)))

    assert len(found) == min(100, os.cpu_count() or 1)
    assert all(file.share is None for task in found for file in task.files)


def test_shares_read_by_tasks_of_their_own_give_each_row_once(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64())])
    pq.write_table(pa.table({"id": range(10_000)}, schema), tmp_path / "a.parquet", row_group_size=700)
    size = (tmp_path / "a.parquet").stat().st_size

    shares = [file for file, _ in shared(a_file(size), most_bytes=size // 5)]
    read = [
        [
            n
            for batch in read_task(
                ScanTask(url=str(tmp_path), storage_options={}, files=(share,), columns=NO_COLUMNS), schema
            )
            for n in batch["id"].to_pylist()
        ]
        for share in shares
    ]

    assert len(shares) == 6
    assert all(read)
    assert sorted(n for ids in read for n in ids) == list(range(10_000))
