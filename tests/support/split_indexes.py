"""What the index of a split holds, read for comparisons: its terms and its cache. The layouts are those of sstable.py
and bundle.py in indextables/split, which only write them.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator

import pyarrow as pa

from tablefeed.indextables.split.bundle import CachedFile
from tablefeed.indextables.split.fst import Term, TermInfo, decode_fst
from tablefeed.indextables.split.tantivy_file import decode_marked, decode_parts, vint


def decode_terms(file: bytes) -> dict[int, list[Term]]:
    """The terms of a `.term` file by the number of their field, in either form of a dictionary."""
    decode = {1: lambda data: list(decode_fst(data)), 2: decode_sstable}
    parts = decode_parts(decode_marked(file).body)
    return {part.field: decode[int.from_bytes(part.data[-4:], "little")](part.data[:-4]) for part in parts}


def decode_sstable(data: bytes) -> list[Term]:
    """The terms of a dictionary that is a sorted table of strings."""
    _, index, count, version = struct.unpack("<QQQI", data[-28:])
    terms = [term for block in _blocks(data[:index]) for term in _terms(block)]
    assert (len(terms), version) == (count, 3)
    return terms


def _blocks(data: bytes) -> Iterator[bytes]:
    at = 0
    while length := int.from_bytes(data[at : at + 4], "little"):
        block = data[at + 5 : at + 4 + length]
        if data[at + 4]:
            with pa.input_stream(pa.BufferReader(block), compression="zstd") as stream:
                block = stream.read()
        yield block
        at += 4 + length
    assert at + 4 == len(data)


def _terms(block: bytes) -> Iterator[Term]:
    count, at = vint(block, 0)
    postings, at = vint(block, at)
    positions, at = vint(block, at)
    infos = []
    for _ in range(count):
        doc_count, at = vint(block, at)
        postings_bytes, at = vint(block, at)
        positions_bytes, at = vint(block, at)
        infos.append(TermInfo(doc_count, postings, postings_bytes, positions, positions_bytes))
        postings, positions = postings + postings_bytes, positions + positions_bytes
    term = b""
    for info in infos:
        kept, added, at = block[at] & 15, block[at] >> 4, at + 1
        if (kept, added) == (1, 0):
            kept, at = leb(block, at)
            added, at = leb(block, at)
        term = term[:kept] + block[at : at + added]
        at += added
        yield term, info
    assert at == len(block)


def files_of(split: bytes) -> dict[str, bytes]:
    """The files of a split's bundle, by their names."""
    end = len(split) - 8 - int.from_bytes(split[-4:], "little")
    length = int.from_bytes(split[end : end + 4], "little")
    places = json.loads(split[end - length + 8 : end])["files"]
    return {name: split[place["start"] : place["end"]] for name, place in places.items()}


def terms_of(split: bytes) -> dict[int, list[bytes]]:
    """The terms of a split of one segment, by the number of their field."""
    (file,) = (content for name, content in files_of(split).items() if name.endswith(".term"))
    return {field: [term for term, _ in terms] for field, terms in decode_terms(file).items()}


def hotcache_of(split: bytes) -> dict[str, CachedFile]:
    """The cached slices of each file, by its name."""
    data = split[-4 - int.from_bytes(split[-4:], "little") : -4]
    magic, version, length = struct.unpack("<III", data[:12])
    assert (magic, version) == (2557869106, 1)
    sizes, at = _pairs(data, 12)
    offsets, at = _pairs(data, at)
    assert at == 12 + length
    ends = [*list(offsets.values())[1:], len(data) - at][: len(offsets)]
    assert sizes.keys() == offsets.keys()
    return {
        name: _file(data[at + begin : at + end], sizes[name])
        for (name, begin), end in zip(offsets.items(), ends, strict=True)
    }


def _pairs(data: bytes, at: int) -> tuple[dict[str, int], int]:
    count, at = leb(data, at)
    pairs = {}
    for _ in range(count):
        length, at = leb(data, at)
        name = data[at : at + length].decode()
        pairs[name], at = leb(data, at + length)
    return pairs, at


def _file(data: bytes, size_bytes: int) -> CachedFile:
    begin = int.from_bytes(data[-8:], "little")
    size, at = leb(data, begin)
    count, at = leb(data, at)
    slices = []
    for _ in range(count):
        start, at = leb(data, at)
        stop, at = leb(data, at)
        address, at = leb(data, at)
        slices.append((start, data[address : address + stop - start]))
    assert (size, at) == (size_bytes, len(data) - 8)
    return CachedFile(size_bytes=size, slices=tuple(slices))


def leb(data: bytes, at: int) -> tuple[int, int]:
    """The number at `at` and where it ends: seven bits a byte, the last byte has its top bit clear."""
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 128:
            return value, at
