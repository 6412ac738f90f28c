"""Divides the files of a batch into tasks of about the same size; large files are divided into shares of row groups.

Sizes are from the log. Footers are read, to find the row groups, only for a batch with `minPartitions`. Otherwise a
file is divided by bytes, and a share is empty where no row group has its middle in it. A split is divided by the blocks
of its doc stores, which are called row groups here. Files never change, so a batch that is planned again becomes the
same tasks on a machine with as many cores.
"""

from __future__ import annotations

import heapq
import os
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from tablefeed.errors import TablefeedError
from tablefeed.feed.scan.task import ScanFile, ScanTask, task_store
from tablefeed.log.plan import pack
from tablefeed.store import Store

SHARE_BYTES = 32 << 20
"""A file up to this size is not divided, because each share reads the footer again. Not applied where `least_tasks` is
given."""

MOST_SHARES = 10_000
"""The most shares of one file, which a file of about a terabyte reaches."""

TASK_BYTES = 128 << 20
"""About the largest size of a task, and of a share where row groups allow it (Spark's maxPartitionBytes)."""

FOOTER_READERS = 8
"""How many footers are read at a time: a store answers a few requests as fast as one."""

_FileT = TypeVar("_FileT", bound=ScanFile)
_Share = tuple[ScanFile, int]  # with its size in bytes


def spread(whole: ScanTask, *, least_tasks: int | None = None, store: Store | None = None) -> list[ScanTask]:
    """Spreads the files of `whole` over tasks of about the same size, each of about `TASK_BYTES` or less.

    There are at least `least_tasks` tasks if the files have so many row groups. None: about as many tasks as this
    machine has cores, fewer for few small files. Each task has a file or a share of one. Footers are read from `store`;
    None: the store of `whole`.
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


def shared(file: _FileT, *, most_bytes: int) -> list[tuple[_FileT, int]]:
    """Gives the shares of `file`, of at most `most_bytes`, with their sizes; the whole file where it is no larger.

    Shares are larger where there would be more than `MOST_SHARES`: the log may give any size.
    """
    count = min(-(-file.size_bytes // most_bytes), MOST_SHARES)
    if count <= 1:
        return [(file, file.size_bytes)]
    bounds = [file.size_bytes * i // count for i in range(count + 1)]
    # The log may be wrong about a file's size. The outer shares have no outer bound, so that no row group is lost.
    ends = [None, *bounds[1:-1], None]
    return [(replace(file, share=(ends[i], ends[i + 1])), bounds[i + 1] - bounds[i]) for i in range(count)]


def shares_wanted(sizes: Sequence[int], groups: Sequence[int], *, least: int) -> list[int]:
    """Gives the number of shares of each file, at least `least` in all where `groups`, its row groups, allow it.

    First, no share is larger than `TASK_BYTES` or than the total divided by `least`, where row groups allow it. Then
    the file with the largest shares gets one more, until there are `least`. Each file has at least one share.
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
    """The middle byte and the size in bytes of each file's row groups, in ascending order.

    Empty for a file whose footer cannot be read: the task that reads the file raises.
    """
    if not files:
        return []
    store = task_store(whole) if store is None else store

    def places(file: ScanFile) -> list[tuple[int, int]]:
        try:
            return whole.row_groups(file, store, most=MOST_SHARES)
        except TablefeedError:
            return []

    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(FOOTER_READERS) as readers:
        return list(readers.map(places, files))


def _cut(file: ScanFile, places: Sequence[tuple[int, int]], count: int) -> list[_Share]:
    """The shares of `file`: `count` of about the same size, or fewer where row groups have the same middle.

    Each has a row group, and each but the first begins at the middle of a row group: readers select them by that.
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
