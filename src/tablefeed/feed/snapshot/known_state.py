"""Caches the newest snapshot of each table that this process has seen, so that a batch reads only the commits since.

It is an optimisation, never a need: a cached snapshot is brought up to date with the log, or loaded anew, before it is
used. Spark re-uses the processes that plan and commit a sink's batches, a program that appends often goes on
appending, and one that reads each commit as it comes goes on reading. With the cache, the cost of a commit does not
grow with the log.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from tablefeed.catalog.names import is_name
from tablefeed.errors import TableNotFoundError
from tablefeed.feed.arguments import from_any_folder
from tablefeed.feed.snapshot.delta_log import DeltaLog
from tablefeed.feed.snapshot.open_log import found_at, open_log, refuse_other_format
from tablefeed.feed.snapshot.table_files import for_store
from tablefeed.feed.snapshot.table_format import TableFormat
from tablefeed.feed.snapshot.table_log import Snapshot, TableLog
from tablefeed.store import open_store

KEPT_TABLES = 16
"""More tables than one process usually writes to at a time. A snapshot is small, because it holds no files."""

_Key = tuple[int, str, str, str, tuple[tuple[str, str], ...]]
_known: dict[_Key, tuple[TableLog, Snapshot | None]] = {}
"""The table used last comes last. Each access is one call of `dict`, so threads may use it at the same time."""


def newest_state(
    location: str, storage_options: Mapping[str, str], *, table_format: TableFormat | None = None
) -> tuple[TableLog, Snapshot | None]:
    """Gives the log at `location` and the table's newest state, None where there is no table.

    `table_format`: see `open_log`.
    """
    log, known = last_known(location, storage_options, table_format=table_format)
    try:
        state = current_snapshot(log) if known is None else log.advance(known)
    except TableNotFoundError:  # one of another format may be there now
        log = open_log(location, storage_options, table_format=table_format)
        state = current_snapshot(log)
    remember(log, state)
    return log, state


def newest_to_read(location: str, storage_options: Mapping[str, str]) -> Snapshot:
    """Gives the newest state of the table at `location`. Raises TableNotFoundError where there is none.

    A table that a catalog names is opened anew: only the catalog knows its newest commits.
    """
    if is_name(location):
        return open_log(location, storage_options).load()
    log, state = newest_state(location, storage_options)
    return log.load() if state is None else state


def last_known(
    location: str, storage_options: Mapping[str, str], *, table_format: TableFormat | None = None
) -> tuple[TableLog, Snapshot | None]:
    """Gives the log as `newest_state` does, and the table as this process last saw it, None where it never did.

    The format of a table that was last seen as a Delta table is not looked up again: `newest_state` and `caught_up`
    find out whether that table is still there.
    """
    if table_format in (None, TableFormat.DELTA) and not is_name(location):
        options = dict(storage_options)
        store = open_store(location, for_store(options))
        unseen = DeltaLog(store, location=from_any_folder(location), storage_options=options)
        if (found := _known.get(_key(unseen))) is not None and found[1] is not None:
            return found
    opened = open_log(location, storage_options, table_format=table_format)
    return _known.get(_key(opened)) or (opened, None)


def remember(log: TableLog, state: Snapshot | None) -> None:
    """Keeps `state` as the newest known of its table."""
    key = _key(log)
    _known.pop(key, None)
    _known[key] = (log, state)
    for longest_unused in list(_known)[:-KEPT_TABLES]:
        _known.pop(longest_unused, None)


def _key(log: TableLog) -> _Key:
    # The url: a relative path names another table after the process changed its directory. The location: the url has
    # no credentials. The log's folder: a table may be deleted and one of the other format created there. The process: a
    # forked child must not use its parent's connections.
    return os.getpid(), log.url, log.location, log.directory, tuple(sorted(log.storage_options.items()))


def current_snapshot(log: TableLog) -> Snapshot | None:
    """Gives the newest state of a table, None where there is none."""
    try:
        return log.load()
    except TableNotFoundError:
        if log.store.is_file_at_root():
            raise
        return None


def caught_up(log: TableLog, known: Snapshot | None) -> Snapshot | None:
    """Gives the newest state of a table that was last seen as `known`; None where no table exists (any more).

    Raises TableError where a table of another format is at the place of a Delta table that is gone.
    """
    if known is None:
        return current_snapshot(log)
    try:
        return log.advance(known)
    except TableNotFoundError:
        if isinstance(log, DeltaLog):
            refuse_other_format(found_at(log.store)[0], TableFormat.DELTA, url=log.url)
        return None
