"""What a read may take of the machine."""

from __future__ import annotations

import io
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa


@contextmanager
def at_most(size_bytes: int) -> Iterator[None]:
    """Asserts that the process never holds so much more than it does now. Without Linux's /proc nothing is checked."""
    if not _RESET.exists():
        yield
        return
    pa.default_memory_pool().release_unused()
    _RESET.write_text("5")
    before = _peak_bytes()
    yield
    more = _peak_bytes() - before
    assert more <= size_bytes, f"{more >> 20} MiB were held, and {size_bytes >> 20} MiB are allowed"


_RESET = Path("/proc/self/clear_refs")
"""proc(5): a "5" makes the high-water mark of the process begin anew."""


class OutOfMemory(io.BytesIO):
    """A file of which no more than the footer can be read."""

    def read(self, size: int | None = -1) -> bytes:
        if self.tell() < 100:
            raise MemoryError("malloc of size 300000000 failed")
        return super().read(size)


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
