"""Builds Arrow expressions that compare a column with values as Spark's SQL does.

Arrow and Spark cast differently, so Arrow never has to cast: a value is first converted to the column's own type. Where
the type has no such value (`id < 5.5` for whole numbers), its two neighbours in the type are used instead. A comparison
is refused where Spark would use a lossy cast, or where the result depends on the session's zone or settings.

One difference in order remains: in Spark NaN equals itself and is greater than all numbers. No value here is NaN, so
this matters only for `>` and `>=`.
"""

from __future__ import annotations

import ctypes
import math
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal as Number
from fractions import Fraction
from operator import or_
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from tablefeed.delta.schema.schema_string import arrow_type
from tablefeed.model.schema import DataType, Decimal, Primitive

Comparison = Literal["=", "<>", "<", "<=", ">", ">=", "<=>"]

Value = int | Number | float | str | bool | date | datetime
"""A literal: int for digits alone, Decimal with a point, float with an exponent. A datetime may have a zone."""

_BITS = {"byte": 8, "short": 16, "integer": 32, "long": 64}
_DIGITS = {"byte": 3, "short": 5, "integer": 10, "long": 20}
"""The precision of the decimal to which Spark casts a whole number to compare it with decimals."""

MOST_DIGITS = 38
_LARGEST_LONG = (1 << 63) - 1
_ANY: Mapping[str, Value] = {"string": "", "boolean": False}
"""Some value of each of these types. For all other types Arrow can convert 0."""

_FLOATING = (Primitive("float"), Primitive("double"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Operand:
    """A column, or a member of a struct: `path` are the names from the top. `refuse` makes the error for a reason."""

    path: tuple[str, ...]
    type: DataType
    refuse: Callable[[str], Exception]

    @property
    def expression(self) -> pc.Expression:
        """The column as an Arrow expression."""
        return pc.field(*self.path)

    @property
    def name(self) -> str:
        """The name in error messages."""
        return ".".join(self.path)

    @property
    def kind(self) -> str:
        """The type as SQL names it."""
        match self.type:
            case Primitive(name=name):
                return {"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint"}.get(name, name)
            case Decimal(precision=precision, scale=scale):
                return f"decimal({precision},{scale})"
            case _:
                return type(self.type).__name__.lower()


def compared(operand: Operand, comparison: Comparison, value: Value) -> pc.Expression:
    """Gives the expression `operand comparison value`. It is null where the column is null; `<=>` is false there."""
    if operand.type == Primitive("boolean") and comparison not in ("=", "<>", "<=>"):
        raise operand.refuse(f"cannot order the boolean {operand.name}: use = or <>")
    _check_digits(operand, [value])
    column = operand.expression
    below, above = _neighbours(operand, value)
    match comparison:
        case "=":
            return column == below if below is above else _never(operand)
        case "<=>":
            return column.is_valid() & (column == below if below is above else _never(operand))
        case "<>":
            return column != below if below is above else ~_never(operand)
        case "<" if below is above:
            return column < below
        case "<" | "<=":
            return _never(operand) if below is None else column <= below
        case ">" if below is above:
            return _or_nan(operand, column > above)
        case _:
            return _never(operand) if above is None else _or_nan(operand, column >= above)


def among(operand: Operand, values: Sequence[Value]) -> pc.Expression:
    """Gives the expression that is true where `operand` is one of `values`, and null where the column is null."""
    _check_digits(operand, values)
    column = operand.expression
    pairs = [_neighbours(operand, value) for value in values]
    exact: list[pa.Scalar] = [below for below, above in pairs if below is not None and below is above]
    if operand.type in _FLOATING:  # Arrow's isin compares bits, so -0.0 would not equal 0.0
        return joined([_never(operand), *(column == value for value in exact)], or_)
    return column.isin(pa.array([value.as_py() for value in exact], type=arrow_type(operand.type))) | _never(operand)


def joined(parts: Sequence[pc.Expression], join: Callable[[Any, Any], Any]) -> pc.Expression:
    """Gives `parts` joined as a balanced tree: a long list joined one after the other overflows Arrow's stack."""
    while len(parts) > 1:
        pairs = zip(parts[::2], parts[1::2], strict=False)
        parts = [*(join(one, other) for one, other in pairs), *parts[len(parts) & ~1 :]]
    return parts[0]


def _or_nan(operand: Operand, found: pc.Expression) -> pc.Expression:
    return found | pc.is_nan(operand.expression) if operand.type in _FLOATING else found


def _never(operand: Operand) -> pc.Expression:
    """An expression that is false for every value, and null for null."""
    some = pa.scalar(_ANY.get(operand.kind, 0), arrow_type(operand.type))
    return (operand.expression == some) & (operand.expression != some)


def _neighbours(operand: Operand, value: Value) -> tuple[pa.Scalar | None, pa.Scalar | None]:
    """The largest value of the column's type that is not above `value`, and the smallest that is not below it.

    They are one object where the type has `value` itself. Each is None where the type has no such value.
    """
    match operand.type, value:
        case (Primitive("string"), str()) | (Primitive("boolean"), bool()):
            pass
        case _, bool():
            raise _mismatch(operand, value)
        case Primitive(name), int() | Number() if name in _BITS:
            if math.ceil(value) > _LARGEST_LONG or math.floor(value) < -_LARGEST_LONG - 1:
                # Spark's DecimalPrecision makes this a constant, so that NOT (id > value) is true even for null.
                raise operand.refuse(f"holds {operand.name}, {operand.kind}, against {value}, which no bigint reaches")
            most = 1 << (_BITS[name] - 1)
            return _of_scale(operand.type, Fraction(value), scale=0, least=-most, most=most - 1)
        case Decimal(precision=precision, scale=scale), int() | Number():
            most = 10**precision - 1
            return _of_scale(operand.type, Fraction(value), scale=scale, least=-most, most=most)
        case Primitive("float" | "double"), int() | Number() | float():
            return _floating(operand, value)
        case (Primitive("timestamp"), datetime(tzinfo=zone)) if zone is not None:
            pass
        case (Primitive("timestamp_ntz"), datetime(tzinfo=None)):
            pass
        case Primitive("date"), date() if not isinstance(value, datetime):
            pass
        case _:
            raise _mismatch(operand, value)
    scalar = pa.scalar(value, arrow_type(operand.type))
    return scalar, scalar


def _of_scale(
    kind: DataType, value: Fraction, *, scale: int, least: int, most: int
) -> tuple[pa.Scalar | None, pa.Scalar | None]:
    scaled = value * 10**scale
    below, above = math.floor(scaled), math.ceil(scaled)

    def scalar(units: int) -> pa.Scalar:
        return pa.scalar(Number(f"{units}E-{scale}") if scale else units, arrow_type(kind))

    if below == above and least <= below <= most:
        exact = scalar(below)
        return exact, exact
    return (scalar(min(below, most)) if below >= least else None), (
        scalar(max(above, least)) if above <= most else None
    )


def _floating(operand: Operand, value: int | Number | float) -> tuple[pa.Scalar, pa.Scalar]:
    """Spark compares with the literal as a double. For a whole number and a float, the session's settings decide."""
    double = float(value)
    if not math.isfinite(double):
        raise operand.refuse(f"has a number that is no double: {value}")
    if operand.type == Primitive("double"):
        exact = pa.scalar(double, pa.float64())
        return exact, exact
    single = ctypes.c_float(double).value
    if isinstance(value, int) and single != value:
        raise operand.refuse(f"holds the float {operand.name} against {value}, which is no float: write {value}.0")
    nearest = pa.scalar(single, pa.float32())
    if single == double:
        return nearest, nearest
    beyond = pa.scalar(_next_single(single, up=single < double), pa.float32())
    return (nearest, beyond) if single < double else (beyond, nearest)


def _next_single(value: float, *, up: bool) -> float:
    (bits,) = struct.unpack("<i", struct.pack("<f", value))
    place = (bits if bits >= 0 else -(bits & 0x7FFFFFFF)) + (1 if up else -1)
    (found,) = struct.unpack("<f", struct.pack("<I", place if place >= 0 else -place | 0x80000000))
    return float(found)


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
    "date": "DATE'2024-01-31'",
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
