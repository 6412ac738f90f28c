"""Finds out how the splits of an IndexTables table index its columns, so that new splits do the same.

The doc mappings in the log say it, and one split gives the order of the fields. It is the same in every version of a
table, so it is looked up once for each log object and table id.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import pyarrow.compute as pc

from tablefeed.errors import DataFileError
from tablefeed.feed.snapshot.index_log import IndexSnapshot, IndexTablesLog
from tablefeed.indextables.log import columns
from tablefeed.indextables.split.damage import DamagedSplitError
from tablefeed.indextables.split.indexing import Indexing
from tablefeed.indextables.split.split_file import read_index
from tablefeed.indextables.split.table_indexing import indexing_of
from tablefeed.model.actions import AddFile

if TYPE_CHECKING:
    import pyarrow as pa


_known: WeakKeyDictionary[IndexTablesLog, tuple[str, Indexing]] = WeakKeyDictionary()
"""By log: the id of its table, and how that table's splits index its columns."""


def indexing_of_table(
    log: IndexTablesLog, snapshot: IndexSnapshot, schema: pa.Schema, *, partition_by: Sequence[str]
) -> Indexing:
    """Gives how the splits of `snapshot` index the columns of `schema`, the table's schema.

    Raises UnsupportedFeatureError, which names the column or feature, where they index in a way that we cannot write,
    LogError for an invalid doc mapping, and DataFileError where the split that is read is damaged.
    """
    table_id, (known_id, known) = snapshot.metadata.table_id, _known.get(log, ("", None))
    if known is None or known_id != table_id:
        known = _found(log, snapshot, schema, partition_by)
        _known[log] = table_id, known
    return known


def _found(log: IndexTablesLog, snapshot: IndexSnapshot, schema: pa.Schema, partition_by: Sequence[str]) -> Indexing:
    registry = snapshot.doc_mappings
    told: dict[str, None] = {}
    one: AddFile | None = None
    for batch in log.files_of(snapshot.version, snapshot.unreadable):
        told |= dict.fromkeys(text for text in pc.unique(batch["doc_mapping"].cast("string")).to_pylist() if text)
        refs = pc.unique(batch["doc_mapping_ref"]).to_pylist()
        told |= dict.fromkeys(registry[ref] for ref in refs if ref in registry)
        if batch.num_rows and one is None:
            (one,) = columns.to_add_files(batch.slice(0, 1))
    index = [] if one is None else _fields(log, one)
    return indexing_of(told or registry.values(), schema, partition_by=partition_by, index=index, url=log.url)


def _fields(log: IndexTablesLog, add: AddFile) -> list[dict[str, Any]]:  # Any: JSON
    def read(offset: int, length: int) -> bytes:
        return log.store.read(add.path, start=offset, end=offset + length)

    split = add.split
    footer = None
    if split is not None and split.footer_start is not None and split.footer_end is not None:
        footer = split.footer_start, split.footer_end
    try:
        return read_index(read, size_bytes=add.size_bytes, footer=footer)
    except DamagedSplitError as error:
        raise DataFileError(
            f"The split {add.path} of {log.url} {error}. Nothing was written: restore it, or overwrite the table.",
            url=log.url,
            path=add.path,
        ) from error
