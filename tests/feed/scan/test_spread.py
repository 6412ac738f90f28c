"""How files become tasks: balanced, large ones in shares, each row in one of them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import hypothesis.strategies as st
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given

from support.logs import a_source, add, metadata, protocol
from support.recorded import log
from tablefeed.feed.scan.delta_task import DeltaColumns, DeltaTask, ParquetFile
from tablefeed.feed.scan.snapshot_tasks import snapshot_tasks
from tablefeed.feed.scan.spread import MOST_SHARES, shared, shares_wanted, spread
from tablefeed.feed.scan.task import ScanTask, read_task
from tablefeed.feed.snapshot.open_log import open_log
from tablefeed.log.plan import Limits

MB = 1 << 20
NO_COLUMNS = DeltaColumns(partitions={})


def a_file(size_bytes: int, path: str = "a.parquet") -> ParquetFile:
    return ParquetFile(path=path, size_bytes=size_bytes, partition_values={})


def tasks(*files: ParquetFile) -> list[ScanTask]:
    return spread(DeltaTask(url="t", storage_options={}, files=files, columns=NO_COLUMNS))


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
    whole = written(tmp_path, "a", *[700] * 14, 200)

    shares = [file for file, _ in shared(whole, most_bytes=whole.size_bytes // 5)]
    found = read([a_task(tmp_path, share) for share in shares])

    assert len(shares) == 6
    assert all(found)
    assert sorted(n for ids in found for n in ids) == list(range(10_000))


# --- as many tasks as are asked for ----------------------------------------------------------------------------------

ID = pa.schema([("id", pa.int64())])


def written(folder: Path, name: str, *group_rows: int, first: int = 0) -> ParquetFile:
    """A file with row groups of so many rows, which count up from `first`."""
    with pq.ParquetWriter(folder / name, ID) as writer:
        for rows in group_rows:
            writer.write_table(pa.table({"id": range(first, first + rows)}, ID))
            first += rows
    return a_file((folder / name).stat().st_size, name)


def a_task(folder: Path, *files: ParquetFile) -> DeltaTask:
    return DeltaTask(url=str(folder), storage_options={}, files=files, columns=NO_COLUMNS)


def spread_over(folder: Path, least_tasks: int, *files: ParquetFile) -> list[ScanTask]:
    return spread(a_task(folder, *files), least_tasks=least_tasks)


def read(tasks: Sequence[ScanTask]) -> list[list[int]]:
    return [[n for batch in read_task(task, ID) for n in batch["id"].to_pylist()] for task in tasks]


def test_a_file_of_as_many_row_groups_as_tasks_are_asked_for_has_one_in_each(tmp_path: Path) -> None:
    even = written(tmp_path, "even", *[500] * 16)
    uneven = written(tmp_path, "uneven", 1, 1, 9_000, 1, 1, 1, 5_000, 1)

    assert sorted(read(spread_over(tmp_path, 16, even))) == [list(range(n, n + 500)) for n in range(0, 8000, 500)]
    assert sorted(map(len, read(spread_over(tmp_path, 8, uneven)))) == [1, 1, 1, 1, 1, 1, 5_000, 9_000]


def test_there_are_no_more_tasks_than_row_groups_and_each_row_is_in_one(tmp_path: Path) -> None:
    files = written(tmp_path, "a", 700, 700, 700), written(tmp_path, "b", 10, first=2100)

    found = read(spread_over(tmp_path, 64, *files))

    assert len(found) == 4
    assert all(found)
    assert sorted(n for ids in found for n in ids) == list(range(2110))


def test_a_file_of_one_row_group_is_made_up_for_by_others(tmp_path: Path) -> None:
    files = written(tmp_path, "large", 50_000), written(tmp_path, "small", *[100] * 10, first=50_000)

    found = read(spread_over(tmp_path, 8, *files))

    assert len(found) == 8
    assert sorted(n for ids in found for n in ids) == list(range(51_000))


def test_fewer_tasks_than_files_or_cores_may_be_asked_for(tmp_path: Path) -> None:
    files = [written(tmp_path, f"{number}", 10, first=10 * number) for number in range(20)]

    found = read(spread_over(tmp_path, 1, *files))

    assert found == [list(range(200))]
    assert len(spread_over(tmp_path, 1, a_file(2048 * MB, "0"))) == 1  # one row group, whatever size is logged


def test_a_file_whose_footer_cannot_be_read_is_one_tasks_to_refuse(tmp_path: Path) -> None:
    (tmp_path / "junk").write_bytes(b"PAR1 junk PAR1")

    found = spread_over(tmp_path, 4, a_file(14, "junk"), a_file(10, "gone"), a_file(10, "../beside"))

    assert sorted(task.files[0].path for task in found) == ["../beside", "gone", "junk"]
    assert all(task.files[0].share is None for task in found)


def test_a_stream_and_a_batch_read_are_spread_over_what_is_asked_for_and_the_same_each_time(tmp_path: Path) -> None:
    size = written(tmp_path, "a", *[300] * 5).size_bytes
    table = str(log(tmp_path, v0=[protocol(), metadata(), add("a", size=size)]))

    def planned() -> list[ScanTask]:
        source = a_source(open_log(table), least_tasks=5)
        return source.tasks(source.initial(), source.latest(source.initial(), Limits()))

    assert len(planned()) == 5
    assert planned() == planned()
    assert planned() == snapshot_tasks(table, version=0, storage_options={}, least_tasks=5)


@given(st.lists(st.tuples(st.integers(0, 1 << 40), st.integers(0, 20)), max_size=12), st.integers(1, 100))
def test_files_are_shared_as_far_as_tasks_are_wanted_and_row_groups_there(
    files: list[tuple[int, int]], least: int
) -> None:
    sizes, groups = [size for size, _ in files], [count for _, count in files]

    counts = shares_wanted(sizes, groups, least=least)

    assert all(1 <= count <= max(1, of_file) for count, of_file in zip(counts, groups, strict=True))
    assert sum(counts) >= min(least, sum(max(1, of_file) for of_file in groups))
