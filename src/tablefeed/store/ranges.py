"""Ranges of an object's bytes: how they are asked for, what an answer has of them, and a file that is read by them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fsspec.spec import AbstractBufferedFile


def range_header(start: int, end: int | None) -> dict[str, str]:
    """Gives the header of a request for the bytes from `start` up to, not including, `end`; none for a whole object."""
    return {"Range": f"bytes={start}-{'' if end is None else end - 1}"} if start or end is not None else {}


def part_of(data: bytes, content_range: str | None, start: int, end: int | None) -> bytes:
    """Gives the bytes from `start` up to `end`, where they were asked for, out of an answer with `data`.

    A server may answer with the whole object, which has no header. Raises OSError for another part.
    """
    if content_range is None:
        return data[start:end]
    total = int(content_range.rpartition("/")[2])
    if (
        not content_range.startswith(f"bytes {start}-")
        or len(data) != min(total, total if end is None else end) - start
    ):
        raise OSError(f"the server answered with another part of the object: {content_range}")
    return data


def total_bytes(content_range: str | None, data: bytes) -> int:
    """Gives an object's size from the header of an answer with the part `data`; without one, `data` is all of it."""
    return len(data) if content_range is None else int(content_range.rpartition("/")[2])


class Ranges(AbstractBufferedFile):  # type: ignore[misc]  # fsspec publishes no types
    """An object as a file that reads ahead, by requests for ranges of a known size; its `first` bytes are read."""

    def __init__(
        self, read: Callable[[int, int], bytes], *, filesystem: Any, path: str, first: bytes, size_bytes: int
    ) -> None:
        self._read, self._first = read, first
        ahead = getattr(filesystem, "default_block_size", "default")  # an option of some clients
        super().__init__(filesystem, path, size=size_bytes, block_size=ahead)

    def _fetch_range(self, start: int, end: int) -> bytes:
        known = self._first[start:end]
        start += len(known)
        return known + self._read(start, end) if start < end else known
