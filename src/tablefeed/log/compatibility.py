"""Whether rows of one schema can be read with another: the rule that stops or lets go on a running stream.

The rule is Delta-Spark's: each column of the data must be in the read schema under the same spelling, with the same
type all the way down, and the read schema must not promise non-null where the data does not. A void column holds
nothing but nulls, so any type reads it. Rows of older versions may also be of a type that has been widened since.
"""

from __future__ import annotations

from collections.abc import Callable

from tablefeed.model.schema import Array, DataType, Decimal, Map, Primitive, Struct


def can_read(read: Struct, data: Struct) -> bool:
    """Says whether rows written under `data` are all readable, unchanged, with `read`; more columns are fine."""
    return _can_read(read, data, lambda read_type, data_type: read_type == data_type)


def can_read_older(read: Struct, data: Struct) -> bool:
    """As `can_read`, where `data` is a schema that the table had before: a column may have been widened since."""
    return _can_read(read, data, lambda read_type, data_type: read_type == data_type or widens(data_type, read_type))


def widens(older: DataType, newer: DataType) -> bool:
    """Says whether `newer` is one of the wider types of `older` ("Type Widening")."""
    match older, newer:
        case Decimal(), Decimal():
            return newer.scale >= older.scale and newer.precision - newer.scale >= older.precision - older.scale
        case Primitive(name), Decimal(precision, scale) if name in _DIGITS:
            return precision - scale >= _DIGITS[name]
        case Primitive(name), Primitive(wider):
            return wider in _WIDER.get(name, ())
        case _:
            return False


_WIDER = {
    "byte": ("short", "integer", "long", "double"),
    "short": ("integer", "long", "double"),
    "integer": ("long", "double"),
    "float": ("double",),
    "date": ("timestamp_ntz",),
}
_DIGITS = {"byte": 10, "short": 10, "integer": 10, "long": 20}
"""Digits before the point that a decimal needs to be wider."""


_SameType = Callable[[DataType, DataType], bool]


def _can_read(read: Struct, data: Struct, same: _SameType) -> bool:
    by_folded_name = {f.name.lower(): f for f in read}
    for column in data:
        ours = by_folded_name.get(column.name.lower())
        if ours is None or ours.name != column.name or (column.nullable and not ours.nullable):
            return False
        if not _can_read_type(ours.type, column.type, same):
            return False
    return True


def _can_read_type(read: DataType, data: DataType, same: _SameType) -> bool:
    match read, data:
        case Struct(), Struct():
            return _can_read(read, data, same)
        case Array(), Array():
            nulls_fit = read.contains_null or not data.contains_null
            return nulls_fit and _can_read_type(read.element, data.element, same)
        case Map(), Map():
            nulls_fit = read.value_contains_null or not data.value_contains_null
            members_fit = _can_read_type(read.key, data.key, same) and _can_read_type(read.value, data.value, same)
            return nulls_fit and members_fit
        case _, Primitive("void"):
            return True
        case _:
            return same(read, data)
