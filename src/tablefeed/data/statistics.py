"""Statistics of the rows that went into a file: null counts, and bounds where they are certain.

Computed in Arrow, row group by row group, and not taken from Parquet's footer: the footer has no bounds for long texts,
ignores NaN and counts the nulls of nested columns by element. It costs about a tenth of writing the rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tablefeed.model.statistics import Bound, ColumnStatistics, FileStatistics, LeafPath


def all_leaves(schema: pa.Schema) -> tuple[LeafPath, ...]:
    """The leaves of `schema` in its order. Lists and maps count as one."""
    return tuple(_leaves((), list(schema)))


class RunningStatistics:
    """The statistics of the rows added so far, for the given leaves. A leaf that `schema` lacks is null in all rows."""

    def __init__(self, schema: pa.Schema, leaves: tuple[LeafPath, ...]) -> None:
        self._leaves = [_Leaf(path, schema) for path in leaves]
        self._num_records = 0

    def add(self, rows: pa.Table) -> None:
        """Takes in `rows`, which are of the schema."""
        self._num_records += rows.num_rows
        for leaf in self._leaves:
            leaf.add(rows)

    def result(self) -> FileStatistics:
        """The statistics of all rows added."""
        return FileStatistics(
            num_records=self._num_records, columns={leaf.path: leaf.result() for leaf in self._leaves}
        )


def _leaves(parent: LeafPath, fields: list[pa.Field]) -> Iterator[LeafPath]:
    for field in fields:
        path = (*parent, field.name)
        if pa.types.is_struct(field.type):
            yield from _leaves(path, list(field.type))
        elif not pa.types.is_null(field.type):
            yield path


def _has_bounds(kind: pa.DataType) -> bool:
    # Delta-Spark's SkippingEligibleDataType: booleans and binaries have null counts only.
    is_a = pa.types
    ordered = (is_a.is_integer, is_a.is_floating, is_a.is_decimal, is_a.is_date, is_a.is_timestamp, is_a.is_string)
    return any(check(kind) for check in ordered)


class _Leaf:
    """The running statistics of one leaf. Bounds are kept as values that compare as readers of the file compare."""

    def __init__(self, path: LeafPath, schema: pa.Schema) -> None:
        self.path = path
        self._indices: list[int] = []
        kind: pa.DataType | pa.Schema = schema
        for name in path:
            self._indices.append(kind.get_field_index(name))
            kind = pa.null() if self._indices[-1] < 0 else kind.field(self._indices[-1]).type
            if pa.types.is_null(kind):
                break
        self._is_stored = not pa.types.is_null(kind)
        self._type = kind
        self._has_bounds = _has_bounds(kind)
        self._null_count = 0
        self._has_nan = False
        self._low: Any = None
        self._high: Any = None

    def add(self, rows: pa.Table) -> None:
        if not self._is_stored:
            self._null_count += rows.num_rows
            return
        column = rows.column(self._indices[0])
        if self._indices[1:]:
            # Unlike the member alone, this is null where a struct above is.
            column = pc.struct_field(column, self._indices[1:])
        self._null_count += column.null_count
        if not self._has_bounds or column.null_count == len(column):
            return
        try:
            low, high = self._comparable_bounds(column)
        except UnicodeDecodeError:  # bytes that are not UTF-8 have no bound that JSON can hold
            self._has_bounds = False
            return
        if low is not None:
            # -0.0 counts as smaller than 0.0; Python's min would keep the first of the two.
            self._low = low if self._low is None or (low, _sign(low)) < (self._low, _sign(self._low)) else self._low
            self._high = high if self._high is None else max(self._high, high)

    def result(self) -> ColumnStatistics:
        if not self._has_bounds:
            return ColumnStatistics(null_count=self._null_count)
        low, high = _as_bound(self._low, self._type), _as_bound(self._high, self._type)
        if self._has_nan:
            low, high = math.nan if low is None else low, math.nan
        return ColumnStatistics(null_count=self._null_count, minimum=low, maximum=high)

    def _comparable_bounds(self, column: pa.ChunkedArray) -> tuple[Any, Any]:
        bounds = pc.min_max(column)
        low, high = bounds["min"], bounds["max"]
        if pa.types.is_date(self._type) or pa.types.is_timestamp(self._type):
            return low.value, high.value
        low, high = low.as_py(), high.as_py()
        if not pa.types.is_floating(self._type):
            return low, high
        # Arrow's min_max ignores NaN unless there is nothing else, and does not distinguish 0.0 from -0.0.
        self._has_nan = self._has_nan or bool(pc.any(pc.is_nan(column)).as_py())
        if math.isnan(low):
            return None, None
        return -0.0 if low == 0 and _has_negative_zero(column) else low, high + 0.0


def _sign(value: Any) -> float:
    return math.copysign(1, value) if isinstance(value, float) else 0


def _has_negative_zero(column: pa.ChunkedArray) -> bool:
    bits = pa.int64() if column.type == pa.float64() else pa.int32()
    negative_zero = pa.scalar(-(2 ** (bits.bit_width - 1)), bits)
    return any(pc.any(pc.equal(chunk.view(bits), negative_zero)).as_py() for chunk in column.chunks)


_EPOCH_DAY = date(1970, 1, 1)
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - timestamp_ntz has no zone
_EPOCH_UTC = datetime(1970, 1, 1, tzinfo=UTC)


def _as_bound(comparable: Any, kind: pa.DataType) -> Bound | None:
    if comparable is None:
        return None
    try:
        if pa.types.is_date(kind):
            return _EPOCH_DAY + timedelta(days=comparable)
        if pa.types.is_timestamp(kind):
            return (_EPOCH if kind.tz is None else _EPOCH_UTC) + timedelta(microseconds=comparable)
    except OverflowError:  # outside the years 1 to 9999, for which readers have several spellings
        return None
    return comparable  # type: ignore[no-any-return]  # a number or a text, as Arrow gave it
