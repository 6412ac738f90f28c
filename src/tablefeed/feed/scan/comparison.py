"""Makes the predicate that compares a column with a value as Spark's SQL does.

Arrow and Spark cast differently, and pyarrow 18 compares decimals of two scales wrongly. So a number is first
given the column's scale. Where the column cannot have it (`id < 5.5` for whole numbers), its lower neighbour there is
used instead. A comparison is refused where Spark would use a lossy cast, or where the result depends on the session's
zone or settings.

One difference in order remains: in Spark NaN equals itself and is greater than all numbers. No value here is NaN, so
this matters only for `>` and `>=`.
"""

from __future__ import annotations

import ctypes
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal as Number
from fractions import Fraction

import pyarrow as pa

from tablefeed.data.predicate import And, Column, Comparison, Constant, In, IsNan, IsNull, Not, Or, Predicate
from tablefeed.data.sql.kinds import FLOATING, MOST_DIGITS, spelt
from tablefeed.delta.schema.arrow_schema import arrow_type
from tablefeed.model.schema import DataType, Decimal, Primitive

Value = int | Number | float | str | bool | date | datetime
"""A literal: int for digits alone, Decimal with a point, float with an exponent. A datetime may have a zone."""

_OF_LOWER = {"less": "less_equal", "greater_equal": "greater"}
"""What to ask of the lower neighbour of a value that the column cannot have."""

_DIGITS = {"byte": 3, "short": 5, "integer": 10, "long": 20}
"""The precision of the decimal to which Spark casts a whole number to compare it with decimals."""

_LARGEST_LONG = (1 << 63) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Operand:
    """A column of `type`. `refuse` makes the error for a reason."""

    column: Column
    type: DataType
    refuse: Callable[[str], Exception]

    @property
    def name(self) -> str:
        """The name in error messages."""
        return ".".join(self.column.path)

    @property
    def kind(self) -> str:
        """The type as SQL names it."""
        return spelt(self.type)


def compared(operand: Operand, function: str, value: Value) -> Predicate:
    """Gives the comparison of `operand` with `value` by the `function` of `COMPARISONS`; null where the column is."""
    if operand.type == Primitive("boolean") and function not in ("equal", "not_equal"):
        raise operand.refuse(f"cannot order the boolean {operand.name}: use = or <>")
    _check_digits(operand, [value])
    column, (lower, is_exact) = operand.column, _lower(operand, value)
    if not is_exact and function in ("equal", "not_equal"):
        return _never(column) if function == "equal" else Not(_never(column))
    answer = Comparison(function if is_exact else _OF_LOWER.get(function, function), column, lower)
    above_all = operand.type in FLOATING and function in ("greater", "greater_equal")
    return Or((answer, IsNan(column))) if above_all else answer


def among(operand: Operand, values: Sequence[Value]) -> Predicate:
    """Gives the predicate that is true where `operand` is one of `values`, and null where the column is null."""
    _check_digits(operand, values)
    column, kind = operand.column, arrow_type(operand.type)
    exact = [lower for lower, is_exact in (_lower(operand, value) for value in values) if is_exact]
    if operand.type in FLOATING:  # Arrow's isin compares bits, so -0.0 would not equal 0.0
        return Or(tuple(Comparison("equal", column, value) for value in exact))
    return Or((In(column, pa.array([v.as_py() for v in exact if v.type == kind], type=kind)), _never(column)))


def _never(column: Column) -> Predicate:
    """A predicate that is false for every value, and null for null."""
    return And((IsNull(column), Constant(None)))


def _lower(operand: Operand, value: Value) -> tuple[pa.Scalar, bool]:
    """The largest value not above `value` that can be compared with the column's, and whether it is `value` itself.

    It may be beyond the column's smallest or largest value, and then has a wider type.
    """
    match operand.type, value:
        case (Primitive("string"), str()) | (Primitive("boolean"), bool()):
            pass
        case _, bool():
            raise _mismatch(operand, value)
        case Primitive(name), int() | Number() if name in _DIGITS:
            lower = math.floor(value)
            if math.ceil(value) > _LARGEST_LONG or lower < -_LARGEST_LONG - 1:
                # Spark's DecimalPrecision makes this a constant, so that NOT (id > value) is true even for null.
                raise operand.refuse(f"holds {operand.name}, {operand.kind}, against {value}, which no bigint reaches")
            return _held(lower, operand, pa.int64()), lower == value
        case Decimal(scale=scale), int() | Number():
            exact = Fraction(value) * 10**scale
            lower = math.floor(exact)
            return _held(Number(f"{lower}E-{scale}"), operand, pa.decimal128(MOST_DIGITS, scale)), lower == exact
        case Primitive("float" | "double"), int() | Number() | float():
            return _floating(operand, value), True
        case (Primitive("timestamp"), datetime(tzinfo=zone)) if zone is not None:
            pass
        case (Primitive("timestamp_ntz"), datetime(tzinfo=None)):
            pass
        case Primitive("date"), date() if not isinstance(value, datetime):
            pass
        case Primitive("date"), str() if (day := read_day(value)) is not None:
            value = day
        case _:
            raise _mismatch(operand, value)
    return pa.scalar(value, arrow_type(operand.type)), True


def read_day(text: str) -> date | None:
    """Gives the date that `text` is in the form 2024-01-31; None for other texts, though Spark reads more forms."""
    try:
        return date.fromisoformat(text) if _DAY.fullmatch(text) else None
    except ValueError:  # no such date, like the 30th of February
        return None


_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def _held(value: int | Number, operand: Operand, wide: pa.DataType) -> pa.Scalar:
    try:
        return pa.scalar(value, arrow_type(operand.type))
    except (pa.ArrowException, OverflowError):
        return pa.scalar(value, wide)


def _floating(operand: Operand, value: int | Number | float) -> pa.Scalar:
    """Spark compares with the literal as a double. For a whole number and a float, the session's settings decide."""
    double = float(value)
    if not math.isfinite(double):
        raise operand.refuse(f"has a number that is no double: {value}")
    single = ctypes.c_float(double).value
    if operand.type == Primitive("float") and isinstance(value, int) and single != value:
        raise operand.refuse(f"holds the float {operand.name} against {value}, which is no float: write {value}.0")
    return pa.scalar(double, arrow_type(operand.type) if single == double else pa.float64())


def _check_digits(operand: Operand, values: Sequence[Value]) -> None:
    """Refuses numbers that Spark would round before it compares them: no single decimal type can hold them all."""
    numbers = [v for v in values if isinstance(v, int | Number) and not isinstance(v, bool)]
    sizes = [_digits(v) for v in numbers]
    if any(whole + scale > MOST_DIGITS for whole, scale in sizes):
        raise operand.refuse(f"has a number of more than {MOST_DIGITS} digits")
    match operand.type:
        case Decimal(precision=precision, scale=scale):
            sizes.append((precision - scale, scale))
        case Primitive(name) if name in _DIGITS:
            sizes.append((_DIGITS[name], 0))
        case _:
            return
    if max(whole for whole, _ in sizes) + max(scale for _, scale in sizes) > MOST_DIGITS:
        raise operand.refuse(
            f"holds {operand.name}, {operand.kind}, against a number that no decimal of {MOST_DIGITS} digits holds "
            "beside it, so that Spark would round: write it with fewer digits, or a whole number with .0"
        )


def _digits(value: int | Number) -> tuple[int, int]:
    """The numbers of digits before and after the point of the decimal type that Spark gives `value`."""
    if isinstance(value, int):
        return (10 if abs(value) < 1 << 31 else 20 if abs(value) < 1 << 63 else len(str(abs(value)))), 0
    _, digits, exponent = value.as_tuple()
    behind = -exponent if isinstance(exponent, int) else 0
    return max(len(digits) - behind, 0), behind


def _mismatch(operand: Operand, value: Value) -> Exception:
    wanted = _LITERALS.get(operand.kind.partition("(")[0])
    if wanted is None:
        return operand.refuse(
            f"compares {operand.name}, {operand.kind}: only IS NULL and IS NOT NULL can be asked of it"
        )
    return operand.refuse(f"holds {operand.name}, {operand.kind}, against {_kind(value)}: give {wanted}")


_WHOLE = "a number without an exponent"
_INSTANT = "TIMESTAMP'2024-01-31 12:00:00Z', with Z or an offset"
_LITERALS = {
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint", "decimal"), _WHOLE),
    **dict.fromkeys(("float", "double"), "a number"),
    "string": "a text in quotes",
    "boolean": "TRUE or FALSE",
    "date": "DATE'2024-01-31' or '2024-01-31'",
    "timestamp": _INSTANT,
    "timestamp_ntz": "TIMESTAMP_NTZ'2024-01-31 12:00:00', without a zone",
}


def _kind(value: Value) -> str:
    match value:
        case bool():
            return "a boolean"
        case float():
            return "a number with an exponent"
        case int() | Number():
            return "a number"
        case str():
            return "a text"
        case datetime(tzinfo=None):
            return "a timestamp without a zone"
        case datetime():
            return "a timestamp"
        case _:
            return "a date"
