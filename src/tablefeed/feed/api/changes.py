"""`tablefeed.changes`: what happened to the rows of a table, version by version, as a bounded read without Spark.

`tablefeed.log.changes` decides which rows of which files a commit changed, change_range.py which versions are read, and
change_rules.py whether they can be read. This module joins these rules and reads the files, one after another.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import TYPE_CHECKING, Literal

from tablefeed.errors import naming
from tablefeed.feed.arguments import Bound, delivered, location, selected, store_options, switch
from tablefeed.feed.changes.change_files import ChangeReader, change_schema, row_change
from tablefeed.feed.changes.change_partitions import partitioned
from tablefeed.feed.changes.change_range import change_versions
from tablefeed.feed.changes.change_rules import (
    ChangesRecorded,
    OneSchema,
    RowsTracked,
    is_mapped,
    refuse_reserved_names,
    rows_tracked,
)
from tablefeed.feed.changes.read_time import Deduplication, ReadTimeRows, deduplication
from tablefeed.feed.scan.snapshot_tasks import pinned
from tablefeed.feed.scan.spread import spread
from tablefeed.feed.scan.table_scan import table_scan
from tablefeed.feed.scan.task import BATCH_ROWS, ScanTask
from tablefeed.feed.snapshot.bounds import check_protocol, read_commits
from tablefeed.feed.snapshot.in_force import metadata_before
from tablefeed.feed.snapshot.open_log import open_log
from tablefeed.feed.snapshot.table_log import Snapshot, TableLog
from tablefeed.feed.snapshot.timeline import monotone
from tablefeed.log.changes import ChangedFile, ChangeType, changed_files, implied_changes
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
    filter: pc.Expression | str | None = None,  # noqa: A002 - pyarrow's name
    deduplication_mode: Literal["none", "dropCarryovers"] | None = None,
    compute_updates: bool = False,
    storage_options: Mapping[str, str] | None = None,
) -> pa.RecordBatchReader:
    """Gives the changed rows of the versions from the start to the end, both included, in the order of versions.

    Columns are the table's, then `_change_type` (insert, delete, update_preimage or update_postimage),
    `_commit_version` and `_commit_timestamp`; `columns` and `filter` may name these too. Without a start, the range
    begins at the earliest version that can be read; without an end, it goes to the newest. A start time means the first
    commit at or after it, an end time the last at or before it; a time without a zone is in UTC. Rows have the schema
    of the newest version, or of the end version where columns are mapped; columns that a row's file lacks are null. The
    order of rows within a version is not defined. Memory holds one commit's actions and some batches of one file.

    With `deduplication_mode` the table need not have recorded its changes, and recorded changes are not used. Rows that
    a commit added are inserts and rows that it removed are deletes, in the schema of the end version. "none" gives them
    all. "dropCarryovers" leaves out rows that a commit removed from one file and added to another, equal to the last
    bit; for that, memory holds all rows that one commit added and removed. `compute_updates` reports rows that a commit
    removed and added with changed values as updates. It compares row ids, so the table must track rows.

    Raises ChangeDataError where the table did not record its changes (DELTA_MISSING_CHANGE_DATA) or they are not known,
    SchemaChangedError where one schema cannot read them all, DataFileError for a file that is gone;
    VersionNotFoundError, LogGapError, OptionError, TableError, SchemaMismatchError, UnsupportedFeatureError.
    """
    from tablefeed.feed.scan.arrow_filter import checked_filter

    compute_updates = switch(compute_updates, argument="compute_updates")
    mode = deduplication(deduplication_mode, compute_updates=compute_updates)
    log = open_log(location(url), store_options(storage_options))
    newest = log.load()
    log_files = log.listing()
    start = Bound(version=start_version, timestamp=start_timestamp)
    end = Bound(version=end_version, timestamp=end_timestamp)
    versions = change_versions(start, end, newest, log_files)
    with naming(log.url):
        feed = _open_feed(newest, versions, mode, compute_updates=compute_updates) if versions else None
        if feed is not None:
            _check_start(feed, log_files)
    read = feed.read if feed else newest
    available = change_schema(read)
    wanted = selected(available, columns, url=log.url)

    def rows(schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        return _rows(feed, log_files, schema) if feed else iter(())

    row_filter = checked_filter(filter, available, table=read.schema, url=log.url)
    return delivered(rows, wanted, row_filter, url=log.url)


def change_tasks(
    url: str,
    *,
    start: Bound,
    end: Bound,
    version: int,
    storage_options: Mapping[str, str],
    table_id: str | None = None,
    where: str | None = None,
    least_tasks: int | None = None,
) -> list[ScanTask]:
    """Gives the recorded changes of the versions from `start` to `end`, spread over tasks.

    `version` is the newest version of the table for this read; rows have its schema. `where` may name only the table's
    columns, and leaves out rows but no file. Raises as `changes`, `pinned` and `row_filter` do, before a row is read.
    """
    newest = pinned(url, version=version, storage_options=storage_options, table_id=table_id)
    log = newest.log
    log_files = log.listing()
    versions = change_versions(start, end, newest, log_files)
    if not versions:
        return []
    with naming(log.url):
        feed = _open_feed(newest, versions, None, compute_updates=False, read=newest)
        _check_start(feed, log_files)
        whole = table_scan(newest, by_file=True).of_changes(
            (file, row_change(commit, file.change_type, url=log.url))
            for commit, changed in _commits(feed, log_files)
            for file in changed
        )
    if where is not None:
        from tablefeed.feed.scan.where import row_filter

        whole = replace(whole, rows=row_filter(where, newest.schema))
    return spread(whole, least_tasks=least_tasks, store=log.store)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Feed:
    """A range of versions to read, of the log as of `newest`.

    `start` is the table at the first version; rows have the schema of `read`.

    `mode` None: recorded changes are read. Every metadata in the range must obey `rule` (None: no rule) and
    `one_schema`.
    """

    newest: Snapshot
    versions: range
    start: Snapshot
    read: Snapshot
    mode: Deduplication | None
    rule: ChangesRecorded | RowsTracked | None
    one_schema: OneSchema

    @property
    def log(self) -> TableLog:
        return self.read.log


def _open_feed(
    newest: Snapshot,
    versions: range,
    mode: Deduplication | None,
    *,
    compute_updates: bool,
    read: Snapshot | None = None,
) -> _Feed:
    """Loads the table at the first version and the one to read with; checks the rule for `mode` at the first version.

    Recorded changes have the schema of `read`; None: of `newest`, or of the last version where columns are mapped.
    Changes that are not recorded have the schema of the last version.
    """
    log = newest.log
    start = newest if versions[0] == newest.version else log.load(Version(versions[0]))
    rule: ChangesRecorded | RowsTracked | None = None
    if mode is None:
        rule = ChangesRecorded(versions=versions, log=log)
        rule.check(start.metadata, versions[0])
        is_of_end = read is None and (is_mapped(start.metadata) or is_mapped(newest.metadata))
        if read is None:
            read = _end(newest, start, versions) if is_of_end else newest
        one_schema = OneSchema(versions=versions, read=read, is_of_end=is_of_end)
    else:
        read = _end(newest, start, versions)
        changed = "DELTA_CHANGELOG_SCHEMA_CHANGE_IN_RANGE"
        one_schema = OneSchema(versions=versions, read=read, is_of_end=True, start_class=changed, change_class=changed)
        if compute_updates:
            rule = rows_tracked(read, versions)
            rule.check(start.metadata, versions[0])
    refuse_reserved_names(read.schema.names, url=log.url)
    return _Feed(newest=newest, versions=versions, start=start, read=read, mode=mode, rule=rule, one_schema=one_schema)


def _check_start(feed: _Feed, log_files: Sequence[LogFile]) -> None:
    """Raises SchemaChangedError where rows of the start cannot be read; it names a later such version, if any."""
    if not feed.one_schema.reads(feed.start.metadata):
        changed: Version | None = None
        for commit in read_commits(feed.newest, log_files, feed.versions):
            _check_metadata(feed, commit)
            if changed is None and commit.metadata is not None and commit.version > feed.versions[0]:
                changed = commit.version
        raise feed.one_schema.start_refusal(changed)


def _end(newest: Snapshot, start: Snapshot, versions: range) -> Snapshot:
    known = {newest.version: newest, start.version: start}
    last = Version(versions[-1])
    return known[last] if last in known else newest.log.load(last)


def _rows(feed: _Feed, log_files: Sequence[LogFile], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    from tablefeed.data.windows import coalesced

    commits = _commits(feed, log_files)
    reader = ChangeReader(feed.read)
    if feed.mode is None:
        batches = (batch for c, files in commits for file in files for batch in reader.rows(file, c, schema))
    else:
        compared = ReadTimeRows(
            reader=reader,
            mode=feed.mode,
            table_schema=feed.read.arrow_schema,
            row_id_column=feed.rule.row_id_column if isinstance(feed.rule, RowsTracked) else None,
            url=feed.log.url,
        )
        batches = (batch for c, files in commits for batch in compared.rows(files, c, schema))
    return coalesced(batches, most_rows=BATCH_ROWS)


def _commits(feed: _Feed, log_files: Sequence[LogFile]) -> Iterator[tuple[Commit, tuple[ChangedFile, ...]]]:
    """Each commit, with its time and its changed files, after the checks that reading them needs."""
    before = metadata = feed.start.metadata
    tell = changed_files if feed.mode is None else implied_changes
    timed = monotone(f for f in log_files if f.kind is LogFileKind.COMMIT)
    for commit in read_commits(feed.newest, timed, feed.versions):
        check_protocol(commit, before, log=feed.log)
        if commit.metadata is not None:
            metadata = commit.metadata
            _check_metadata(feed, commit)
        changed = tell(commit)
        earlier = _before_the_first(feed, commit, changed) if commit.version == feed.versions[0] else before
        yield commit, partitioned(changed, commit, in_force=metadata, before=earlier, url=feed.log.url)
        before = metadata


def _check_metadata(feed: _Feed, commit: Commit) -> None:
    if commit.metadata is not None and commit.version > feed.versions[0]:
        if feed.rule is not None:
            feed.rule.check(commit.metadata, commit.version)
        feed.one_schema.check(commit.metadata, commit.version)


def _before_the_first(feed: _Feed, commit: Commit, changed: Sequence[ChangedFile]) -> Metadata | None:
    """The metadata before `commit`, the first one, for the files that it removes; None: not known any more.

    Raises SchemaChangedError where the removed rows cannot be read. For later versions, `one_schema` has checked the
    metadata before them.
    """
    removes = any(file.change_type is ChangeType.DELETE for file in changed)
    if commit.metadata is None or not removes:
        return feed.start.metadata
    before = metadata_before(commit.version, feed.start.metadata, feed.log)
    feed.one_schema.check_removed(before, commit.version)
    return before
