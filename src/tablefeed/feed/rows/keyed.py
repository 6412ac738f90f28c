"""Finds the live rows of a table whose keys occur in a batch, and opens only the files that may have some."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import pairwise

import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from tablefeed.data.predicate import And, Column, Comparison, Constant, Or, Predicate, RowFilter, filter_by
from tablefeed.errors import IllegalOptionError
from tablefeed.feed.rows.columns import how_many, nulls
from tablefeed.feed.rows.events import key_numbers
from tablefeed.feed.scan.where import is_special_text
from tablefeed.feed.write.target_rows import Hit, TargetRows, as_bitmap
from tablefeed.model.schema import Field

MOST_RANGES = 64
"""The most ranges into which the keys of a batch are divided. Each range is compared with the bounds of a file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundRows:
    """Live rows in all columns of the table, and where they are: file by file, in the order of the rows.

    `ids` has the row ids in the column in which files keep them. It has no column if the table does not track rows.
    """

    rows: pa.Table
    places: tuple[Hit, ...]
    ids: pa.Table

    def with_ids(self, rows: pa.Table, replaced: pa.Array) -> pa.Table:
        """Gives `rows` with the ids of the rows at the indices `replaced`, whose place they take."""
        for name in self.ids.column_names:
            rows = rows.append_column(name, self.ids[name].take(replaced))
        return rows

    def hits(self, removed: pa.Array) -> list[Hit]:
        """Gives where the rows with the indices `removed` are."""
        found: list[Hit] = []
        begin, left = 0, removed.take(pc.array_sort_indices(removed))
        for hit in self.places:
            count = len(hit.positions)
            here = how_many(pc.less(left, begin + count))
            if here:
                gone = as_bitmap(pa.array(hit.positions, pa.int64()).take(pc.subtract(left[:here], begin)))
                found.append(replace(hit, positions=gone, rows_left=hit.rows_left + count - len(gone)))
            begin, left = begin + count, left[here:]
        return found


def key_ranges(keys: pa.Table, schema: pa.Schema) -> RowFilter:
    """Gives a filter that is true for all `keys` and for few others: the ranges in which they are.

    Each key column has up to `MOST_RANGES` ranges. Numbers and times are divided where the next one is farthest away:
    otherwise one range would reach from the old keys of a batch to its new ones, and with it over all files between
    them. Other types have ranges with about as many keys each.
    """
    asked = [_ranges(name, keys[name]) for name in keys.column_names if _has_bounds(keys.schema.field(name).type)]
    found: Predicate = And(tuple(asked)) if asked else Constant(value=True)
    return filter_by(found, pa.schema([schema.field(name) for name in keys.column_names]))


def check_texts(keys: Iterable[Field], option: str) -> None:
    """Raises IllegalOptionError where `keys`, columns of the table, have different texts for one value."""
    for field in keys:
        if is_special_text(field):
            explain = (
                "is a CHAR or collated column, of which different texts are one value; take another, such as VARCHAR"
            )
            raise IllegalOptionError(option=option, value=field.name, explain=explain)


def check_keys(given: pa.Schema, table: pa.Schema) -> None:
    """Raises IllegalOptionError where keys of the types in `given` cannot be compared with the columns of `table`.

    Both have the same names. Types may differ only where one type has the values of both.
    """
    for field, ours in zip(given, table, strict=True):
        widest = _widest(ours.type)
        fits = field.type == ours.type or (widest is not None and widest == _widest(field.type))
        if pa.types.is_nested(ours.type) or not fits:
            explain = f"compares {ours.type} with {field.type}; cast the source's column, and name no nested one"
            raise IllegalOptionError(option="on", value=ours.name, explain=explain)


def _widest(kind: pa.DataType) -> pa.DataType | None:
    """Gives a type that has the values of `kind` and of all other types whose values are compared with these."""
    is_a = pa.types
    if is_a.is_integer(kind) or is_a.is_decimal(kind):
        return pa.decimal256(76, 38)
    if is_a.is_date(kind) or (is_a.is_timestamp(kind) and kind.tz is None):
        return pa.timestamp("us")
    return pa.float64() if is_a.is_floating(kind) else None


def only_equal(keys: pa.Table, given: pa.Table) -> pa.Table:
    """Gives `keys`, which are `given` in other types, with null for values that were rounded: they equal no row's."""
    columns = []
    for key, value in zip(keys.columns, given.columns, strict=True):
        if key.type != value.type:
            common = _widest(key.type)
            # Not-a-number is the only value that does not equal itself.
            same = pc.or_(pc.equal(key.cast(common), value.cast(common)), pc.not_equal(value, value))
            key = pc.if_else(same, key, pa.scalar(None, key.type))
        columns.append(key)
    return pa.table(columns, schema=keys.schema)


def _has_bounds(kind: pa.DataType) -> bool:
    # A NaN is in no range, and for Arrow -0.0 is below 0.0 in some comparisons only.
    return not pa.types.is_floating(kind)


def _ranges(name: str, keys: pa.ChunkedArray) -> Predicate:
    ordered = pc.unique(keys)
    ordered = ordered.take(pc.sort_indices(ordered))
    edges = sorted({0, len(ordered), *_divisions(ordered)})
    column = Column((name,))
    bounds = ((ordered[begin], ordered[end - 1]) for begin, end in pairwise(edges))
    ranges = [
        And((Comparison("greater_equal", column, low), Comparison("less_equal", column, high))) for low, high in bounds
    ]
    return Or(tuple(ranges)) if ranges else Constant(value=False)


def _divisions(ordered: pa.Array) -> list[int]:
    """Gives the indices at which the ranges of `ordered` begin, besides the first; all values are different."""
    kind, count = ordered.type, len(ordered)
    if pa.types.is_date32(kind):
        ordered = ordered.cast(pa.int32())
    elif pa.types.is_timestamp(kind):
        ordered = ordered.cast(pa.int64())
    elif not (pa.types.is_integer(kind) or pa.types.is_decimal(kind)):
        return [number * count // MOST_RANGES for number in range(1, MOST_RANGES)]
    places = ordered.cast(pa.float64(), safe=False)  # rounding does not matter: the widest gaps stay wide
    widest = pc.array_sort_indices(pc.subtract(places[1:], places[:-1]), "descending")[: MOST_RANGES - 1]
    return [index + 1 for index in widest.to_pylist()]


def find(
    target: TargetRows, keys: pa.Table | None, within: RowFilter | None, *, columns: Sequence[str] | None = None
) -> FoundRows:
    """Gives the live rows whose keys are in `keys`, which has the table's types and no nulls.

    `within` is `key_ranges` of them. None for both: all live rows. With `columns`, only these columns and the keys are
    read, in one pass; the others are null, and no ids are given.
    """
    if keys is None:
        return _found(target, list(target.hits(None)))
    schema = pa.schema([target.schema.field(name) for name in dict.fromkeys((*keys.column_names, *(columns or ())))])
    hits: list[Hit] = []
    batches: list[pa.RecordBatch] = []
    pool = pa.default_memory_pool()
    pool.release_unused()  # before and after, so that the scan's memory is not added to what other steps left
    for file in target.files(within):
        positions, count = BitMap64(), 0
        for batch in target.read([file], schema, with_positions=True):
            count += batch.num_rows
            batches.append(_among(batch, keys))
            positions |= as_bitmap(batches[-1][target.position])
        if positions:
            hits.append(Hit(file=file, positions=positions, rows_left=count - len(positions)))
    pool.release_unused()
    if columns is None:
        return _found(target, hits)
    found = pa.Table.from_batches(batches, schema.append(pa.field(target.position, pa.int64())))
    filled = [
        found[field.name] if field.name in schema.names else nulls(found.num_rows, field.type)
        for field in target.schema
    ]
    rows = pa.table(filled, schema=target.schema)
    return FoundRows(rows=rows, places=tuple(hits), ids=rows.select([]))


def _among(batch: pa.RecordBatch, keys: pa.Table) -> pa.RecordBatch:
    """Gives the rows whose key is among `keys`."""
    names = keys.column_names
    plain = [name for name in names if _has_bounds(batch.schema.field(name).type)]
    if plain:
        is_in = [pc.is_in(batch[name], value_set=keys[name].combine_chunks()) for name in plain]
        batch = batch.filter(reduce(pc.and_, is_in))
    if not batch.num_rows or names == plain[:1]:
        return batch
    known, wanted = key_numbers([pa.Table.from_batches([batch]).select(names), keys], names)
    return batch.filter(pc.is_in(known, value_set=wanted))


def _found(target: TargetRows, hits: list[Hit]) -> FoundRows:
    batches = [batch for hit in hits for batch in target.rows_of([hit], with_ids=True)]
    schema = pa.schema([*target.schema, *(pa.field(name, pa.int64()) for name in target.id_columns or ())])
    rows = pa.Table.from_batches(batches, schema)
    return FoundRows(rows=rows.select(target.schema.names), places=tuple(hits), ids=rows.select(target.id_column))
