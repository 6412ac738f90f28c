"""Whether rows of one schema can be read with another. The rule decides if a running stream stops or continues.

The rule is Delta-Spark's: each column of the data must be in the read schema under the same spelling, with the same
type all the way down, and the read schema must not promise non-null where the data does not. A void column holds
nothing but nulls, so any type reads it. Rows of older versions may also be of a type that has been widened since.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator

from tablefeed.model.schema import Array, DataType, Decimal, Map, Primitive, Struct, describe, paired, widens


def can_read(read: Struct, data: Struct) -> bool:
    """Says whether rows written under `data` are all readable, unchanged, with `read`; more columns are fine."""
    return _can_read(read, data, operator.eq)


def can_read_older(read: Struct, data: Struct) -> bool:
    """As `can_read`, where `data` is a schema that the table had before: a column may have been widened since."""
    return _can_read(read, data, _same_or_widened)


def can_read_shared(read: Struct, data: Struct) -> bool:
    """As `can_read_older`, but only for the columns that both have: a column may have been dropped since."""
    return _can_read(read, data, _same_or_widened, shared=True)


def added_columns(read: Struct, data: Struct) -> tuple[str, ...] | None:
    """Gives the dotted paths of what `data` has and `read` lacks; None where they differ in any other way.

    All of these are nullable, and rows of `data` without them are rows of `read`. A new member in a map's key gives
    None: without it, two different keys could become equal.
    """
    found = list(_beside(read, data, ""))
    return None if None in found else tuple(path for path in found if path is not None)


def type_changes(older: Struct, newer: Struct) -> Iterator[str]:
    """Gives the columns, at every depth, that both have with different types, and both types."""
    for was, now in paired(older, newer, fold=str.lower):
        if was.type != now.type:
            yield f"{'.'.join(was.path)}: {_word(was.type)} to {_word(now.type)}"


def has_other_type(read: Struct, data: Struct) -> bool:
    """Says whether a column that both have, at any depth, has a type in `data` that `read` did not widen."""
    both = ((was.type, now.type) for was, now in paired(data, read, fold=str.lower))
    return any(was != Primitive("void") and not _same_or_widened(now, was) for was, now in both)


_SameType = Callable[[DataType, DataType], bool]


def _same_or_widened(read: DataType, data: DataType) -> bool:
    return read == data or widens(data, read)


def _beside(read: DataType, data: DataType, path: str) -> Iterator[str | None]:
    """The paths of what `data` has and `read` lacks, and None for each other difference that `read` cannot read."""
    match read, data:
        case Struct(), Struct():
            yield from _members_beside(read, data, path)
        case Array(), Array():
            if data.contains_null and not read.contains_null:
                yield None
            yield from _beside(read.element, data.element, f"{path}.element")
        case Map(), Map():
            if data.value_contains_null and not read.value_contains_null:
                yield None
            yield from (None for _ in _beside(read.key, data.key, path))
            yield from _beside(read.value, data.value, f"{path}.value")
        case _ if read != data:
            yield None


def _members_beside(read: Struct, data: Struct, path: str) -> Iterator[str | None]:
    ours = {f.name: f for f in read}
    if not ours.keys() <= set(data.names):
        yield None
    for field in data:
        inside = f"{path}.{field.name}" if path else field.name
        known = ours.get(field.name)
        if known is None:
            yield inside if field.nullable else None
            continue
        if field.nullable and not known.nullable:
            yield None
        yield from _beside(known.type, field.type, inside)


def _word(kind: DataType) -> str:
    return describe(kind) if isinstance(kind, Primitive | Decimal) else type(kind).__name__.lower()


def _can_read(read: Struct, data: Struct, same: _SameType, *, shared: bool = False) -> bool:
    by_folded_name = {f.name.lower(): f for f in read}
    for column in data:
        ours = by_folded_name.get(column.name.lower())
        if ours is None and shared:
            continue
        if ours is None or ours.name != column.name or (column.nullable and not ours.nullable):
            return False
        if not _can_read_type(ours.type, column.type, same, shared=shared):
            return False
    return True


def _can_read_type(read: DataType, data: DataType, same: _SameType, *, shared: bool) -> bool:
    match read, data:
        case Struct(), Struct():
            return _can_read(read, data, same, shared=shared)
        case Array(), Array():
            nulls_fit = read.contains_null or not data.contains_null
            return nulls_fit and _can_read_type(read.element, data.element, same, shared=shared)
        case Map(), Map():
            nulls_fit = read.value_contains_null or not data.value_contains_null
            keys_fit = _can_read_type(read.key, data.key, same, shared=shared)
            return nulls_fit and keys_fit and _can_read_type(read.value, data.value, same, shared=shared)
        case _, Primitive("void"):
            return True
        case _:
            return same(read, data)
