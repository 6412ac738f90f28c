"""Keeps the lines of a commit that has one for each file of a table, and gives the commit's bytes.

Many lines are kept in a temporary file, so memory does not grow with the table. Then the commit is put in pieces.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterator

from tablefeed.delta import codec
from tablefeed.errors import TABLE, CommitError
from tablefeed.model.actions import Commit
from tablefeed.store import Content

HELD_BYTES = 64 << 20
"""The most bytes of lines in memory: about 250,000 removes. An object store takes a commit of more lines in parts."""

_CODEC = "lz4"
"""As in sorted_files.py: compressing takes less time than writing the bytes would, and a temporary folder may be in
memory."""


class KeptLines:
    """Takes lines and gives them back, in their order and any number of times.

    The temporary file has no name, and is gone at the latest when the process ends. Raises CommitError where it cannot
    be written, and OSError where it cannot be read.
    """

    def __init__(self) -> None:
        self._held: list[memoryview] = []
        self._file = -1
        self._stored: list[tuple[int, int]] = []
        self.size_bytes = 0

    @property
    def on_disk(self) -> bool:
        """Whether there are more lines than memory should hold."""
        return self._file >= 0

    def keep(self, lines: memoryview) -> None:
        """Adds `lines`."""
        self.size_bytes += len(lines)
        self._held.append(lines)
        if self.on_disk or self.size_bytes > HELD_BYTES:
            self._spill()

    def __iter__(self) -> Iterator[bytes | memoryview]:
        """Gives the lines; those on disk as bytes."""
        yield from self._held
        offset = 0
        for stored_bytes, size_bytes in self._stored:
            yield _decompressed(os.pread(self._file, stored_bytes, offset), size_bytes)
            offset += stored_bytes

    def _spill(self) -> None:
        import tempfile

        import pyarrow as pa

        try:
            if not self.on_disk:
                file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - closed with this object
                weakref.finalize(self, file.close)
                self._file = file.fileno()
            for lines in self._held:
                data = left = memoryview(pa.compress(lines, codec=_CODEC, asbytes=True))
                while left:
                    left = left[os.write(self._file, left) :]
                self._stored.append((len(data), len(lines)))
        except OSError as error:
            raise CommitError(
                f"Nothing was committed to {TABLE}: the commit has too many lines for memory, and they could not be "
                f"written to a temporary file ({error.strerror}). Free space in {tempfile.gettempdir()}, or set TMPDIR "
                "to a folder with more.",
            ) from error
        self._held = []


class _Commit:
    """The bytes of a commit whose lines are on disk, in pieces; see `tablefeed.store.Pieces`."""

    def __init__(self, commit: Commit, lines: KeptLines) -> None:
        self._before, self._after = codec.encode_around(commit)
        self._lines = lines

    @property
    def size_bytes(self) -> int:
        return len(self._before) + self._lines.size_bytes + len(self._after)

    def __iter__(self) -> Iterator[bytes]:
        yield self._before
        yield from map(bytes, self._lines)
        if self._after:
            yield self._after


def content_of(commit: Commit, lines: KeptLines) -> Content:
    """Gives the bytes of `commit` with the `lines` of further files: in pieces where those are on disk."""
    return _Commit(commit, lines) if lines.on_disk else codec.encode_commit(commit, lines)


def _decompressed(data: bytes, size_bytes: int) -> bytes:
    import pyarrow as pa

    lines: bytes = pa.decompress(data, decompressed_size=size_bytes, codec=_CODEC, asbytes=True)
    return lines
