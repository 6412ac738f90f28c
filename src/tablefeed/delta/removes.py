"""Writes removes and adds of files as lines of a commit, from columns: an overwrite has one for each live file.

The lines mean the same as those of `codec.encode_commit`, but no Python object is built for a file. A commit that
removes nothing needs no pyarrow, so what makes the lines is imported with the first file (remove_lines.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tablefeed.delta.checkpoint.checksum_writer import FileCounts, no_files

if TYPE_CHECKING:
    import pyarrow as pa

    from tablefeed.delta.checkpoint.tally import Tally

_ROWS = 8192
"""Lines that are made at once: some megabytes, far below the two gigabytes that a text column can hold."""


class _Lines:
    """Counts files, and gives `keep` a line for each, in the order of the files and many at a time."""

    def __init__(self, keep: Callable[[memoryview], None]) -> None:
        self._keep = keep
        self._tally: Tally | None = None

    def take(self, files: pa.RecordBatch) -> None:
        """Adds `files` (`columns.FILE_COLUMNS`)."""
        if not files.num_rows:
            return
        from tablefeed.delta.checkpoint.tally import Tally

        self._tally = self._tally or Tally()
        self._tally.take(files)
        for begin in range(0, files.num_rows, _ROWS):
            self._keep(memoryview(self._made(files.slice(begin, _ROWS))))

    def _made(self, files: pa.RecordBatch) -> pa.Buffer:
        raise NotImplementedError

    @property
    def counts(self) -> FileCounts:
        """The counts of all files added so far."""
        return no_files() if self._tally is None else self._tally.result()


class Removal(_Lines):
    """Counts the live files that one commit removes, and writes the lines of their removes."""

    def __init__(self, keep: Callable[[memoryview], None], *, deletion_timestamp_ms: int) -> None:
        super().__init__(keep)
        self._deletion_timestamp_ms = deletion_timestamp_ms

    def _made(self, files: pa.RecordBatch) -> pa.Buffer:
        from tablefeed.delta.remove_lines import remove_lines

        return remove_lines(files, self._deletion_timestamp_ms)


class Addition(_Lines):
    """Counts files that one commit adds as they are, and writes the lines of their adds."""

    def _made(self, files: pa.RecordBatch) -> pa.Buffer:
        from tablefeed.delta.remove_lines import add_lines

        return add_lines(files)
