"""Writes a term dictionary as a sorted table of strings, the form of Quickwit's Tantivy and of IndexTables.

    [blocks][u32 0][block index][u64 its length][u64 where it begins][u64 how many terms][u32 version]
    block:  [u32 length][u8 compressed?][infos of its terms][terms, each as its difference from the term before]

The layout is described in the README of tantivy-sstable. A written dictionary has one block and no index. A look-up
reads that block from its beginning, so it must not grow too large.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

from tablefeed.indextables.split.tantivy_file import leb_bytes, vint_bytes

_FOOTER = struct.Struct("<QQQI")
_U32 = struct.Struct("<I")
_VERSION = 3
_PLAIN = 0
"""Marks a block that is not compressed."""
_LONG = 1
"""The first byte of a long step, for 16 bytes or more. A short step adds a byte or more, so it never has this value."""
_MOST_BLOCK_BYTES = (1 << 32) - 2


class TermInfo(NamedTuple):
    """How many documents have a term, and where its bytes are in the `.idx` (postings) and `.pos` (positions) files."""

    doc_count: int
    postings_start: int
    postings_bytes: int
    positions_start: int
    positions_bytes: int


Term = tuple[bytes, TermInfo]


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


def _infos(terms: Sequence[Term]) -> bytes:
    first = terms[0][1]
    encoded = [vint_bytes(len(terms)), vint_bytes(first.postings_start), vint_bytes(first.positions_start)]
    postings, positions = first.postings_start, first.positions_start
    for term, info in terms:
        if (info.postings_start, info.positions_start) != (postings, positions):
            raise ValueError(f"the bytes of {term!r} do not begin where those of the term before end")
        postings, positions = postings + info.postings_bytes, positions + info.positions_bytes
        encoded += (vint_bytes(info.doc_count), vint_bytes(info.postings_bytes), vint_bytes(info.positions_bytes))
    return b"".join(encoded)


def _steps(terms: Sequence[Term]) -> bytes:
    steps = []
    before: bytes | None = None
    for term, _ in terms:
        if before is not None and before >= term:
            raise ValueError(f"{term!r} does not come after {before!r}")
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
