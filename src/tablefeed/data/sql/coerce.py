"""The common type of two types in Spark, under ANSI (AnsiTypeCoercion, DecimalPrecision, TypeCoercion)."""

from __future__ import annotations

from tablefeed.data.sql import kinds
from tablefeed.model.schema import DataType, Decimal

MOST_DIGITS = 38
_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}
_LEAST_SCALE = 6
"""Digits after the point that a result keeps where it has too many (DecimalType.MINIMUM_ADJUSTED_SCALE)."""


def decimal_of(kind: DataType, literal: object = None) -> Decimal | None:
    """The decimal type of a whole number beside a decimal in Spark: a literal has its own digits, else its type's."""
    if isinstance(kind, Decimal):
        return kind
    if kind not in kinds.INTEGRALS:
        return None
    return Decimal(len(str(abs(literal))) if isinstance(literal, int) else _DIGITS[kinds.spelt(kind)], 0)


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
    if left == right or right == kinds.VOID:
        return left
    if left == kinds.VOID:
        return right
    if kinds.is_numeric(left) and kinds.is_numeric(right):
        return _numeric(left, right)
    if kinds.STRING in (left, right):
        return _with_string(right if left == kinds.STRING else left)
    if left in kinds.TIMES and right in kinds.TIMES:
        return max(left, right, key=kinds.TIMES.index)
    return None


def _numeric(left: DataType, right: DataType) -> DataType | None:
    if isinstance(left, Decimal) or isinstance(right, Decimal):
        if left in kinds.FLOATING or right in kinds.FLOATING:
            return kinds.DOUBLE
        of_left, of_right = decimal_of(left), decimal_of(right)
        return wider_decimal(of_left, of_right) if of_left and of_right else None
    if left in kinds.INTEGRALS and right in kinds.INTEGRALS:
        return max(left, right, key=kinds.INTEGRALS.index)
    return kinds.FLOAT if left == right == kinds.FLOAT else kinds.DOUBLE


def _with_string(other: DataType) -> DataType | None:
    if other in kinds.INTEGRALS:
        return kinds.LONG
    if other in kinds.FLOATING or isinstance(other, Decimal):
        return kinds.DOUBLE
    return other if other in (kinds.BOOLEAN, kinds.BINARY, kinds.DATE, kinds.TIMESTAMP, kinds.NTZ) else None
