"""What the commits of a table deliver to a stream: appended files here, changed rows in change_delivery.py.

The planner (source.py) asks for one commit at a time and does not know which of the two it plans.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import TYPE_CHECKING, Protocol, TypeVar

from tablefeed.delta.stats.stats_text import num_records
from tablefeed.feed.scan.task import ScanFile, scan_file
from tablefeed.log.admission import ChangePolicy, delivered_files, first_said
from tablefeed.log.java_regex import JavaRegex
from tablefeed.log.plan import Limits, Step, furthest
from tablefeed.model.actions import AddFile, Commit, Version
from tablefeed.model.offset import Offset

if TYPE_CHECKING:
    from tablefeed.feed.scan.pruning import Pruner

StepT = TypeVar("StepT")


class Delivery(Protocol[StepT]):
    """One kind of feed. Errors are those of the commits that it is given."""

    @property
    def by_file(self) -> bool:
        """Whether a file may be of a version with another partitioning than the table's."""

    def sizes(self, commit: Commit) -> Sequence[int]:
        """Gives the bytes of each file of `commit` that has a number in offsets."""

    def step(self, commit: Commit) -> StepT:
        """Gives `commit` as `furthest` takes it."""

    def snapshot_step(self, snapshot: Step, log_paths: Iterable[str]) -> StepT:
        """Gives the initial snapshot, whose files are logged as `log_paths`, as `furthest` takes it."""

    def furthest(self, start: Offset, steps: Iterable[StepT], limits: Limits, *, stop_at: Offset | None) -> Offset:
        """Gives the offset where a batch that begins at `start` ends."""

    def begin(self, start: Offset, end: Offset) -> None:
        """Begins to read the batch from `start` to `end`: its commits come to `files` in order."""

    def files(self, commit: Commit, begin: int, stop: int | None) -> Iterator[ScanFile]:
        """Gives what is read of the files of `commit` from the number `begin` on, up to and without `stop`."""

    def snapshot_files(self, adds: Iterable[AddFile], version: Version) -> Iterator[ScanFile]:
        """Gives what is read of `adds`, files of the initial snapshot at `version`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendDelivery:
    """The files that commits add. Those that `exclude` finds are numbered and counted, and not read.

    So are those that `pruner` rules out; of the initial snapshot's, they do not come here.
    """

    url: str
    policy: ChangePolicy
    exclude: JavaRegex | None
    counts_rows: bool
    pruner: Pruner | None = None

    @property
    def by_file(self) -> bool:
        """As of `Delivery`: a stream of appends stops where the partitioning changes."""
        return False

    def sizes(self, commit: Commit) -> Sequence[int]:
        """As of `Delivery`."""
        return [add.size_bytes for add in self._added(commit)]

    def step(self, commit: Commit) -> Step:
        """As of `Delivery`. Raises ChangeRefusedError."""
        added = self._added(commit)
        rows = [num_records(add.stats) for add in added] if self.counts_rows else ()
        return Step(version=commit.version, sizes=[add.size_bytes for add in added], rows=rows)

    def snapshot_step(self, snapshot: Step, log_paths: Iterable[str]) -> Step:  # noqa: ARG002 - all of them count
        """As of `Delivery`."""
        return snapshot

    def furthest(self, start: Offset, steps: Iterable[Step], limits: Limits, *, stop_at: Offset | None) -> Offset:
        """As of `Delivery`."""
        return furthest(start, steps, limits, stop_at=stop_at)

    def begin(self, start: Offset, end: Offset) -> None:
        """As of `Delivery`."""

    def files(self, commit: Commit, begin: int, stop: int | None) -> Iterator[ScanFile]:
        """As of `Delivery`; a file that the commit says again is numbered again, and not read.

        Raises ChangeRefusedError.
        """
        added = first_said(self._added(commit))
        asked = [add for index, add in added if begin <= index and (stop is None or index < stop)]
        if self.pruner is not None:
            may_match = self.pruner.choose([add.partition_values for add in asked], [add.stats for add in asked])
            asked = list(compress(asked, may_match))
        return self._read(asked)

    def snapshot_files(self, adds: Iterable[AddFile], version: Version) -> Iterator[ScanFile]:  # noqa: ARG002
        """As of `Delivery`."""
        return self._read(adds)

    def _added(self, commit: Commit) -> tuple[AddFile, ...]:
        return delivered_files(commit, self.policy, url=self.url)

    def _read(self, adds: Iterable[AddFile]) -> Iterator[ScanFile]:
        return (scan_file(add) for add in adds if self.exclude is None or not self.exclude.finds(add.log_path))
