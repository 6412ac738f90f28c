"""Selects the files that may hold a row for which a filter is true. Other files are never opened.

A file is judged by its partition values and statistics; verdicts.py has the rules.

Arrow's own simplification of a filter by a guarantee (`Fragment.partition_expression`, `get_fragments`) is not used. It
treats a NaN in a filter as greater than all numbers, so `~(x <= NaN)` loses rows. It needs Python objects for each
file, and its rules depend on the installed pyarrow. Here each part of a filter's tree is judged for thousands of files
at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

from tablefeed.data.predicate import Atom, Column, RowFilter, column_of, columns_in
from tablefeed.data.windows import windows
from tablefeed.delta import partition_values
from tablefeed.delta.columns import STRING_MAP
from tablefeed.delta.schema.arrow_schema import arrow_type
from tablefeed.delta.stats.column_bounds import ColumnBounds, Leaf, read_bounds
from tablefeed.errors import TablefeedError
from tablefeed.feed.scan.task import LoggedColumns, PartitionColumn
from tablefeed.feed.snapshot.verdicts import Known, Verdict, answers, rows_may_pass, verdict_on
from tablefeed.log.replay import without_statistics
from tablefeed.model.schema import Array, Decimal, Map, Primitive, Struct, fields_along, walk
from tablefeed.model.statistics import LeafPath

MAY_MATCH = pa.field("may_match", pa.bool_())
"""Whether a file may have a row for which the filter is true."""

_WITHOUT_ORDER = (Primitive("void"), Primitive("variant"))
_WINDOW_FILES = 10_000
_WINDOW_BYTES = 32 << 20  # of columns: mostly JSON statistics, which are a few times larger when parsed


class Pruner:
    """Judges files by `rows`. `schema` is the table's, and `columns` has the names of its columns in the log.

    `rows` may name columns that the table does not have. Nothing is known of those, so any file may match.
    """

    def __init__(self, rows: RowFilter, *, schema: Struct, columns: LoggedColumns) -> None:
        self._rows = rows
        paths = [column.path for column in columns_in(rows.predicate)]
        leaves = {path: leaf for path in paths if (leaf := leaf_at(path, schema, columns)) is not None}
        self._partitions = {p: leaf for p, leaf in leaves.items() if len(p) == 1 and p[0] in columns.partitions}
        self._asks_partitions_alone = 0 < len(self._partitions) == len(paths)
        judged = columns_in(rows.predicate, understood=True)
        self._bounded = {p: leaf for p, leaf in leaves.items() if Column(p) in judged and p not in self._partitions}

    def matching(self, files: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Gives the `files` (`tablefeed.delta.columns.FILE_COLUMNS`) that may match, in order, with `stats` null."""
        for batch in judged_windows(files):
            yield without_statistics(batch.filter(self.may_match(batch["partition_values"], batch["stats"])))

    def marked(self, files: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Gives all of `files` with `MAY_MATCH` as the last column."""
        for batch in judged_windows(files):
            yield batch.append_column(MAY_MATCH, self.may_match(batch["partition_values"], batch["stats"]))

    def choose(
        self, partition_values: Sequence[Mapping[str, str | None] | None], stats: Sequence[str | None]
    ) -> Sequence[bool]:
        """Says for each of a commit's files whether it may match (`may_match`); None: partition values are unknown."""
        pairs = [None if values is None else list(values.items()) for values in partition_values]
        chosen = self.may_match(pa.array(pairs, type=STRING_MAP), pa.array(stats, type=pa.string()))
        return chosen.to_pylist()  # type: ignore[no-any-return]  # pyarrow has no types

    def may_match(self, values: pa.MapArray, stats: pa.StringArray) -> pa.BooleanArray:
        """Says for each file whether a row may match, from its partition values and statistics as in the log."""
        known = self._known(values)
        if self._asks_partitions_alone:
            # The condition may use any function: all of its columns are known.
            held = answers(self._rows.condition, pa.table({path[0]: column.values for path, column in known.items()}))
            unknown = [pc.invert(column.is_known) for column in known.values()]
            everything = pa.repeat(pa.scalar(value=True), len(stats))
            return everything if held is None else reduce(pc.or_, unknown, pc.fill_null(held, fill_value=False))
        # Statistics are parsed only for files that the partition values do not rule out.
        may = self._judged(known, {}, file_count=len(stats))
        if not self._bounded:
            return may
        left = pc.indices_nonzero(may)
        known = {path: column.take(left) for path, column in known.items()}
        bounds = dict(zip(self._bounded, read_bounds(stats.take(left), list(self._bounded.values())), strict=True))
        return pc.replace_with_mask(may, may, self._judged(known, bounds, file_count=len(left)))

    def _judged(
        self, known: Mapping[LeafPath, Known], bounds: Mapping[LeafPath, ColumnBounds], *, file_count: int
    ) -> pa.BooleanArray:
        def verdict(atom: Atom) -> Verdict | None:
            path = column_of(atom).path
            return verdict_on(atom, known.get(path), bounds.get(path))

        return rows_may_pass(self._rows.predicate, verdict, file_count=file_count)

    def _known(self, values: pa.MapArray) -> Mapping[LeafPath, Known]:
        if not self._partitions:
            return {}
        files = _pairs(values)
        return {path: _read_values(files, leaf) for path, leaf in self._partitions.items()}


def judged_windows(files: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Gives `files` in batches whose statistics can be parsed at once."""
    for window in windows(files, most_rows=_WINDOW_FILES, most_bytes=_WINDOW_BYTES):
        yield from window.combine_chunks().to_batches()


def partition_values_of(values: pa.MapArray, leaf: Leaf) -> Known:
    """Gives the values of the partition column `leaf` in files with the partition values `values`."""
    return _read_values(_pairs(values), leaf)


def leaf_of(column: PartitionColumn) -> Leaf:
    """Gives the leaf of a partition column. Raises TypeError for a type that no partition column can have."""
    if not isinstance(column.type, Primitive | Decimal):
        raise TypeError(f"a table partitioned by {column.type}")
    return Leaf(path=(column.physical_name,), type=column.type)


def leaf_at(path: LeafPath, schema: Struct, columns: LoggedColumns) -> Leaf | None:
    """Gives the leaf at `path`, by its names in the log; None for an unknown, nested, void or variant column."""
    fields = fields_along(schema, path, is_named=lambda field, name: field.name == name)
    kind = fields[-1].type if len(fields) == len(path) else None
    if not isinstance(kind, Primitive | Decimal) or kind in _WITHOUT_ORDER:
        return None
    has_lists = any(isinstance(part.type, Array | Map) for part in walk(schema))
    return Leaf(path=columns.path_in_log(fields), type=kind, beside_lists=has_lists)


def _pairs(values: pa.MapArray) -> list[dict[str, str | None]]:
    return [dict(pairs or ()) for pairs in values.to_pylist()]


def _read_values(files: Sequence[Mapping[str, str | None]], leaf: Leaf) -> Known:
    (name,) = leaf.path
    texts = {file[name] for file in files if name in file}
    read = {text: value for text in texts for value in _readings(text, leaf)}
    values = [read.get(file.get(name)) for file in files]
    is_known = [name in file and file[name] in read for file in files]
    return Known(values=pa.array(values, type=arrow_type(leaf.type)), is_known=pa.array(is_known, type=pa.bool_()))


def _readings(text: str | None, leaf: Leaf) -> list[partition_values.PartitionValue | None]:
    """The parsed value of `text`, in a list; empty where it cannot be parsed: the reader of the file then raises."""
    try:
        return [partition_values.parse(text, leaf.type, refuse=TablefeedError)]
    except TablefeedError:
        return []
