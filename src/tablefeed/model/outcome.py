"""What can come of a commit, as values: the caller must look."""

from __future__ import annotations

from dataclasses import dataclass

from tablefeed.model.actions import Version


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    """Our commit stands at `version`."""

    version: Version


@dataclass(frozen=True, slots=True, kw_only=True)
class Optimized:
    """Small files were folded into larger ones; the last commit of that stands at `version`, None where none was due.

    Sizes are in bytes. Counted is what the commits removed from the table and added to it; no row changed.
    """

    version: Version | None
    files_removed: int = 0
    files_added: int = 0
    bytes_removed: int = 0
    bytes_added: int = 0
    deletion_vectors_removed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AlreadyApplied:
    """The table already records this application at `recorded_txn_version` or above; nothing was written.

    `version` is the table's version at which that was seen.
    """

    version: Version
    recorded_txn_version: int
