"""`tablefeed.appends`: the rows that a stream would deliver, as a bounded read without Spark."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import compress, groupby
from typing import TYPE_CHECKING

from tablefeed.delta.column_mapping import MappedSchema, has_mapping_change, mapping_mode
from tablefeed.delta.schema import parse_schema
from tablefeed.errors import IllegalOptionError, SchemaChangedError
from tablefeed.feed.arguments import check_filter, columns_to_read, filtered, selected, whole_number
from tablefeed.feed.bounds import check_available, check_protocol, read_commits
from tablefeed.feed.scan import ScanTask, TableColumns, read_task, scan_file, table_columns
from tablefeed.feed.table_log import Snapshot, open_log
from tablefeed.log.admission import ChangePolicy, delivered_files
from tablefeed.log.compatibility import can_read_older
from tablefeed.model.actions import AddFile, Commit, Version
from tablefeed.model.logfile import LogFile, LogFileKind
from tablefeed.model.schema import Struct

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
    version. Only files that change data count, and those that the log rules out by `filter` are not opened. Raises
    ChangeRefusedError for a commit that deletes or rewrites rows unless an option says what to do with it,
    VersionNotFoundError, LogGapError, SchemaChangedError, DataFileError.
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
    commits = read_commits(log, log_files, versions)
    if filter is None:
        return pa.RecordBatchReader.from_batches(wanted, _rows(snapshot, commits, policy, wanted, None))
    check_filter(filter, snapshot.arrow_schema, url=log.url)
    read = columns_to_read(snapshot.arrow_schema, wanted, filter)
    rows = _rows(snapshot, commits, policy, read, filter)
    return pa.RecordBatchReader.from_batches(wanted, filtered(rows, filter, wanted, url=log.url))


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
    snapshot: Snapshot,
    commits: Iterable[Commit],
    policy: ChangePolicy,
    schema: pa.Schema,
    condition: pc.Expression | None,
) -> Iterator[pa.RecordBatch]:
    log = snapshot.log
    for commit in commits:
        _check(commit, snapshot)
        # The partitioning of its version, which need not be the newest's: an overwrite may have changed it.
        for keys, files in groupby(delivered_files(commit, policy, url=log.url), key=_partition_keys):
            columns = table_columns(snapshot.schema, snapshot.metadata, url=log.url, partitioned_by=keys)
            for add in files if condition is None else _matching(list(files), condition, snapshot.schema, columns):
                task = ScanTask(
                    url=log.location, storage_options=log.storage_options, files=(scan_file(add),), columns=columns
                )
                yield from read_task(task, schema, store=log.store)


def _partition_keys(add: AddFile) -> frozenset[str]:
    return frozenset(add.partition_values)


def _matching(
    files: Sequence[AddFile], condition: pc.Expression, schema: Struct, columns: TableColumns
) -> Iterator[AddFile]:
    from tablefeed.feed.pruning import Pruner

    pruner = Pruner(condition, schema=schema, columns=columns)
    return compress(files, pruner.choose([f.partition_values for f in files], [f.stats for f in files]))


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
