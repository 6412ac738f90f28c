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
from tablefeed.model.actions import Version


def snapshot_tasks(
    location: str,
    *,
    version: int,
    storage_options: Mapping[str, str],
    where: str | None = None,
    least_tasks: int | None = None,
) -> list[ScanTask]:
    """Gives the live files of the table at `location` as of `version`, spread over tasks.

    With `where`, only files that may have matching rows, and the tasks deliver only those rows. Raises as `row_filter`.
    """
    snapshot = open_log(location, storage_options).load(Version(version))
    scan = table_scan(snapshot)
    if where is None:
        rows, live = None, snapshot.live_files()
    else:
        rows = row_filter(where, snapshot.schema)
        live = snapshot.live_files(with_stats=True, asked=rows.predicate)
        live = Pruner(rows, schema=snapshot.schema, columns=scan.columns).matching(live)
    whole = replace(scan.of(add for batch in live for add in to_add_files(batch)), rows=rows)
    return spread(whole, least_tasks=least_tasks, store=snapshot.log.store)
