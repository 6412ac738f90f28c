"""Spark's 32-bit hash of bytes (`Murmur3Hash`), for the parts of checkpoints and for SQL's `hash`.

Unlike the published Murmur3, it mixes the last bytes, which fill no word, one by one and as signed bytes.
"""

from __future__ import annotations

import struct

SEED = 42
_WORD = 0xFFFFFFFF


def murmur3(data: bytes, seed: int = SEED) -> int:
    """The hash of `data` as a signed 32-bit integer. `seed` is one too, for example the hash of earlier data."""
    aligned = len(data) // 4 * 4
    state = seed & _WORD
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
