"""How the files of a batch become tasks: of much the same size, large files in shares of their row groups.

Sizes are the log's. Where row groups lie is looked up in the files' footers only for a batch that is to have so many
tasks (`minPartitions`); else a file is shared by its bytes, and a share in which no row group has its middle is empty.
A split is shared by the blocks of its doc stores, which are row groups here. Files do not change, so that a batch that
is planned again becomes the same tasks.
"""

from __future__ import annotations

import heapq
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from tablefeed.errors import TablefeedError
from tablefeed.feed.scan.task import ScanFile, ScanTask, task_store
from tablefeed.feed.snapshot.table_files import TableFiles
from tablefeed.log.plan import pack
from tablefeed.store import Store

SHARE_BYTES = 32 << 20
"""What a share of a file has at the least: less is not worth another look at its footer. Not where tasks are asked
for."""

MOST_SHARES = 10_000
"""Of one file; a terabyte has as many."""

TASK_BYTES = 128 << 20
"""Bytes of Parquet in one task where there are more than the cores take at once (Spark's maxPartitionBytes)."""

FOOTER_READERS = 8
"""Footers read at a time: a store answers a few at once as fast as one."""

_Share = tuple[ScanFile, int]  # with its size in bytes


def spread(whole: ScanTask, *, least_tasks: int | None = None, store: Store | None = None) -> list[ScanTask]:
    """Spreads the files of `whole` over tasks of much the same size, each of `TASK_BYTES` or little more.

    There are `least_tasks` of them, or more, as far as the files and their row groups are as many; None: as many as
    this machine has cores. No task is empty that way. `store`: where the footers are; None: where `whole` says.
    """
    total = sum(file.size_bytes for file in whole.files)
    by_size = -(-total // TASK_BYTES)
    if least_tasks is None:
        least_tasks = os.cpu_count() or 1
        most = min(TASK_BYTES, max(SHARE_BYTES, -(-total // least_tasks)))
        shares = [share for file in whole.files for share in shared(file, most_bytes=most)]
    else:
        shares = _by_row_groups(whole, least_tasks, store)
    tasks = pack([size for _, size in shares], task_count=max(least_tasks, by_size))
    return [replace(whole, files=tuple(shares[i][0] for i in task)) for task in tasks]


def shared(file: ScanFile, *, most_bytes: int) -> list[_Share]:
    """Gives `file` in shares of at most `most_bytes`, and their sizes; as it is where it is no larger.

    Beyond `MOST_SHARES` they are larger: a log may say any size.
    """
    count = min(-(-file.size_bytes // most_bytes), MOST_SHARES)
    if count <= 1:
        return [(file, file.size_bytes)]
    bounds = [file.size_bytes * i // count for i in range(count + 1)]
    # The log may be wrong about a file's size: its own ends are left open, so that no row group is.
    ends = [None, *bounds[1:-1], None]
    return [(replace(file, share=(ends[i], ends[i + 1])), bounds[i + 1] - bounds[i]) for i in range(count)]


def shares_wanted(sizes: Sequence[int], groups: Sequence[int], *, least: int) -> list[int]:
    """Gives in how many shares each file is read, so that there are `least` where the files' `groups` are as many.

    None is larger than a task's worth, if it need not be, and whichever has the largest is the next to be shared.
    """
    most = max(1, min(TASK_BYTES, -(-sum(sizes) // least)))
    counts = [max(1, min(-(-size // most), of_file)) for size, of_file in zip(sizes, groups, strict=True)]
    missing = least - sum(counts)
    largest = [(-size / count, i) for i, (size, count) in enumerate(zip(sizes, counts, strict=True))]
    heapq.heapify(largest)
    while missing > 0 and largest:
        _, i = heapq.heappop(largest)
        if counts[i] < groups[i]:
            counts[i] += 1
            missing -= 1
            heapq.heappush(largest, (-sizes[i] / counts[i], i))
    return counts


def _by_row_groups(whole: ScanTask, least: int, store: Store | None) -> list[_Share]:
    sizes = [file.size_bytes for file in whole.files]
    most = max(1, min(TASK_BYTES, -(-sum(sizes) // least)))
    looked_at = [i for i, size in enumerate(sizes) if size > most or len(sizes) < least]
    places = dict(zip(looked_at, _places([whole.files[i] for i in looked_at], whole, store), strict=True))
    counts = shares_wanted(sizes, [len(places.get(i, ())) for i in range(len(sizes))], least=least)
    return [
        share
        for i, (file, count) in enumerate(zip(whole.files, counts, strict=True))
        for share in (_cut(file, places[i], count) if count > 1 else [(file, file.size_bytes)])
    ]


def _places(files: Sequence[ScanFile], whole: ScanTask, store: Store | None) -> list[list[tuple[int, int]]]:
    """The middle and the size in bytes of each file's row groups, in the order of bytes; none where they cannot be had.

    What is wrong with such a file is for the task to say that reads it.
    """
    if not files:
        return []
    places_in = _looking_into(whole, task_store(whole) if store is None else store)

    def places(file: ScanFile) -> list[tuple[int, int]]:
        try:
            return places_in(file)
        except TablefeedError:
            return []

    with ThreadPoolExecutor(FOOTER_READERS) as readers:
        return list(readers.map(places, files))


def _looking_into(whole: ScanTask, store: Store) -> Callable[[ScanFile], list[tuple[int, int]]]:
    if whole.columns.in_splits is not None:
        from tablefeed.feed.scan.split_scan import split_places

        return lambda file: split_places(file.path, file.size_bytes, store, most=MOST_SHARES)
    from tablefeed.data.read import row_group_places

    opened = TableFiles(store, storage_options=whole.storage_options)

    def places(file: ScanFile) -> list[tuple[int, int]]:
        with opened.open_input(file.path) as source:
            return row_group_places(source)

    return places


def _cut(file: ScanFile, places: Sequence[tuple[int, int]], count: int) -> list[_Share]:
    """`file` in `count` shares of much the same size, fewer where row groups have one middle; each has a row group.

    A share begins at the middle of its first row group, which is how a reader knows whose that is.
    """
    total, behind = sum(size for _, size in places), 0
    begins = [0]
    for i, (_, size) in enumerate(places):
        is_due = behind * count >= total * len(begins) or len(places) - i == count - len(begins)
        if i and is_due and len(begins) < count and places[i][0] > places[i - 1][0]:
            begins.append(i)
        behind += size
    bounds = [None, *(places[i][0] for i in begins[1:]), None]
    ends = [*begins[1:], len(places)]
    sizes = [sum(size for _, size in places[begin:end]) for begin, end in zip(begins, ends, strict=True)]
    return [(replace(file, share=(bounds[i], bounds[i + 1])), sizes[i]) for i in range(len(begins))]
