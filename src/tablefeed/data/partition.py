"""Groups rows by their partition values, without a Python step per row, and gathers those of one partition."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from tablefeed.data.row_changes import row_classes

_Rows = TypeVar("_Rows", pa.Table, pa.RecordBatch)

PartitionValues = Mapping[str, pa.Scalar]
"""The values of one partition by the partition columns, in their order; typed, null is a null scalar."""


def hashable(values: PartitionValues) -> Hashable:
    """A value that is equal only for equal partitions; for scalars themselves 0.0 == -0.0, and NaN != NaN."""
    return tuple(repr(value.as_py()) if pa.types.is_floating(value.type) else value for value in values.values())


class Waiting:
    """The rows of one partition that wait until there are enough to be written at once."""

    def __init__(self, values: PartitionValues) -> None:
        self.values = values
        self.row_count = self.size_bytes = 0
        self._rows: list[pa.Table] = []

    def has_room_for(self, rows: pa.Table, *, most_rows: int, most_bytes: int) -> bool:
        """Whether `rows` can be added within these limits, which one addition alone may exceed."""
        return self.row_count == 0 or (
            self.row_count + rows.num_rows <= most_rows and self.size_bytes + rows.nbytes <= most_bytes
        )

    def add(self, rows: pa.Table) -> None:
        """Adds `rows` behind the others."""
        self._rows.append(rows)
        self.row_count += rows.num_rows
        self.size_bytes += rows.nbytes

    def take(self) -> pa.Table:
        """Gives all rows, which no longer wait."""
        rows = pa.concat_tables(self._rows)
        self._rows, self.row_count, self.size_bytes = [], 0, 0
        return rows


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


def by_partition(rows: pa.Table, partition_by: Sequence[str]) -> Iterator[tuple[PartitionValues, pa.Table]]:
    """Yield each partition's rows, in their order, as a table with memory of its own.

    Different values are different partitions: 0.0 and -0.0 are two, all NaN are one, null is one.
    """
    if not rows.num_rows:
        return
    if not partition_by:
        yield {}, rows
        return
    keys = rows.select(list(partition_by)).combine_chunks()
    classes = row_classes(keys)
    order = pc.array_sort_indices(classes)  # stable: each partition keeps its rows' order
    ends = pc.run_end_encode(classes.take(order), run_end_type=pa.int64()).run_ends.to_pylist()
    if len(ends) > 1:
        rows = rows.combine_chunks()
    for start, end in pairwise([0, *ends]):
        picked = order.slice(start, end - start)
        row = picked[0].as_py()
        values = {name: keys.column(name)[row] for name in partition_by}
        yield values, rows.take(picked) if len(ends) > 1 else rows
