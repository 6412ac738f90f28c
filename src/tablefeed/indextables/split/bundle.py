"""A split written: the files of an index one after the other, where each is, and what of them is to be cached.

The layout is split.py's, which reads it. IndexTables opens a split by what is cached alone, and reads the rest of a
file when it is asked for. As with its own writers that is what a doc store has behind its blocks, and of postings and
positions where each field's are; of terms all, since they are one block, and of the other files too.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass

import orjson

from tablefeed.indextables.split.doc_store import read_store
from tablefeed.indextables.split.hotcache import CachedFile, Slice, encode_hotcache
from tablefeed.indextables.split.split_file import LAYOUT_MAGIC, LAYOUT_VERSION
from tablefeed.indextables.split.tantivy_file import decode_marked, decode_parts

_LAYOUT = struct.Struct("<II")
_U32 = struct.Struct("<I")
_FIELDS_FILE = "split_fields"
"""Empty, and in every split: Quickwit's list of fields, which IndexTables does without."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """The bytes of a split: up to `footer_start` they are its files'."""

    data: bytes
    footer_start: int


def encode_bundle(files: Mapping[str, bytes]) -> Bundle:
    """The split of the files of an index, in their order; `split.read_split` finds its rows."""
    places, at = {}, 0
    for name, content in {**files, _FIELDS_FILE: b""}.items():
        places[name] = {"start": at, "end": at + len(content)}
        at += len(content)
    layout = _LAYOUT.pack(LAYOUT_MAGIC, LAYOUT_VERSION) + orjson.dumps({"files": places})
    cache = encode_hotcache({name: _cached(name, content) for name, content in files.items()})
    parts = [*files.values(), layout, _U32.pack(len(layout)), cache, _U32.pack(len(cache))]
    return Bundle(data=b"".join(parts), footer_start=at)


def _cached(name: str, content: bytes) -> CachedFile:
    return CachedFile(
        size_bytes=len(content),
        slices=tuple(Slice(start=start, data=content[start:stop]) for start, stop in _wanted(name, content)),
    )


_HEAD_BYTES = 8
"""Of a field's postings: how many terms they are of in all documents, which is read as soon as the field is."""


def _wanted(name: str, content: bytes) -> list[tuple[int, int]]:
    """From where to where a file is read as soon as the split is opened."""
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
