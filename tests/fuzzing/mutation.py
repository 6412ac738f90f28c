"""Changes inputs at random: bytes as a disk or a network damages them, and tokens as another writer may write them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from random import Random

from hostile.junk import SPELLINGS

MOST_BYTES = 1 << 18
"""No input grows beyond this."""

_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|-?[0-9]+(?:\.[0-9]+)?|[A-Za-z_]+|[\[\]{}(),:=<>+*/-]')
_EDGES = (*(bits - 1 for bits in (1 << 7, 1 << 8, 1 << 15, 1 << 16, 1 << 31, 1 << 32, 1 << 63, 1 << 64)), 0, 1, 1 << 31)
_BRACKETS = ((b"[", b"]"), (b"(", b")"), (b'{"a":', b"}"), (b"NOT ", b""), (b"-", b""), (b"CAST(", b" AS INT)"))


def mutated(data: bytes, others: Sequence[bytes], random: Random) -> bytes:
    """`data` with one to four changes; some of them take parts of `others`."""
    for _ in range(random.choice((1, 1, 2, 4))):
        changed = random.choice((_tokens, _tokens, _bytes, _bytes, _numbers, _pieces))
        data = changed(data, random.choice(others), random)
    return data[:MOST_BYTES]


def _tokens(data: bytes, other: bytes, random: Random) -> bytes:
    """A token replaced, left out, said twice or wrapped many times."""
    found = _near(data, random)
    if found is None:
        return _bytes(data, other, random)
    begin, end = found
    token = data[begin:end]
    match random.randrange(5):
        case 0:
            new = random.choice(SPELLINGS)
        case 1:
            new = other[slice(*(_near(other, random) or (0, 8)))]
        case 2:
            new = b""
        case 3:
            new = token + random.choice((b"", b",", b" ", b":")) + token
        case _:
            opening, closing = random.choice(_BRACKETS)
            levels = random.choice((1, 2, 40, 500, 5000))
            new = opening * levels + token + closing * levels
    return data[:begin] + new + data[end:]


def _near(data: bytes, random: Random) -> tuple[int, int] | None:
    """Where a token is that follows a place chosen at random."""
    found = _TOKEN.search(data, random.randrange(len(data))) if data else None
    return None if found is None else found.span()


def _bytes(data: bytes, _other: bytes, random: Random) -> bytes:
    """A few bytes changed, put in or left out, or the end cut off."""
    at = random.randrange(len(data) + 1)
    few = random.choice((1, 1, 2, 4, 16, 64))
    junk = random.choice((random.randbytes(few), bytes(few), b"\xff" * few))
    match random.randrange(5):
        case 0:
            return data[:at] + junk + data[at + few :]
        case 1:
            return data[:at] + junk + data[at:]
        case 2:
            return data[:at] + data[at + few :]
        case 3:
            return data[:at]
        case _:
            flipped = bytes([data[at] ^ 1 << random.randrange(8)]) if at < len(data) else b""
            return data[:at] + flipped + data[at + 1 :]


def _numbers(data: bytes, _other: bytes, random: Random) -> bytes:
    """A binary number replaced by one at an edge, or moved by one."""
    width = random.choice((1, 2, 4, 8))
    at = random.randrange(max(1, len(data) - width))
    order = random.choice(("little", "big"))
    found = int.from_bytes(data[at : at + width], "little" if order == "little" else "big")
    number = random.choice((random.choice(_EDGES), found + 1, found - 1)) % (1 << 8 * width)
    return data[:at] + number.to_bytes(width, "little" if order == "little" else "big") + data[at + width :]


def _pieces(data: bytes, other: bytes, random: Random) -> bytes:
    """A piece of `other` put in, or a piece of `data` repeated."""
    source = random.choice((data, other))
    begin = random.randrange(len(source) + 1)
    piece = source[begin : begin + random.choice((1, 4, 16, 64, 256, 4096))] * random.choice((1, 1, 1, 2, 50))
    at = random.randrange(len(data) + 1)
    return data[:at] + piece + data[at:]
