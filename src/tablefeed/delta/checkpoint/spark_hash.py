"""Spark's hash of a text, by which the rows of a checkpoint in parts find their part ("Multi-part checkpoint")."""

from __future__ import annotations

from tablefeed.model.murmur import SEED, murmur3


def part_of(path: str | None, part_count: int) -> int:
    """The part, from 0, of a file action with `path`, or of an action that has none (None)."""
    hashed = SEED if path is None else murmur3(path.encode())
    return hashed % part_count  # of a negative number Python's remainder is what Spark's pmod is
