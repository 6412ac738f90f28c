"""A split written: the files of an index one after the other, where each is, and what of them is to be cached.

The layout is split.py's, which reads it. All of the small files is cached, since IndexTables opens a split by its cache
alone; of a doc store what comes behind its blocks, as its own writers have it.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass

import orjson

from tablefeed.indextables.doc_store import read_store
from tablefeed.indextables.hotcache import CachedFile, Slice, encode_hotcache
from tablefeed.indextables.split import LAYOUT_MAGIC, LAYOUT_VERSION

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
    start = 0
    if name.endswith(".store"):
        store = read_store(lambda offset, length: content[offset : offset + length], 0, len(content))
        start = store.bytes_before(store.block_count)
    return CachedFile(size_bytes=len(content), slices=(Slice(start=start, data=content[start:]),))
