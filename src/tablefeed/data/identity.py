"""Values of identity columns for the rows of one task, which no other task of the same write makes.

Delta-Spark gives of n tasks the p-th every n-th value from its p-th on. Spark does not tell a Python task how many
tasks there are, so that here each has its place whatever their number: tasks of one bit length (0, 1, 2-3, 4-7, ...)
are a group, the groups take turns value by value, and so do the tasks of a group. 32 groups are all that Spark can
number, and of the values that a write passes over at least every 32nd could have been a row's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from tablefeed.errors import InvalidRowsError
from tablefeed.model.rules import IdentityColumn

GROUPS = 32
"""Bit lengths of Spark's partition ids, which are Java ints and no less than 0."""

_LEAST, _MOST = -(2**63), 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Turns:
    """Which values are a task's, counted from the first that is free: `first`, `first` + `every`, and so on."""

    first: int
    every: int


def turns(task: int, *, task_count: int | None) -> Turns:
    """Gives the turns of a task, numbered from 0, of `task_count`; None: of a number that is not known, up to 2**31."""
    if task_count is not None:
        return Turns(first=task, every=task_count)
    group = task.bit_length()
    members = 1 << max(0, group - 1)
    member = task - members if group else 0
    return Turns(first=group + GROUPS * member, every=GROUPS * members)


class IdentityValues:
    """Fills the identity columns of one task's batches, which come in order and once."""

    def __init__(self, columns: Sequence[IdentityColumn], mine: Turns, *, url: str) -> None:
        self._columns = {column.name: column for column in columns}
        self._mine, self._url, self._made = mine, url, 0

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Gives the rows with values in place of what these columns have. Raises InvalidRowsError past a long's end."""
        start = self._mine.first + self._mine.every * self._made
        numbers = range(start, start + self._mine.every * batch.num_rows, self._mine.every)
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
                f"Identity column {column.name!r} of {self._url} is used up: the next value, by steps of "
                f"{column.step}, is no 64-bit number. Nothing of this write was committed.",
                url=self._url,
            )
        return pa.array(values, pa.int64())
