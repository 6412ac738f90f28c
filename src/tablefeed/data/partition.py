"""Groups rows by their partition values, without a Python step per row."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc

_Rows = TypeVar("_Rows", pa.Table, pa.RecordBatch)

PartitionKey = tuple[pa.Scalar, ...]
"""The values of one partition, in the order of the partition columns; typed, null is a null scalar."""


def hashable(key: PartitionKey) -> Hashable:
    """A value that is equal only for equal partitions; for scalars themselves 0.0 == -0.0, and NaN != NaN."""
    return tuple(repr(scalar.as_py()) if pa.types.is_floating(scalar.type) else scalar for scalar in key)


def empty_is_null(rows: _Rows, partition_by: Sequence[str]) -> _Rows:
    """`rows` with empty texts and bytes in partition columns as null.

    The log's form of a partition value is a text, and an empty one is null for every type (PROTOCOL.md, "Partition
    Value Serialization").
    """
    for name in partition_by:
        index = rows.schema.get_field_index(name)
        column = rows.column(index)
        if pa.types.is_string(column.type) or pa.types.is_binary(column.type):
            is_empty = pc.equal(pc.binary_length(column), 0)
            if pc.any(is_empty).as_py():
                null = pa.scalar(None, column.type)
                rows = rows.set_column(index, rows.schema.field(index), pc.if_else(is_empty, null, column))
    return rows


def by_partition(rows: pa.Table, partition_by: Sequence[str]) -> Iterator[tuple[PartitionKey, pa.Table]]:
    """Yield each partition's rows, in their order, as a table with memory of its own.

    Different values are different partitions: 0.0 and -0.0 are two, all NaN are one, null is one.
    """
    if not rows.num_rows:
        return
    if not partition_by:
        yield (), rows
        return
    keys = [_with_one_nan(rows.column(name).combine_chunks()) for name in partition_by]
    codes = _codes(keys)
    order = pc.array_sort_indices(codes)  # stable: each partition keeps its rows' order
    starts = _run_starts(codes.take(order))
    if len(starts) == 1:
        yield _key(keys, 0), rows
        return
    rows = rows.combine_chunks()
    for start, end in zip(starts, [*starts[1:], rows.num_rows], strict=True):
        picked = order.slice(start, end - start)
        yield _key(keys, picked[0].as_py()), rows.take(picked)


def _with_one_nan(column: pa.Array) -> pa.Array:
    if not pa.types.is_floating(column.type):
        return column
    return pc.if_else(pc.is_nan(column), pa.scalar(math.nan, column.type), column)


def _key(keys: Sequence[pa.Array], row: int) -> PartitionKey:
    return tuple(column[row] for column in keys)


def _codes(keys: Sequence[pa.Array]) -> pa.Array:
    # One number per distinct tuple. Encoding anew after each column keeps it below the row count, so it cannot wrap.
    codes, _ = _encoded(keys[0])
    for column in keys[1:]:
        inner, count = _encoded(column)
        codes, _ = _encoded(pc.add(pc.multiply(codes, count), inner))
    return codes


def _encoded(column: pa.Array) -> tuple[pa.Array, int]:
    # Arrow encodes floats by their bits, so 0.0 and -0.0 differ, as `by_partition` promises.
    encoded = column.dictionary_encode(null_encoding="encode")
    return encoded.indices.cast(pa.int64()), len(encoded.dictionary)


def _run_starts(codes: pa.Array) -> list[int]:
    lengths = pc.run_end_encode(codes, run_end_type=pa.int64()).run_ends.to_pylist()
    return [0, *lengths[:-1]]
