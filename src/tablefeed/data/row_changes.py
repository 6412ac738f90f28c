"""Finds which rows a rewrite of files only copied, and which of the others it updated.

Knows tables of rows, held in memory; no log and no file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc


def without_carryovers(deleted: pa.Table, inserted: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Gives both tables without the rows that they have in common, one for one; the order is kept.

    Rows are equal where every column is, exactly: -0.0 is not 0.0, all NaN are equal, null equals null, and the order
    of a map's entries counts. Both tables have one schema.
    """
    if not deleted.num_rows or not inserted.num_rows:
        return deleted, inserted
    classes = row_classes(pa.concat_tables([deleted, inserted])).to_pylist()
    before, after = classes[: deleted.num_rows], classes[deleted.num_rows :]
    common = Counter(before) & Counter(after)
    return _without(deleted, before, common), _without(inserted, after, common)


def split_updates(rows: pa.Table, others: pa.Table, *, row_id: str) -> tuple[pa.Table, pa.Table]:
    """Gives the `rows` whose id occurs in `others`, then the rest; `row_id` names the column of ids."""
    both = pc.is_in(rows[row_id], value_set=others[row_id].combine_chunks())
    return rows.filter(both), rows.filter(pc.invert(both))


def _without(rows: pa.Table, classes: list[int], common: Counter[int]) -> pa.Table:
    left = dict(common)
    keep = []
    for row in classes:
        carried = left.get(row, 0)
        if carried:
            left[row] = carried - 1
        keep.append(not carried)
    return rows.filter(pa.array(keep, pa.bool_()))


def row_classes(rows: pa.Table) -> pa.Array:
    """Gives a number for each row: the same for equal rows, different for different ones (see `without_carryovers`)."""
    return _joined([_classes(column) for column in rows.columns])


def _joined(columns: list[pa.Array]) -> pa.Array:
    """The numbers of rows, from the numbers of their columns' values."""
    joined = columns[0]
    for column in columns[1:]:
        # Each number is below 2**31 unless there are that many rows, so the product fits in a long.
        count = 1 + (pc.max(column).as_py() or 0)
        joined = _encoded(pa.chunked_array([pc.add(pc.multiply(joined, count), column)]))
    return joined


def _classes(values: pa.ChunkedArray) -> pa.Array:
    """A number for each value, from 0; null has its own."""
    kind = values.type
    if pa.types.is_map(kind):
        entries = pa.list_(pa.struct([kind.key_field, kind.item_field]))
        return _of_lists(values.cast(entries))
    if pa.types.is_list(kind):
        return _of_lists(values)
    if pa.types.is_struct(kind):
        members = [_classes(pc.struct_field(values, [i])) for i in range(kind.num_fields)]
        return _joined([_encoded(pc.is_valid(values)), *members])
    if pa.types.is_null(kind):
        return pa.repeat(pa.scalar(0, pa.int64()), len(values))
    if pa.types.is_floating(kind):
        # Compared by their bits, because for Arrow 0.0 equals -0.0. All NaN get one bit pattern first.
        plain = pc.if_else(pc.is_nan(values), pa.scalar(float("nan"), kind), values)
        bits = pa.int32() if kind == pa.float32() else pa.int64()
        return _encoded(_each(plain, lambda chunk: chunk.view(bits), bits))
    return _encoded(values)


def _of_lists(lists: pa.ChunkedArray) -> pa.Array:
    """Lists are compared as the bytes of their elements' numbers."""
    flat = _each(lists, lambda chunk: chunk.flatten(), lists.type.value_type)
    elements = pc.add(_classes(flat), 0) if len(flat) else pa.array([], pa.int64())
    lengths = pc.fill_null(pc.list_value_length(lists), 0).cast(pa.int64()).combine_chunks()
    ends = pc.multiply(pc.cumulative_sum(lengths), 8)
    offsets = pa.concat_arrays([pa.array([0], pa.int64()), ends])
    keys = pa.Array.from_buffers(pa.large_binary(), len(lists), [None, offsets.buffers()[1], elements.buffers()[1]])
    valid = pc.is_valid(lists).combine_chunks()
    return _encoded(pa.chunked_array([pc.if_else(valid, keys, pa.scalar(None, pa.large_binary()))]))


def _encoded(values: pa.ChunkedArray) -> pa.Array:
    """Numbers for plain values, in the order in which they occur first. All chunks have one dictionary."""
    encoded = values.dictionary_encode(null_encoding="encode")
    return _each(encoded, lambda chunk: chunk.indices.cast(pa.int64()), pa.int64()).combine_chunks()


def _each(values: pa.ChunkedArray, make: Callable[[pa.Array], pa.Array], kind: pa.DataType) -> pa.ChunkedArray:
    return pa.chunked_array([make(chunk) for chunk in values.chunks], type=kind)
