"""Decides which files may hold a row that passes a filter: interval logic on column bounds, one value per file.

A wrong "no" loses a row, so a part of the filter that is not understood means "maybe". Each part has two answers:
whether it may be true for some row of the file, and whether it may be false (not null) for some row.

- AND, OR and NOT combine these answers (`rows_may_pass`), whatever gives those of the parts below them;
- a comparison with a value is evaluated at the smallest and at the largest value in a file, between which its answer
  changes at most once. Arrow applies the same casts as for rows; a cast of a column keeps its order (`_kind`);
- a partition value is known, so every part that is understood is evaluated on it;
- the statistics of a floating point column do not show where NaN is. For NaN, comparisons are false, `!=` is true.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import reduce

import pyarrow as pa
import pyarrow.acero as acero
import pyarrow.compute as pc

from tablefeed.data.predicate import (
    COMPARISONS,
    And,
    Atom,
    Column,
    Comparison,
    Constant,
    In,
    IsNull,
    Not,
    Or,
    Predicate,
    Unknown,
    arrow,
)
from tablefeed.delta.stats.column_bounds import ColumnBounds


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """A column with one value for all rows of a file, such as a partition column. `values` count where `is_known`."""

    values: pa.Array
    is_known: pa.BooleanArray

    def take(self, files: pa.Array) -> Known:
        """Gives the values of the files with the indexes `files`."""
        return Known(values=self.values.take(files), is_known=self.is_known.take(files))


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether, in each file, a part of the filter may hold for some row, and whether it may fail for some."""

    may_hold: pa.BooleanArray
    may_fail: pa.BooleanArray

    def inverted(self) -> Verdict:
        """Gives the verdict on NOT this part."""
        return Verdict(self.may_fail, self.may_hold)

    def where(self, may_have_value: pa.BooleanArray) -> Verdict:
        """Gives the verdict on a part that is null where its column is."""
        return Verdict(pc.and_(self.may_hold, may_have_value), pc.and_(self.may_fail, may_have_value))


def rows_may_pass(
    predicate: Predicate, verdict_of: Callable[[Atom], Verdict | None], *, file_count: int
) -> pa.BooleanArray:
    """Says for each file whether `predicate` may hold for a row of it; `verdict_of` a part gives None for "maybe"."""
    every, none = (pa.repeat(pa.scalar(value), file_count) for value in (True, False))

    def judge(part: Predicate) -> Verdict:
        match part:
            case And(parts=parts):
                found = [judge(each) for each in parts]
                return Verdict(_every(each.may_hold for each in found), _some(each.may_fail for each in found))
            case Or(parts=parts):
                found = [judge(each) for each in parts]
                return Verdict(_some(each.may_hold for each in found), _every(each.may_fail for each in found))
            case Not(part=inner):
                return judge(inner).inverted()
            case Constant(value=value):
                return Verdict(every if value is True else none, every if value is False else none)
            case Unknown():
                return Verdict(every, every)
            case _:
                return verdict_of(part) or Verdict(every, every)

    try:
        return judge(predicate).may_hold
    except RecursionError:  # nested too deeply for Python's stack
        return every


def verdict_on(atom: Atom, known: Known | None, bounds: ColumnBounds | None) -> Verdict | None:
    """Gives the verdict on `atom` for files of which `known` or `bounds` says what is in its column."""
    if known is not None:
        one = Column((_ONE,))
        moved = one if isinstance(atom, Column) else replace(atom, column=one)
        answer = answers(arrow(moved), pa.table({_ONE: known.values}))
        if answer is None:
            return None
        unknown = pc.invert(known.is_known)
        return Verdict(pc.or_(_if_sure(answer), unknown), pc.or_(_if_sure(pc.invert(answer)), unknown))
    if bounds is None:
        return None
    match atom:
        case Comparison():
            return _compared(atom.function, bounds, atom.value)
        case In(values=values):
            return _among(values, bounds)
        case IsNull(nan_is_null=nan_too):
            is_sure = not (nan_too and pa.types.is_floating(bounds.low.type))
            return Verdict(bounds.may_be_null, bounds.may_have_value) if is_sure else None
        case _:  # a boolean, which has no bounds, or whether a number is NaN, which they do not show
            return Verdict(bounds.may_have_value, bounds.may_have_value)


def answers(question: pc.Expression, rows: pa.Table) -> pa.BooleanArray | None:
    """Gives Arrow's result of `question` for each row; None where it fails, as for a cast that overflows."""
    source = acero.Declaration("table_source", acero.TableSourceNodeOptions(rows))
    project = acero.Declaration("project", acero.ProjectNodeOptions([question], ["answer"]), inputs=[source])
    try:
        answer = project.to_table(use_threads=False)["answer"].combine_chunks()  # threads would not keep the order
    except pa.ArrowException:
        return None
    return answer if pa.types.is_boolean(answer.type) else None


def _compared(function: str, bounds: ColumnBounds, value: pa.Scalar) -> Verdict | None:
    low, high = bounds.low, bounds.high
    if not value.is_valid:  # null for every row, so neither true nor false
        none = pa.repeat(pa.scalar(value=False), len(low))
        return Verdict(none, none)
    if _kind(value.type) is None or _kind(value.type) != _kind(low.type):
        return None
    if function == "not_equal":
        equal = _compared("equal", bounds, value)
        return equal and equal.inverted()
    if function == "equal":
        holds = pc.and_(_if_any(_asked("less_equal", low, value)), _if_any(_asked("greater_equal", high, value)))
        sure = pc.and_(_if_sure(_asked("equal", low, value)), _if_sure(_asked("equal", high, value)))
    else:
        first, last = (low, high) if function.startswith("less") else (high, low)
        holds, sure = _if_any(_asked(function, first, value)), _if_sure(_asked(function, last, value))
    fails = pc.or_(pc.invert(sure), pa.scalar(pa.types.is_floating(low.type)))  # NaN fails
    return Verdict(holds, fails).where(bounds.may_have_value)


def _among(wanted: pa.Array, bounds: ColumnBounds) -> Verdict | None:
    kind, may_fail = bounds.low.type, pa.repeat(pa.scalar(value=True), len(bounds.low))
    null_is_in, found = pa.scalar(wanted.null_count > 0), pa.repeat(pa.scalar(value=False), len(bounds.low))
    if len(wanted) > wanted.null_count:
        if _kind(kind) is None or _kind(wanted.type) != _kind(kind):
            return None
        try:
            values = wanted.cast(kind).drop_null().unique()  # after the cast: views cannot drop their nulls
        except pa.ArrowException:
            return None
        if pa.types.is_floating(kind) and pc.any(pc.is_nan(values)).as_py():
            return None
        # A large set is split into at most `_STRETCHES` ranges, so that its cost is bounded.
        values = values.take(pc.array_sort_indices(values))
        step = max(1, -(-len(values) // _STRETCHES))
        for start in range(0, len(values), step):
            first, last = values[start], values[min(start + step, len(values)) - 1]
            reaches_last = _if_any(pc.less_equal(bounds.low, last))
            found = pc.or_(found, pc.and_(reaches_last, _if_any(pc.greater_equal(bounds.high, first))))
    found = pc.and_(found, bounds.may_have_value)
    return Verdict(pc.or_(found, pc.and_(bounds.may_be_null, null_is_in)), may_fail)


_ONE = "value"
_STRETCHES = 64


def _kind(kind: pa.DataType) -> str | None:
    """The group of a type, None for none: a cast between types of one group keeps the order or fails."""
    is_a = pa.types
    if is_a.is_integer(kind) or is_a.is_floating(kind) or is_a.is_decimal(kind):
        return "number"
    if is_a.is_string(kind) or is_a.is_large_string(kind) or is_a.is_string_view(kind):
        return "text"
    if is_a.is_date(kind):
        return "day"
    if is_a.is_timestamp(kind):
        return "wall clock" if kind.tz is None else "instant"
    return None


def _asked(function: str, ends: pa.Array, value: pa.Scalar) -> pa.BooleanArray:
    answer = answers(COMPARISONS[function](pc.field(_ONE), value), pa.table({_ONE: ends}))
    return pa.nulls(len(ends), pa.bool_()) if answer is None else answer


def _if_any(answer: pa.BooleanArray) -> pa.BooleanArray:
    return pc.fill_null(answer, fill_value=True)


def _if_sure(answer: pa.BooleanArray) -> pa.BooleanArray:
    return pc.fill_null(answer, fill_value=False)


def _every(verdicts: Iterable[pa.BooleanArray]) -> pa.BooleanArray:
    return reduce(pc.and_, verdicts)


def _some(verdicts: Iterable[pa.BooleanArray]) -> pa.BooleanArray:
    return reduce(pc.or_, verdicts)
