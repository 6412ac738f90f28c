"""How far a batch of a change feed goes. Pure arithmetic over sizes; no file is looked at.

The admission rule is Delta-Spark's (DeltaSourceCDCSupport), which differs from that for appended rows (plan.py). A
commit whose changes only make sense together is taken whole or not at all; the first one of a batch is always taken. A
batch whose limit is used up looks at no further commit, not even at one without files.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from tablefeed.log.plan import Limits
from tablefeed.model.actions import Version
from tablefeed.model.offset import Offset


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeStep:
    """One step of the feed, the initial snapshot at `version` or the commit of `version`, with its files' sizes.

    The files at the indexes in `excluded` do not count. A commit is `recorded` where it has change data files, and
    `whole` where it cannot be split: it is recorded or has deletion vectors.
    """

    version: Version
    sizes: Sequence[int]
    excluded: Collection[int] = ()
    recorded: bool = False
    whole: bool = False
    in_snapshot: bool = False


def furthest_changes(
    start: Offset, steps: Iterable[ChangeStep], limits: Limits, *, stop_at: Offset | None = None
) -> Offset:
    """Gives the offset where a batch that begins at `start` ends.

    `steps` begins with the step that contains `start` (or a later one, where that one is lost and the caller allows it)
    and goes on in order. It is consumed lazily; no step at or beyond `stop_at`, the begin of a version, is requested.
    The result is `start` where there is nothing to take. After a recorded commit it is the end of that commit and not
    the begin of the next, as in Delta-Spark; without limits it is the begin of the next.
    """
    batch = _Batch(start, limits)
    remaining = iter(steps)
    while batch.has_capacity and (stop_at is None or batch.next_version < stop_at.version):
        step = next(remaining, None)
        if step is None:
            break
        batch.take(step)
    return batch.end


class _Batch:
    """What one batch has taken, and may still take."""

    def __init__(self, start: Offset, limits: Limits) -> None:
        self.end = start
        self.next_version = start.version
        self._start = start
        self._split_commits = limits.split_commits
        self._is_limited = limits.files is not None or limits.size_bytes is not None
        self._files = math.inf if limits.files is None else limits.files
        self._bytes = math.inf if limits.size_bytes is None else limits.size_bytes
        self._untouched = True

    @property
    def has_capacity(self) -> bool:
        return self._files > 0 and self._bytes > 0

    def take(self, step: ChangeStep) -> None:
        begins_here = step.version == self._start.version
        begin = self._start.file_index if begins_here else 0
        left = [index for index in range(begin, len(step.sizes)) if index not in step.excluded]
        self.next_version = Version(step.version + 1)
        if step.recorded:
            self._take_recorded(step, left)
        elif step.whole or (not self._split_commits and not step.in_snapshot):
            # Delta-Spark counts its markers at the begin and the end of such a commit as files.
            marks = 1 if begins_here else 2
            if self._admits_all(len(left) + marks, sum(step.sizes[index] for index in left)):
                self._end_commit(step)
        else:
            self._take_some(step, left)

    def _take_recorded(self, step: ChangeStep, left: Sequence[int]) -> None:
        if left and not self._admits_all(len(left), sum(step.sizes[index] for index in left)):
            return
        if not self._is_limited:
            self._end_commit(step)
        elif left:
            self._end_in(step, left[-1] + 1)

    def _take_some(self, step: ChangeStep, left: Sequence[int]) -> None:
        self._untouched = False
        for index in left:
            admitted = self.has_capacity
            self._files -= 1
            self._bytes -= step.sizes[index]
            if not admitted:
                return
            self._end_in(step, index + 1)
        self._end_commit(step)

    def _admits_all(self, files: int, size_bytes: int) -> bool:
        self._files -= files
        self._bytes -= size_bytes
        admitted = self._untouched or (self._files >= 0 and self._bytes >= 0)
        self._untouched = False
        return admitted

    def _end_in(self, step: ChangeStep, file_index: int) -> None:
        self.end = Offset(
            table_id=self._start.table_id, version=step.version, file_index=file_index, in_snapshot=step.in_snapshot
        )

    def _end_commit(self, step: ChangeStep) -> None:
        self.end = Offset(table_id=self._start.table_id, version=Version(step.version + 1))
