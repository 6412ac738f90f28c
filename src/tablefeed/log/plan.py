"""How far a batch goes, and how its files become tasks. Pure arithmetic over sizes; no file is looked at.

The admission rule is Delta-Spark's (streaming options maxFilesPerTrigger and maxBytesPerTrigger): a file is taken
while both budgets are above zero before it, so at least one always passes and bytes may overshoot by one file; a
commit without files costs nothing, so a batch runs on over it.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tablefeed.model.actions import Version
from tablefeed.model.offset import Offset


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The most that one batch takes; None is no limit. Both are at least 1 where set."""

    files: int | None = None
    size_bytes: int | None = None

    def __post_init__(self) -> None:
        if any(limit is not None and limit < 1 for limit in (self.files, self.size_bytes)):
            raise ValueError(f"a limit is at least 1: {self}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One stretch of the feed: the initial snapshot at `version`, or the commit of `version`, by its files' sizes."""

    version: Version
    sizes: Sequence[int]
    in_snapshot: bool = False


def furthest(start: Offset, steps: Iterable[Step], limits: Limits, *, stop_at: Offset | None = None) -> Offset:
    """Gives the offset where a batch that begins at `start` ends.

    `steps` begins with the stretch that `start` lies in (or behind it, where that one is lost and the caller allows
    it) and goes on in order. It is consumed lazily: one stretch beyond a spent limit is looked at, since stretches
    without files are crossed, and none at or beyond `stop_at`, so that what came after it is neither read nor
    validated. The result never passes `stop_at`, and is `start` where nothing is there to take.
    """
    files_left = math.inf if limits.files is None else limits.files
    bytes_left = math.inf if limits.size_bytes is None else limits.size_bytes
    position = start
    remaining = iter(steps)
    while stop_at is None or position.position < stop_at.position:
        step = next(remaining, None)
        if step is None:
            return position
        taken = position.file_index if position.version == step.version else 0
        while taken < len(step.sizes) and files_left > 0 and bytes_left > 0:
            files_left -= 1
            bytes_left -= step.sizes[taken]
            taken += 1
        if taken < len(step.sizes):
            position = Offset(
                table_id=start.table_id, version=step.version, file_index=taken, in_snapshot=step.in_snapshot
            )
            break
        position = Offset(table_id=start.table_id, version=Version(step.version + 1))
    if stop_at is None or position.position <= stop_at.position:
        return position
    return max(start, stop_at, key=lambda offset: offset.position)


def pack(sizes: Sequence[int], *, task_count: int, open_cost_bytes: int = 4 << 20) -> list[list[int]]:
    """Spreads files over at most `task_count` tasks so that the largest task is small; gives their indexes.

    Each file counts `open_cost_bytes` beside its size, as Spark counts it (spark.sql.files.openCostInBytes).
    Largest first onto the lightest task; within a task files keep their order. No task is empty.
    """
    if task_count < 1:
        raise ValueError(f"files need at least one task, not {task_count}")
    bins = min(task_count, len(sizes))
    tasks: list[list[int]] = [[] for _ in range(bins)]
    lightest = [(0, 0, task) for task in range(bins)]  # load, file count (an empty task first), task
    for index in sorted(range(len(sizes)), key=lambda i: (-sizes[i], i)):
        load, file_count, task = heapq.heappop(lightest)
        tasks[task].append(index)
        heapq.heappush(lightest, (load + sizes[index] + open_cost_bytes, file_count + 1, task))
    return sorted(sorted(task) for task in tasks)
