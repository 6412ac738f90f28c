"""Whether rows of one schema can be read with another: the rule that stops or lets go on a running stream.

The rule is Delta-Spark's: each column of the data must be in the read schema under the same spelling, with the same
type all the way down, and the read schema must not promise non-null where the data does not. A void column holds
nothing but nulls, so any type reads it.
"""

from __future__ import annotations

from tablefeed.model.schema import Array, DataType, Map, Primitive, Struct


def can_read(read: Struct, data: Struct) -> bool:
    """Says whether rows written under `data` are all readable, unchanged, with `read`; more columns are fine."""
    by_folded_name = {f.name.lower(): f for f in read}
    for column in data:
        ours = by_folded_name.get(column.name.lower())
        if ours is None or ours.name != column.name or (column.nullable and not ours.nullable):
            return False
        if not _can_read_type(ours.type, column.type):
            return False
    return True


def _can_read_type(read: DataType, data: DataType) -> bool:
    match read, data:
        case Struct(), Struct():
            return can_read(read, data)
        case Array(), Array():
            nulls_fit = read.contains_null or not data.contains_null
            return nulls_fit and _can_read_type(read.element, data.element)
        case Map(), Map():
            nulls_fit = read.value_contains_null or not data.value_contains_null
            return nulls_fit and _can_read_type(read.key, data.key) and _can_read_type(read.value, data.value)
        case _, Primitive("void"):
            return True
        case _:
            return read == data
