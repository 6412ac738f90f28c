"""Spark's hash of a text, by which the rows of a checkpoint in parts find their part ("Multi-part checkpoint").

Murmur3 in 32 bits with the seed 42, as Spark's `Murmur3Hash` has it: the last bytes that fill no word are mixed one by
one, as signed bytes, which the published algorithm does not do.
"""

from __future__ import annotations

import struct

_SEED = 42
_WORD = 0xFFFFFFFF


def part_of(path: str | None, part_count: int) -> int:
    """The part, from 0, of a file action with `path`, or of an action that has none (None)."""
    hashed = _SEED if path is None else murmur3(path.encode())
    return hashed % part_count  # of a negative number Python's remainder is what Spark's pmod is


def murmur3(data: bytes, seed: int = _SEED) -> int:
    """The hash of `data` as a signed 32-bit integer."""
    aligned = len(data) // 4 * 4
    state = seed
    for (word,) in struct.iter_unpack("<I", data[:aligned]):
        state = _mixed(state, word)
    for (byte,) in struct.iter_unpack("<b", data[aligned:]):
        state = _mixed(state, byte & _WORD)
    state ^= len(data)
    state = ((state ^ state >> 16) * 0x85EBCA6B) & _WORD
    state = ((state ^ state >> 13) * 0xC2B2AE35) & _WORD
    state ^= state >> 16
    return state - (1 << 32) if state >> 31 else state


def _mixed(state: int, word: int) -> int:
    word = (word * 0xCC9E2D51) & _WORD
    word = (word << 15 | word >> 17) & _WORD
    state ^= (word * 0x1B873593) & _WORD
    state = (state << 13 | state >> 19) & _WORD
    return (state * 5 + 0xE6546B64) & _WORD
