"""Generates values of identity columns for the rows of one task; no other task of the write generates the same ones.

In Delta-Spark the p-th of n tasks gets every n-th value, from the p-th on. Spark does not report to a Python task how
many tasks there are, so here a task's values do not depend on that number. Tasks whose ids have the same bit length (0,
1, 2-3, 4-7, ...) form a group. The groups alternate value by value, and so do the tasks of a group. Spark's task ids
make at most 32 groups, so at least every 32nd of the values that a write skips belongs to a possible task.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from tablefeed.errors import TABLE, InvalidRowsError
from tablefeed.model.rules import IdentityColumn

GROUPS = 32
"""The number of bit lengths of Spark's partition ids, which are Java ints from 0 on."""

_LEAST, _MOST = -(2**63), 2**63 - 1


_ENDLESS = 2**96
"""More values than all tasks together can have rows."""


def turns(task: int, *, task_count: int | None) -> range:
    """Gives which values, counted from the first free one, belong to the task `task` (from 0) of `task_count`.

    None: the count is not known, up to 2**31.
    """
    if task_count is not None:
        return range(task, _ENDLESS, task_count)
    group = task.bit_length()
    members = 1 << max(0, group - 1)
    member = task - members if group else 0
    return range(group + GROUPS * member, _ENDLESS, GROUPS * members)


class IdentityValues:
    """Fills the identity columns of one task's batches; each batch must be passed once and in order."""

    def __init__(self, columns: Sequence[IdentityColumn], mine: range) -> None:
        self._columns = {column.name: column for column in columns}
        self._mine, self._made = mine, 0

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Gives the rows with new values in these columns. Raises InvalidRowsError where a value exceeds a long."""
        numbers = self._mine[self._made : self._made + batch.num_rows]
        self._made += batch.num_rows
        columns = [
            column if (identity := self._columns.get(field.name)) is None else self._values(identity, numbers)
            for field, column in zip(batch.schema, batch.columns, strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, schema=batch.schema)

    def _values(self, column: IdentityColumn, numbers: range) -> pa.Array:
        values = [column.next + column.step * number for number in numbers]
        if values and not (_LEAST <= values[0] <= _MOST and _LEAST <= values[-1] <= _MOST):
            raise InvalidRowsError(
                f"Identity column {column.name!r} of {TABLE} is used up: the next value, in steps of "
                f"{column.step}, is outside the 64-bit range. Nothing of this write was committed.",
            )
        return pa.array(values, pa.int64())
