"""`tablefeed.appends`: the rows that a stream would deliver, as a bounded read without Spark."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import compress
from typing import TYPE_CHECKING

from tablefeed.delta.schema.column_mapping import has_mapping_change, mapped_schema
from tablefeed.delta.schema.partitioning import partition_names
from tablefeed.errors import IllegalOptionError, LogError, SchemaChangedError, naming
from tablefeed.feed.arguments import delivered, location, selected, store_options, switch, whole_number
from tablefeed.feed.scan.table_scan import table_scan
from tablefeed.feed.scan.task import LoggedColumns, ScanTask, read_task
from tablefeed.feed.snapshot.bounds import check_available, check_protocol, read_commits
from tablefeed.feed.snapshot.in_force import metadata_at
from tablefeed.feed.snapshot.known_state import newest_to_read
from tablefeed.feed.snapshot.same_table import refuse_other
from tablefeed.feed.snapshot.table_log import Snapshot
from tablefeed.log.admission import ChangePolicy, Remedies, delivered_files, first_said
from tablefeed.log.compatibility import can_read_older
from tablefeed.model.actions import AddFile, Commit, Metadata, Version
from tablefeed.model.logfile import LogFile, LogFileKind
from tablefeed.model.schema import Struct

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.compute as pc

    from tablefeed.data.predicate import RowFilter


_REMEDIES = Remedies(
    of_changes="Read the changed rows with tablefeed.changes, if the table records them. Or set "
    "skip_change_commits=True to pass such commits, or ignore_changes=True to get rewritten files whole.",
    of_deletes="Read the deleted rows with tablefeed.changes, if the table records them. Or set "
    "skip_change_commits=True or ignore_deletes=True to pass such commits.",
)


def appends(
    url: str | os.PathLike[str],
    *,
    start_version: int | None = None,
    end_version: int | None = None,
    skip_change_commits: bool = False,
    ignore_changes: bool = False,
    ignore_deletes: bool = False,
    columns: Sequence[str] | None = None,
    filter: pc.Expression | str | None = None,  # noqa: A002 - pyarrow's name
    storage_options: Mapping[str, str] | None = None,
) -> pa.RecordBatchReader:
    """Gives the rows added by the versions `start_version` to `end_version`, both included, in commit order.

    Without a start, the range begins at the earliest commit that the log still has; without an end, it goes to the
    newest. Rows have the schema of `end_version`, or of the newest version where `end_version` cannot be loaded. Only
    added files that change data are read, and not those that the log rules out by `filter`. Raises ChangeRefusedError
    for a commit that deletes or rewrites rows unless an option says what to do with it, SchemaChangedError where that
    schema cannot read every row, VersionNotFoundError, LogGapError, OffsetError for versions of two tables,
    DataFileError.
    """
    from tablefeed.feed.scan.arrow_filter import checked_filter

    newest = newest_to_read(location(url), store_options(storage_options))
    log = newest.log
    log_files, versions = _versions(newest, start_version, end_version)
    policy = ChangePolicy(
        ignore_deletes=switch(ignore_deletes, argument="ignore_deletes"),
        ignore_changes=switch(ignore_changes, argument="ignore_changes"),
        skip_change_commits=switch(skip_change_commits, argument="skip_change_commits"),
        remedies=_REMEDIES,
    )
    read = _as_of(versions[-1], newest)
    start = metadata_at(versions[0], newest)
    with naming(log.url):
        _check(start, versions[0], read)
    wanted = selected(read.arrow_schema, columns, url=log.url)

    row_filter = checked_filter(filter, read.arrow_schema, table=read.schema, url=log.url)

    def rows(schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        return _rows(read, start, read_commits(newest, log_files, versions), policy, schema, row_filter)

    return delivered(rows, wanted, row_filter, url=log.url)


def _as_of(version: int, newest: Snapshot) -> Snapshot:
    if version == newest.version:
        return newest
    try:
        return newest.log.load(Version(version))
    except LogError:
        return newest  # the log has the commit of that version, but not all that is needed to load the version


def _versions(newest: Snapshot, start: int | None, end: int | None) -> tuple[list[LogFile], range]:
    """Gives the range to read, and the listed log, or only its part from the start on if that has what is needed."""
    first = None if start is None else whole_number(start, argument="start_version")
    last = newest.version if end is None else whole_number(end, argument="end_version")
    log_files = newest.log.listing(first) if first is not None and first <= last <= newest.version else []
    versions = _commits_of(log_files)
    if first is None or first not in versions:
        log_files = newest.log.listing()
        versions = _commits_of(log_files)
    earliest = min(versions, default=Version(newest.version + 1))
    first = earliest if first is None else first
    check_available((first, last), earliest=earliest, newest=newest.version, url=newest.log.url)
    if first > last:
        raise IllegalOptionError(
            option="end_version", value=str(end), explain=f"must be at least start_version, {first}"
        )
    return log_files, range(first, last + 1)


def _commits_of(log_files: Iterable[LogFile]) -> set[Version]:
    return {f.version for f in log_files if f.kind is LogFileKind.COMMIT}


def _rows(
    read: Snapshot,
    metadata: Metadata,
    commits: Iterable[Commit],
    policy: ChangePolicy,
    schema: pa.Schema,
    row_filter: RowFilter | None,
) -> Iterator[pa.RecordBatch]:
    """The rows of `commits` in `schema`; `metadata` is the one that holds at the first commit."""
    log = read.log
    scan = _scan(read, metadata)
    for commit in commits:
        check_protocol(commit, read.metadata, log=log)
        if commit.metadata is not None:
            _check(commit.metadata, commit.version, read)
            scan = _scan(read, commit.metadata)
        files = [add for _, add in first_said(delivered_files(commit, policy))]
        for add in files if row_filter is None else _matching(files, row_filter, read.schema, scan.columns):
            yield from read_task(scan.of([add]), schema, store=log.store)


def _scan(read: Snapshot, metadata: Metadata) -> ScanTask:
    """Reads the columns of `read` in files written under `metadata`. Their partition columns may be other ones."""
    return table_scan(read, partitioned_by=partition_names(metadata))


def _matching(
    files: Sequence[AddFile], row_filter: RowFilter, schema: Struct, columns: LoggedColumns
) -> Iterator[AddFile]:
    from tablefeed.feed.scan.pruning import Pruner

    pruner = Pruner(row_filter, schema=schema, columns=columns)
    return compress(files, pruner.choose([f.partition_values for f in files], [f.stats for f in files]))


def _check(metadata: Metadata, version: int, read: Snapshot) -> None:
    """Raises SchemaChangedError where the schema of `read` cannot read rows of `version`, which has `metadata`.

    Raises OffsetError where it is another table. A stream also stops where the partition columns differ; here each file
    is read with its own.
    """
    url = read.log.url
    ours, theirs = read.metadata.table_id, metadata.table_id
    refuse_other(url, expected=ours, found=theirs, remedy="Read the versions of one table at a time.", at=version)
    older, newer = mapped_schema(metadata), mapped_schema(read.metadata)
    if has_mapping_change(older=older, newer=newer) or not can_read_older(newer.schema, older.schema):
        raise SchemaChangedError(
            f"The schema of {url} at version {version} cannot be read with that of version {read.version}. Read "
            "the versions before and after the change separately (end_version, start_version), or the table as of the "
            f"older version (open_table, version={version}).",
            url=url,
            version=version,
            error_class="DELTA_SCHEMA_CHANGED_WITH_VERSION",
        )
