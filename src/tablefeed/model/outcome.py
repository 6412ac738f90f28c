"""The possible outcomes of a commit, as values that the caller must check."""

from __future__ import annotations

from dataclasses import dataclass

from tablefeed.model.actions import Version
from tablefeed.model.notebook import InNotebooks


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed(InNotebooks):
    """We committed `version`. Not `written`: there was nothing to commit, and `version` is the table's newest."""

    version: Version
    written: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Optimized(InNotebooks):
    """Small files were rewritten into larger ones. The last commit was `version`, None where nothing was to do.

    The counts are of what the commits removed from the table and added to it; no row changed.
    """

    version: Version | None
    files_removed: int = 0
    files_added: int = 0
    bytes_removed: int = 0
    bytes_added: int = 0
    deletion_vectors_removed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Replicated(InNotebooks):
    """The target's `version` has the rows of the source's `source_version`.

    The run made `commits` commits for that, none where nothing was new, and copied `files` files.
    """

    version: Version
    source_version: Version
    commits: int
    files: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AlreadyApplied(InNotebooks):
    """The table already records `recorded_txn_version` for this application, not below ours; nothing was written.

    `version` is the table's version in which that was found.
    """

    version: Version
    recorded_txn_version: int
