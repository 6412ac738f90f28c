"""What the files of a Tantivy index have in common: marks at their end, parts by field, numbers of variable length.

    [body][JSON: versions, and the body's CRC-32][u32 its length][u32 magic]

The body of a composite file (`.term`, `.idx`, ...) has a part for each field, and at its end a list of where each part
begins. Other modules decode the bytes of a part.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from tablefeed.indextables.split.damage import DamagedSplitError, damage_by_name

_END = struct.Struct("<II")
_U32 = struct.Struct("<I")
_MAGIC = 1337


@dataclass(frozen=True, slots=True, kw_only=True)
class Marked:
    """A file's `body`, and the `version` in its marks: a JSON object that is kept as it is."""

    body: bytes
    version: Mapping[str, Any]  # Any: JSON


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """The bytes of one field in a composite file; `index` distinguishes several parts of one field."""

    field: int
    index: int
    data: bytes


def decode_marked(data: bytes) -> Marked:
    """The body of a file of Tantivy. Raises as `split_marks`, and DamagedSplitError where the checksum is wrong."""
    end, version, crc32 = split_marks(data)
    body = data[:end]
    if zlib.crc32(body) != crc32:
        raise DamagedSplitError("has a file that does not match its checksum")
    return Marked(body=body, version=version)


def split_marks(data: bytes) -> tuple[int, Mapping[str, Any], int]:  # Any: JSON
    """Where the marks at the end of a file begin in `data`, which are its last bytes; the version and checksum in them.

    Raises DamagedSplitError where the marks are missing.
    """
    if len(data) < _END.size:
        raise DamagedSplitError("has a file that is shorter than the marks at its end")
    length, magic = _END.unpack_from(data, len(data) - _END.size)
    end = len(data) - _END.size - length
    if magic != _MAGIC or end < 0:
        raise DamagedSplitError("has a file without the marks at its end")
    try:
        marks = orjson.loads(data[end : end + length])
    except orjson.JSONDecodeError as error:
        raise DamagedSplitError("has a file whose marks are not JSON") from error
    match marks:
        case {"version": dict(version), "crc": int(crc32)}:
            return end, version, crc32
    raise DamagedSplitError("has a file whose marks have no checksum")


def encode_marked(marked: Marked) -> bytes:
    """The bytes of the file, the same as Tantivy writes; `decode_marked` gives `marked` back."""
    marks = orjson.dumps({"version": dict(marked.version), "crc": zlib.crc32(marked.body)})
    return marked.body + marks + _END.pack(len(marks), _MAGIC)


def decode_parts(body: bytes) -> list[Part]:
    """The parts of a composite file's body, in order. Raises DamagedSplitError where the body is not valid."""
    with damage_by_name("a file of parts"):
        end = len(body) - _U32.size
        begin = end - _U32.unpack_from(body, end)[0]
        if begin < 0:
            raise DamagedSplitError("has a file of parts that is shorter than its own list of them")
        count, at = vint(body, begin)
        places: list[tuple[int, int, int]] = []
        offset = 0
        for _ in range(count):
            step, at = vint(body, at)
            (field,) = _U32.unpack_from(body, at)
            index, at = vint(body, at + _U32.size)
            offset += step
            places.append((field, index, offset))
        if at != end or offset > begin:
            raise DamagedSplitError("has a file of parts that are not where it says")
    ends = [*(offset for _, _, offset in places[1:]), begin][: len(places)]
    return [
        Part(field=field, index=index, data=body[offset:stop])
        for (field, index, offset), stop in zip(places, ends, strict=True)
    ]


def encode_parts(parts: Sequence[Part]) -> bytes:
    """The body of a composite file; `decode_parts` gives `parts` back."""
    places = [vint_bytes(len(parts))]
    step = 0
    for part in parts:
        places.append(vint_bytes(step) + _U32.pack(part.field) + vint_bytes(part.index))
        step = len(part.data)
    listed = b"".join(places)
    return b"".join([*(part.data for part in parts), listed, _U32.pack(len(listed))])


def vint(data: bytes | memoryview, position: int) -> tuple[int, int]:
    """The number at `position` and where it ends: seven bits a byte, the last byte has its top bit set.

    Raises IndexError where the bytes end before the number does, and DamagedSplitError for more than 64 bits.
    """
    byte = data[position]
    if byte >= 128:  # most are small
        return byte & 127, position + 1
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        if byte >= 128:
            return value | (byte & 127) << shift, position
        value |= byte << shift
        shift += 7
        if shift > 63:
            raise DamagedSplitError("has a number of more than 64 bits")


def vint_bytes(number: int) -> bytes:
    """The bytes of a number as `vint` reads them: seven bits a byte, the last byte has its top bit set."""
    if number < 128:  # most are small
        return bytes((number | 128,))
    out = bytearray()
    while number >= 128:
        out.append(number & 127)
        number >>= 7
    out.append(number | 128)
    return bytes(out)


def leb_bytes(number: int) -> bytes:
    """The bytes of a number: seven bits a byte, the last byte has its top bit clear."""
    out = bytearray()
    while number >= 128:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)
