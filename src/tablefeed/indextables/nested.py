"""Values inside values: the arrays and objects of a document, as plain Python values.

The type codes are Tantivy's (schema/document/se.rs there), and the same at every depth.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from ipaddress import IPv6Address
from typing import NamedTuple

from tablefeed.indextables.damage import DamagedSplitError, UnsupportedSplitError
from tablefeed.indextables.doc_store import vint

MOST_LEVELS = 100
"""How deep values are nested at the most: as deep as the types of a table's columns can be."""


class Code(IntEnum):
    """What a stored value is. Facets (3) and documents as JSON text (8), which no table has, are not among them."""

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
    """A moment, in the unit of its store: nanoseconds since 1970, or microseconds in stores of version 1."""

    units: int


def nested_value(data: bytes, position: int, code: Code) -> tuple[object, int]:
    """The value of `code` at `position` and where it ends: dict, list, str, int, float, bool, bytes, Instant or None.

    Raises DamagedSplitError where the bytes end before it or are none, UnsupportedSplitError for an unknown code.
    """
    try:
        return _value(data, position, code, MOST_LEVELS)
    except (IndexError, struct.error) as error:
        raise DamagedSplitError("has a document that ends within a value") from error
    except UnicodeDecodeError as error:
        raise DamagedSplitError("has a text that is no UTF-8") from error


def ip_text(address: bytes) -> str:
    """The text of a stored address: 16 bytes, the last first; one of IPv4 in its own words."""
    ip = IPv6Address(address[::-1])
    return str(ip.ipv4_mapped or ip)


def double_of(ordered: int) -> float:
    """The number that is stored as `ordered`, whose order as an unsigned one is the numbers' own."""
    bits = ordered ^ 1 << 63 if ordered >> 63 else ~ordered & (1 << 64) - 1
    (number,) = struct.unpack("<d", bits.to_bytes(8, "little"))
    return float(number)


_U64, _I64 = struct.Struct("<Q"), struct.Struct("<q")


def _value(data: bytes, at: int, code: int, levels: int) -> tuple[object, int]:
    match code:
        case Code.STR:
            text, at = _slice(data, at)
            return text.decode(), at
        case Code.I64:
            return _I64.unpack_from(data, at)[0], at + 8
        case Code.F64:
            return double_of(_U64.unpack_from(data, at)[0]), at + 8
        case Code.OBJECT:
            return _object(data, at, levels - 1)
        case Code.ARRAY:
            return _array(data, at, levels - 1)
        case Code.NULL:
            return None, at
        case Code.BOOL:
            return _bool(data[at]), at + 1
        case Code.U64:
            return _U64.unpack_from(data, at)[0], at + 8
        case Code.DATE:
            return Instant(_I64.unpack_from(data, at)[0]), at + 8
        case Code.BYTES:
            return _slice(data, at)
        case Code.IP:
            return ip_text(data[at : at + 16]) if len(data) >= at + 16 else _cut(), at + 16
    raise UnsupportedSplitError(f"has a value of type code {code}", feature=f"typeCode{code}")


def _object(data: bytes, at: int, levels: int) -> tuple[dict[str, object], int]:
    count, at = _count(data, at, levels)
    if count % 2:
        raise DamagedSplitError("has an object with a name and no value")
    members: dict[str, object] = {}
    for _ in range(count // 2):
        if data[at] != Code.STR:
            raise DamagedSplitError("has an object whose member has no name")
        name, at = _slice(data, at + 1)
        members[name.decode()], at = _value(data, at + 1, data[at], levels)
    return members, at


def _array(data: bytes, at: int, levels: int) -> tuple[list[object], int]:
    count, at = _count(data, at, levels)
    elements = []
    for _ in range(count):
        element, at = _value(data, at + 1, data[at], levels)
        elements.append(element)
    return elements, at


def _count(data: bytes, at: int, levels: int) -> tuple[int, int]:
    if not levels:
        raise UnsupportedSplitError(f"has values nested more than {MOST_LEVELS} deep", feature="nesting")
    return vint(data, at)


def _slice(data: bytes, at: int) -> tuple[bytes, int]:
    length, at = vint(data, at)
    if at + length > len(data):
        _cut()
    return data[at : at + length], at + length


def _bool(byte: int) -> bool:
    if byte > 1:
        raise DamagedSplitError(f"has a boolean of {byte}")
    return byte == 1


def _cut() -> str:
    raise DamagedSplitError("has a document that ends within a value")
