"""Terms: parts of an expression as DuckDB SQL, with Spark's type and the condition under which Spark raises.

In terms, dates are days and timestamps are microseconds since 1970, as in Spark. DuckDB's own types hold fewer values,
and treat the extreme ones as infinity.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum

import pyarrow as pa

from tablefeed.model.schema import Array, DataType, Decimal, Map, Nested, Primitive, Struct

BOOLEAN, BYTE, SHORT, INT, LONG = (Primitive(n) for n in ("boolean", "byte", "short", "integer", "long"))
FLOAT, DOUBLE, STRING, BINARY = (Primitive(n) for n in ("float", "double", "string", "binary"))
DATE, TIMESTAMP, NTZ, VOID = (Primitive(n) for n in ("date", "timestamp", "timestamp_ntz", "void"))
INTEGRALS = (BYTE, SHORT, INT, LONG)
FLOATING = (FLOAT, DOUBLE)
ZONE_REMEDY = "it depends on the session's time zone, which is not known here: set the option timeZone"


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

    Both may use names that were bound in stages before `stage`. `literal` is the value of a literal on which Spark's
    typing depends: a whole number or a text; None for all else.
    """

    type: DataType
    sql: str
    fails: str | None = None
    stage: int = 0
    literal: int | str | None = None


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

    Expressions that are evaluated together share `columns`, by what SQL calls them, `stages` of values that are named
    more than once, and `functions`. `now_us` is the value of `current_timestamp`, None where an expression may not
    depend on it.
    """

    text: str
    schema: Struct
    zone: str | None
    now_us: int | None = None
    named: list[tuple[str, ...]] = field(default_factory=list)
    columns: dict[str, str] = field(default_factory=dict)
    stages: list[list[tuple[str, str]]] = field(default_factory=list)
    functions: dict[str, PythonFunction] = field(default_factory=dict)

    def refuse(self, part: str, reason: str) -> NotExactError:
        """The error of `part` for `reason`."""
        return NotExactError(self.text, part=part, reason=reason)

    def missing(self, part: str, name: str, known: Sequence[str]) -> NoColumnError:
        """The error of `part` where `name` is none of the `known` ones."""
        return NoColumnError(self.text, part=part, reason=f"there is no {name} among {', '.join(known)}")

    def bind(self, sql: str, stage: int) -> tuple[str, int]:
        """Binds `sql` to a name; gives the name and the first stage in which it can be used."""
        while len(self.stages) <= stage:
            self.stages.append([])
        for level, bound in enumerate(self.stages):
            for name, known in bound:
                if known == sql:
                    return name, level + 1
        name = f"n{sum(map(len, self.stages))}"
        self.stages[stage].append((name, sql))
        return name, stage + 1

    def bound(self, term: Term) -> Term:
        """The term with SQL that is short enough to be repeated."""
        if len(term.sql) <= _SHORT:
            return term
        name, stage = self.bind(term.sql, term.stage)
        return replace(term, sql=name, stage=stage)

    def python(self, function: PythonFunction) -> str:
        """Registers `function` and gives its name."""
        self.functions[function.name] = function
        return function.name


_SHORT = 24


def first(*fails: str | None) -> str | None:
    """The first failure of a row, in the order in which Spark would meet them."""
    there = [f for f in fails if f is not None]
    if len(there) < 2:
        return there[0] if there else None
    return f"coalesce({', '.join(there)})"


def when(condition: str, fails: str | None) -> str | None:
    """A failure that occurs only where `condition` holds."""
    return None if fails is None else f"CASE WHEN {condition} THEN {fails} END"


def strict(
    scope: Scope, kind: DataType, operands: Sequence[Term], sql: str, failure: Failure | None = None, *, stage: int = 0
) -> Term:
    """A term that is null where an operand is; where it is null without that, it fails with `failure`.

    Spark evaluates the operands in order, up to the first null. `sql` has a `{}` for each operand, and may use names
    that were bound before `stage`.
    """
    if failure is not None or any(o.fails for o in operands) or "{0}" in sql:
        operands = [scope.bound(o) for o in operands]
    stage = max([stage, *(o.stage for o in operands)])
    value = sql.format(*(o.sql for o in operands))
    fails = None
    met: list[str] = []
    parts: list[str | None] = []
    for operand in operands:
        parts.append(when(" AND ".join(met), operand.fails) if met and operand.fails else operand.fails)
        met.append(f"{operand.sql} IS NOT NULL")
    if failure is not None:
        value, stage = scope.bind(value, stage)
        parts.append(f"CASE WHEN {' AND '.join([*met, f'{value} IS NULL'])} THEN {int(failure)} END")
    fails = first(*parts)
    return Term(type=kind, sql=value, fails=fails, stage=stage)


def duck(kind: DataType) -> str:
    """DuckDB's type for values of `kind` as terms have them."""
    match kind:
        case Primitive(name=name):
            return _DUCK[name]
        case Decimal(precision=precision, scale=scale):
            return f"DECIMAL({precision},{scale})"
        case _:
            raise ValueError(f"no values of {kind} are made")


_DUCK = {
    "boolean": "BOOLEAN",
    "byte": "TINYINT",
    "short": "SMALLINT",
    "integer": "INTEGER",
    "long": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "string": "VARCHAR",
    "binary": "BLOB",
    "date": "INTEGER",
    "timestamp": "BIGINT",
    "timestamp_ntz": "BIGINT",
    "void": "INTEGER",
}


def spelt(kind: DataType) -> str:
    """The type in SQL's words."""
    match kind:
        case Primitive(name=name):
            return {"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint"}.get(name, name)
        case Decimal(precision=precision, scale=scale):
            return f"decimal({precision},{scale})"
        case Array(element=element):
            return f"array<{spelt(element)}>"
        case Map(key=key, value=value):
            return f"map<{spelt(key)},{spelt(value)}>"
        case Struct():
            return "struct"


def text_sql(value: str) -> str:
    """A text as DuckDB's literal."""
    return "'" + value.replace("'", "''") + "'"


def is_nested(kind: DataType) -> bool:
    """Whether values of `kind` have parts."""
    return isinstance(kind, Nested)
