"""Reads and writes a term dictionary as a sorted table of strings, the form of Quickwit's Tantivy and of IndexTables.

    [blocks][u32 0][block index][u64 its length][u64 where it begins][u64 how many terms][u32 version]
    block:  [u32 length][u8 compressed?][infos of its terms][terms, each as its difference from the term before]

The layout is described in the README of tantivy-sstable. Blocks are read in order, without the block index. A written
dictionary has one block and no index. A look-up reads that block from its beginning, so it must not grow too large.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import pyarrow as pa

from tablefeed.indextables.split.damage import DamagedSplitError, UnsupportedSplitError
from tablefeed.indextables.split.doc_store import vint
from tablefeed.indextables.split.tantivy_file import damage_by_name, leb, leb_bytes, vint_bytes

_FOOTER = struct.Struct("<QQQI")
_U32 = struct.Struct("<I")
_VERSION = 3
_PLAIN, _ZSTD = 0, 1
_LONG = 1
"""The first byte of a long step, for 16 bytes or more. A short step adds a byte or more, so it never has this value."""
_MOST_BLOCK_BYTES = (1 << 32) - 2
_MOST_ZSTD_RATIO = 1 << 12
"""A block of terms has some kilobytes. One that unpacks to more than this factor is damaged."""


class TermInfo(NamedTuple):
    """How many documents have a term, and where its bytes are in the `.idx` (postings) and `.pos` (positions) files."""

    doc_count: int
    postings_start: int
    postings_bytes: int
    positions_start: int
    positions_bytes: int


Term = tuple[bytes, TermInfo]


def decode_sstable(data: bytes) -> list[Term]:
    """The terms of a dictionary, sorted by their bytes.

    Raises DamagedSplitError where the bytes are no valid dictionary, UnsupportedSplitError for an unknown version.
    """
    if len(data) < _FOOTER.size:
        raise DamagedSplitError("has a term dictionary of fewer bytes than its footer")
    _, index, count, version = _FOOTER.unpack_from(data, len(data) - _FOOTER.size)
    if version != _VERSION:
        raise UnsupportedSplitError(f"has a term dictionary of version {version}", feature="termDictionaryVersion")
    if index > len(data) - _FOOTER.size:
        raise DamagedSplitError("has a term dictionary whose index begins behind its end")
    with damage_by_name("a term dictionary"):
        terms = [term for block in _blocks(data[:index]) for term in _terms(block)]
    if len(terms) != count:
        raise DamagedSplitError(f"has a term dictionary of {len(terms)} terms that claims {count}")
    if any(before[0] >= after[0] for before, after in pairwise(terms)):
        raise DamagedSplitError("has a term dictionary whose terms are not in order")
    return terms


def encode_sstable(terms: Sequence[Term]) -> bytes:
    """The bytes of a dictionary of `terms`, as one uncompressed block.

    Raises ValueError where `terms` are not sorted, where the bytes of a term in `.idx` and `.pos` do not begin where
    those of the term before end, or where the block would be too large for its format.
    """
    body = b""
    if terms:
        block = _infos(terms) + _steps(terms)
        if len(block) > _MOST_BLOCK_BYTES:
            raise ValueError(f"{len(terms)} terms of {len(block)} bytes are too many for one block")
        body = _U32.pack(len(block) + 1) + bytes((_PLAIN,)) + block
    body += _U32.pack(0)
    return body + _FOOTER.pack(0, len(body), len(terms), _VERSION)


def _blocks(data: bytes) -> Iterator[bytes]:
    at = 0
    while length := _U32.unpack_from(data, at)[0]:
        at += _U32.size
        block = data[at + 1 : at + length]
        if len(block) != length - 1:
            raise DamagedSplitError("has a term dictionary that ends within a block")
        yield _inflated(block) if data[at] == _ZSTD else block
        at += length
    if at + _U32.size != len(data):
        raise DamagedSplitError("has a term dictionary with bytes behind its last block")


def _inflated(block: bytes) -> bytes:
    # The unpacked length is unknown, so the frame is read as a stream, and no further than a valid block can go.
    most = _MOST_ZSTD_RATIO * len(block)
    try:
        with pa.input_stream(pa.BufferReader(block), compression="zstd") as stream:
            raw: bytes = stream.read(most + 1)
    except (pa.ArrowException, OSError) as error:
        raise DamagedSplitError("has a block of terms that cannot be decompressed") from error
    if len(raw) > most:
        raise DamagedSplitError("has a block of terms that claims too many bytes")
    return raw


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
        kept, added, at = _step(block, at)
        if kept > len(term) or at + added > len(block):
            raise DamagedSplitError("has a term dictionary that ends within a term")
        term = term[:kept] + block[at : at + added]
        at += added
        yield term, info
    if at != len(block):
        raise DamagedSplitError("has a block of terms with bytes behind its last")


def _step(block: bytes, at: int) -> tuple[int, int, int]:
    if block[at] != _LONG:
        return block[at] & 15, block[at] >> 4, at + 1
    kept, at = leb(block, at + 1)
    added, at = leb(block, at)
    return kept, added, at


def _infos(terms: Sequence[Term]) -> bytes:
    first = terms[0][1]
    told = [vint_bytes(len(terms)), vint_bytes(first.postings_start), vint_bytes(first.positions_start)]
    postings, positions = first.postings_start, first.positions_start
    for term, info in terms:
        if (info.postings_start, info.positions_start) != (postings, positions):
            raise ValueError(f"what is told of {term!r} does not follow what is told of the term before")
        postings, positions = postings + info.postings_bytes, positions + info.positions_bytes
        told += (vint_bytes(info.doc_count), vint_bytes(info.postings_bytes), vint_bytes(info.positions_bytes))
    return b"".join(told)


def _steps(terms: Sequence[Term]) -> bytes:
    steps = []
    before: bytes | None = None
    for term, _ in terms:
        if before is not None and before >= term:
            raise ValueError(f"{term!r} does not come behind {before!r}")
        kept = 0 if before is None else _shared(before, term)
        added = len(term) - kept
        steps.append(bytes((kept | added << 4,)) if kept < 16 and added < 16 else _long_step(kept, added))
        steps.append(term[kept:])
        before = term
    return b"".join(steps)


def _shared(one: bytes, other: bytes) -> int:
    """The length of the common prefix."""
    for i, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right:
            return i
    return min(len(one), len(other))


def _long_step(kept: int, added: int) -> bytes:
    return bytes((_LONG,)) + leb_bytes(kept) + leb_bytes(added)
