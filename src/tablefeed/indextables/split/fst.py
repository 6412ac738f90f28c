"""Reads a term dictionary as a finite state transducer, the form of the published Tantivy. It is never written.

    [transducer: each term to its number][infos of the terms, by number][u64 their length][u32 version]

The nodes of the transducer are written from the last to the root. The address of a node is that of its last byte, and
it is read backwards from there. An edge has a byte and a part of the number. A node has one of three forms: one edge to
the node right before it, one edge to any node, or any number of edges. The layout is that of the crate tantivy-fst,
version 2, and of Tantivy's term_info_store.rs.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from itertools import pairwise, zip_longest
from typing import NamedTuple

from tablefeed.indextables.split.damage import DamagedSplitError, UnsupportedSplitError, damage_by_name

_FOOTER = struct.Struct("<QI")
_VERSION = 1
_HEAD = struct.Struct("<QQ")
_TAIL = struct.Struct("<QQ")
_FST_VERSION = 2
_NO_EDGES = 0
"""The address of the node without edges, where a term ends. No bytes are stored for it."""

_BY_FREQUENCY = (
    b"te/oasripcnw.hlm-du012g=:bf3y5&_4v9678k%?xCDASFIBEjPTzRNM+LOqHGWUV,YKJZXQ;)(~[]$!'*@"  # the rest in their order
)
_COMMON = bytes((*_BY_FREQUENCY, *(byte for byte in range(256) if byte not in _BY_FREQUENCY)))
"""An edge has its byte as an index + 1 in this list, in six bits; 0 means that the byte itself follows."""

_MANY = 32
"""A node with more edges than this also has an index of 256 bytes."""

_MOST_NODES = 1024
"""How many decoded nodes are kept. Large nodes, such as those of the last byte of a number, are met again and again."""

_Edge = tuple[int, int, int]
"""The edge's byte, what it adds to the number, and the address of the node that it leads to."""
_Node = tuple[int | None, Sequence[_Edge]]
"""What is added to the number of a term that ends at the node, None where none ends; its edges, sorted by byte."""


class TermInfo(NamedTuple):
    """How many documents have a term, and where its bytes are in the `.idx` (postings) and `.pos` (positions) files."""

    doc_count: int
    postings_start: int
    postings_bytes: int
    positions_start: int
    positions_bytes: int


Term = tuple[bytes, TermInfo]


def decode_fst(data: bytes) -> Iterator[Term]:
    """Yields the terms of a dictionary, sorted by their bytes. Memory does not depend on the number of terms.

    Raises DamagedSplitError where the bytes are no valid dictionary, UnsupportedSplitError for an unknown version.
    """
    with damage_by_name("a term dictionary"):
        infos_bytes, version = _FOOTER.unpack_from(data, len(data) - _FOOTER.size)
        if version != _VERSION:
            raise UnsupportedSplitError(f"has a term dictionary of version {version}", feature="termDictionaryVersion")
        begin = len(data) - _FOOTER.size - infos_bytes
        if begin < _HEAD.size + _TAIL.size:
            raise DamagedSplitError("has a term dictionary whose infos are longer than itself")
        for term, info in zip_longest(_keys(data[:begin]), _infos(data[begin : begin + infos_bytes])):
            if term is None or info is None:
                raise DamagedSplitError("has a term dictionary whose number of terms is not that of its infos")
            yield term, info


def _keys(data: bytes) -> Iterator[bytes]:
    """The terms in order. Their numbers must be 0, 1, 2 and so on."""
    version, _ = _HEAD.unpack_from(data)
    if version != _FST_VERSION:
        raise UnsupportedSplitError(f"has a transducer of version {version}", feature="termDictionaryVersion")
    count, root = _TAIL.unpack_from(data, len(data) - _TAIL.size)
    if root >= len(data) - _TAIL.size:
        raise DamagedSplitError("has a term dictionary with a node outside of it")
    nodes: dict[int, _Node] = {}
    found = 0
    waiting = [(_inside(root), b"", 0)]
    while waiting:
        at, number, tail = _along(data, *waiting.pop())
        node = nodes.get(at)
        if node is None:
            if len(nodes) == _MOST_NODES:
                nodes.clear()
            node = nodes[at] = (0, ()) if at == _NO_EDGES else _many_edges(data, at)
        ends, edges = node
        if ends is not None:
            if number + ends != found or found == count:
                raise DamagedSplitError("has a term dictionary whose terms are not numbered in order")
            found += 1
            yield tail
        for byte, adds, to in reversed(edges):
            waiting.append((_inside(to), tail + bytes((byte,)), number + adds))
    if found != count:
        raise DamagedSplitError(f"has a term dictionary of {found} terms that says it has {count}")


def _along(data: bytes, at: int, term: bytes, number: int) -> tuple[int, int, bytes]:
    """Follows nodes of one edge, which are the most frequent, to the next other node: its address, number and term."""
    passed = bytearray()
    while at and (head := data[at]) >= 128:
        common = head & 63
        if head >= 192 and common:
            passed.append(_COMMON[common - 1])
            at -= 1
        else:
            byte, adds, to = _one_edge(data, at)
            passed.append(byte)
            at, number = _inside(to), number + adds
    return at, number, term + passed


def _inside(at: int) -> int:
    # The format can only express edges to nodes at lower addresses, so damaged bytes cannot cause an endless loop.
    if at < _HEAD.size and at != _NO_EDGES:
        raise DamagedSplitError("has a term dictionary with a node outside of it")
    return at


def _one_edge(data: bytes, at: int) -> _Edge:
    head = data[at]
    common = head & 63
    if common:
        byte = _COMMON[common - 1]
    else:
        at -= 1
        byte = data[at]
    if head >= 192:
        return byte, 0, at - 1
    at -= 1
    address_bytes, number_bytes = data[at] >> 4, data[at] & 15
    at -= address_bytes
    delta = _number(data, at, address_bytes)
    at -= number_bytes
    return byte, _number(data, at, number_bytes), at - delta if delta else _NO_EDGES


def _many_edges(data: bytes, at: int) -> _Node:
    head = data[at]
    is_end, count = head & 64, head & 63
    if not count:
        at -= 1
        count = data[at]
        if count == 1:  # a node of one edge has another form, so 1 means 256 here, which does not fit the byte
            count = 256
    at -= 1
    address_bytes, number_bytes = data[at] >> 4, data[at] & 15
    if count > _MANY:
        at -= 256
    inputs = at - count
    addresses = inputs - count * address_bytes
    numbers = addresses - count * number_bytes
    begin = numbers - (number_bytes if is_end else 0)
    if begin < _HEAD.size:
        raise DamagedSplitError("has a term dictionary with a node that begins before it")
    edges = []
    for i in range(1, count + 1):
        delta = _number(data, inputs - i * address_bytes, address_bytes)
        number = _number(data, addresses - i * number_bytes, number_bytes)
        edges.append((data[at - i], number, begin - delta if delta else _NO_EDGES))
    if any(one[0] >= next_[0] for one, next_ in pairwise(edges)):
        raise DamagedSplitError("has a term dictionary whose terms are not in order")
    return (_number(data, begin, number_bytes) if is_end else None), edges


def _number(data: bytes, at: int, length: int) -> int:
    return int.from_bytes(data[at : at + length], "little")


# --- the infos of the terms ------------------------------------------------------------------------------------------

_BLOCK_TERMS = 256
_BLOCK = struct.Struct("<QIQIQIBBB")
"""Where the block's bits begin; the info of its first term; and how many bits the numbers of the other infos have."""


def _infos(data: bytes) -> Iterator[TermInfo]:
    blocks_bytes, count = _HEAD.unpack_from(data)
    bits = data[_HEAD.size + blocks_bytes :]
    if blocks_bytes < -(-count // _BLOCK_TERMS) * _BLOCK.size:
        raise DamagedSplitError("has a term dictionary with infos of fewer terms than it claims")
    for begin in range(0, count, _BLOCK_TERMS):
        at = _HEAD.size + begin // _BLOCK_TERMS * _BLOCK.size
        yield from _block_infos(data, at, bits, min(_BLOCK_TERMS, count - begin))


def _block_infos(data: bytes, at: int, bits: bytes, count: int) -> Iterator[TermInfo]:
    offset, docs, postings, postings_bytes, positions, positions_bytes, *widths = _BLOCK.unpack_from(data, at)
    yield TermInfo(docs, postings, postings_bytes, positions, positions_bytes)
    docs_bits, postings_bits, positions_bits = widths
    step = docs_bits + postings_bits + positions_bits
    packed = bits[offset : offset + (step * count + 7) // 8]
    if len(packed) * 8 < step * (count - 1) + postings_bits + positions_bits:
        raise DamagedSplitError("has a term dictionary whose infos are cut")
    whole = int.from_bytes(packed, "little")

    def field(shift: int, width: int) -> int:
        return whole >> shift & (1 << width) - 1

    for i in range(count - 1):
        here, after = i * step, (i + 1) * step
        postings_start, positions_start = field(here, postings_bits), field(here + postings_bits, positions_bits)
        yield TermInfo(
            field(here + postings_bits + positions_bits, docs_bits),
            postings + postings_start,
            field(after, postings_bits) - postings_start,
            positions + positions_start,
            field(after + postings_bits, positions_bits) - positions_start,
        )
