"""The containers of values: documents, objects and arrays, and how the values in each are stored.

A value begins with a head: its key, if it has one, and its type code. A shape reads the heads of many values at once,
decodes them, and gives the Arrow type in which the values with a key are wanted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from tablefeed.indextables.split.damage import DamagedSplitError
from tablefeed.indextables.split.gather import Places, expect_at_most
from tablefeed.indextables.split.nested import Code, elements, members
from tablefeed.indextables.split.tantivy_file import vint

Key = int | str
"""The key of a value: the number of a field, the name of a member, or one of the two constants below."""

ENTRY, NAME = 0, -1
"""ENTRY: an element of an array or a value of a map. NAME: the name (the map's key) of that value."""

WRAPPED = "_values"
"""One writer stores an array in an object under this name, the other under the column's name."""

JSON = pa.large_string()
"""Marks what is wanted as JSON text, in a string column: objects, arrays and all in them. No column has this type."""

_FEW = 64
"""Fewer values than this are read one by one: a step for all of them costs as much as some dozens of values."""


class Heads(NamedTuple):
    """The heads of many values, and where their bodies begin; `names` are the keys of map values that are wanted."""

    bodies: pa.Int64Array
    heads: pa.Array
    names: pa.BinaryArray | None = None


class Wanted(NamedTuple):
    """The name and type of a column to read from documents."""

    name: str
    kind: pa.DataType


class Shape(Protocol):
    """How the values of one kind of container are stored.

    `few`: with fewer containers than this, the rest is read one by one. `id_step`: 1 where each value has a place of
    its own, right after that of the value before it (elements, entries); 0 where its key identifies it.
    """

    few: int
    id_step: int

    def heads(self, places: Places, at: pa.Int64Array, limits: pa.Int64Array) -> Heads:
        """The heads at `at`. Raises DamagedSplitError where one goes beyond its limit in `limits`."""
        ...

    def parse(self, head: Any) -> tuple[Key, int]:  # Any: an element of `Heads.heads`
        """The key of a value with this head, and the number of its type code."""
        ...

    def child(self, key: Key, code: Code) -> pa.DataType | None:
        """The type in which the values with `key` are wanted; None: they are skipped."""
        ...

    def plain(self, data: bytes, at: int, count: int, levels: int) -> tuple[list[tuple[Key, object]], int]:
        """The `count` values at `at` as plain Python values with their keys, and where they end."""
        ...


def shape_of(code: Code, kind: pa.DataType | None) -> Shape | None:
    """The shape of an object or array that is wanted as `kind`, or skipped if that is None. None: it is read whole."""
    is_a = pa.types
    if kind == JSON:
        return Entries(JSON) if code is Code.OBJECT else Elements(JSON)
    if code is Code.ARRAY:
        return Elements(None if kind is None else kind.value_type) if kind is None or is_a.is_list(kind) else None
    if kind is not None and is_a.is_struct(kind):
        return Members({field.name: field.type for field in kind})
    if kind is None or is_a.is_map(kind):
        return Entries(None if kind is None else kind.item_type)
    return None


_HEAD_BYTES = 5  # 32 bits for the field, and the type code
_HEAD = pa.binary(_HEAD_BYTES)


@dataclass(frozen=True, slots=True)
class DocumentShape:
    """The shape of documents: values have the numbers of their fields as keys."""

    field_count: int
    wanted: Mapping[int, Wanted]
    few = 0
    id_step = 0

    def heads(self, places: Places, at: pa.Int64Array, limits: pa.Int64Array) -> Heads:  # noqa: D102 - see Shape
        bodies = pc.add(at, _HEAD_BYTES)
        expect_at_most(bodies, limits)
        return Heads(bodies, places.fixed(at, _HEAD))

    def parse(self, head: Any) -> tuple[Key, int]:  # noqa: D102
        code, field = head[-1], int.from_bytes(head[:-1], "little")
        if field >= self.field_count:
            raise DamagedSplitError(f"has a document with a value of field {field}, of {self.field_count}")
        return field, code

    def child(self, key: Key, code: Code) -> pa.DataType | None:  # noqa: D102
        column = self.wanted.get(int(key))
        if column is None:
            return None
        if code is Code.OBJECT and pa.types.is_list(column.kind):
            return pa.struct([(name, column.kind) for name in dict.fromkeys((WRAPPED, column.name))])
        return JSON if code in (Code.OBJECT, Code.ARRAY) and pa.types.is_string(column.kind) else column.kind

    def plain(self, data: bytes, at: int, count: int, levels: int) -> tuple[list[tuple[Key, object]], int]:  # noqa: D102
        raise AssertionError(data[at:], count, levels)  # `few` is 0, so documents are never read one by one


@dataclass(frozen=True, slots=True)
class Members:
    """The shape of objects that are structs: members have their names as keys."""

    wanted: Mapping[str, pa.DataType]
    few = _FEW
    id_step = 0

    def heads(self, places: Places, at: pa.Int64Array, limits: pa.Int64Array) -> Heads:  # noqa: D102 - see Shape
        _, names_end, bodies = _named(places, at, limits)
        return Heads(pc.add(names_end, 1), places.slices(at, bodies))

    def parse(self, head: Any) -> tuple[Key, int]:  # noqa: D102
        _, begin = vint(head, 1)
        return _text(head[begin:-1]), head[-1]

    def child(self, key: Key, code: Code) -> pa.DataType | None:  # noqa: ARG002, D102 - same for every code
        return self.wanted.get(str(key))

    def plain(self, data: bytes, at: int, count: int, levels: int) -> tuple[list[tuple[Key, object]], int]:  # noqa: D102
        found, end = members(data, at, count, levels)
        return [(name, value) for name, value in found if name in self.wanted], end


@dataclass(frozen=True, slots=True)
class Elements:
    """The shape of arrays."""

    wanted: pa.DataType | None
    few = _FEW
    id_step = 1

    def heads(self, places: Places, at: pa.Int64Array, limits: pa.Int64Array) -> Heads:  # noqa: D102 - see Shape
        bodies = pc.add(at, 1)
        expect_at_most(bodies, limits)
        return Heads(bodies, places.bytes(at))

    def parse(self, head: Any) -> tuple[Key, int]:  # noqa: D102
        return ENTRY, head

    def child(self, key: Key, code: Code) -> pa.DataType | None:  # noqa: ARG002, D102 - same for every code
        return self.wanted

    def plain(self, data: bytes, at: int, count: int, levels: int) -> tuple[list[tuple[Key, object]], int]:  # noqa: D102
        found, end = elements(data, at, count, levels)
        return [(ENTRY, element) for element in found], end


@dataclass(frozen=True, slots=True)
class Entries(Elements):
    """The shape of objects that are maps: entries may have any names."""

    def heads(self, places: Places, at: pa.Int64Array, limits: pa.Int64Array) -> Heads:  # noqa: D102 - see Shape
        names_begin, names_end, bodies = _named(places, at, limits)
        names = places.slices(names_begin, names_end) if self.wanted is not None else None
        return Heads(bodies, places.bytes(names_end), names)

    def plain(self, data: bytes, at: int, count: int, levels: int) -> tuple[list[tuple[Key, object]], int]:  # noqa: D102
        found, end = members(data, at, count, levels)
        return [pair for name, value in found for pair in ((NAME, name), (ENTRY, value))], end


def _named(
    places: Places, at: pa.Int64Array, limits: pa.Int64Array
) -> tuple[pa.Int64Array, pa.Int64Array, pa.Int64Array]:
    """Where the names of members begin and end, and where their bodies begin, after a type code of one byte."""
    expect_at_most(pc.add(at, 1), limits)
    if pc.any(pc.not_equal(places.bytes(at), int(Code.STR))).as_py():
        raise DamagedSplitError("has an object whose member has no name")
    lengths, begins = places.vints(pc.add(at, 1), limits)
    ends = pc.add(begins, lengths)
    bodies = pc.add(ends, 1)
    expect_at_most(bodies, limits)
    return begins, ends, bodies


def _text(name: bytes) -> str:
    try:
        return name.decode()
    except UnicodeDecodeError as error:
        raise DamagedSplitError("has a text that is not UTF-8") from error
