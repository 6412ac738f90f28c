"""Decides which files may hold a row that passes a filter: interval logic on column bounds, one value per file.

A wrong "no" loses a row, so a part of the filter that is not understood means "maybe". Each part has two answers:
whether it may be true for some row of the file, and whether it may be false (not null) for some row.

- `and`, `or` and `invert` combine these answers. Strict and Kleene functions are treated alike: the answers only
  over-estimate;
- a comparison with a value is evaluated at the smallest and at the largest value in a file, between which its answer
  changes at most once. Arrow applies the same casts as for rows; a cast of a column keeps its order (`_kind`);
- a partition value is known, so every expression that can be rebuilt is evaluated on it;
- the statistics of a floating point column do not show where NaN is. For NaN, comparisons are false, `!=` is true.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.acero as acero
import pyarrow.compute as pc

from tablefeed.data.condition import Call, Column, Literal, Node
from tablefeed.delta.stats.column_bounds import ColumnBounds
from tablefeed.model.statistics import LeafPath

FLIPPED: Mapping[str, str] = {
    "equal": "equal",
    "not_equal": "not_equal",
    "less": "greater",
    "less_equal": "greater_equal",
    "greater": "less",
    "greater_equal": "less_equal",
}
"""The same comparison with the column first, where the filter has the value first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """A column with one value for all rows of a file, such as a partition column. `values` count where `is_known`."""

    values: pa.Array
    is_known: pa.BooleanArray

    def take(self, files: pa.Array) -> Known:
        """Gives the values of the files with the indexes `files`."""
        return Known(values=self.values.take(files), is_known=self.is_known.take(files))


def may_hold(
    condition: Node, known: Mapping[LeafPath, Known], bounds: Mapping[LeafPath, ColumnBounds], *, file_count: int
) -> pa.BooleanArray:
    """Says for each file whether `condition` may hold for a row of it. A column in no mapping may have any value."""
    try:
        return _Judge(known, bounds, file_count).judge(condition).may_hold
    except RecursionError:  # nested too deeply for Python's stack
        return pa.repeat(pa.scalar(value=True), file_count)


def judged_columns(condition: Node) -> frozenset[LeafPath]:
    """Gives the columns whose bounds may rule a file out: those in the parts of `condition` that are understood."""
    found: set[LeafPath] = set()
    waiting = [condition]
    while waiting:
        match waiting.pop():
            case Call(function=function, arguments=arguments) if function in _JOINING:
                waiting += arguments
            case Call(function=function, arguments=(Column(path=path), *_) | (Literal(), Column(path=path))) if (
                function in _OPERATORS or function in _ASKING
            ):
                found.add(path)
            case Column(path=path):
                found.add(path)
            case _:
                pass
    return frozenset(found)


def answers(question: pc.Expression, rows: pa.Table) -> pa.BooleanArray | None:
    """Gives Arrow's result of `question` for each row; None where it fails, as for a cast that overflows."""
    source = acero.Declaration("table_source", acero.TableSourceNodeOptions(rows))
    project = acero.Declaration("project", acero.ProjectNodeOptions([question], ["answer"]), inputs=[source])
    try:
        answer = project.to_table(use_threads=False)["answer"].combine_chunks()  # threads would not keep the order
    except pa.ArrowException:
        return None
    return answer if pa.types.is_boolean(answer.type) else None


def value_set(call: Call) -> pa.Array | None:
    """Gives the values that an `is_in` looks for; None where the call does not have them."""
    if call.options is None or call.options.type.get_field_index("value_set") < 0:
        return None
    wanted = call.options["value_set"]
    return wanted.values if isinstance(wanted, pa.ListScalar) else None


@dataclass(frozen=True, slots=True)
class _Verdict:
    """Whether, in each file, a part of the filter may hold for some row, and whether it may fail for some."""

    may_hold: pa.BooleanArray
    may_fail: pa.BooleanArray

    def inverted(self) -> _Verdict:
        return _Verdict(self.may_fail, self.may_hold)

    def where(self, may_have_value: pa.BooleanArray) -> _Verdict:
        return _Verdict(pc.and_(self.may_hold, may_have_value), pc.and_(self.may_fail, may_have_value))


class _Judge:
    """Judges the parts of a filter, each for all files."""

    def __init__(
        self, known: Mapping[LeafPath, Known], bounds: Mapping[LeafPath, ColumnBounds], file_count: int
    ) -> None:
        self._known = known
        self._bounds = bounds
        self._all = pa.repeat(pa.scalar(value=True), file_count)
        self._none = pa.repeat(pa.scalar(value=False), file_count)
        self._any = _Verdict(self._all, self._all)

    def judge(self, node: Node) -> _Verdict:
        match node:
            case Call(function="and" | "and_kleene"):
                parts = [self.judge(part) for part in _operands(node)]
                return _Verdict(_every(part.may_hold for part in parts), _some(part.may_fail for part in parts))
            case Call(function="or" | "or_kleene"):
                parts = [self.judge(part) for part in _operands(node)]
                return _Verdict(_some(part.may_hold for part in parts), _every(part.may_fail for part in parts))
            case Call(function="invert", arguments=(inner,)):
                return self.judge(inner).inverted()
            case Call(function=function, arguments=(Literal() as value, Column() as column)) if function in FLIPPED:
                return self._leaf(Call(FLIPPED[function], (column, value), None), column)
            case Call(arguments=(Column() as column, *_)):
                return self._leaf(node, column)
            case Column():
                return self._leaf(node, node)
            case Literal(value=value) if pa.types.is_boolean(value.type):
                held = value.as_py()
                return _Verdict(self._all if held is True else self._none, self._all if held is False else self._none)
            case _:
                return self._any

    def _leaf(self, part: Call | Column, column: Column) -> _Verdict:
        bounds, known = self._bounds.get(column.path), self._known.get(column.path)
        verdict = self._any if bounds is None else self._by_bounds(part, bounds)
        if known is None or (question := _built_anew(part)) is None:
            return verdict
        answer = answers(question, pa.table({_ONE: known.values}))
        if answer is None:
            return verdict
        holds, fails = _if_sure(answer), _if_sure(pc.invert(answer))
        return _Verdict(
            pc.if_else(known.is_known, holds, verdict.may_hold), pc.if_else(known.is_known, fails, verdict.may_fail)
        )

    def _by_bounds(self, part: Call | Column, bounds: ColumnBounds) -> _Verdict:
        match part:
            case Column():  # a boolean, which has no bounds
                return self._any.where(bounds.may_have_value)
            case Call(function="is_valid", arguments=(_,)):
                return _Verdict(bounds.may_have_value, bounds.may_be_null)
            case Call(function="is_null", arguments=(_,)):
                if pa.types.is_floating(bounds.low.type) and _option(part, "nan_is_null") is not False:
                    return self._any
                return _Verdict(bounds.may_be_null, bounds.may_have_value)
            case Call(function="is_in", arguments=(_,)):
                return _Verdict(self._may_be_in(part, bounds), self._all)
            case Call(function=function, arguments=(_, Literal(value=value))) if function in _OPERATORS:
                return self._compared(function, bounds, value)
            case _:
                return self._any

    def _compared(self, function: str, bounds: ColumnBounds, value: pa.Scalar) -> _Verdict:
        low, high = bounds.low, bounds.high
        if not value.is_valid:  # null for every row, so neither true nor false
            return _Verdict(self._none, self._none)
        if _kind(value.type) is None or _kind(value.type) != _kind(low.type):
            return self._any
        match function:
            case "not_equal":
                return self._compared("equal", bounds, value).inverted()
            case "equal":
                holds = pc.and_(
                    _if_any(_asked("less_equal", low, value)), _if_any(_asked("greater_equal", high, value))
                )
                sure = pc.and_(_if_sure(_asked("equal", low, value)), _if_sure(_asked("equal", high, value)))
            case _:
                first, last = (low, high) if function.startswith("less") else (high, low)
                holds, sure = _if_any(_asked(function, first, value)), _if_sure(_asked(function, last, value))
        fails = self._all if pa.types.is_floating(low.type) else pc.invert(sure)  # NaN fails
        return _Verdict(holds, fails).where(bounds.may_have_value)

    def _may_be_in(self, part: Call, bounds: ColumnBounds) -> pa.BooleanArray:
        wanted, kind = value_set(part), bounds.low.type
        if wanted is None:
            return self._all
        if wanted.null_count == len(wanted):
            return bounds.may_be_null if wanted.null_count else self._none
        if _kind(kind) is None or _kind(wanted.type) != _kind(kind):
            return self._all
        try:
            values = wanted.drop_null().cast(kind).unique()
        except pa.ArrowException:
            return self._all
        if pa.types.is_floating(kind) and pc.any(pc.is_nan(values)).as_py():
            return self._all
        # A large set is split into at most `_STRETCHES` ranges, so that its cost is bounded.
        values = values.take(pc.array_sort_indices(values))
        step = max(1, -(-len(values) // _STRETCHES))
        within = [self._none]
        for start in range(0, len(values), step):
            first, last = values[start], values[min(start + step, len(values)) - 1]
            reaches_last = _if_any(pc.less_equal(bounds.low, last))
            within.append(pc.and_(reaches_last, _if_any(pc.greater_equal(bounds.high, first))))
        found = pc.and_(_some(within), bounds.may_have_value)
        return pc.or_(found, bounds.may_be_null) if wanted.null_count else found


_ONE = "value"
_STRETCHES = 64
_MATCH = 0  # SetLookupOptions::NullMatchingBehavior, and the only one that `Expression.isin` makes

_OPERATORS: Mapping[str, Callable[[Any, Any], Any]] = {  # Any: pyarrow has no types
    "equal": operator.eq,
    "not_equal": operator.ne,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
}
_JOINING = frozenset({"and", "and_kleene", "or", "or_kleene", "invert"})
_ASKING = frozenset({"is_valid", "is_null", "is_in"})


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


def _built_anew(part: Call | Column) -> pc.Expression | None:
    """The part as an expression on a column `_ONE`; None where it cannot be rebuilt."""
    one = pc.field(_ONE)
    match part:
        case Column():
            return one
        case Call(function=function, arguments=(_, Literal(value=value))) if function in _OPERATORS:
            return _OPERATORS[function](one, value)
        case Call(function="is_valid", arguments=(_,)):
            return one.is_valid()
        case Call(function="is_null", arguments=(_,)) if isinstance(takes_nan := _option(part, "nan_is_null"), bool):
            return one.is_null(nan_is_null=takes_nan)
        case Call(function="is_in", arguments=(_,)) if _option(part, "null_matching_behavior") == _MATCH:
            wanted = value_set(part)
            return None if wanted is None else one.isin(wanted)
        case _:
            return None


def _option(call: Call, name: str) -> object:
    """The option's value; None where the call has none of that name."""
    if call.options is None or call.options.type.get_field_index(name) < 0:
        return None
    return call.options[name].as_py()


def _operands(call: Call) -> list[Node]:
    """The operands of a chain of one function, flattened: a chain can be longer than Python's stack is deep."""
    found: list[Node] = []
    waiting: list[Node] = [call]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Call) and node.function == call.function:
            waiting += node.arguments
        else:
            found.append(node)
    return found


def _asked(function: str, ends: pa.Array, value: pa.Scalar) -> pa.BooleanArray:
    answer = answers(_OPERATORS[function](pc.field(_ONE), value), pa.table({_ONE: ends}))
    return pa.nulls(len(ends), pa.bool_()) if answer is None else answer


def _if_any(answer: pa.BooleanArray) -> pa.BooleanArray:
    return pc.fill_null(answer, fill_value=True)


def _if_sure(answer: pa.BooleanArray) -> pa.BooleanArray:
    return pc.fill_null(answer, fill_value=False)


def _every(verdicts: Iterable[pa.BooleanArray]) -> pa.BooleanArray:
    return reduce(pc.and_, verdicts)


def _some(verdicts: Iterable[pa.BooleanArray]) -> pa.BooleanArray:
    return reduce(pc.or_, verdicts)
