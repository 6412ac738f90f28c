"""Opens the log of the table at a location, in either format.

The module for IndexTables logs is imported only for such a table: Spark starts a new Python for each query, and most
queries read no IndexTables table.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tablefeed.catalog import names as catalog_names
from tablefeed.delta import names as delta_names
from tablefeed.errors import ObjectNotFoundError, StoreError, TableError, TableNotFoundError, UnsupportedFeatureError
from tablefeed.feed.arguments import from_any_folder
from tablefeed.feed.snapshot.delta_log import DeltaLog
from tablefeed.feed.snapshot.table_files import for_store
from tablefeed.feed.snapshot.table_format import TableFormat
from tablefeed.indextables import names as index_names
from tablefeed.store import Store, open_store

if TYPE_CHECKING:
    from tablefeed.feed.snapshot.index_log import IndexTablesLog


def open_log(
    location: str, storage_options: Mapping[str, str] | None = None, *, table_format: TableFormat | None = None
) -> DeltaLog | IndexTablesLog:
    """Gives the log at `location`, a path or URL as users write them; Delta's where both logs exist.

    Only the format is looked up here. Where no log exists, the format is `table_format`, or Delta if that is None.
    Raises TableError where `table_format` is given and the existing table has the other format, and TableNotFoundError
    where `location` is a folder of a log. A table that a catalog names is a Delta table.
    """
    options = dict(storage_options or {})
    named = _named_log(location, options) if catalog_names.is_name(location) else None
    store = open_store(location, for_store(options)) if named is None else named.store
    found, hint = found_at(store) if named is None else (TableFormat.DELTA, None)
    refuse_other_format(found, table_format, url=store.url)
    if found is None:
        _refuse_log_folder(store.url)
    if named is not None:
        return named
    location = from_any_folder(location)  # Spark's tasks open it in the folders of their executors
    if (found or table_format) is not TableFormat.INDEXTABLES:
        log = DeltaLog(store, location=location, storage_options=options)
        log.hint_at_opening = hint
        return log
    from tablefeed.feed.snapshot.index_log import IndexTablesLog

    return IndexTablesLog(store, location=location, storage_options=options)


def open_maintained(location: str, storage_options: Mapping[str, str] | None = None) -> DeltaLog:
    """Gives the log at `location` for work on Delta tables alone: files folded or deleted, tables altered or copied.

    Refuses an IndexTables table by name.
    """
    log = open_log(location, storage_options)
    if isinstance(log, DeltaLog):
        return log
    raise UnsupportedFeatureError(
        f"{log.url} is an IndexTables table: it is not altered, restored or copied here, and its files are not folded "
        "or deleted. Nothing was done. Use the SQL of IndexTables, such as MERGE SPLITS and PURGE INDEXTABLE.",
        url=log.url,
        features=("indextables maintenance",),
        error_class="INDEXTABLES_MAINTENANCE_UNSUPPORTED",
    )


def _named_log(location: str, options: dict[str, str]) -> DeltaLog:
    from tablefeed.feed.snapshot.catalog_log import open_catalog_log

    store, pinned = open_catalog_log(location, for_store(options))
    log = DeltaLog(store, location=location, storage_options={**options, **pinned})
    log.knows_ratified = store.table.is_managed
    return log


_NAMES = {TableFormat.DELTA: "a Delta", TableFormat.INDEXTABLES: "an IndexTables"}


def refuse_other_format(found: TableFormat | None, wanted: TableFormat | None, *, url: str) -> None:
    """Raises TableError where the table at `url` has the format `found`, and another one is wanted; None: no format."""
    if found is not None and wanted not in (None, found):
        raise TableError(
            f"{url} is {_NAMES[found]} table, not {_NAMES[wanted]} one. Nothing was written. Leave the option "
            "tableFormat (table_format in Python) out, or write to another path.",
            url=url,
            error_class="TABLEFEED_OTHER_FORMAT",
        )


def _refuse_log_folder(url: str) -> None:
    folders = url.split("/")
    for log_dir in (delta_names.LOG_DIR, index_names.LOG_DIR):
        if log_dir in folders:
            table = "/".join(folders[: folders.index(log_dir)])
            raise TableNotFoundError(
                f"There is no table at {url}: it is in the log of a table. Give the table's folder: {table}", url=url
            )


def found_at(store: Store) -> tuple[TableFormat | None, bytes | None]:
    """Gives the format of the table in `store`, None where it has no log; and Delta's hint at its last checkpoint.

    Asks for the hint first: to find any file of a log, a local store reads the whole folder. A hint that is there and
    cannot be read counts as an empty one: it only saves time.
    """
    hint = f"{DeltaLog.directory}/{delta_names.LAST_CHECKPOINT}"
    try:
        return TableFormat.DELTA, store.read(hint)
    except ObjectNotFoundError:
        pass
    except StoreError:
        if store.exists(hint):
            return TableFormat.DELTA, b""
    if not _is_empty(store, DeltaLog.directory):
        return TableFormat.DELTA, b""
    return TableFormat.INDEXTABLES if _has_index_log(store) else None, None


def refuse_other_log(store: Store, made: TableFormat) -> None:
    """Raises as `refuse_other_format` where `store`, the place of a new table in `made`, has the other format's log."""
    if made is TableFormat.DELTA:
        other, is_there = TableFormat.INDEXTABLES, _has_index_log(store)
    else:
        other, is_there = TableFormat.DELTA, not _is_empty(store, DeltaLog.directory)
    refuse_other_format(other if is_there else None, made, url=store.url)


def _has_index_log(store: Store) -> bool:
    return not _is_empty(store, index_names.LOG_DIR) or _has_states(store)


def _is_empty(store: Store, directory: str) -> bool:
    return next(iter(store.list(directory)), None) is None


def _has_states(store: Store) -> bool:
    """Whether there is a log of states. Without the hint at its newest state, it has no file beside its folders."""
    states = (f"{folder}/{index_names.STATE_MANIFEST}" for folder in store.directories(index_names.LOG_DIR))
    return any(index_names.parse_name(name, size_bytes=0, modified_ms=0) is not None for name in states)
