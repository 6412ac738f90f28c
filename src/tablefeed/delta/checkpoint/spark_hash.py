"""Spark's hash of a path, which decides the part for a row of a multi-part checkpoint ("Multi-part checkpoint")."""

from __future__ import annotations

from tablefeed.model.murmur import SEED, murmur3


def part_of(path: str | None, part_count: int) -> int:
    """The 0-based part of a file action with `path`, or of an action without a path (None)."""
    hashed = SEED if path is None else murmur3(path.encode())
    return hashed % part_count  # for negative numbers Python's remainder equals Spark's pmod
