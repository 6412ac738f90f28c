"""What the commits of a table deliver to a stream of its row changes (`readChangeFeed`).

The rows of the initial snapshot are delivered as inserts of its version. As in Delta-Spark, a batch is refused where
its first version does not record changes. This is checked when the batch is read, not when it is planned, so that the
checkpoint has the same offset as with the Delta JAR. Where a later version recorded nothing, its rewritten rows are
delivered as deleted and inserted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import ClassVar

from tablefeed.delta.schema.partitioning import of_columns, partition_names
from tablefeed.errors import LogError
from tablefeed.feed.changes.change_files import row_change
from tablefeed.feed.changes.change_partitions import partitioned
from tablefeed.feed.changes.change_rules import ChangesRecorded, OneSchema
from tablefeed.feed.changes.java_regex import JavaRegex
from tablefeed.feed.scan.task import ChangedRows
from tablefeed.feed.snapshot.in_force import metadata_at, metadata_before
from tablefeed.feed.snapshot.table_log import Snapshot
from tablefeed.feed.snapshot.timeline import CommitTimes
from tablefeed.log.change_plan import ChangeStep, furthest_changes
from tablefeed.log.changes import ChangeType, changed_files, counted_actions
from tablefeed.log.plan import Limits, Step
from tablefeed.model.actions import AddFile, CdcFile, Commit, Metadata, Version
from tablefeed.model.offset import Offset


class ChangeDelivery:
    """A `Delivery` of changed rows. Files whose path `exclude` finds have an index; no limit counts them, none is read.

    `newest` is the table with the metadata that the stream reads with; `times` gives the times of commits.
    """

    by_file: ClassVar[bool] = True

    def __init__(self, newest: Snapshot, *, exclude: JavaRegex | None, times: CommitTimes) -> None:
        self._newest, self._exclude, self._times = newest, exclude, times
        self._url = newest.log.url
        self._in_force: tuple[Version, Metadata] | None = None
        self._batch: tuple[Offset, Offset] | None = None

    def sizes(self, commit: Commit) -> Sequence[int]:
        """See `Delivery`."""
        return [action.size_bytes or 0 for action in counted_actions(commit)]

    def step(self, commit: Commit) -> ChangeStep:
        """See `Delivery`."""
        counted = counted_actions(commit)
        return ChangeStep(
            version=commit.version,
            sizes=[action.size_bytes or 0 for action in counted],
            excluded=self._excluded(action.log_path for action in counted),
            recorded=any(isinstance(action, CdcFile) for action in counted),
            whole=any(
                not isinstance(file, CdcFile) and file.data_change and file.deletion_vector is not None
                for file in commit.files
            ),
        )

    def snapshot_step(self, snapshot: Step, log_paths: Iterable[str]) -> ChangeStep:
        """See `Delivery`."""
        return ChangeStep(
            version=snapshot.version, sizes=snapshot.sizes, excluded=self._excluded(log_paths), in_snapshot=True
        )

    def furthest(self, start: Offset, steps: Iterable[ChangeStep], limits: Limits, *, stop_at: Offset | None) -> Offset:
        """See `Delivery`."""
        return furthest_changes(start, steps, limits, stop_at=stop_at)

    def begin(self, start: Offset, end: Offset) -> None:
        """See `Delivery`. Raises ChangeDataError where the initial snapshot's version did not record changes."""
        self._batch = (start, end)
        if self._in_force is None or not start.version - 1 <= self._in_force[0] <= start.version:
            self._in_force = self._metadata_at(start.version)
        if start.in_snapshot:
            self._check_recorded(start.version)

    def files(self, commit: Commit, begin: int, stop: int | None) -> Iterator[ChangedRows]:
        """See `Delivery`. Raises ChangeDataError where the first version recorded no changes, or some are not known.

        Raises SchemaChangedError where the first version removes older rows that cannot be read: it changed the type
        of a column, or replaced a mapped column, whose values would be read as null. Raises it too where columns are
        mapped and the log does not say any more which there were before. A stream that tracks the schema continues: an
        option allowed it.
        """
        before, in_force = self._moved_to(commit)
        if self._batch is not None and self._batch[0].version == commit.version:
            self._check_recorded(commit.version)
            if commit.metadata is not None and not self._batch[0].barrier:
                self._check_removed(commit, before)
        timed = replace(commit, committed_at_ms=self._times.of(commit))
        files = [
            file
            for file in changed_files(commit)
            if begin <= file.index and (stop is None or file.index < stop) and not self._is_excluded(file.log_path)
        ]
        for file in partitioned(files, commit, in_force=in_force, before=before, url=self._url):
            yield file, row_change(timed, file.change_type, url=self._url)

    def snapshot_files(self, adds: Iterable[AddFile], version: Version) -> Iterator[ChangedRows]:
        """See `Delivery`. Raises ChangeDataError where the version's time is out of the range of a timestamp."""
        made = Commit(version=version, committed_at_ms=self._times.of_version(version))
        change = row_change(made, ChangeType.INSERT, url=self._url)
        # The stream's own partition columns: a stream does not begin with a snapshot that has others.
        names = partition_names(self._newest.metadata)
        for add in adds:
            if not self._is_excluded(add.log_path):
                yield replace(add, partition_values=of_columns(add.partition_values, names)), change

    def _moved_to(self, commit: Commit) -> tuple[Metadata | None, Metadata]:
        """The metadata before `commit` and the metadata at it, which is in force from then on.

        The first is None where it is not known any more, because the log was cleaned up to here.
        """
        version, known = self._in_force or self._metadata_at(commit.version)
        in_force = commit.metadata or known
        self._in_force = (commit.version, in_force)
        if commit.metadata is None or version < commit.version:
            return known, in_force
        return metadata_before(commit.version, in_force, self._newest.log), in_force

    def _metadata_at(self, version: Version) -> tuple[Version, Metadata]:
        log = self._newest.log
        try:
            later = version > self._newest.version
            at = log.load(version).metadata if later else metadata_at(version, self._newest)
        except LogError:
            return version, self._newest.metadata  # that version was cleaned up, or is not committed yet
        return version, at

    def _check_recorded(self, version: Version) -> None:
        if self._batch is not None and self._in_force is not None:
            start, end = self._batch
            versions = range(start.version, max(end.version, start.version + 1))
            ChangesRecorded(versions=versions, log=self._newest.log).check(self._in_force[1], version)

    def _check_removed(self, commit: Commit, before: Metadata | None) -> None:
        if any(file.data_change for file in commit.removed):
            one_schema = OneSchema(versions=range(commit.version, commit.version + 1), read=self._newest)
            one_schema.check_removed(before, commit.version)

    def _is_excluded(self, log_path: str) -> bool:
        return self._exclude is not None and self._exclude.finds(log_path)

    def _excluded(self, log_paths: Iterable[str]) -> frozenset[int]:
        if self._exclude is None:
            return frozenset()
        return frozenset(index for index, path in enumerate(log_paths) if self._exclude.finds(path))
