"""What a read of a table will open, for people who ask before they read."""

from __future__ import annotations

from dataclasses import dataclass

from tablefeed.model.notebook import InNotebooks


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPlan(InNotebooks):
    """A read with `filter` opens `files` of the table's `files_of_table`, of `bytes` in all.

    They have at most `rows` rows, None where the statistics do not say. Where `filter` is None, all files are opened.
    """

    filter: str | None
    files: int
    files_of_table: int
    bytes: int
    rows: int | None
