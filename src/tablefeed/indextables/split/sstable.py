"""Converts the `.term` file of a segment, which has a dictionary of terms for each field, to the form of IndexTables.

The published Tantivy writes a dictionary as a transducer (fst.py). IndexTables, like Quickwit's Tantivy, can open only
a sorted table of strings:

    [blocks][u32 0][block index][u64 its length][u64 where it begins][u64 how many terms][u32 version]
    block:  [u32 length][u8 compressed?][infos of its terms][terms, each as its difference from the term before]

The layout is described in the README of tantivy-sstable. A written dictionary has one block and no index. A look-up
reads that block from its beginning, so it must not grow too large.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import replace

from tablefeed.indextables.split.damage import UnsupportedSplitError
from tablefeed.indextables.split.fst import Term, decode_fst
from tablefeed.indextables.split.tantivy_file import (
    Marked,
    decode_marked,
    decode_parts,
    encode_marked,
    encode_parts,
    leb_bytes,
    vint_bytes,
)

_FOOTER = struct.Struct("<QQQI")
_U32 = struct.Struct("<I")
_VERSION = 3
_PLAIN = 0
"""Marks a block that is not compressed."""
_LONG = 1
"""The first byte of a long step, for 16 bytes or more. A short step adds a byte or more, so it never has this value."""
_MOST_BLOCK_BYTES = (1 << 32) - 2
_KIND_BYTES = 4
_FST, _SSTABLE = 1, 2


def as_sstables(file: bytes) -> bytes:
    """A `.term` file with the same terms, version and fields, with each dictionary as a sorted table of strings.

    Raises DamagedSplitError where the file is not valid, UnsupportedSplitError for an unknown form or version, and
    ValueError as `encode_sstable`, which writes only one block.
    """
    marked = decode_marked(file)
    parts = [replace(part, data=_as_sstable(part.data)) for part in decode_parts(marked.body)]
    return encode_marked(Marked(body=encode_parts(parts), version=marked.version))


def _as_sstable(part: bytes) -> bytes:
    kind = int.from_bytes(part[-_KIND_BYTES:], "little")
    if kind == _SSTABLE:
        return part
    if kind == _FST:
        return encode_sstable(decode_fst(part[:-_KIND_BYTES])) + _SSTABLE.to_bytes(_KIND_BYTES, "little")
    raise UnsupportedSplitError(f"has a term dictionary of kind {kind}", feature="termDictionaryKind")


def encode_sstable(terms: Iterable[Term]) -> bytes:
    """The bytes of a dictionary of `terms`, which are sorted, as one uncompressed block.

    Raises ValueError where the bytes of a term in `.idx` and `.pos` do not begin where those of the term before end,
    or where the block would be too large for its format.
    """
    head, infos, steps = b"", bytearray(), bytearray()
    count = postings = positions = 0
    before = b""
    for term, info in terms:
        if not count:
            postings, positions = info.postings_start, info.positions_start
            head = vint_bytes(postings) + vint_bytes(positions)
        elif (info.postings_start, info.positions_start) != (postings, positions):
            raise ValueError(f"the bytes of {term!r:.80} do not begin where those of the term before end")
        postings, positions = postings + info.postings_bytes, positions + info.positions_bytes
        infos += vint_bytes(info.doc_count) + vint_bytes(info.postings_bytes) + vint_bytes(info.positions_bytes)
        steps += _step(before, term)
        before = term
        count += 1
    body = b""
    if count:
        block = b"".join((vint_bytes(count), head, infos, steps))
        if len(block) > _MOST_BLOCK_BYTES:
            raise ValueError(f"{count} terms of {len(block)} bytes are too many for one block")
        body = _U32.pack(len(block) + 1) + bytes((_PLAIN,)) + block
    body += _U32.pack(0)
    return body + _FOOTER.pack(0, len(body), count, _VERSION)


def _step(before: bytes, term: bytes) -> bytes:
    both = enumerate(zip(before, term, strict=False))
    kept = next((i for i, (left, right) in both if left != right), min(len(before), len(term)))
    added = len(term) - kept
    is_short = kept < 16 and added < 16
    lengths = bytes((kept | added << 4,)) if is_short else bytes((_LONG,)) + leb_bytes(kept) + leb_bytes(added)
    return lengths + term[kept:]
