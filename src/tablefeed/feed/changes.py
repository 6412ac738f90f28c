"""`tablefeed.changes`: what happened to the rows of a table, version by version, as a bounded read without Spark.

Which rows of which files a commit changed is `tablefeed.log.changes`', which versions are meant change_range.py's, and
what the table must be change_rules.py's. Here these are joined and the files read, one after another.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import TYPE_CHECKING

from tablefeed.errors import ChangeDataError, LogError
from tablefeed.feed.arguments import check_filter, filtered, selected
from tablefeed.feed.bounds import check_protocol, read_commits
from tablefeed.feed.change_files import ChangeReader, change_schema
from tablefeed.feed.change_range import Bounds, change_versions
from tablefeed.feed.change_rules import OneSchema, Recorded, is_mapped, refuse_reserved_names
from tablefeed.feed.scan import BATCH_ROWS
from tablefeed.feed.table_log import Snapshot, TableLog, open_log
from tablefeed.feed.timeline import monotone
from tablefeed.log.changes import ChangedFile, ChangeType, changed_files
from tablefeed.model.actions import Commit, Metadata, Version
from tablefeed.model.logfile import LogFile, LogFileKind

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.compute as pc


def changes(
    url: str | os.PathLike[str],
    *,
    start_version: int | None = None,
    end_version: int | None = None,
    start_timestamp: str | datetime | date | None = None,
    end_timestamp: str | datetime | date | None = None,
    columns: Sequence[str] | None = None,
    filter: pc.Expression | None = None,  # noqa: A002 - pyarrow's name
    storage_options: Mapping[str, str] | None = None,
) -> pa.RecordBatchReader:
    """Gives the changed rows of the versions from the start to the end, both included, in the order of versions.

    The table's columns, then `_change_type` (insert, delete, update_preimage or update_postimage), `_commit_version`
    and `_commit_timestamp`; `columns` and `filter` may name these too. Without a start, from the earliest version that
    the log still has; without an end, to the newest. A start time means the first commit at or after it, an end time
    the last at or before it, in UTC where it names no zone. Rows come in the schema of the newest version, of a table
    with column mapping in that of the end; columns that a row's file has not are null. Rows of one version are in no
    stated order. Held in memory is one commit's actions, and some batches of one file.

    Raises ChangeDataError where the table did not record its changes (DELTA_MISSING_CHANGE_DATA) or they cannot be
    told, SchemaChangedError where one schema cannot read them all, DataFileError for a file that is gone;
    VersionNotFoundError, LogGapError, OptionError, TableError, UnsupportedFeatureError.
    """
    import pyarrow as pa

    log = open_log(os.fspath(url), storage_options)
    newest = log.load()
    log_files = log.listing()
    bounds = Bounds(
        start_version=start_version,
        end_version=end_version,
        start_timestamp=start_timestamp,
        end_timestamp=end_timestamp,
    )
    versions = change_versions(bounds, newest, log_files)
    feed = _open_feed(newest, versions) if versions else None
    available = change_schema(feed.read if feed else newest)
    wanted = selected(available, columns, url=log.url)
    if filter is not None:
        check_filter(filter, available, url=log.url)
    rows = _rows(feed, log_files, wanted if filter is None else available) if feed else iter(())
    if filter is not None:
        rows = filtered(rows, filter, wanted, url=log.url)
    return pa.RecordBatchReader.from_batches(wanted, rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Feed:
    """A range whose start has been checked. `start` is the table there, `read` the one whose schema rows come in."""

    versions: range
    start: Snapshot
    read: Snapshot
    recorded: Recorded
    one_schema: OneSchema

    @property
    def log(self) -> TableLog:
        return self.read.log


def _open_feed(newest: Snapshot, versions: range) -> _Feed:
    """Loads what holds at the start, and checks it: no commit of the range need tell it."""
    log = newest.log
    first, last = versions[0], versions[-1]
    start = newest if first == newest.version else log.load(Version(first))
    recorded = Recorded(versions=versions, url=log.url)
    recorded.check(start.metadata, first)
    read = newest
    if last < newest.version and any(is_mapped(s.metadata, url=log.url) for s in (start, newest)):
        read = start if last == first else log.load(Version(last))
    refuse_reserved_names(read)
    one_schema = OneSchema(versions=versions, read=read)
    one_schema.check_start(start.metadata)
    return _Feed(versions=versions, start=start, read=read, recorded=recorded, one_schema=one_schema)


def _rows(feed: _Feed, log_files: Sequence[LogFile], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    from tablefeed.data.windows import coalesced

    return coalesced(_pieces(feed, log_files, schema), most_rows=BATCH_ROWS)


def _pieces(feed: _Feed, log_files: Sequence[LogFile], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    timed = monotone(f for f in log_files if f.kind is LogFileKind.COMMIT)
    reader = ChangeReader(feed.read)
    metadata = feed.start.metadata
    for commit in read_commits(feed.log, timed, feed.versions):
        check_protocol(commit, metadata, url=feed.log.url)
        if commit.metadata is not None:
            metadata = commit.metadata
            if commit.version > feed.versions[0]:
                feed.recorded.check(metadata, commit.version)
                feed.one_schema.check(metadata, commit.version)
        changed = changed_files(commit, url=feed.log.url)
        _check_removed(feed, commit, changed)
        _check_partitions(feed, commit, changed, metadata)
        for file in changed:
            yield from reader.rows(file, commit, schema)


def _check_removed(feed: _Feed, commit: Commit, changed: Sequence[ChangedFile]) -> None:
    """Refuses rows removed by a first version that made mapped columns anew: theirs would come as null.

    Of later versions, `one_schema` has checked what held before them.
    """
    if commit.version > feed.versions[0] or commit.metadata is None or not commit.version:
        return
    removes = any(file.change_type is ChangeType.DELETE for file in changed)
    if removes and is_mapped(feed.read.metadata, url=feed.log.url):
        try:
            before = feed.log.load(Version(commit.version - 1)).metadata
        except LogError:
            before = None
        feed.one_schema.check_removed(before, commit.version)


def _check_partitions(feed: _Feed, commit: Commit, changed: Sequence[ChangedFile], metadata: Metadata) -> None:
    """Refuses a remove that leaves its partition values out where the table has partitions."""
    unknown = next((file for file in changed if file.partition_values is None), None)
    if unknown is None or not metadata.partition_columns:
        return
    raise ChangeDataError(
        f"Version {commit.version} of {feed.log.url} removes the file {unknown.path} without saying its partition "
        "values: which rows were deleted cannot be told. Read from a later version.",
        url=feed.log.url,
        version=commit.version,
        error_class="DELTA_REMOVE_FILE_CDC_MISSING_EXTENDED_METADATA",
    )
