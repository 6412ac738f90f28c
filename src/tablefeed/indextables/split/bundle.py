"""Encodes a split: the files of an index one after the other, where each is, and the slices that readers cache.

split_file.py documents the layout of the split. The layout of the cache, its hotcache, is that of Quickwit's
hot_directory.rs (postcard writes a number with seven bits per byte, and a text after its length):

    [u32 magic, u32 version, u32 length, postcard: each file's length, and where its slices begin][files' slices]
    a file's slices: [their bytes][postcard: the file's length, each slice's start, stop and address][u64 bytes' length]

IndexTables opens a split with the cached slices alone, reads other bytes when it needs them, and never reads a file
that is not in the cache. As in the splits of its own writers, the cache has all bytes of every file but three: of a doc
store what follows its blocks, of postings the head of each field's and the list of fields, of positions the list of
fields.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import orjson

from tablefeed.indextables.split.doc_store import read_store
from tablefeed.indextables.split.split_file import LAYOUT_MAGIC, LAYOUT_VERSION
from tablefeed.indextables.split.tantivy_file import decode_marked, decode_parts, leb_bytes

_LAYOUT = struct.Struct("<II")
_U32 = struct.Struct("<I")
_CACHE_HEAD = struct.Struct("<III")
_CACHE_MAGIC, _CACHE_VERSION = 2557869106, 1
_FIELDS_FILE = "split_fields"
"""Quickwit's list of fields. Every split has this file; it is empty because IndexTables does not use it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """The bytes of a split: the files come before `footer_start`, the footer after it."""

    data: bytes
    footer_start: int


def encode_bundle(files: Mapping[str, bytes]) -> Bundle:
    """The split with these files of an index, in their order; `split_file.read_split` finds its rows."""
    places, at = {}, 0
    for name, content in {**files, _FIELDS_FILE: b""}.items():
        places[name] = {"start": at, "end": at + len(content)}
        at += len(content)
    layout = _LAYOUT.pack(LAYOUT_MAGIC, LAYOUT_VERSION) + orjson.dumps({"files": places})
    cache = encode_hotcache({name: _cached(name, content) for name, content in files.items()})
    parts = [*files.values(), layout, _U32.pack(len(layout)), cache, _U32.pack(len(cache))]
    return Bundle(data=b"".join(parts), footer_start=at)


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedFile:
    """The size of a file, and its cached slices in ascending order: where each begins in the file, and its bytes."""

    size_bytes: int
    slices: Sequence[tuple[int, bytes]]


def encode_hotcache(files: Mapping[str, CachedFile]) -> bytes:
    """The bytes of a cache, with the files in order."""
    encoded, sizes, offsets, at = [], [leb_bytes(len(files))], [leb_bytes(len(files))], 0
    for name, file in files.items():
        sizes.append(_text(name) + leb_bytes(file.size_bytes))
        offsets.append(_text(name) + leb_bytes(at))
        encoded.append(_encoded(file))
        at += len(encoded[-1])
    listed = b"".join([*sizes, *offsets])
    return b"".join([_CACHE_HEAD.pack(_CACHE_MAGIC, _CACHE_VERSION, len(listed)), listed, *encoded])


def _encoded(file: CachedFile) -> bytes:
    index = [leb_bytes(file.size_bytes), leb_bytes(len(file.slices))]
    address = 0
    for start, data in file.slices:
        index += (leb_bytes(start), leb_bytes(start + len(data)), leb_bytes(address))
        address += len(data)
    return b"".join([*(data for _, data in file.slices), *index, struct.pack("<Q", address)])


def _text(text: str) -> bytes:
    encoded = text.encode()
    return leb_bytes(len(encoded)) + encoded


def _cached(name: str, content: bytes) -> CachedFile:
    slices = [(start, content[start:stop]) for start, stop in _wanted(name, content)]
    return CachedFile(size_bytes=len(content), slices=slices)


_HEAD_BYTES = 8
"""A field's postings begin with the number of terms in all documents, which is read as soon as the field is opened."""


def _wanted(name: str, content: bytes) -> list[tuple[int, int]]:
    """The byte ranges of a file to cache, each from its start to before its end."""
    end = len(content)
    if name.endswith(".store"):
        store = read_store(lambda offset, length: content[offset : offset + length], 0, end)
        return [(store.bytes_before(store.block_count), end)]
    if not name.endswith((".idx", ".pos")):
        return [(0, end)]
    heads, at = [], 0
    for part in decode_parts(decode_marked(content).body):
        if part.data and name.endswith(".idx"):
            heads.append((at, at + min(_HEAD_BYTES, len(part.data))))
        at += len(part.data)
    return [*heads, (at, end)]
