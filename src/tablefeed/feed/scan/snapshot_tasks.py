"""The tasks of a batch read of one table version: its live files, without those that a predicate rules out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tablefeed.delta.columns import to_add_files
from tablefeed.feed.scan.pruning import Pruner
from tablefeed.feed.scan.spread import spread
from tablefeed.feed.scan.table_scan import table_scan
from tablefeed.feed.scan.task import ScanTask
from tablefeed.feed.scan.where import row_filter
from tablefeed.feed.snapshot.open_log import open_log
from tablefeed.feed.snapshot.same_table import refuse_other
from tablefeed.feed.snapshot.table_log import Snapshot
from tablefeed.model.actions import Version


def snapshot_tasks(
    location: str,
    *,
    version: int,
    storage_options: Mapping[str, str],
    table_id: str | None = None,
    where: str | None = None,
    least_tasks: int | None = None,
) -> list[ScanTask]:
    """Gives the live files of the table at `location` as of `version`, spread over tasks.

    With `where`, only files that may have matching rows, and the tasks deliver only those rows. Raises as `pinned` and
    `row_filter`.
    """
    snapshot = pinned(location, version=version, storage_options=storage_options, table_id=table_id)
    scan = table_scan(snapshot)
    if where is None:
        rows, live = None, snapshot.live_files()
    else:
        rows = row_filter(where, snapshot.schema)
        live = snapshot.live_files(with_stats=True, asked=rows.predicate)
        live = Pruner(rows, schema=snapshot.schema, columns=scan.columns).matching(live)
    whole = replace(scan.of(add for batch in live for add in to_add_files(batch)), rows=rows)
    return spread(whole, least_tasks=least_tasks, store=snapshot.log.store)


def pinned(location: str, *, version: int, storage_options: Mapping[str, str], table_id: str | None = None) -> Snapshot:
    """Gives the table at `location` as of `version`. Raises OffsetError unless its id is `table_id` (None: any)."""
    snapshot = open_log(location, storage_options).load(Version(version))
    found = snapshot.metadata.table_id
    refuse_other(snapshot.url, expected=table_id or found, found=found, remedy="Make a new DataFrame.")
    return snapshot
