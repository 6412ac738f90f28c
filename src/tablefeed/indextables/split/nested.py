"""Decodes the arrays and objects of a document, and the values inside them, to plain Python values.

The type codes are Tantivy's (see its schema/document/se.rs), and are the same at every depth. A value is a dict, list,
str, int, float, bool, bytes, Instant or None. All functions raise DamagedSplitError, or an error that `damage_by_name`
turns into one, where the bytes end within a value or are no valid one, and UnsupportedSplitError for an unknown code
and for values nested more than `levels` deep.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from enum import IntEnum
from ipaddress import IPv6Address
from typing import NamedTuple

from tablefeed.indextables.split.damage import DamagedSplitError, UnsupportedSplitError
from tablefeed.indextables.split.tantivy_file import vint

MOST_LEVELS = 100
"""How deep values may be nested: as deep as the types of a table's columns can be."""


class Code(IntEnum):
    """The type code of a stored value. Facets (3) and documents as JSON text (8) are missing: no table has them."""

    STR = 0
    U64 = 1
    I64 = 2
    BYTES = 4
    DATE = 5
    F64 = 6
    BOOL = 9
    IP = 10
    NULL = 11
    ARRAY = 12
    OBJECT = 13


class Instant(NamedTuple):
    """A moment in the store's unit: nanoseconds since 1970, or microseconds in stores of version 1."""

    units: int


def value_at(data: bytes, at: int, code: int, levels: int) -> tuple[object, int]:
    """The value of `code` at `at`, and where it ends."""
    read = _READ.get(code)
    if read is None:
        raise UnsupportedSplitError(f"has a value of type code {code}", feature=f"typeCode{code}")
    return read(data, at, levels)


def members(data: bytes, at: int, count: int, levels: int) -> tuple[list[tuple[str, object]], int]:
    """The `count` members of an object from `at` on, and where they end."""
    found = []
    for _ in range(count):
        if data[at]:  # the code of a text is 0
            raise DamagedSplitError("has an object whose member has no name")
        name, at = _slice(data, at + 1)
        value, at = value_at(data, at + 1, data[at], levels)
        found.append((name.decode(), value))
    return found, at


def elements(data: bytes, at: int, count: int, levels: int) -> tuple[list[object], int]:
    """The `count` elements of an array from `at` on, and where they end."""
    found = []
    for _ in range(count):
        element, at = value_at(data, at + 1, data[at], levels)
        found.append(element)
    return found, at


def ip_text(address: bytes) -> str:
    """The text of a stored IP address: 16 bytes in reverse order; an IPv4 address is written as IPv4."""
    ip = IPv6Address(address[::-1])
    return str(ip.ipv4_mapped or ip)


_CUT = "has a document that is cut"
_U64, _I64 = struct.Struct("<Q"), struct.Struct("<q")


_Read = Callable[[bytes, int, int], tuple[object, int]]
"""Takes the bytes, a position and how many levels may still follow; gives the value there and where it ends."""


def _str(data: bytes, at: int, _: int) -> tuple[object, int]:
    text, at = _slice(data, at)
    return text.decode(), at


def _number(layout: struct.Struct) -> _Read:
    return lambda data, at, _: (layout.unpack_from(data, at)[0], at + 8)


def _f64(data: bytes, at: int, _: int) -> tuple[object, int]:
    (ordered,) = _U64.unpack_from(data, at)  # unsigned integers that sort as their numbers do
    bits = ordered ^ 1 << 63 if ordered >> 63 else ~ordered & (1 << 64) - 1
    return struct.unpack("<d", bits.to_bytes(8, "little"))[0], at + 8


def _date(data: bytes, at: int, _: int) -> tuple[object, int]:
    return Instant(_I64.unpack_from(data, at)[0]), at + 8


def _bool(data: bytes, at: int, _: int) -> tuple[object, int]:
    if data[at] > 1:
        raise DamagedSplitError(f"has a boolean of {data[at]}")
    return data[at] == 1, at + 1


def _ip(data: bytes, at: int, _: int) -> tuple[object, int]:
    address = data[at : at + 16]
    if len(address) < 16:
        raise DamagedSplitError(_CUT)
    return ip_text(address), at + 16


def _object(data: bytes, at: int, levels: int) -> tuple[dict[str, object], int]:
    count, at = _count(data, at, levels)
    if count % 2:
        raise DamagedSplitError("has an object with a name and no value")
    found, at = members(data, at, count // 2, levels - 1)
    return dict(found), at


def _array(data: bytes, at: int, levels: int) -> tuple[list[object], int]:
    count, at = _count(data, at, levels)
    return elements(data, at, count, levels - 1)


def _count(data: bytes, at: int, levels: int) -> tuple[int, int]:
    if levels <= 1:
        raise UnsupportedSplitError(f"has values nested more than {MOST_LEVELS} deep", feature="nesting")
    return vint(data, at)


def _slice(data: bytes, at: int) -> tuple[bytes, int]:
    length, at = vint(data, at)
    end = at + length
    if end > len(data):
        raise DamagedSplitError(_CUT)
    return data[at:end], end


_READ: Mapping[int, _Read] = {
    Code.STR: _str,
    Code.U64: _number(_U64),
    Code.I64: _number(_I64),
    Code.BYTES: lambda data, at, _: _slice(data, at),
    Code.DATE: _date,
    Code.F64: _f64,
    Code.BOOL: _bool,
    Code.IP: _ip,
    Code.NULL: lambda _, at, __: (None, at),
    Code.ARRAY: _array,
    Code.OBJECT: _object,
}
