"""Encodes a split's hotcache: one place with the slices of its files that Quickwit needs to open it.

    [u32 magic, u32 version, u32 length, postcard: each file's length, and where its slices begin][files' slices]
    a file's slices: [their bytes][postcard: the file's length, each slice's start, stop and address][u64 bytes' length]

(Quickwit's hot_directory.rs. Postcard writes a number with seven bits per byte, and a text after its length.)
A reader of rows does not need the cache. IndexTables opens a split by it, and never reads a file that is not in it.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tablefeed.indextables.split.tantivy_file import leb_bytes

_HEAD = struct.Struct("<III")
_U64 = struct.Struct("<Q")
_MAGIC, _VERSION = 2557869106, 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """Some bytes of a file, which begin at its byte `start`."""

    start: int
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedFile:
    """The size of a file, and its cached slices in ascending order."""

    size_bytes: int
    slices: Sequence[Slice]


def encode_hotcache(files: Mapping[str, CachedFile]) -> bytes:
    """The bytes of a cache, with the files in order. Raises ValueError for bad slices."""
    encoded, sizes, offsets, at = [], [leb_bytes(len(files))], [leb_bytes(len(files))], 0
    for name, file in files.items():
        sizes.append(_text(name) + leb_bytes(file.size_bytes))
        offsets.append(_text(name) + leb_bytes(at))
        encoded.append(_encoded(name, file))
        at += len(encoded[-1])
    listed = b"".join([*sizes, *offsets])
    return b"".join([_HEAD.pack(_MAGIC, _VERSION, len(listed)), listed, *encoded])


def _encoded(name: str, file: CachedFile) -> bytes:
    index = [leb_bytes(file.size_bytes), leb_bytes(len(file.slices))]
    address = stop = 0
    for each in file.slices:
        if each.start < stop or each.start + len(each.data) > file.size_bytes:
            raise ValueError(f"the slices of {name} are not in order within its {file.size_bytes} bytes")
        stop = each.start + len(each.data)
        index += (leb_bytes(each.start), leb_bytes(stop), leb_bytes(address))
        address += len(each.data)
    return b"".join([*(each.data for each in file.slices), *index, _U64.pack(address)])


def _text(text: str) -> bytes:
    encoded = text.encode()
    return leb_bytes(len(encoded)) + encoded
