"""The common type of two types in Spark, under ANSI (AnsiTypeCoercion, DecimalPrecision, TypeCoercion)."""

from __future__ import annotations

from tablefeed.data.sql.terms import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    FLOATING,
    INTEGRALS,
    LONG,
    NTZ,
    STRING,
    TIMESTAMP,
    VOID,
    Term,
)
from tablefeed.model.schema import DataType, Decimal

MOST_DIGITS = 38
_DIGITS = {"byte": 3, "short": 5, "integer": 10, "long": 20}
_LEAST_SCALE = 6
"""Digits after the point that a result keeps where it has too many (DecimalType.MINIMUM_ADJUSTED_SCALE)."""


def is_numeric(kind: DataType) -> bool:
    """Whether `kind` is a numeric type."""
    return kind in INTEGRALS or kind in FLOATING or isinstance(kind, Decimal)


def decimal_of(term: Term) -> Decimal | None:
    """The decimal type of a whole number beside a decimal in Spark: a literal has its own digits, else its type's."""
    if isinstance(term.type, Decimal):
        return term.type
    if term.type not in INTEGRALS:
        return None
    if isinstance(term.literal, int):
        return Decimal(len(str(abs(term.literal))), 0)
    return Decimal(_DIGITS[getattr(term.type, "name", "")], 0)


def integral_decimal(kind: DataType) -> DataType:
    """The decimal that holds all values of an integer type; other types are given back as they are."""
    return Decimal(_DIGITS[getattr(kind, "name", "")], 0) if kind in INTEGRALS else kind


def wider_decimal(left: Decimal, right: Decimal) -> Decimal | None:
    """The decimal that holds both exactly, None where none does."""
    scale = max(left.scale, right.scale)
    digits = max(left.precision - left.scale, right.precision - right.scale) + scale
    return Decimal(digits, scale) if digits <= MOST_DIGITS else None


def bounded(precision: int, scale: int) -> Decimal:
    """A result's type, with fewer digits after the point where it has too many (DecimalType.adjustPrecisionScale)."""
    if precision <= MOST_DIGITS:
        return Decimal(precision, scale)
    whole = precision - scale
    return Decimal(MOST_DIGITS, max(MOST_DIGITS - whole, min(scale, _LEAST_SCALE)))


def common_type(left: DataType, right: DataType) -> DataType | None:
    """The type in which values of both are compared or returned; None where Spark has none, or none is exact."""
    if left == right or right == VOID:
        return left
    if left == VOID:
        return right
    if is_numeric(left) and is_numeric(right):
        return _numeric(left, right)
    if STRING in (left, right):
        return _with_string(right if left == STRING else left)
    times = (DATE, NTZ, TIMESTAMP)
    if left in times and right in times:
        return max(left, right, key=times.index)
    return None


def _numeric(left: DataType, right: DataType) -> DataType | None:
    if isinstance(left, Decimal) or isinstance(right, Decimal):
        if left in FLOATING or right in FLOATING:
            return DOUBLE
        left, right = integral_decimal(left), integral_decimal(right)
        assert isinstance(left, Decimal)  # noqa: S101  # for mypy
        assert isinstance(right, Decimal)  # noqa: S101  # for mypy
        return wider_decimal(left, right)
    if left in INTEGRALS and right in INTEGRALS:
        return max(left, right, key=INTEGRALS.index)
    return FLOAT if left == right == FLOAT else DOUBLE


def _with_string(other: DataType) -> DataType | None:
    if other in INTEGRALS:
        return LONG
    if other in FLOATING or isinstance(other, Decimal):
        return DOUBLE
    return other if other in (BOOLEAN, BINARY, DATE, TIMESTAMP, NTZ) else None
