"""The feed of a table for a streaming query's planner: where to begin, how far a batch goes, what to read.

It handles offsets and files only; tasks read the rows (feed/scan/task.py). What a commit delivers, added files or
changed rows, and how far a batch of them goes, is decided by a `Delivery` (delivery.py, change_delivery.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from tablefeed.delta.schema.schema_string import parse_schema
from tablefeed.errors import LogError, OffsetError, SchemaChangedError, naming, naming_its_table
from tablefeed.feed.scan.spread import spread
from tablefeed.feed.scan.table_scan import table_scan
from tablefeed.feed.scan.task import ChangedRows, ScanTask
from tablefeed.feed.snapshot.bounds import check_protocol
from tablefeed.feed.snapshot.open_log import open_log
from tablefeed.feed.snapshot.same_table import SameTable, refuse_other
from tablefeed.feed.snapshot.table_log import Snapshot, TableLog
from tablefeed.feed.snapshot.tail import GAP_CHECK_S, ReplacedWhileReadError, Tail
from tablefeed.feed.snapshot.timeline import CommitTimes
from tablefeed.feed.stream.batch_span import as_planned, held_at, last_looked_at, last_version, refuse_disorder
from tablefeed.feed.stream.delivery import AppendDelivery, Delivery
from tablefeed.feed.stream.event_time import check_order, event_time_field
from tablefeed.feed.stream.lag import Lag, LagMeter
from tablefeed.feed.stream.query_schema import QuerySchema
from tablefeed.feed.stream.source_options import SourceOptions
from tablefeed.feed.stream.stream_bounds import Ending, start_version
from tablefeed.feed.stream.stream_metadata import REMEDY, FixedMetadata, StreamMetadata, check_behind_hole
from tablefeed.feed.stream.stream_rows import StreamRows
from tablefeed.feed.stream.stream_snapshot import ByFiles, InitialSnapshot, SnapshotOrder
from tablefeed.log.plan import Limits
from tablefeed.model.actions import Commit, Version
from tablefeed.model.cached import cached_property
from tablefeed.model.offset import Barrier, Offset
from tablefeed.model.schema import Struct

if TYPE_CHECKING:
    from tablefeed.data.predicate import RowFilter
    from tablefeed.feed.stream.event_order import ByEventTime


_Plan = TypeVar("_Plan")

MOST_REPLACED = 3
"""How often a batch is planned again because commits were replaced while they were read, or published by a catalog."""


def open_source(
    location: str,
    *,
    storage_options: Mapping[str, str],
    schema_string: str,
    analysed_at: Version | None = None,
    options: SourceOptions,
    clock: Callable[[], float],
) -> StreamSource:
    """Gives the feed of the table at `location` for a query analysed with the schema text `schema_string`."""
    log = open_log(location, storage_options)
    with naming(log.url):
        schema = parse_schema(schema_string)
    return StreamSource(log, read_schema=schema, analysed_at=analysed_at, options=options, clock=clock)


def _read_again(plan: Callable[[], _Plan]) -> _Plan:
    """Gives what `plan` gives; calls it again where commits may have been replaced while it read them."""
    for _ in range(MOST_REPLACED):
        with suppress(ReplacedWhileReadError):
            return plan()
    return plan()


class StreamSource:
    """The feed of one table for one query. Every offset that it gives belongs to that table.

    `read_schema` is the schema that Spark analysed the query with; all rows are delivered in it. The table had it at
    `analysed_at` (None: when this object first loads the table). Raises IllegalOptionError where the options name an
    event time column that `read_schema` does not have, or that is no timestamp.
    """

    def __init__(
        self,
        log: TableLog,
        *,
        read_schema: Struct,
        analysed_at: Version | None = None,
        options: SourceOptions,
        clock: Callable[[], float],
    ) -> None:
        self._log = log
        self._schema = read_schema
        self._analysed_at = analysed_at
        self._options = options
        column = options.event_time_column
        self._event_time = None if column is None else event_time_field(column, read_schema)
        self._tail = Tail(log, clock=clock, fail_on_data_loss=options.fail_on_data_loss)
        self._times = CommitTimes(log)
        self._clock = clock
        self._looked_at_s = clock()
        self._checked_behind_holes: set[Version] = set()
        self._initial: Offset | None = None
        self._first_end: Offset | None = None
        self._bound: Offset | None = None
        self._wants_bound = False

    @property
    def url(self) -> str:
        """The table's URL, without credentials."""
        return self._log.url

    @naming_its_table
    def initial(self) -> Offset:
        """Gives the offset where a query without a checkpoint begins; this object always gives the same.

        Raises as `start_version` and `Ending` do, where the log has no such begin or the end is before it.
        """
        if self._initial is None:
            first = start_version(self._options.start, self._begun)
            if first is None:
                self._initial = self._offset(self._ending.snapshot(self._begun), in_snapshot=True)
            else:
                self._ending.check(self._options.start, first)
                self._initial = self._offset(first)
            if self._initial.in_snapshot or self._initial.version > self._begun.version:
                self._first_end = self._offset(Version(self._begun.version + 1))
        return self._initial

    @naming_its_table
    def latest(self, start: Offset, limits: Limits) -> Offset:
        """Gives the offset where a batch that begins at `start` ends under `limits`; `start` where nothing is new.

        Reads each new commit once. Raises ChangeRefusedError, SchemaChangedError and UnsupportedFeatureError for a
        commit that cannot be delivered, LogGapError for a commit that is gone, and LogError
        (DELTA_STREAMING_TRAILING_COMMIT_MISSING) where the log ends before `start`. Where metadata is tracked, also
        raises SchemaLogError, and MetadataEvolvedError where the query must be started again.
        """
        first_end, bound = self._first_end, self._bound

        def planned() -> Offset:
            self._first_end, self._bound = first_end, bound
            return self._latest(start, limits)

        return _read_again(planned)

    def _latest(self, start: Offset, limits: Limits) -> Offset:
        self._check_offset(start)
        last = self._ending.last
        if last is not None and start.version > last:
            self._ending.log_reached(query_ends=self._wants_bound)
            return start
        self._same_table.compare_after_restart(last_looked_at(start))
        self._tail.forget_replaced(last_looked_at(start))
        is_first = start == self._initial
        stop_at = None if last is None else self._offset(Version(last + 1))
        held = held_at(start, is_first=is_first)
        try:
            self._metadata.begin(held, start.version, is_first=is_first or start.in_snapshot)
        except (SchemaChangedError, OffsetError):
            # Delta-Spark reads the commits of the batch first: one that it refuses for its rows is the error then.
            with suppress(SchemaChangedError, OffsetError):
                self._furthest(start, Limits() if self._wants_bound else limits, stop_at)
            raise
        if start.barrier is Barrier.REACHED:
            return self._offset(start.version, barrier=Barrier.PASSED)
        if start.barrier is Barrier.PASSED and self._options.tracking is not None:
            # `delivered` has usually written this entry. It has not where the query ended before that call.
            self._metadata.passed(self._there(start.version))
        if self._wants_bound and self._bound is None:
            self._bound = self._furthest(start, Limits(), stop_at)
        if self._bound is not None and not self._bound.barrier:  # a batch stops at a barrier by itself
            stop_at = self._bound
        end = self._not_past_first_end(start, self._furthest(start, limits, stop_at))
        self._tail.note_ahead(last_looked_at(end))
        self._check_table_still_there(start, end)
        return end

    @naming_its_table
    def lag(self, end: Offset, *, now_ms: int) -> Lag:
        """Gives the lag at `end`, which the last `latest` gave. Raises StoreError and as `tasks` does."""
        snapshot = self._snapshot_order.left(end) if end.in_snapshot else None
        lag = self._meter.behind(
            end, known=self._begun.version, last=self._ending.last, snapshot=snapshot, now_ms=now_ms
        )
        self._tail.note_ahead(last_looked_at(end))
        self._tail.settle()
        return lag

    def bound_now(self) -> None:
        """Makes the end of the log, as the next `latest` finds it, the end of this query (Trigger.AvailableNow)."""
        self._wants_bound, self._bound = True, None

    @naming_its_table
    def tasks(self, start: Offset, end: Offset) -> list[ScanTask]:
        """Gives the files between two offsets as balanced tasks; none where the offsets are equal.

        Raises as `latest` does, and ChangeDataError for a change feed of versions that did not record changes.
        """
        self._check_offset(start)
        self._check_offset(end)
        self._first_end = None  # the first batch is logged: no later one may be cut short
        if start == self._initial:
            start = as_planned(start, end, is_fixed=isinstance(self._options.start.version, int))
        else:
            refuse_disorder(start, end)
        return [] if start == end else _read_again(lambda: self._tasks(start, end))

    def _tasks(self, start: Offset, end: Offset) -> list[ScanTask]:
        self._begin_batch(start, end)
        self._delivery.begin(start, end)
        scan = table_scan(self._metadata.read, self._metadata.schema, by_file=self._delivery.by_file)
        return [
            task
            for files, rows in self._parts(start, end)
            for task in spread(
                replace(scan.of_changes(files), rows=rows),
                least_tasks=self._options.least_tasks,
                store=self._log.store,
            )
        ]

    @naming_its_table
    def delivered(self, end: Offset) -> None:
        """Drops what was kept for the batches before `end`, all of which are done.

        Where `end` is at a change of the metadata that is not tracked yet, writes the change to the log and raises
        MetadataEvolvedError, because the query must be started again.
        """
        self._tail.forget_before(end.version)
        self._times.forget_before(end.version)
        if not end.in_snapshot:
            self._snapshot_order.forget()
        if end.barrier and self._options.tracking is not None:
            self._check_offset(end)
            self._metadata.passed(self._there(end.version))

    def wait(self, timeout_s: float) -> bool:
        """Waits for a change of the log's folder; see `Store.wait`."""
        return self._log.store.wait(self._log.directory, timeout_s=timeout_s)

    def close(self) -> None:
        """Closes the store, which ends its watch on the log."""
        self._log.store.close()

    def _furthest(self, start: Offset, limits: Limits, stop_at: Offset | None) -> Offset:
        if start.in_snapshot and self._by_event_time is not None:
            behind = self._by_event_time.furthest(start, limits)
            if behind.in_snapshot or not limits.take_all:  # how much of the limits is left is not known
                return behind
            start = behind
        changes: list[Version] = []
        end = self._delivery.furthest(start, self._steps(start, changes), limits, stop_at=stop_at)
        # A step is read only where all before it is taken. So where a change was met, the batch ends there.
        return self._offset(changes[0], barrier=Barrier.REACHED) if changes else end

    def _steps(self, start: Offset, changes: list[Version]) -> Iterator[Any]:  # steps of the delivery's own kind
        """The steps from `start` on. Where a change of the metadata ends them, its version is put in `changes`."""
        version = start.version
        if start.in_snapshot:
            yield self._delivery.snapshot_step(self._snapshot.step(version), self._snapshot.log_paths(version))
            version = Version(version + 1)
        for commit in self._commits(version):
            if self._ending.is_past(commit.version):
                return
            self._check_commit(commit)
            step = self._delivery.step(commit)
            if self._metadata.changes(commit):
                if start.file_index and commit.version == start.version:
                    self._metadata.refuse(commit)
                changes.append(commit.version)
                return
            yield step

    def _not_past_first_end(self, start: Offset, end: Offset) -> Offset:
        """`end`; or less for the first batch of a query that begins with the snapshot or after the newest version.

        A restart that runs this batch again may find a newer version and so another begin. So the batch ends with the
        version that was the newest, and its logged end shows where it began. It is empty where it begins after that.
        """
        first_end, self._first_end = self._first_end, None
        if first_end is None or start != self._initial:
            return end
        return min(end, first_end, key=lambda offset: offset.position)

    def _check_table_still_there(self, start: Offset, end: Offset) -> None:
        """Checks the table after the commits up to `end` were read; without new ones, once in GAP_CHECK_S seconds.

        Where the log was just listed, the listing usually shows that nothing changed.
        """
        listed, reached = self._tail.take_listed(), last_looked_at(end)
        is_new = end != start and not end.in_snapshot
        found = self._tail.file_of(reached) if is_new and reached > self._same_table.read_to else None
        self._tail.settle()
        if is_new:
            self._same_table.compare_after_reading(reached, self._tail.kept(reached), found=found)
        elif self._same_table.is_in(listed):
            pass
        elif self._clock() - self._looked_at_s < GAP_CHECK_S:
            return
        else:
            self._same_table.compare()
        self._looked_at_s = self._clock()

    def _begin_batch(self, start: Offset, end: Offset) -> None:
        last, is_first = max(last_version(end), Version(0)), start == self._initial
        held = min(held_at(start, is_first=is_first), last)
        commits = self._tail.commits(Version(held + 1), through=last)
        self._metadata.begin_batch(held, start.version, last, commits, is_first=is_first or start.in_snapshot)

    def _parts(self, start: Offset, end: Offset) -> Iterator[tuple[list[ChangedRows], RowFilter | None]]:
        """The files of a batch and the filter for their rows: those of the initial snapshot, then those of commits."""
        first, files = start, list[ChangedRows]()
        if start.in_snapshot:
            first = self._offset(Version(start.version + 1))
            adds, rows = self._snapshot_order.part(start, end)
            files += self._delivery.snapshot_files(adds, start.version)
            if rows is not self._rows.filter:  # files with the same filter are balanced together
                yield files, rows
                files = []
        if not end.in_snapshot:
            files += self._committed_files(first, end)
        yield files, self._rows.filter

    def _committed_files(self, first: Offset, end: Offset) -> Iterator[ChangedRows]:
        last = last_version(end)
        seen = Version(first.version - 1)
        for commit in self._commits(first.version, through=last):
            begin = first.file_index if commit.version == first.version else 0
            stop = end.file_index if commit.version == end.version else None
            self._check_commit(commit)
            self._metadata.refuse(commit)
            yield from self._delivery.files(commit, begin, stop)
            seen = commit.version
        if seen < last and self._options.fail_on_data_loss:
            raise self._trailing_missing(seen=seen, last=last)
        if self._tail.settle():  # commits kept from `latest` were checked there
            self._same_table.compare()

    def _commits(self, first: Version, *, through: Version | None = None) -> Iterator[Commit]:
        """The commits from `first` on. The first after a hole is checked for metadata that lost commits changed."""
        expected = first
        for commit in self._tail.commits(first, through=through):
            if commit.version > expected and commit.version not in self._checked_behind_holes:
                check_behind_hole(commit, self._metadata, expected=expected, begun=self._begun)
                self._checked_behind_holes.add(commit.version)
            yield commit
            expected = Version(commit.version + 1)

    def _there(self, version: Version) -> Commit:
        """The commit of `version`, which the log has had. Raises LogGapError or LogError where it is gone."""
        for commit in self._tail.commits(version, through=version):
            return commit
        raise self._trailing_missing(seen=Version(version - 1), last=version)

    def _trailing_missing(self, *, seen: Version, last: Version) -> LogError:
        return LogError(
            f"The log of {self._log.url} ends at version {seen}, but this batch ends at version {last}: the "
            "last commits were removed. Restore them, or restart from a new checkpoint.",
            url=self._log.url,
            error_class="DELTA_STREAMING_TRAILING_COMMIT_MISSING",
        )

    def _check_commit(self, commit: Commit) -> None:
        check_protocol(commit, self._begun.metadata, log=self._log)
        self._metadata.check(commit)

    def _check_offset(self, offset: Offset) -> None:
        refuse_other(self.url, expected=offset.table_id, found=self._begun.metadata.table_id, remedy=REMEDY)
        check_order(offset, None if self._event_time is None else self._event_time.name, url=self.url)

    @cached_property
    def _delivery(self) -> Delivery[Any]:  # Any: each delivery has its own type of step
        if self._options.change_feed:
            from tablefeed.feed.changes.change_delivery import ChangeDelivery

            return ChangeDelivery(self._metadata.read, exclude=self._options.exclude, times=self._times)
        return AppendDelivery(
            policy=self._options.policy,
            exclude=self._options.exclude,
            counts_rows=self._options.limits.rows is not None,
            pruner=self._rows.pruner,
        )

    @cached_property
    def _snapshot(self) -> InitialSnapshot:
        counts_rows, rows = self._options.limits.rows is not None, self._rows
        return InitialSnapshot(self._begun, counts_rows=counts_rows, pruner=rows.pruner, event_times=rows.event_times)

    @cached_property
    def _snapshot_order(self) -> SnapshotOrder:
        return self._by_event_time or ByFiles(self._snapshot, where=self._rows.filter)

    @cached_property
    def _by_event_time(self) -> ByEventTime | None:
        if self._rows.event_times is None:
            return None
        from tablefeed.feed.stream.event_order import ByEventTime

        return ByEventTime(self._snapshot, self._rows.event_times, where=self._rows.filter, url=self.url)

    @cached_property
    def _rows(self) -> StreamRows:
        return StreamRows(self._metadata, self._options, self._event_time)

    @cached_property
    def _meter(self) -> LagMeter:
        return LagMeter(
            self._log,
            self._tail,
            sizes=self._delivery.sizes,
            begins_with_snapshot=not self._options.start.is_named,
        )

    @cached_property
    def _ending(self) -> Ending:
        return Ending(self._options.end, self._begun)

    @cached_property
    def _begun(self) -> Snapshot:
        """The table as it was when first needed; kept for the query's life."""
        return self._log.load()

    @cached_property
    def _same_table(self) -> SameTable:
        same_table = SameTable(self._begun, remedy=REMEDY, data_may_be_lost=not self._options.fail_on_data_loss)
        same_table.note_content()
        return same_table

    @cached_property
    def _metadata(self) -> StreamMetadata:
        if self._options.tracking is not None:
            from tablefeed.feed.stream.schema_tracking import SchemaTracking

            return SchemaTracking(self._begun, analysed=self._schema, options=self._options.tracking)
        return FixedMetadata(
            QuerySchema(
                schema=self._schema,
                analysed_at=self._begun.version if self._analysed_at is None else self._analysed_at,
                begun=self._begun,
                has_start=self._options.start.is_named,
                ignore_added=self._options.ignore_added_columns,
                change_feed=self._options.change_feed,
            )
        )

    def _offset(self, version: Version, *, in_snapshot: bool = False, barrier: Barrier = Barrier.NONE) -> Offset:
        return Offset(table_id=self._begun.metadata.table_id, version=version, in_snapshot=in_snapshot, barrier=barrier)
