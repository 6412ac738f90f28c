"""Terms: parts of an expression as DuckDB SQL, with Spark's type and the condition under which Spark raises."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal as Number
from enum import IntEnum
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tablefeed.data.casts import INVALID_INPUT, CastError, by_value
from tablefeed.data.retype import Conversion
from tablefeed.data.sql import kinds
from tablefeed.model.schema import DataType, Struct


class NotExactError(ValueError):
    """`part` of the expression `text` is not evaluated here as Spark would; `reason` says why and what to do."""

    def __init__(self, text: str, *, part: str, reason: str) -> None:
        self.text, self.part, self.reason = text, part, reason
        super().__init__(f"{part:.200}: {reason}")


class NoColumnError(NotExactError):
    """`part` names a column, or a member of one, that does not exist."""


class RowFailedError(ValueError):
    """Spark raises when it evaluates the expression `text` for row `row` (from 0) of a batch; `reason` says why."""

    def __init__(self, text: str, *, row: int, reason: str) -> None:
        self.text, self.row, self.reason = text, row, reason
        super().__init__(text, row, reason)

    def __str__(self) -> str:
        """What happened, without the row's values."""
        return f"{self.text}: {self.reason}"


class Failure(IntEnum):
    """Why a row has no value. The numbers are internal and are used within one batch only."""

    OVERFLOW = 1
    DIVISION = 2
    CAST = 3
    INDEX = 4
    RANGE = 5
    ASSERTION = 6

    @property
    def reason(self) -> str:
        """The reason as text for users."""
        return _REASONS[self]


_REASONS = {
    Failure.OVERFLOW: "a result is out of the range of its type",
    Failure.DIVISION: "a division by zero",
    Failure.CAST: "a text or number that the type it is cast to does not hold, or in a spelling that is not read here",
    Failure.INDEX: "an index outside of its array",
    Failure.RANGE: "a date or time outside of the years 1 to 9999, or a character that is not evaluated here",
    Failure.ASSERTION: "an assertion that does not hold",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """A part of an expression: `sql` gives its value and never raises; `fails` the Failure of a row, or null.

    Both may use names that the scope has bound. `literal` is the value of a literal on which Spark's typing depends: a
    whole number, a decimal or a text; None for all else.
    """

    type: DataType
    sql: str
    fails: str | None = None
    literal: int | Number | str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonFunction:
    """A function over Arrow arrays for what DuckDB cannot express exactly; it must handle nulls itself."""

    name: str
    takes: tuple[str, ...]
    gives: str
    function: Callable[..., pa.Array]


@dataclass(slots=True)
class Scope:
    """The state that the terms of one expression share: text, zone, and the columns and members that it names, `named`.

    Expressions that are evaluated together share `columns`, by what SQL calls them, `bindings` of SQL to a name for its
    value, each after those that it needs, and `functions`. `now_us` is the value of `current_timestamp`, None where an
    expression may not depend on it.
    """

    text: str
    schema: Struct
    zone: str | None
    now_us: int | None = None
    named: list[tuple[str, ...]] = field(default_factory=list)
    columns: dict[str, str] = field(default_factory=dict)
    bindings: dict[str, str] = field(default_factory=dict)
    functions: dict[str, PythonFunction] = field(default_factory=dict)

    def refuse(self, part: str, reason: str) -> NotExactError:
        """The error of `part` for `reason`."""
        return NotExactError(self.text, part=part, reason=reason)

    def missing(self, part: str, name: str, known: Sequence[str]) -> NoColumnError:
        """The error of `part` where `name` is none of the `known` ones."""
        return NoColumnError(self.text, part=part, reason=f"there is no {name} among {', '.join(known)}")

    def bind(self, sql: str) -> str:
        """Binds `sql` to a name, which it gives."""
        return self.bindings.setdefault(sql, f"n{len(self.bindings)}")

    def bound(self, term: Term) -> Term:
        """The term with SQL that is short enough to be repeated."""
        return term if len(term.sql) <= _SHORT else replace(term, sql=self.bind(term.sql))

    def python(self, function: PythonFunction) -> str:
        """Registers `function` and gives its name as SQL calls it."""
        self.functions[function.name] = function
        return f'"{function.name}"'


_SHORT = 24
_NAME = re.compile(r"\bn[0-9]+\b")


def stages(bindings: dict[str, str]) -> list[dict[str, str]]:
    """Bindings by name, in groups: each needs only names of the groups before it."""
    level: dict[str, int] = {}
    found: list[dict[str, str]] = []
    for sql, name in bindings.items():
        level[name] = 1 + max((level.get(other, -1) for other in _NAME.findall(sql)), default=-1)
        if level[name] == len(found):
            found.append({})
        found[level[name]][name] = sql
    return found


def first(*fails: str | None) -> str | None:
    """The first failure of a row, in the order in which Spark would meet them."""
    there = [f for f in fails if f is not None]
    if len(there) < 2:
        return there[0] if there else None
    return f"coalesce({', '.join(there)})"


def when(condition: str, fails: str | None) -> str | None:
    """A failure that occurs only where `condition` holds."""
    return None if fails is None else f"CASE WHEN {condition} THEN {fails} END"


def strict(scope: Scope, kind: DataType, operands: Sequence[Term], sql: str, failure: Failure | None = None) -> Term:
    """A term that is null where an operand is; where it is null without that, it fails with `failure`.

    Spark evaluates the operands in order, up to the first null. `sql` has a `{}` for each operand.
    """
    if failure is not None or any(o.fails for o in operands) or "{0}" in sql:
        operands = [scope.bound(o) for o in operands]
    value = sql.format(*(o.sql for o in operands))
    met: list[str] = []
    parts: list[str | None] = []
    for operand in operands:
        parts.append(when(" AND ".join(met), operand.fails) if met else operand.fails)
        met.append(f"{operand.sql} IS NOT NULL")
    if failure is not None:
        value = scope.bind(value)
        parts.append(f"CASE WHEN {' AND '.join([*met, f'{value} IS NULL'])} THEN {int(failure)} END")
    return Term(type=kind, sql=value, fails=first(*parts))


def loose(kind: DataType, operands: Sequence[Term], sql: str) -> Term:
    """A term for which Spark evaluates all operands, also null ones. `sql` has a `{}` for each operand."""
    return Term(type=kind, sql=sql.format(*(o.sql for o in operands)), fails=first(*(o.fails for o in operands)))


def divided(scope: Scope, kind: DataType, left: Term, right: Term, sql: str) -> Term:
    """A quotient or remainder, null where it overflows: `sql` has `{0}` and `{1}`. The divisor is evaluated first."""
    left, right = scope.bound(left), scope.bound(right)
    value = scope.bind(f"CASE WHEN {right.sql} <> 0 THEN {sql.format(left.sql, right.sql)} END")
    there = f"{left.sql} IS NOT NULL AND {right.sql} IS NOT NULL"
    own = f"CASE WHEN {there} AND {right.sql} = 0 THEN {int(Failure.DIVISION)} "
    own += f"WHEN {there} AND {value} IS NULL THEN {int(Failure.OVERFLOW)} END"
    fails = first(right.fails, when(f"{right.sql} IS NOT NULL", left.fails), own)
    return Term(type=kind, sql=value, fails=fails)


def text_sql(value: str) -> str:
    """A text as DuckDB's literal."""
    return "'" + value.replace("'", "''") + "'"


def mapped(
    scope: Scope, name: str, term: Term, gives: DataType, one: Callable[[Any], object], failure: Failure
) -> Term:
    """A term that `one` makes of each distinct value; it fails where `one` raises ValueError or ArithmeticError.

    Terms of the same `name` share one function.
    """
    values = nulled(by_value(kinds.term_arrow(term.type), kinds.term_arrow(gives), one, INVALID_INPUT))
    function = PythonFunction(
        name=name,
        takes=(kinds.duck(term.type),),
        gives=kinds.duck(gives),
        function=lambda given: values(given.combine_chunks()),
    )
    return strict(scope, gives, [term], f"{scope.python(function)}({{}})", failure)


def nulled(convert: Conversion) -> Conversion:
    """The conversion `convert` with null for each value that fails."""

    def converted(array: pa.Array) -> pa.Array:
        while True:
            try:
                return convert(array)
            except CastError as error:
                if error.failed is None:
                    raise
                array = pc.if_else(error.failed, None, array)

    return converted
