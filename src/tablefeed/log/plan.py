"""How far a batch goes, and how its files become tasks. Pure arithmetic over sizes; no file is looked at.

The admission rule is Delta-Spark's (streaming options maxFilesPerTrigger and maxBytesPerTrigger): a file is taken while
all budgets are above zero before it. So at least one file is always taken, and bytes may exceed their limit by one
file. A commit without files costs nothing, so a batch continues past it. Rows are counted in the same way. Where
commits are not split, the rule is that of Delta-Spark for a commit of row changes: the first of a batch is always
taken, a later one where all of it fits.
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
    """The most that one batch takes; None is no limit. Each is at least 1 where set.

    Without `split_commits` a batch ends within the initial snapshot or at the end of a commit.
    """

    files: int | None = None
    size_bytes: int | None = None
    rows: int | None = None
    split_commits: bool = True

    def __post_init__(self) -> None:
        if any(limit is not None and limit < 1 for limit in (self.files, self.size_bytes, self.rows)):
            raise ValueError(f"a limit is at least 1: {self}")

    @property
    def take_all(self) -> bool:
        """Whether a batch takes all that is there."""
        return self.files is None and self.size_bytes is None and self.rows is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step of the feed, the initial snapshot at `version` or the commit of `version`, with its files' sizes.

    `rows` has the number of rows of each file, None where it is not known; it is used only where rows are limited.
    """

    version: Version
    sizes: Sequence[int]
    rows: Sequence[int | None] = ()
    in_snapshot: bool = False


def furthest(start: Offset, steps: Iterable[Step], limits: Limits, *, stop_at: Offset | None = None) -> Offset:
    """Gives the offset where a batch that begins at `start` ends.

    `steps` begins with the step that contains `start` (or a later one, where that one is lost and the caller allows it)
    and goes on in order. It is consumed lazily. After a limit is used up, one more step is looked at, because a batch
    continues past steps without files. No step at or beyond `stop_at` is read or validated. The result is never beyond
    `stop_at`, and is `start` where there is nothing to take.
    """
    budget = _Budget(limits)
    position = start
    remaining = iter(steps)
    while stop_at is None or position.position < stop_at.position:
        step = next(remaining, None)
        if step is None:
            return position
        taken = position.file_index if position.version == step.version else 0
        taken = budget.take(step, taken)
        if taken < len(step.sizes):
            position = Offset(
                table_id=start.table_id, version=step.version, file_index=taken, in_snapshot=step.in_snapshot
            )
            break
        position = Offset(table_id=start.table_id, version=Version(step.version + 1))
    if stop_at is None or position.position <= stop_at.position:
        return position
    return max(start, stop_at, key=lambda offset: offset.position)


class _Budget:
    """What one batch may still take. A file whose number of rows is not known uses up the limit on rows."""

    def __init__(self, limits: Limits) -> None:
        self._split_commits = limits.split_commits
        self._counts_rows = limits.rows is not None
        self._files = math.inf if limits.files is None else limits.files
        self._bytes = math.inf if limits.size_bytes is None else limits.size_bytes
        self._rows = math.inf if limits.rows is None else limits.rows
        self._untouched = True

    def take(self, step: Step, begin: int) -> int:
        """Takes files of `step` from `begin` on; gives the index of the first that is not taken."""
        end = len(step.sizes)
        if not self._split_commits and not step.in_snapshot:
            return end if begin == end or self._takes_whole(step, begin) else begin
        while begin < end and self._files > 0 and self._bytes > 0 and self._rows > 0:
            self._spend(step, begin)
            begin += 1
        return begin

    def _takes_whole(self, step: Step, begin: int) -> bool:
        first_of_batch = self._untouched
        for index in range(begin, len(step.sizes)):
            known = not self._counts_rows or step.rows[index] is not None
            self._spend(step, index)
            if not first_of_batch and (not known or min(self._files, self._bytes, self._rows) < 0):
                return False
        return True

    def _spend(self, step: Step, index: int) -> None:
        self._untouched = False
        self._files -= 1
        self._bytes -= step.sizes[index]
        if self._counts_rows:
            rows = step.rows[index]
            self._rows = 0 if rows is None else self._rows - rows


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
