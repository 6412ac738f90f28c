"""Encodes and decodes a split's hotcache: one place with the slices of its files that Quickwit needs to open it.

    [u32 magic, u32 version, u32 length, postcard: each file's length, and where its slices begin][files' slices]
    a file's slices: [their bytes][postcard: the file's length, each slice's start, stop and address][u64 bytes' length]

(Quickwit's hot_directory.rs. Postcard writes a number with seven bits per byte, and a text after its length.)
A reader of rows does not need the cache. IndexTables opens a split by it, and never reads a file that is not in it.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tablefeed.indextables.split.damage import DamagedSplitError, UnsupportedSplitError
from tablefeed.indextables.split.tantivy_file import damage_by_name, leb, leb_bytes

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


def decode_hotcache(data: bytes) -> dict[str, CachedFile]:
    """The cached slices of each file, by its name.

    Raises DamagedSplitError where the bytes are no valid cache, UnsupportedSplitError for an unknown version.
    """
    with damage_by_name("a cache"):
        magic, version, length = _HEAD.unpack_from(data)
        if magic != _MAGIC:
            raise DamagedSplitError("has a cache without its mark")
        if version != _VERSION:
            raise UnsupportedSplitError(f"has a cache of version {version}", feature="hotcacheVersion")
        sizes, offsets = _listed(data[_HEAD.size : _HEAD.size + length])
        slices = data[_HEAD.size + length :]
        ends = [*(begin for _, begin in offsets[1:]), len(slices)][: len(offsets)]
        files = {
            name: _file(slices[begin:end], sizes.get(name)) for (name, begin), end in zip(offsets, ends, strict=True)
        }
    if files.keys() != sizes.keys():
        raise DamagedSplitError("has a cache that lists other files than it has")
    return files


def encode_hotcache(files: Mapping[str, CachedFile]) -> bytes:
    """The bytes of a cache, with the files in order; `decode_hotcache` inverts it. Raises ValueError for bad slices."""
    encoded, sizes, offsets, at = [], [leb_bytes(len(files))], [leb_bytes(len(files))], 0
    for name, file in files.items():
        sizes.append(_text(name) + leb_bytes(file.size_bytes))
        offsets.append(_text(name) + leb_bytes(at))
        encoded.append(_encoded(name, file))
        at += len(encoded[-1])
    listed = b"".join([*sizes, *offsets])
    return b"".join([_HEAD.pack(_MAGIC, _VERSION, len(listed)), listed, *encoded])


def _listed(data: bytes) -> tuple[dict[str, int], list[tuple[str, int]]]:
    """The length of each file, and where its slices begin among those of all files."""
    sizes, at = _pairs(data, 0)
    offsets, at = _pairs(data, at)
    if at != len(data) or any(before[1] > after[1] for before, after in pairwise(offsets)):
        raise DamagedSplitError("has a cache whose list of files is none")
    return dict(sizes), offsets


def _pairs(data: bytes, at: int) -> tuple[list[tuple[str, int]], int]:
    count, at = leb(data, at)
    pairs = []
    for _ in range(count):
        length, at = leb(data, at)
        name = data[at : at + length]
        number, at = leb(data, at + length)
        try:
            pairs.append((name.decode(), number))
        except UnicodeDecodeError as error:
            raise DamagedSplitError("has a cache with a name that is no UTF-8") from error
    return pairs, at


def _file(data: bytes, size_bytes: int | None) -> CachedFile:
    end = len(data) - _U64.size
    (length,) = _U64.unpack_from(data, end)
    index = data[length:end]
    told, at = leb(index, 0)
    count, at = leb(index, at)
    slices = []
    for _ in range(count):
        start, at = leb(index, at)
        stop, at = leb(index, at)
        address, at = leb(index, at)
        held = data[address : address + stop - start]
        if not start <= stop <= told or len(held) != stop - start or address + len(held) > length:
            raise DamagedSplitError("has a cache with a slice outside of its file")
        slices.append(Slice(start=start, data=held))
    if told != size_bytes or at != len(index):
        raise DamagedSplitError("has a cache that tells two lengths of a file")
    return CachedFile(size_bytes=told, slices=tuple(slices))


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
