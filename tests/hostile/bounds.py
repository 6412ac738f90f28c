"""What a read may take of the machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa


@contextmanager
def at_most(size_bytes: int) -> Iterator[None]:
    """Asserts that the process never holds so much more than it does now. Without Linux's /proc nothing is told."""
    if not _RESET.exists():
        yield
        return
    pa.default_memory_pool().release_unused()
    _RESET.write_text("5")
    before = _peak_bytes()
    yield
    more = _peak_bytes() - before
    _RESET.write_text("5")
    assert more <= size_bytes, f"{more >> 20} MiB were held"


_STATUS, _RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")
"""proc(5): a "5" written to the second makes the high-water mark in the first begin anew."""


def _peak_bytes() -> int:
    lines = _STATUS.read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM:"))
