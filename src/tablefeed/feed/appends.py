"""`tablefeed.appends`: the rows that a stream would deliver, as a bounded read without Spark."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from tablefeed.delta.column_mapping import MappedSchema, has_mapping_change, mapping_mode
from tablefeed.delta.schema import parse_schema
from tablefeed.errors import IllegalOptionError, SchemaChangedError
from tablefeed.feed.arguments import check_filter, filtered, selected, whole_number
from tablefeed.feed.bounds import check_available, check_protocol, read_commits
from tablefeed.feed.scan import ScanTask, read_task, scan_file, table_columns
from tablefeed.feed.table_log import Snapshot, open_log
from tablefeed.log.admission import ChangePolicy, delivered_files
from tablefeed.log.compatibility import can_read_older
from tablefeed.model.actions import Commit, Version
from tablefeed.model.logfile import LogFile, LogFileKind

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.compute as pc


def appends(
    url: str | os.PathLike[str],
    *,
    start_version: int | None = None,
    end_version: int | None = None,
    skip_change_commits: bool = False,
    ignore_changes: bool = False,
    ignore_deletes: bool = False,
    columns: Sequence[str] | None = None,
    filter: pc.Expression | None = None,  # noqa: A002 - pyarrow's name
    storage_options: Mapping[str, str] | None = None,
) -> pa.RecordBatchReader:
    """Gives the rows added by the versions `start_version` to `end_version`, both included, in commit order.

    None: from the earliest commit that the log still has, to the newest. Rows come in the schema of the newest
    version. Only files that change data count. Raises ChangeRefusedError for a commit that deletes or rewrites rows
    unless an option says what to do with it, VersionNotFoundError, LogGapError, SchemaChangedError, DataFileError.
    """
    import pyarrow as pa

    log = open_log(os.fspath(url), storage_options)
    snapshot = log.load()
    log_files = log.listing()
    versions = _versions(log_files, snapshot, start_version, end_version)
    policy = ChangePolicy(
        ignore_deletes=ignore_deletes, ignore_changes=ignore_changes, skip_change_commits=skip_change_commits
    )
    wanted = selected(snapshot.arrow_schema, columns, url=log.url)
    read = wanted if filter is None else snapshot.arrow_schema
    if filter is not None:
        check_filter(filter, read, url=log.url)
    rows = _rows(snapshot, read_commits(log, log_files, versions), policy, read)
    if filter is not None:
        rows = filtered(rows, filter, wanted, url=log.url)
    return pa.RecordBatchReader.from_batches(wanted, rows)


def _versions(log_files: Iterable[LogFile], snapshot: Snapshot, start: int | None, end: int | None) -> range:
    versions = [f.version for f in log_files if f.kind is LogFileKind.COMMIT]
    earliest = min(versions, default=Version(snapshot.version + 1))
    first = earliest if start is None else whole_number(start, argument="start_version")
    last = snapshot.version if end is None else whole_number(end, argument="end_version")
    check_available((first, last), earliest=earliest, newest=snapshot.version, url=snapshot.log.url)
    if first > last:
        raise IllegalOptionError(
            option="end_version", value=str(end), explain=f"must be at least start_version, {first}"
        )
    return range(first, last + 1)


def _rows(
    snapshot: Snapshot, commits: Iterable[Commit], policy: ChangePolicy, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    log = snapshot.log
    # The partitioning of a commit need not be the newest's: an overwrite may have changed it.
    columns = table_columns(snapshot.schema, snapshot.metadata, url=log.url, by_file=True)
    for commit in commits:
        _check(commit, snapshot)
        for add in delivered_files(commit, policy, url=log.url):
            task = ScanTask(
                url=log.location,
                storage_options=log.storage_options,
                files=(scan_file(add),),
                columns=columns,
            )
            yield from read_task(task, schema, store=log.store)


def _check(commit: Commit, snapshot: Snapshot) -> None:
    url = snapshot.log.url
    check_protocol(commit, snapshot.metadata, url=url)
    if commit.metadata is None:
        return
    # A stream also stops where the partitioning differs. Here each file is read by its own.
    schema = parse_schema(commit.metadata.schema_string, url=url)
    older = MappedSchema(schema=schema, mode=mapping_mode(commit.metadata, url=url))
    newer = MappedSchema(schema=snapshot.schema, mode=mapping_mode(snapshot.metadata, url=url))
    if has_mapping_change(older=older, newer=newer) or not can_read_older(snapshot.schema, schema):
        raise SchemaChangedError(
            f"The schema of {url} at version {commit.version} cannot be read with its newest, at version "
            f"{snapshot.version}: read the two sides of the change apart (end_version, start_version).",
            url=url,
            version=commit.version,
            error_class="DELTA_SCHEMA_CHANGED_WITH_VERSION",
        )
