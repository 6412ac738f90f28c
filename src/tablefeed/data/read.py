"""Rows out of one Parquet file as a stream of Arrow batches of exactly the wanted schema.

Knows Parquet and Arrow, no log and no store: it gets an open file and the names of the columns in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyroaring
from pyroaring import BitMap64

from tablefeed.data.conform import Conformer, no_columns
from tablefeed.data.julian import UnknownZoneError, leaf_for
from tablefeed.data.oldest import refuse
from tablefeed.data.required import RequiredColumns
from tablefeed.data.retype import (
    BadVariantError,
    LossyConversionError,
    StoredFields,
    conversion,
    has_field_ids,
    has_variants,
    inner_fields,
    without_views,
)
from tablefeed.data.shredding import TYPED
from tablefeed.data.windows import BATCH_BYTES
from tablefeed.errors import TABLE, DataFileError
from tablefeed.parquet_footer import check_columns, check_counts, open_parquet

refuse(pyroaring)

_WHOLE_CHUNK_BYTES = 64 * 1024 * 1024
# Up to this size each column of a row group is read in one request, which suits object stores. Above it, columns are
# read in pieces, so that a huge row group is never in memory as a whole.
_PIECE_BYTES = 4 * 1024 * 1024
_SMALL_PART = 16
# Row groups of up to this part of a batch, by the footer, fit in one even if they are compressed well and the footer
# counts compressed bytes. Their columns are not asked for sizes: checking them takes a tenth of a small file's time.

# The footer counts a text in a dictionary once, however many rows have it. So where such texts may be large, the first
# batch is small, and each batch is as long as the one before it lets expect, but at most so many times longer.
_FIRST_ROWS, _GROWTH = 128, 8
_SMALL_REPEATED_BYTES = 4 * BATCH_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPlan:
    """What is read from every file of a table; small, and pickled to whoever reads.

    `schema` is what each batch has: names, order, types and nullability. `stored` is the same shape with the names
    (column mapping by name) or the field ids (by id) that the files use, at every depth; None, the usual case, means
    the same names.
    """

    schema: pa.Schema
    batch_rows: int
    stored: pa.Schema | None = None

    def __post_init__(self) -> None:
        if self.batch_rows < 1:
            raise ValueError(f"a batch has at least one row: batch_rows={self.batch_rows}")
        if self.stored is not None and len(self.stored) != len(self.schema):
            raise ValueError("the stored schema must have the shape of the wanted one")


Share = tuple[int | None, int | None]
"""A part of a file, from a byte to before another; None: from its begin, or to its end. Row groups and blocks belong to
one share each, so adjacent shares contain each of them once: a row group to the share that has its middle byte."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowSelection:
    """Which rows of a file count: those at positions (from 0) in `only` and not in `without`.

    `only` None: all positions; `without` None: no position.
    """

    without: BitMap64 | None = None
    only: BitMap64 | None = None

    @property
    def row_count(self) -> int:
        """The least number of rows of a file that has all these positions."""
        return 1 + max((positions.max() for positions in (self.without, self.only) if positions), default=-1)

    @property
    def is_empty(self) -> bool:
        """Whether no row of any file counts."""
        return self.only is not None and not self.only - (self.without or BitMap64())

    def has_some(self, positions: range) -> bool:
        """Whether one of `positions` may count: always, unless only others do."""
        return self.only is None or self.only.range_cardinality(positions.start, positions.stop) > 0

    def of(self, batch: pa.RecordBatch, *, first: int) -> pa.RecordBatch:
        """The rows of `batch` that count, in order; `first` is the position of its first row."""
        selected = BitMap64(range(first, first + batch.num_rows))
        if self.only is not None:
            selected &= self.only
        if self.without is not None:
            selected -= self.without
        if len(selected) == batch.num_rows:
            return batch
        if not batch.num_columns:
            return no_columns(len(selected))
        positions = BitMap64.to_array(selected.shift(-first))
        indices = pa.Array.from_buffers(pa.uint64(), len(positions), [None, pa.py_buffer(positions)])
        return batch.take(indices)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileColumns:
    """What differs from file to file: the `path` for errors, partition values by logical name, and which rows count.

    `selection` None: all of them. `share` None: the whole file. `positions` names an extra column with each row's
    position in the file, from 0; None: no such column.
    """

    path: str
    constants: Mapping[str, pa.Scalar] = field(default_factory=dict)
    selection: RowSelection | None = None
    share: Share | None = None
    positions: str | None = None


def read_batches(source: Any, plan: ReadPlan, file: FileColumns) -> Iterator[pa.RecordBatch]:
    """Yield the rows of the file that count, in file order, in batches of at most `plan.batch_rows`; none is empty.

    `source` is what pyarrow.parquet.ParquetFile takes; it is not closed. Batches cross row groups. Those of large
    rows have fewer rows: about `BATCH_BYTES`.

    A column that the file lacks is null; one with a constant takes it even if the file has the column too; a column
    that is not wanted is not read. With no column to read, the rows are counted from the footer alone. Raises
    DataFileError for a file that is missing or damaged; that lacks field ids where columns are mapped by id; that has
    fewer rows than `file.selection` needs; whose types cannot be read as wanted without loss; that has a null, among
    the rows that count, where `plan.schema` allows none; that has a variant in parts that contradict each other; or
    that has a Julian timestamp in an unknown zone. Other Julian dates and timestamps are converted as Spark does.
    """
    # Any: a path, a Python file or an Arrow file, as ParquetFile says.
    try:
        yield from _read(source, plan, file)
    except FileNotFoundError as error:
        raise DataFileError(
            f"The data file {file.path} of {TABLE} is gone, but the log still names it. It was deleted by hand, "
            f"or by a VACUUM whose retention is shorter than this reader's lag. Restore it, or start again.",
            path=file.path,
            error_class="DELTA_FILE_NOT_FOUND",
        ) from error
    except BadVariantError as error:
        raise DataFileError(
            f"The data file {file.path} of {TABLE} has a variant in column {'.'.join(error.column)} whose parts cannot "
            f"be put together: {error.reason}. Rewrite the file with another writer.",
            path=file.path,
            error_class="MALFORMED_VARIANT",
        ) from error
    except UnknownZoneError as error:
        raise DataFileError(
            f"The data file {file.path} of {TABLE} has a time before 1900 in column {'.'.join(error.column)}, "
            f"counted in the Julian calendar, and {error.reason}, so the exact time is not known. "
            "Rewrite the file with Spark 3 or newer, in a JVM whose time zone is the writer's.",
            path=file.path,
            error_class="INCONSISTENT_BEHAVIOR_CROSS_VERSION.READ_ANCIENT_DATETIME",
        ) from error
    except LossyConversionError as error:
        raise DataFileError(
            f"The data file {file.path} of {TABLE} does not fit the table's schema: {error}. "
            f"Rewrite the file with the table's types.",
            path=file.path,
        ) from error
    except MemoryError as error:
        raise DataFileError(
            f"Reading the data file {file.path} of {TABLE} takes more memory than this process can have: {error}. "
            "Give it more memory. If the file is small, it is damaged: restore it from a copy.",
            path=file.path,
        ) from error
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:  # the last for a footer whose names are no text
        raise DataFileError(
            f"The data file {file.path} of {TABLE} cannot be read as Parquet: {error}. "
            f"Restore the file from a copy, or remove it from the table.",
            path=file.path,
        ) from error


def row_group_places(source: Any) -> list[tuple[int, int]]:
    """Gives the middle byte of each row group of a file, which decides the `Share` it is in, and its size in bytes.

    In ascending order. Empty where `source` (as for `read_batches`) cannot be read as Parquet; `read_batches` then
    raises.
    """
    try:
        metadata = open_parquet(source, pre_buffer=False).metadata
        check_columns(metadata)
        return sorted(_place(metadata.row_group(i)) for i in range(metadata.num_row_groups))
    except (pa.ArrowException, OSError, UnicodeDecodeError):
        return []


def _read(source: Any, plan: ReadPlan, file: FileColumns) -> Iterator[pa.RecordBatch]:
    parquet = open_parquet(source, pre_buffer=False)
    _check_footer(parquet, plan, file)
    if file.selection is not None and file.selection.is_empty:
        return
    found = parquet.schema_arrow
    if file.selection is not None:
        found = pa.schema(map(_selectable, found))
    if file.positions is not None:
        found = found.append(pa.field(file.positions, pa.int64()))
    _check_variants(parquet, plan)
    required = RequiredColumns(plan.schema)
    leaf = leaf_for(parquet)
    conform = Conformer(found, plan.schema, stored=plan.stored, constants=file.constants, leaf=leaf)
    names = [name for name in conform.source_names if name != file.positions]
    plain: Callable[[pa.RecordBatch], pa.RecordBatch] | None = None
    metadata = parquet.metadata
    read = expected = 0
    for groups in _chosen(metadata, file):
        expected += _rows(metadata, groups)
        first = _rows(metadata, range(groups.start))
        for batch in _stored_batches(source, parquet, names, plan.batch_rows, groups):
            rows = batch if file.positions is None else _numbered(batch, file.positions, first)
            if file.selection is not None:
                plain = plain or _plainer(rows.schema)
                rows = file.selection.of(plain(rows), first=first)
            first += batch.num_rows
            read += batch.num_rows
            if rows.num_rows:
                conformed = conform(rows)
                _check_required(required, conformed, file)
                yield conformed
    if read != expected:
        # Where pages are damaged, Arrow may end a column early without an error.
        raise _refusal(file, f"has {read} rows, but its footer says {expected}: {_DAMAGED}")


def _chosen(metadata: pq.FileMetaData, file: FileColumns) -> Iterator[range]:
    """The row groups in the share of `file` that may have a row that counts, as ranges of adjacent ones."""
    chosen, first = [], 0
    for i in range(metadata.num_row_groups):
        group = metadata.row_group(i)
        positions = range(first, first := first + group.num_rows)
        is_wanted = file.selection is None or file.selection.has_some(positions)
        if is_wanted and (file.share is None or _is_in(group, file.share)):
            chosen.append(i)
    for _, adjacent in groupby(enumerate(chosen), lambda pair: pair[1] - pair[0]):
        groups = [group for _, group in adjacent]
        yield range(groups[0], groups[-1] + 1)


def _is_in(group: pq.RowGroupMetaData, share: Share) -> bool:
    middle, _ = _place(group)
    begin, end = share
    return (begin is None or begin <= middle) and (end is None or middle < end)


def _place(group: pq.RowGroupMetaData) -> tuple[int, int]:
    """The middle byte of a row group, and its size in bytes."""
    columns = [group.column(i) for i in range(group.num_columns)]
    begin = min((_begin(column) for column in columns), default=0)
    size = sum(column.total_compressed_size for column in columns)
    return begin + size // 2, size


def _begin(column: pq.ColumnChunkMetaData) -> int:
    offsets = (column.dictionary_page_offset, column.data_page_offset)
    return min((offset for offset in offsets if offset is not None and offset > 0), default=0)


def _rows(metadata: pq.FileMetaData, groups: range) -> int:
    return sum(metadata.row_group(i).num_rows for i in groups)


def _check_required(required: RequiredColumns, batch: pa.RecordBatch, file: FileColumns) -> None:
    broken = required.first_null(batch)
    if broken is not None:
        what = f"has a null in column {broken}, which is NOT NULL in the table's schema. Rewrite the file"
        raise _refusal(file, f"{what}, or drop the NOT NULL constraint.")


def _numbered(batch: pa.RecordBatch, name: str, first: int) -> pa.RecordBatch:
    ones = pa.repeat(pa.scalar(1, pa.int64()), batch.num_rows)
    positions = pc.cumulative_sum(ones, start=first - 1)
    return pa.RecordBatch.from_arrays([*batch.columns, positions], names=[*batch.schema.names, name])


def _stored_batches(
    source: Any, parquet: pq.ParquetFile, columns: list[str], batch_rows: int, groups: range
) -> Iterator[pa.RecordBatch]:
    """All rows of `groups` as they are stored. No row is left out, so counting them gives each row's position."""
    metadata = parquet.metadata
    if not columns:
        num_rows = _rows(metadata, groups)
        for begin in range(0, num_rows, batch_rows):
            yield no_columns(min(batch_rows, num_rows - begin))
        return
    if max(metadata.row_group(i).total_byte_size for i in groups) > _WHOLE_CHUNK_BYTES:
        parquet = open_parquet(source, metadata=metadata, pre_buffer=False, buffer_size=_PIECE_BYTES)
    chosen = [metadata.row_group(i) for i in groups]
    resize = None
    if not _are_small(parquet, chosen, batch_rows):
        batch_rows = min(batch_rows, _rows_that_fit(chosen, columns))
        resize = _resizing(parquet) if _may_repeat(chosen, columns, batch_rows) else None
    # Row groups have a dictionary each, and Arrow joins only those of columns that are not nested.
    found = parquet.schema_arrow
    apart = any(_has_dictionary_inside(found.field(name).type) for name in columns)
    for together in [[group] for group in groups] if apart else [list(groups)]:
        first = batch_rows if resize is None else min(batch_rows, _FIRST_ROWS)
        # One thread: the caller runs as many readers as it has cores. Row groups are not read ahead (memory).
        for batch in parquet.iter_batches(first, row_groups=together, columns=columns, use_threads=False):
            if resize is not None:
                fitting = BATCH_BYTES * batch.num_rows // max(1, batch.nbytes)
                resize(max(1, min(batch_rows, fitting, _GROWTH * batch.num_rows)))
            yield batch


def _resizing(parquet: pq.ParquetFile) -> Callable[[int], None] | None:
    """Gives what sets the rows of the next batches while `parquet` is read. None where this pyarrow does not say how.

    pyarrow's reader asks for the number before each batch. Its documentation does not mention that.
    """
    resize: Callable[[int], None] | None = getattr(getattr(parquet, "reader", None), "set_batch_size", None)
    return resize


def _may_repeat(groups: Sequence[pq.RowGroupMetaData], columns: Sequence[str], batch_rows: int) -> bool:
    """Whether texts in dictionaries may make a batch too large: no text is longer than the chunk that has it."""
    repeated: int = sum(
        min(batch_rows, each.num_values) * each.total_uncompressed_size
        for group in groups
        for each in _chunks(group, columns)
        if each.physical_type in ("BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY") and not _DICTIONARIES.isdisjoint(each.encodings)
    )
    return repeated > _SMALL_REPEATED_BYTES


_DICTIONARIES = {"RLE_DICTIONARY", "PLAIN_DICTIONARY"}


def _are_small(parquet: pq.ParquetFile, groups: Sequence[pq.RowGroupMetaData], batch_rows: int) -> bool:
    """Whether any batch of `groups` is small, even if all its rows have the same text; then each part of them is, too.

    This asks no column. `_check_footer` checks the columns of all others, and only those may be asked.
    """
    sizes = [group.total_byte_size for group in groups]
    rows = min(batch_rows, sum(group.num_rows for group in groups))
    is_small = sum(sizes) <= BATCH_BYTES // _SMALL_PART and rows * sum(sizes) <= _SMALL_REPEATED_BYTES
    # A list of any length takes a few bytes where all its elements are equal.
    return is_small and min(sizes, default=1) > 0 and not any(_has_lists(f.type) for f in parquet.schema_arrow)


def _has_lists(kind: pa.DataType) -> bool:
    """Whether rows of that type may have any number of values."""
    inner = inner_fields(kind)
    return bool(inner and not pa.types.is_struct(kind)) or any(_has_lists(field.type) for field in inner)


def _rows_that_fit(groups: Sequence[pq.RowGroupMetaData], columns: Sequence[str]) -> int:
    """How many rows of `columns` take about `BATCH_BYTES`: by their mean size, and by that in each large row group.

    A text in a dictionary counts once, however many rows have it.
    """
    sizes: list[tuple[int, int]] = [(group.num_rows, _size_of(group, columns)) for group in groups]
    whole = sum(rows for rows, _ in sizes), sum(size for _, size in sizes)
    large = [(rows, size) for rows, size in sizes if size > BATCH_BYTES]
    return max(1, min(BATCH_BYTES * rows // max(1, size) for rows, size in [whole, *large]))


def _size_of(group: pq.RowGroupMetaData, columns: Sequence[str]) -> int:
    """The bytes of `columns`, as `_chunks` gives them, when they are not compressed, and at least those of Arrow.

    In Arrow each value takes its whole width, while nulls and runs of equal values take next to nothing in a file.
    """
    size: int = sum(
        max(each.total_uncompressed_size, each.num_values * _WIDTHS.get(each.physical_type, 0))
        for each in _chunks(group, columns)
    )
    return size


_WIDTHS = {"INT32": 4, "FLOAT": 4, "BYTE_ARRAY": 4, "INT64": 8, "INT96": 8, "DOUBLE": 8, "FIXED_LEN_BYTE_ARRAY": 16}
"""Of a value in Arrow, by its type in Parquet: for texts that of an offset, for a fixed length that of a decimal."""


def _chunks(group: pq.RowGroupMetaData, columns: Sequence[str]) -> Iterator[pq.ColumnChunkMetaData]:
    """The chunks of `columns`, and of columns whose names begin alike."""
    chunks = (group.column(i) for i in range(group.num_columns))
    return (each for each in chunks if each.path_in_schema.startswith(tuple(columns)))


def _has_dictionary_inside(kind: pa.DataType) -> bool:
    inner = [field.type for field in inner_fields(kind)]
    return any(pa.types.is_dictionary(each) or _has_dictionary_inside(each) for each in inner)


def _selectable(field: pa.Field) -> pa.Field:
    """The field with a type from which Arrow can select values: no view."""
    return field.with_type(without_views(field.type, has_ids=True))


def _plainer(found: pa.Schema) -> Callable[[pa.RecordBatch], pa.RecordBatch]:
    """Gives what makes each column of a batch of schema `found` as `_selectable`."""
    changes = [conversion(field.type, without_views(field.type)) for field in found]
    if not any(changes):
        return lambda batch: batch
    selectable = pa.schema(map(_selectable, found))

    def plain(batch: pa.RecordBatch) -> pa.RecordBatch:
        pairs = zip(batch.columns, changes, strict=True)
        columns = [column if change is None else change(column) for column, change in pairs]
        return pa.RecordBatch.from_arrays(columns, schema=selectable)

    return plain


def _check_footer(parquet: pq.ParquetFile, plan: ReadPlan, file: FileColumns) -> None:
    rows = parquet.metadata.num_rows
    groups = [parquet.metadata.row_group(i) for i in range(parquet.metadata.num_row_groups)]
    counts = [group.num_rows for group in groups]
    if rows != sum(counts) or min(counts, default=0) < 0:
        what = f"has {rows} rows by its footer, but {sum(counts)} by its row groups: {_DAMAGED}"
        raise _refusal(file, what)
    check = check_counts if file.share is None and _are_small(parquet, groups, plan.batch_rows) else check_columns
    check(parquet.metadata)
    if file.selection is not None and file.selection.row_count > rows:
        raise _refusal(
            file,
            f"has {rows} rows, but its deletion vector needs {file.selection.row_count}: one of them belongs to "
            "another file. Restore both from a copy.",
        )
    if has_field_ids(plan.stored or ()) and not has_field_ids(parquet.schema_arrow):
        raise _refusal(
            file,
            "has no field ids, but the table maps its columns by id, so its columns cannot be identified. Rewrite "
            "the file with field ids.",
        )


def _check_variants(parquet: pq.ParquetFile, plan: ReadPlan) -> None:
    """Raises BadVariantError for INT96 in a shredded variant: it is an instant, but Arrow gives it without a zone."""
    if not any(has_variants(column.type) for column in plan.schema):
        return
    leaves = [parquet.schema.column(i) for i in range(len(parquet.schema))]
    int96 = [leaf.path for leaf in leaves if leaf.physical_type == "INT96" and f".{TYPED}" in leaf.path]
    there = StoredFields(parquet.schema_arrow)
    for column, stored in zip(plan.schema, plan.schema if plan.stored is None else plan.stored, strict=True):
        if not has_variants(column.type) or (name := there.find(stored)) is None:
            continue
        if any(path.startswith(f"{name}.") for path in int96):
            reason = "it has values of type INT96, which no variant has"
            raise BadVariantError(parquet.schema_arrow.field(name).type, column.type, reason=reason).inside(column.name)


_DAMAGED = "it is damaged. Restore the file from a copy, or remove it from the table."


def _refusal(file: FileColumns, what: str) -> DataFileError:
    return DataFileError(f"The data file {file.path} of {TABLE} {what}", path=file.path)
