"""Opens the scan of a table: a task without files that knows the table's format."""

from __future__ import annotations

from collections.abc import Collection

from tablefeed.errors import naming
from tablefeed.feed.scan.delta_task import DeltaTask, delta_columns
from tablefeed.feed.scan.task import ScanTask
from tablefeed.feed.snapshot.delta_log import DeltaSnapshot
from tablefeed.feed.snapshot.table_log import Snapshot
from tablefeed.model.schema import Struct


def table_scan(
    read: Snapshot,
    schema: Struct | None = None,
    *,
    partitioned_by: Collection[str] | None = None,
    by_file: bool = False,
) -> ScanTask:
    """Gives a task without files that reads the columns of `schema`, by default that of `read`, of the table `read`.

    See `delta_columns` for the rest, which only Delta's files need.
    """
    log = read.log
    if isinstance(read, DeltaSnapshot):
        schema = read.schema if schema is None else schema
        with naming(read.url):
            found = delta_columns(schema, read.metadata, partitioned_by=partitioned_by, by_file=by_file)
        return DeltaTask(url=log.location, storage_options=log.storage_options, columns=found)
    from tablefeed.feed.scan.split_task import SplitColumns, SplitTask

    columns = SplitColumns(partitioned_by=frozenset(read.metadata.partition_columns))
    return SplitTask(url=log.location, storage_options=log.storage_options, columns=columns)
