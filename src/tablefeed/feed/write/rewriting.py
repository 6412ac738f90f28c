"""What a rewrite of files with some matching rows did (row_replacement.py), for the commit that names the files."""

from __future__ import annotations

from dataclasses import dataclass

from tablefeed.delta.stats.stats_text import num_records
from tablefeed.model.actions import AddFile, CdcFile


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewriting:
    """The files that a rewrite removes and adds, besides the files with new rows.

    `removed` are all files with matching rows. `added` hold those of their rows that stay. `changes` hold all deleted
    and inserted rows; it is empty where no row stays, as adds and removes then imply the changes, and where the table
    records no changes. `deleted_rows` is the number of matching rows.
    """

    removed: tuple[AddFile, ...] = ()
    added: tuple[AddFile, ...] = ()
    changes: tuple[CdcFile, ...] = ()
    deleted_rows: int = 0

    @property
    def written(self) -> tuple[AddFile | CdcFile, ...]:
        """The files that were written."""
        return self.added + self.changes

    @property
    def copied_rows(self) -> int:
        """The number of rows in `added`, by its statistics."""
        return sum(num_records(file.stats) or 0 for file in self.added)
