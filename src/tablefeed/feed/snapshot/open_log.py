"""The log of the table at a location, whichever of the two kinds it is.

The shell of an IndexTables log is imported where one is met: Spark starts Python afresh for each query, and most have
none.
"""

from __future__ import annotations

from collections.abc import Mapping

from tablefeed.errors import TableError
from tablefeed.feed.snapshot.dialect import TableFormat
from tablefeed.feed.snapshot.table_files import for_store
from tablefeed.feed.snapshot.table_log import TableLog
from tablefeed.indextables import names as index_names
from tablefeed.store import Store, open_store


def open_log(
    location: str, storage_options: Mapping[str, str] | None = None, *, table_format: TableFormat | None = None
) -> TableLog:
    """Gives the log at `location`, a path or URL as users write them: an IndexTables one where there is no other.

    Which of the two it is, is all that is looked at yet. Where there is neither, it is one of `table_format`, None:
    Delta's. Raises TableError where a table of the other format is there.
    """
    options = dict(storage_options or {})
    store = open_store(location, for_store(options))
    found = _found(store)
    if found is not None and table_format not in (None, found):
        raise TableError(
            f"{store.url} is {_NAMES[found]} table, not {_NAMES[table_format]} one. Nothing was written. Leave the "
            "option tableFormat (table_format in Python) out, or write to another path.",
            url=store.url,
            error_class="TABLEFEED_OTHER_FORMAT",
        )
    if (found or table_format) is not TableFormat.INDEXTABLES:
        return TableLog(store, location=location, storage_options=options)
    from tablefeed.feed.snapshot.index_log import IndexTablesLog

    return IndexTablesLog(store, location=location, storage_options=options)


_NAMES = {TableFormat.DELTA: "a Delta", TableFormat.INDEXTABLES: "an IndexTables"}


def _found(store: Store) -> TableFormat | None:
    if not _is_empty(store, TableLog.directory):
        return TableFormat.DELTA
    return None if _is_empty(store, index_names.LOG_DIR) else TableFormat.INDEXTABLES


def _is_empty(store: Store, directory: str) -> bool:
    return next(iter(store.list(directory)), None) is None
