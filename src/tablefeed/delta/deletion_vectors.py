"""Deletion vectors: where their bytes are, and how the bytes become the positions of deleted rows, and back.

PROTOCOL.md, "Deletion Vectors" and its "Deletion Vector Format". Bytes and values only: the caller reads the file.
"""

from __future__ import annotations

import struct
import uuid
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from pyroaring import BitMap64

from tablefeed.delta.paths import decode_path
from tablefeed.model.actions import DeletionVector


class BadVectorError(ValueError):
    """A deletion vector is not what the protocol says. Its text completes "the deletion vector ..."."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """The bytes of `path` from `start` up to `end` hold a vector. A relative path is relative to the table; decoded."""

    path: str
    start: int
    end: int


def stored_at(vector: DeletionVector) -> Stored | None:
    """Returns where the bytes of `vector` are; None where the log itself holds them. Raises BadVectorError."""
    match vector.storage_type:
        case "i":
            return None
        case "u":
            path = _relative_path(vector.path_or_inline)
        case "p":
            path = decode_path(vector.path_or_inline)
    start = vector.offset or 0
    if start < 0 or vector.size_bytes < 0:
        raise BadVectorError(f"has a negative size or offset in the log: {vector.size_bytes} bytes at offset {start}")
    return Stored(path=path, start=start, end=start + _SIZE.size + vector.size_bytes + _SIZE.size)


def decode_inline(vector: DeletionVector) -> BitMap64:
    """Returns the deleted positions of a vector that the log itself holds. Raises BadVectorError."""
    data = _z85(vector.path_or_inline)
    if not 0 <= vector.size_bytes <= len(data):
        raise BadVectorError(f"has {len(data)} bytes in the log instead of {vector.size_bytes}")
    return _positions(data[: vector.size_bytes], vector)


def decode_stored(block: bytes, vector: DeletionVector) -> BitMap64:
    """Returns the deleted positions in `block`, the bytes that `stored_at` names.

    Raises BadVectorError where the size, checksum, magic number or cardinality does not match.
    """
    if len(block) != _SIZE.size + vector.size_bytes + _SIZE.size:
        raise BadVectorError(f"is cut off: {len(block)} bytes are there of {vector.size_bytes} and their frame")
    (size_bytes,), (checksum,) = _SIZE.unpack_from(block), _SIZE.unpack_from(block, len(block) - _SIZE.size)
    data = block[_SIZE.size : -_SIZE.size]
    if size_bytes != vector.size_bytes:
        raise BadVectorError(f"is {size_bytes} bytes by its file, but {vector.size_bytes} bytes by the log")
    if zlib.crc32(data) != checksum:
        raise BadVectorError("does not match its checksum (CRC-32)")
    return _positions(data, vector)


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorFile:
    """A file to be written that holds vectors; `path` is relative to the table."""

    path: str
    data: bytes


def encode(
    vectors: Sequence[BitMap64], *, file_id: uuid.UUID, folder: str = ""
) -> tuple[list[DeletionVector], VectorFile]:
    """Gives what the log says of each of `vectors`, and the one file that holds them all, below `folder`.

    `file_id` names the file. No vector may be empty: a file without deleted rows has none. The log never holds a vector
    itself, however small: Delta-Spark's VACUUM fails on a table with such a vector (`scala.MatchError`).
    """
    data = bytearray([_FILE_VERSION])
    described = []
    for positions in vectors:
        block = _MAGIC.pack(_PORTABLE) + _portable(positions)
        described.append(
            DeletionVector(
                storage_type="u",
                path_or_inline=folder + _z85_text(file_id.bytes),
                offset=len(data),
                size_bytes=len(block),
                cardinality=len(positions),
            )
        )
        data += _SIZE.pack(len(block)) + block + _SIZE.pack(zlib.crc32(block))
    return described, VectorFile(path=_file_path(folder, file_id), data=bytes(data))


def _portable(positions: BitMap64) -> bytes:
    smallest = positions.copy()
    smallest.run_optimize()
    data: bytes = smallest.serialize()
    return data


_FILE_VERSION = 1  # "Deletion Vector File Storage Format"
_SIZE = struct.Struct(">I")  # "Deletion Vector File Storage Format": size and checksum are big-endian
_MAGIC = struct.Struct("<I")  # "Deletion Vector Format": all else is little-endian
_PORTABLE = 1681511377
_NATIVE = 1681511376
"""Delta-Spark's older format, which it still reads. The protocol's example of an inline vector has it in big-endian."""
_UUID_CHARACTERS = 20

_Z85 = {
    character: digit
    for digit, character in enumerate(
        "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
    )
}


_PADDING = "#"
_MOST_PADDING = 3


def _z85(text: str) -> bytes:
    """The bytes that `text` encodes, four for every five characters. Raises BadVectorError where `text` is not Z85.

    Some writers (delta-kernel-rs) encode one to three bytes at the end as two to four characters after a padding of
    `#`, with which no whole group can begin. Delta-Spark pads such bytes to four.
    """
    whole, last = text[:-5], text[-5:]
    padding = len(last) - len(last.lstrip(_PADDING))
    groups = [*(whole[i : i + 5] for i in range(0, len(whole), 5)), last[padding:]]
    if len(text) % 5 or padding > _MOST_PADDING:
        raise BadVectorError("is not a text in Base85 (Z85)")
    try:
        return b"".join(_number(group).to_bytes(len(group) - 1, "big") for group in groups if group)
    except (KeyError, OverflowError) as error:
        raise BadVectorError("is not a text in Base85 (Z85)") from error


def _number(group: str) -> int:
    return reduce(lambda number, character: number * len(_Z85) + _Z85[character], group, 0)


def _z85_text(data: bytes) -> str:
    """The text of `data`, whose length is a multiple of four."""
    characters = list(_Z85)
    numbers = [int.from_bytes(data[i : i + 4], "big") for i in range(0, len(data), 4)]
    return "".join(characters[number // 85**power % 85] for number in numbers for power in (4, 3, 2, 1, 0))


def _relative_path(text: str) -> str:
    """The path of storage type `u`: a prefix of any length, then a UUID that names the file."""
    prefix, code = text[:-_UUID_CHARACTERS], text[-_UUID_CHARACTERS:]
    data = _z85(code)
    if len(data) != 16:
        raise BadVectorError(f"has a path without a UUID: {text!r:.60}")
    return _file_path(prefix, uuid.UUID(bytes=data))


def _file_path(folder: str, file_id: uuid.UUID) -> str:
    name = f"deletion_vector_{file_id}.bin"
    return f"{folder}/{name}" if folder else name


def _positions(data: bytes, vector: DeletionVector) -> BitMap64:
    if len(data) < _MAGIC.size:
        raise BadVectorError(f"has {len(data)} bytes, too few for a magic number")
    (magic,) = _MAGIC.unpack_from(data)
    swapped = int.from_bytes(data[: _MAGIC.size], "big")
    if magic != _PORTABLE and _NATIVE not in (magic, swapped):
        raise BadVectorError(f"has the magic number {magic} instead of {_PORTABLE}")
    body = data[_MAGIC.size :]
    try:
        if magic != _PORTABLE:
            body = _as_portable(body, order="<" if magic == _NATIVE else ">")
        positions = BitMap64.deserialize(body)
    except (ValueError, IndexError, MemoryError, struct.error) as error:
        raise BadVectorError(f"is not a roaring bitmap: {error}") from error
    if len(positions) != vector.cardinality:
        raise BadVectorError(f"deletes {len(positions)} rows instead of {vector.cardinality}")
    return positions


def _as_portable(native: bytes, *, order: str) -> bytes:
    """The native format (a count, then sizes and bitmaps) as the portable one (a count, then keys and bitmaps)."""
    number = struct.Struct(f"{order}I")
    (count,) = number.unpack_from(native)
    at, parts = number.size, [struct.pack("<Q", count)]
    for key in range(count):
        (size,) = number.unpack_from(native, at)
        at += number.size
        if at + size > len(native):
            raise ValueError("it is cut off")
        parts += [struct.pack("<I", key), native[at : at + size]]
        at += size
    return b"".join(parts)
