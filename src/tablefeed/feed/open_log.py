"""The log of the table at a location, whichever of the two kinds it is.

The shell of an IndexTables log is imported where one is met: Spark starts Python afresh for each query, and most have
none.
"""

from __future__ import annotations

from collections.abc import Mapping

from tablefeed.feed.table_files import for_store
from tablefeed.feed.table_log import TableLog
from tablefeed.indextables import names as index_names
from tablefeed.store import Store, open_store


def open_log(location: str, storage_options: Mapping[str, str] | None = None) -> TableLog:
    """Gives the log at `location`, a path or URL as users write them: an IndexTables one where there is no other.

    Which of the two it is, is all that is looked at yet.
    """
    options = dict(storage_options or {})
    store = open_store(location, for_store(options))
    if _is_empty(store, index_names.LOG_DIR) or not _is_empty(store, TableLog.directory):
        return TableLog(store, location=location, storage_options=options)
    from tablefeed.feed.index_log import IndexTablesLog

    return IndexTablesLog(store, location=location, storage_options=options)


def _is_empty(store: Store, directory: str) -> bool:
    return next(iter(store.list(directory)), None) is None
