"""What becomes of the live files that lose rows in one commit."""

from __future__ import annotations

from dataclasses import dataclass

from tablefeed.delta.stats.stats_text import num_records
from tablefeed.model.actions import AddFile, CdcFile


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewriting:
    """The files that lose rows, and what takes their place, besides the files with new rows.

    `removed` are all files that lose rows, as the log has them. Of these `marked` stay, with another deletion vector;
    `vectors` is the path of the file that holds the vectors, None where none is marked. `added` hold the rows that
    stay of other files, and from the rest no row stays. `changes` hold all deleted and inserted rows; it is empty where
    adds and removes imply the changes, and where the table records no changes. `deleted_rows` is the number of rows
    that are lost.
    """

    removed: tuple[AddFile, ...] = ()
    added: tuple[AddFile, ...] = ()
    marked: tuple[AddFile, ...] = ()
    vectors: str | None = None
    changes: tuple[CdcFile, ...] = ()
    deleted_rows: int = 0

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths of the files that were written."""
        vectors = () if self.vectors is None else (self.vectors,)
        return (*(add.path for add in self.added), *(file.path for file in self.changes), *vectors)

    @property
    def gone(self) -> list[AddFile]:
        """Those of `removed` that do not stay with another deletion vector."""
        marked = {add.path for add in self.marked}
        return [file for file in self.removed if file.path not in marked]

    @property
    def copied_rows(self) -> int:
        """The number of rows in `added`, by its statistics."""
        return sum(num_records(file.stats) or 0 for file in self.added)


def by_partition(add: AddFile) -> list[tuple[str, str]]:
    """A key to sort files by, so that those of one partition follow each other: few are written at a time."""
    return sorted((name, "" if text is None else f"={text}") for name, text in add.partition_values.items())
