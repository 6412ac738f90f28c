"""Which incoming type may be stored in a column of which type: Spark's store assignment, as Delta-Spark's sink has it.

This is decided once from the schemas, before a row is read; casts.py converts the values. The allowed pairs are those
of Spark's implicit casts (`TypeCoercion.implicitCast`, which Delta-Spark uses under each policy): numbers and texts to
numbers, anything but nested values to texts, dates and timestamps to each other. The policy `strict` allows only the
pairs that lose nothing (`Cast.canUpCast`). `ansi` and `legacy` allow the same pairs and convert some values
differently.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import tzinfo
from enum import StrEnum

from tablefeed.model.schema import DataType, Decimal, Nested, Primitive


class Policy(StrEnum):
    """The values of Spark's `spark.sql.storeAssignmentPolicy`, in lower case."""

    ANSI = "ansi"
    STRICT = "strict"
    LEGACY = "legacy"
    """A value that does not fit is wrapped or becomes null, without an error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """The rules by which incoming values become a table's values. Small; sent to every task.

    `zone` is the zone in which texts, dates and timestamps without zone are read as instants; None where no column
    needs one.
    """

    policy: Policy = Policy.ANSI
    zone: tzinfo | None = None


DIGITS = {"byte": 3, "short": 5, "integer": 10, "long": 20}
"""Decimal digits of each integer type; a long has 20 in Spark's rules (`DecimalType.LongDecimal`)."""
_NUMBERS = ("byte", "short", "integer", "long", "float", "double")
_DAYS_AND_MOMENTS = ("date", "timestamp", "timestamp_ntz")
_NO_ATOMS = ("void", "variant")


def is_assignable(incoming: DataType, table: DataType, policy: Policy) -> bool:
    """Says whether values of one type that is not nested may be stored as another."""
    if isinstance(incoming, Nested) or isinstance(table, Nested):
        return False
    return incoming == table or (
        _casts(incoming, table) and (policy is not Policy.STRICT or _loses_nothing(incoming, table))
    )


def needs_zone(incoming: DataType, table: DataType) -> bool:
    """Says whether the cast needs a time zone: one of the types is timestamp and the other is not, nor void."""
    moment = Primitive("timestamp")
    return incoming != Primitive("void") and (incoming == moment) != (table == moment)


def _casts(incoming: DataType, table: DataType) -> bool:
    match incoming, table:
        case Primitive(name), _ if name in _NO_ATOMS:
            return False
        case _, Primitive("string"):
            return True
        case Primitive("string"), _:
            return table == Primitive("binary") or _is_number(table) or _is_day_or_moment(table)
        case _:
            return (_is_number(incoming) and _is_number(table)) or (
                _is_day_or_moment(incoming) and _is_day_or_moment(table)
            )


def _loses_nothing(incoming: DataType, table: DataType) -> bool:
    match incoming, table:
        case _, Primitive("string"):
            return True
        case Primitive(low), Decimal(precision, scale) if low in DIGITS:
            return precision - scale >= DIGITS[low]
        case Decimal(precision, scale), Decimal(wider, wider_scale):
            return wider - wider_scale >= precision - scale and wider_scale >= scale
        case Decimal(precision, scale), Primitive(high) if high in DIGITS:
            return scale == 0 and precision < DIGITS[high]
        case Primitive(low), Primitive(high) if low in _NUMBERS and high in _NUMBERS:
            return _NUMBERS.index(low) < _NUMBERS.index(high)
        case Primitive(name), _:
            return _is_day_or_moment(incoming) and table != Primitive("date") and name in _DAYS_AND_MOMENTS
        case _:
            return False


def _is_number(kind: DataType) -> bool:
    return isinstance(kind, Decimal) or (isinstance(kind, Primitive) and kind.name in _NUMBERS)


def _is_day_or_moment(kind: DataType) -> bool:
    return isinstance(kind, Primitive) and kind.name in _DAYS_AND_MOMENTS
