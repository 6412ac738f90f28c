"""What the commits of a table deliver to a stream: added files here, changed rows in change_delivery.py.

The planner (source.py) uses both through `Delivery`, one commit at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import TYPE_CHECKING, ClassVar, Protocol, TypeVar

from tablefeed.delta.stats.stats_text import num_records
from tablefeed.feed.changes.java_regex import JavaRegex
from tablefeed.feed.scan.task import ChangedRows
from tablefeed.log.admission import ChangePolicy, delivered_files, first_said
from tablefeed.log.plan import Limits, Step, furthest
from tablefeed.model.actions import AddFile, Commit, Version
from tablefeed.model.offset import Offset

if TYPE_CHECKING:
    from tablefeed.feed.scan.pruning import Pruner

StepT = TypeVar("StepT")


class Delivery(Protocol[StepT]):
    """What a stream delivers of the commits that it is given. Raises for a commit that it cannot deliver."""

    by_file: ClassVar[bool]
    """Whether a file may have other partition columns than the table."""

    def sizes(self, commit: Commit) -> Sequence[int]:
        """Gives the size in bytes of each file of `commit` that offsets count, in their order."""

    def step(self, commit: Commit) -> StepT:
        """Gives the step for `commit` that `furthest` takes."""

    def snapshot_step(self, snapshot: Step, log_paths: Iterable[str]) -> StepT:
        """Gives the step for the initial snapshot that `furthest` takes; `log_paths` are its files' paths as logged."""

    def furthest(self, start: Offset, steps: Iterable[StepT], limits: Limits, *, stop_at: Offset | None) -> Offset:
        """Gives the offset where a batch that begins at `start` ends."""

    def begin(self, start: Offset, end: Offset) -> None:
        """Begins to read the batch from `start` to `end`. Then `files` is called for each of its commits, in order."""

    def files(self, commit: Commit, begin: int, stop: int | None) -> Iterator[ChangedRows]:
        """Gives the files of `commit` to read, of those from index `begin` to before `stop` (None: to the last)."""

    def snapshot_files(self, adds: Iterable[AddFile], version: Version) -> Iterator[ChangedRows]:
        """Gives the files to read of `adds`, which are files of the initial snapshot at `version`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendDelivery:
    """Delivers the files that commits add. A file whose path `exclude` finds counts in offsets and limits, unread.

    The same holds for a file that `pruner` rules out; `InitialSnapshot` leaves out those of the initial snapshot.
    """

    policy: ChangePolicy
    exclude: JavaRegex | None
    counts_rows: bool
    pruner: Pruner | None = None
    by_file: ClassVar[bool] = False  # a stream of appends stops where the partitioning changes

    def sizes(self, commit: Commit) -> Sequence[int]:
        """See `Delivery`."""
        return [add.size_bytes for add in self._added(commit)]

    def step(self, commit: Commit) -> Step:
        """See `Delivery`. Raises ChangeRefusedError."""
        added = self._added(commit)
        rows = [num_records(add.stats) for add in added] if self.counts_rows else ()
        return Step(version=commit.version, sizes=[add.size_bytes for add in added], rows=rows)

    def snapshot_step(self, snapshot: Step, log_paths: Iterable[str]) -> Step:  # noqa: ARG002 - all of them count
        """See `Delivery`."""
        return snapshot

    def furthest(self, start: Offset, steps: Iterable[Step], limits: Limits, *, stop_at: Offset | None) -> Offset:
        """See `Delivery`."""
        return furthest(start, steps, limits, stop_at=stop_at)

    def begin(self, start: Offset, end: Offset) -> None:
        """See `Delivery`."""

    def files(self, commit: Commit, begin: int, stop: int | None) -> Iterator[ChangedRows]:
        """See `Delivery`. A file that the commit adds twice has two indexes and is read once.

        Raises ChangeRefusedError.
        """
        added = first_said(self._added(commit))
        adds = [add for index, add in added if begin <= index and (stop is None or index < stop)]
        if self.pruner is not None:
            may_match = self.pruner.choose([add.partition_values for add in adds], [add.stats for add in adds])
            adds = list(compress(adds, may_match))
        return self._read(adds)

    def snapshot_files(self, adds: Iterable[AddFile], version: Version) -> Iterator[ChangedRows]:  # noqa: ARG002
        """See `Delivery`."""
        return self._read(adds)

    def _added(self, commit: Commit) -> tuple[AddFile, ...]:
        return delivered_files(commit, self.policy)

    def _read(self, adds: Iterable[AddFile]) -> Iterator[ChangedRows]:
        return ((add, None) for add in adds if self.exclude is None or not self.exclude.finds(add.log_path))
