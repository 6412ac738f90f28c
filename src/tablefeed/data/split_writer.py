"""Writes rows into splits, the data files of an IndexTables table, and gives the facts for their adds. No log.

Batches are gathered by partition until there are enough rows for a split. A split is then built in memory, as one
segment. Each split is read back before it is stored, and rows that differ from those given are refused: Tantivy reads
some texts as timestamps.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from tablefeed.data.partition import PartitionValues, Waiting, by_partition, hashable
from tablefeed.data.read import ReadPlan
from tablefeed.data.required import refuse_nulls
from tablefeed.data.split_bounds import bounds
from tablefeed.data.split_index import index_rows, require_tantivy
from tablefeed.data.splits import SplitFile, read_split_batches
from tablefeed.data.windows import windows
from tablefeed.data.write import OpenFile
from tablefeed.errors import TABLE, DataFileError, InvalidRowsError, UnsupportedFeatureError
from tablefeed.indextables.log.schema_registry import doc_mapping_hash
from tablefeed.indextables.split.bundle import Bundle, encode_bundle
from tablefeed.indextables.split.doc_mapping import doc_mapping
from tablefeed.indextables.split.index_schema import check_types
from tablefeed.indextables.split.indexing import Indexed, Indexing
from tablefeed.model.split import Split

_MIB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitLayout:
    """How rows become splits; small, and pickled to whoever writes.

    `schema` is the rows' schema, `partition_by` some of its columns. `indexing` says how the splits index them, and
    which of them: the values of partition columns that it leaves out are only in the log.
    """

    schema: pa.Schema
    partition_by: tuple[str, ...] = ()
    indexing: Indexing = field(default_factory=Indexing)
    most_rows: int = 100_000
    """The most rows of a split: a column's terms are one block, which a look-up reads from its beginning."""
    most_bytes: int = 64 * _MIB
    """The most bytes of a split's rows in memory. Their index takes several times as much."""
    buffered_bytes: int = 256 * _MIB
    """The most bytes of rows, of all partitions, that wait for their split."""

    def of_at_most(self, rows: int | None) -> SplitLayout:
        """The same with splits of no more than `rows` rows each; None: as it is."""
        return self if rows is None else replace(self, most_rows=min(rows, self.most_rows))

    def __post_init__(self) -> None:
        if not len(self.schema):
            raise ValueError("a split has at least one column")
        if len(set(self.schema.names)) != len(self.schema):
            raise ValueError(f"two columns of one name are in {self.schema.names}")
        if min(self.most_rows, self.most_bytes) < 1:
            raise ValueError(f"a split has at least one row: {self.most_rows=}, {self.most_bytes=}")
        if absent := set(self.partition_by).difference(self.schema.names):
            raise ValueError(f"partition columns {sorted(absent)} are not in the schema")
        indexed = self.indexing.columns
        if indexed is None:
            return
        if not indexed or len(set(indexed)) != len(indexed) or not set(indexed) <= set(self.schema.names):
            raise ValueError(f"the columns of an index, {indexed}, are not some of {self.schema.names}")
        if lost := set(self.schema.names).difference(indexed, self.partition_by):
            raise ValueError(f"columns {sorted(lost)} would be neither in the index nor in the log")


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenSplit:
    """A complete split. `partition_values` are typed, by column, null for the null partition.

    `split` has the facts for its add, among them `doc_mapping` and `doc_mapping_ref`, the hash under which a table may
    keep it.
    """

    path: str
    size_bytes: int
    partition_values: PartitionValues
    split: Split


def write_splits(batches: Iterable[pa.RecordBatch], layout: SplitLayout, open_file: OpenFile) -> list[WrittenSplit]:
    """Write all rows and give the splits, each complete and closed; none where there are no rows.

    Batches have exactly the layout's schema. Within a partition rows keep their order. After an error the caller must
    delete the files that are complete.

    Before a file is opened it raises UnsupportedFeatureError for a column of a type that IndexTables does not write,
    and StoreConfigError where tantivy is not installed. InvalidRowsError: a null in a required column, a moment before
    1677 or after 2262, a map with one key twice, or a value inside a struct, an array or a map that would be read back
    differently. The same rows under the same names give the same bytes.
    """
    check_types(layout.schema)
    require_tantivy()
    writing = _Writing(layout, open_file)
    for window in windows(batches, most_rows=layout.most_rows, most_bytes=layout.most_bytes):
        writing.add(window)
    return writing.finish()


class _Writing:
    """The state of one `write_splits`."""

    def __init__(self, layout: SplitLayout, open_file: OpenFile) -> None:
        self._layout, self._open_file = layout, open_file
        self._partitions: dict[Hashable, Waiting] = {}
        self._done: list[WrittenSplit] = []

    def add(self, window: pa.Table) -> None:
        layout = self._layout
        refuse_nulls(window)
        for values, rows in by_partition(window, layout.partition_by):
            partition = self._partitions.setdefault(hashable(values), Waiting(values))
            if not partition.has_room_for(rows, most_rows=layout.most_rows, most_bytes=layout.most_bytes):
                self._write(partition)
            partition.add(rows)
        waiting = sorted(self._partitions.values(), key=lambda partition: partition.size_bytes)
        while waiting and sum(partition.size_bytes for partition in waiting) > layout.buffered_bytes:
            self._write(waiting.pop())

    def finish(self) -> list[WrittenSplit]:
        for partition in self._partitions.values():
            if partition.row_count:
                self._write(partition)
        return self._done

    def _write(self, partition: Waiting) -> None:
        rows, layout = partition.take(), self._layout
        new = self._open_file(partition.values, len(self._done))
        with new.opened as stream:
            index = index_rows(rows, layout.indexing, name=new.path)
            bundle = encode_bundle(index.files)
            file = SplitFile(
                path=new.path,
                size_bytes=len(bundle.data),
                num_records=rows.num_rows,
                footer=(bundle.footer_start, len(bundle.data)),
                constants=partition.values,
            )
            _check(rows, bundle, file, layout)
            stream.write(bundle.data)
        mapping = doc_mapping(layout.schema, layout.indexing, index.objects)
        least, greatest = bounds(rows.select(_columns_with_bounds(layout)), whole=layout.partition_by)
        facts = Split(
            num_records=rows.num_rows,
            min_values=least or None,
            max_values=greatest or None,
            footer_start=bundle.footer_start,
            footer_end=len(bundle.data),
            uncompressed_size_bytes=bundle.footer_start,
            doc_mapping=mapping,
            doc_mapping_ref=doc_mapping_hash(mapping),
            merge_count=0,
            delete_opstamp=0,
        )
        written = WrittenSplit(
            path=new.path, size_bytes=len(bundle.data), partition_values=partition.values, split=facts
        )
        self._done.append(written)


def _check(rows: pa.Table, bundle: Bundle, file: SplitFile, layout: SplitLayout) -> None:
    """Raises InvalidRowsError where the rows read back from the split differ from `rows`."""
    data = bundle.data
    plan = ReadPlan(schema=layout.schema, batch_rows=rows.num_rows)
    try:
        batches = list(read_split_batches(lambda at, length: data[at : at + length], plan, file))
    except (DataFileError, UnsupportedFeatureError) as error:
        raise InvalidRowsError(
            f"A split of {TABLE} cannot be read back: it {error.__cause__}. Nothing of this write was "
            "committed: change the values in structs, arrays, maps and JSON.",
        ) from error
    read = pa.Table.from_batches(batches, layout.schema)
    for column, given, found in zip(layout.schema, rows.columns, read.columns, strict=True):
        if given.equals(found):
            continue
        words = _json_words if layout.indexing.of(column.name) is Indexed.JSON else _words
        pairs = enumerate(zip(words(given), words(found), strict=True))
        changed = next((row for row, (one, other) in pairs if one != other), None)
        if changed is not None:
            before, after = (column_of[changed].as_py() for column_of in (given, found))
            raise InvalidRowsError(
                f"A split of {TABLE} would change the column {column.name}, {column.type}: row {changed} of the split, "
                f"{before!r:.100}, would be read as {after!r:.100}. Inside structs, arrays, maps and JSON a text that "
                "looks like a timestamp is rewritten, and in JSON a whole number of more than 64 bits. Nothing of this "
                "write was committed: change the value, or store it in a column of its own.",
            )


def _columns_with_bounds(layout: SplitLayout) -> list[str]:
    """The indexed columns whose values are stored unchanged: not JSON and IP addresses, whose text may change."""
    others = (Indexed.JSON, Indexed.IP)
    names = layout.schema.names if layout.indexing.columns is None else layout.indexing.columns
    return [name for name in names if layout.indexing.of(name) not in others]


def _json_words(column: pa.ChunkedArray) -> list[str | None]:
    """JSON texts in a form in which spaces and the order of members do not matter."""
    return [None if text is None else _json_word(text) for text in column.to_pylist()]


def _json_word(text: str) -> str:
    try:
        return json.dumps(json.loads(text), sort_keys=True)
    except (ValueError, RecursionError):
        return text


def _words(column: pa.ChunkedArray) -> list[str]:
    """The values as texts, in which all NaN are equal and the order of a map does not matter."""
    return [repr(_plain(value, column.type)) for value in column.to_pylist()]


def _plain(value: Any, kind: pa.DataType) -> object:  # Any: what pyarrow gives of a value, by its type
    if value is None:
        return None
    if pa.types.is_map(kind):
        return sorted(repr((_plain(k, kind.key_type), _plain(v, kind.item_type))) for k, v in value)
    if pa.types.is_list(kind):
        return [_plain(element, kind.value_type) for element in value]
    if pa.types.is_struct(kind):
        return [_plain(value[field.name], field.type) for field in kind]
    return value
