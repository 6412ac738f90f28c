"""The feed of a table as a streaming query's planner holds it: where to begin, how far to go, what to read.

Offsets and files only; rows are read by `scan.py` wherever the tasks run. What a commit delivers, appended files or
changed rows, and how far a batch of that goes, is the delivery's (delivery.py, change_delivery.py).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import tzinfo
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from tablefeed.delta import features
from tablefeed.delta.schema import parse_schema
from tablefeed.errors import LogError, VersionNotFoundError
from tablefeed.feed.change_delivery import ChangeDelivery
from tablefeed.feed.change_rules import is_mapped
from tablefeed.feed.commit_times import CommitTimes
from tablefeed.feed.delivery import AppendDelivery, Delivery
from tablefeed.feed.in_force import metadata_at
from tablefeed.feed.lag import Lag, LagMeter
from tablefeed.feed.scan import RowFilter, ScanFile, ScanTask, balanced_tasks, table_columns
from tablefeed.feed.stream_bounds import Bound, Ending, start_version
from tablefeed.feed.stream_metadata import QuerySchema
from tablefeed.feed.stream_snapshot import InitialSnapshot
from tablefeed.feed.table_log import Snapshot, TableLog, open_log
from tablefeed.feed.tail import Tail
from tablefeed.log.admission import ChangePolicy
from tablefeed.log.java_regex import JavaRegex
from tablefeed.log.plan import Limits
from tablefeed.model.actions import Commit, Metadata, Version
from tablefeed.model.offset import Offset
from tablefeed.model.schema import Struct
from tablefeed.store import Entry

if TYPE_CHECKING:
    from tablefeed.feed.pruning import Pruner

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """What the user asked of a stream. Without a starting version or time: the whole table first, then its changes.

    Nothing after the ending version or time is delivered. Of version and time not both are given. A timestamp without
    a zone is in `time_zone`, in UTC where that is None.
    """

    starting_version: int | Literal["latest"] | None = None
    starting_timestamp: str | None = None
    starting_bound_inclusive: bool = True
    ending_version: int | None = None
    ending_timestamp: str | None = None
    ending_bound_inclusive: bool = True
    time_zone: tzinfo | None = None
    limits: Limits = field(default_factory=Limits)
    policy: ChangePolicy = field(default_factory=ChangePolicy)
    fail_on_data_loss: bool = True
    exclude: JavaRegex | None = None
    """Files whose path as logged it finds are not read."""
    change_feed: bool = False
    """Whether the rows that commits changed are delivered, rather than the files that they added."""
    where: str | None = None
    """Only rows of which this predicate is true are delivered (where.py)."""

    @property
    def start(self) -> Bound:
        """Where the stream begins."""
        return Bound(
            version=self.starting_version,
            timestamp=self.starting_timestamp,
            time_zone=self.time_zone,
            inclusive=self.starting_bound_inclusive,
        )

    @property
    def end(self) -> Bound:
        """Where it ends."""
        return Bound(
            version=self.ending_version,
            timestamp=self.ending_timestamp,
            time_zone=self.time_zone,
            inclusive=self.ending_bound_inclusive,
        )


def open_source(
    location: str,
    *,
    storage_options: Mapping[str, str],
    schema_string: str,
    options: SourceOptions,
    clock: Callable[[], float],
) -> StreamSource:
    """Gives the feed of the table at `location` for a query analysed with the schema text `schema_string`."""
    log = open_log(location, storage_options)
    schema = parse_schema(schema_string, url=log.url)
    return StreamSource(log, read_schema=schema, options=options, clock=clock)


class StreamSource:
    """The feed of one table for one query. Every offset it gives is of that table.

    `read_schema` is the schema that the query was analysed with; rows are delivered in it for the query's life.
    """

    def __init__(
        self, log: TableLog, *, read_schema: Struct, options: SourceOptions, clock: Callable[[], float]
    ) -> None:
        self._log = log
        self._schema = read_schema
        self._options = options
        self._tail = Tail(log, clock=clock, fail_on_data_loss=options.fail_on_data_loss)
        self._times = CommitTimes(log)
        self._initial: Offset | None = None
        self._bound: Offset | None = None
        self._wants_bound = False
        self._ended = False
        self._checked_start = False
        self._seen: tuple[Version, Entry | None] | None = None

    @property
    def url(self) -> str:
        """The table's, without credentials."""
        return self._log.url

    def initial(self) -> Offset:
        """Gives where a query without a checkpoint begins; the same for this object's life.

        Raises as `stream_bounds` does where the log has no such beginning, or none before the end.
        """
        if self._initial is None:
            first = start_version(self._options.start, self._newest())
            if first is None:
                self._initial = self._offset(self._ending.snapshot(self._newest()), in_snapshot=True)
            else:
                self._ending.check(self._options.start, first)
                self._initial = self._offset(first)
        return self._initial

    def latest(self, start: Offset, limits: Limits) -> Offset:
        """Gives where a batch that begins at `start` ends under `limits`; `start` where there is nothing new.

        Reads each new commit once. Raises ChangeRefusedError, SchemaChangedError and UnsupportedFeatureError for a
        commit that cannot be delivered, LogGapError for one that is gone.
        """
        self._check_offset(start)
        last = self._ending.last
        if last is not None and start.version > last:
            self._say_that_it_ended(last)
            return start
        self._check_start(start)
        stop_at = None if last is None else self._offset(Version(last + 1))
        if self._wants_bound and self._bound is None:
            self._bound = self._delivery.furthest(start, self._steps(start), Limits(), stop_at=stop_at)
        end = self._delivery.furthest(start, self._steps(start), limits, stop_at=self._bound or stop_at)
        if not end.in_snapshot:
            self._check_same_table(Version(end.version - 1))
        return end

    def lag(self, end: Offset, *, now_ms: int) -> Lag:
        """Gives what is there beyond `end`, where the last `latest` ended. Raises StoreError and as `tasks` does."""
        snapshot = self._snapshot.files(end.version)["size_bytes"] if end.in_snapshot else None
        return self._meter.behind(
            end, there=self._newest().version, last=self._ending.last, snapshot=snapshot, now_ms=now_ms
        )

    def bound_now(self) -> None:
        """Makes what is there at the next `latest` the end of this query (Trigger.AvailableNow)."""
        self._wants_bound, self._bound = True, None

    def tasks(self, start: Offset, end: Offset) -> list[ScanTask]:
        """Gives the files between two offsets as balanced tasks; none where the offsets are equal.

        Raises as `latest` does, and ChangeDataError where changes are asked for that were not recorded.
        """
        self._check_offset(start)
        self._check_offset(end)
        if start == end:
            return []
        self._check_start(start)
        self._delivery.begin(start, end)
        columns = table_columns(
            self._schema, self._newest().metadata, url=self._log.url, by_file=self._delivery.by_file
        )
        files = list(self._files_between(start, end))
        return balanced_tasks(
            files,
            url=self._log.location,
            storage_options=self._log.storage_options,
            columns=columns,
            rows=self._rows,
        )

    def delivered(self, end: Offset) -> None:
        """Drops what was kept for batches before `end`."""
        self._tail.forget_before(end.version)
        self._times.forget_before(end.version)
        if not end.in_snapshot:
            self._snapshot.forget()

    def close(self) -> None:
        """Ends the watch on the log."""
        self._log.store.close()

    def _files_between(self, start: Offset, end: Offset) -> Iterator[ScanFile]:
        first = start
        if end.in_snapshot or start.in_snapshot:
            # A start that was resolved anew after a restart may lie past the logged end: the end decides.
            version = end.version if end.in_snapshot else Version(min(start.version, end.version - 1))
            begin = start.file_index if start.version == version and start.in_snapshot else 0
            stop = end.file_index if end.in_snapshot else None
            yield from self._delivery.snapshot_files(self._snapshot.adds(version, begin, stop), version)
            first = self._offset(Version(version + 1))
        if end.in_snapshot:
            return
        last = end.version if end.file_index else Version(end.version - 1)
        seen = Version(first.version - 1)
        for commit in self._tail.commits(first.version, through=last):
            begin = first.file_index if commit.version == first.version else 0
            stop = end.file_index if commit.version == end.version else None
            self._check_commit(commit)
            yield from self._delivery.files(commit, begin, stop)
            seen = commit.version
        if seen < last and self._options.fail_on_data_loss:
            raise LogError(
                f"The log of {self._log.url} ends at version {seen}, but this batch reaches to {last}: its last "
                "commits are gone. Restore them, or restart from a new checkpoint.",
                url=self._log.url,
                error_class="DELTA_STREAMING_TRAILING_COMMIT_MISSING",
            )

    def _steps(self, start: Offset) -> Iterator[Any]:  # steps of the delivery's own kind
        version = start.version
        if start.in_snapshot:
            log_paths = (path.as_py() for path in self._snapshot.files(version)["log_path"])
            yield self._delivery.snapshot_step(self._snapshot.step(version), log_paths)
            version = Version(version + 1)
        for commit in self._tail.commits(version):
            if self._ending.is_past(commit.version):
                return
            self._check_commit(commit)
            yield self._delivery.step(commit)

    def _check_commit(self, commit: Commit) -> None:
        if commit.protocol is not None:
            metadata = commit.metadata or self._newest().metadata
            features.check_readable(commit.protocol, metadata, url=self._log.url)
        if commit.metadata is not None:
            self._query.check(commit.metadata, commit.version)

    def _check_start(self, start: Offset) -> None:
        """Checks once the metadata that held at `start`: no later commit of the feed tells it.

        Behind whole commits that is what they left, not what the next one may bring: a query that stops before a
        renamed column is not to go on under the new name merely because it was started again.
        """
        if self._checked_start:
            return
        newest = self._newest()
        version, behind = (Version(max(min(v, newest.version), 0)) for v in (start.version, start.version - 1))
        goes_on = not start.in_snapshot and start.file_index == 0 and start != self._initial
        held = self._metadata_at(behind) if goes_on else None
        if held is None:
            behind, held = version, self._metadata_at(version)
        if held is None:
            if is_mapped(newest.metadata, url=self._log.url):
                raise self._unknown_names(version)
            held = newest.metadata  # cleaned up: whatever changed since is in the commits that are read
        self._query.check(held, behind)
        self._checked_start = True

    def _metadata_at(self, version: Version) -> Metadata | None:
        try:
            return metadata_at(version, self._newest())
        except VersionNotFoundError:
            return None

    def _unknown_names(self, version: Version) -> LogError:
        return LogError(
            f"The log of {self._log.url} does not go back far enough to tell what the columns of version {version} are "
            "called in its files; begin with a later version, and with a new checkpoint.",
            url=self._log.url,
            error_class="DELTA_STREAMING_CHECK_COLUMN_MAPPING_NO_SNAPSHOT",
        )

    def _check_offset(self, offset: Offset) -> None:
        self._query.check_table(of_query=offset.table_id, found=self._newest().metadata.table_id)

    def _check_same_table(self, read_to: Version) -> None:
        """Refuses what was read up to `read_to` if the table was made anew since: its versions would pass for ours."""
        if self._seen is None:
            self._seen = (self._newest().version, self._newest().head)
        version, head = self._seen
        if read_to == version:
            return
        if self._log.head(version) != head:
            found = self._log.load().metadata.table_id
            self._query.check_table(of_query=self._newest().metadata.table_id, found=found)
        elif read_to < version:
            return  # still behind what was there at the start, which stands
        self._seen = (read_to, self._log.head(read_to))

    def _say_that_it_ended(self, last: Version) -> None:
        if not self._ended:
            # A Python source cannot end a query: but for Trigger.AvailableNow, someone has to stop it.
            level = logging.INFO if self._wants_bound else logging.WARNING
            logger.log(level, "url=%s version=%d was the last of this query, which is idle from now on", self.url, last)
        self._ended = True

    def _newest(self) -> Snapshot:
        return self._query.begun

    @cached_property
    def _delivery(self) -> Delivery[Any]:  # Any: what it makes of a commit is its own
        if self._options.change_feed:
            return ChangeDelivery(self._newest(), exclude=self._options.exclude, times=self._times)
        return AppendDelivery(
            url=self._log.url,
            policy=self._options.policy,
            exclude=self._options.exclude,
            counts_rows=self._options.limits.rows is not None,
            pruner=self._pruner,
        )

    @cached_property
    def _snapshot(self) -> InitialSnapshot:
        counts_rows = self._options.limits.rows is not None
        return InitialSnapshot(self._log, counts_rows=counts_rows, pruner=self._pruner)

    @cached_property
    def _rows(self) -> RowFilter | None:
        if self._options.where is None:
            return None
        from tablefeed.feed.where import row_filter

        return row_filter(self._options.where, self._schema)

    @cached_property
    def _pruner(self) -> Pruner | None:
        """None for changes: their files are of any partitioning, and few have statistics."""
        if self._rows is None or self._options.change_feed:
            return None
        from tablefeed.feed.pruning import Pruner

        columns = table_columns(self._schema, self._newest().metadata, url=self._log.url)
        return Pruner(self._rows.condition, schema=self._schema, columns=columns)

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
        return Ending(self._options.end, self._newest())

    @cached_property
    def _query(self) -> QuerySchema:
        """Asked of the log when first needed; kept for the query's life."""
        return QuerySchema(schema=self._schema, begun=self._log.load(), has_start=self._options.start.is_named)

    def _offset(self, version: Version, *, in_snapshot: bool = False) -> Offset:
        return Offset(table_id=self._newest().metadata.table_id, version=version, in_snapshot=in_snapshot)
