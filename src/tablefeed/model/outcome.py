"""What can come of a commit, as values: the caller must look."""

from __future__ import annotations

from dataclasses import dataclass

from tablefeed.model.actions import Version


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    """Our commit stands at `version`."""

    version: Version


@dataclass(frozen=True, slots=True, kw_only=True)
class AlreadyApplied:
    """The table already records this application at `recorded_txn_version` or above; nothing was written.

    `version` is the table's version at which that was seen.
    """

    version: Version
    recorded_txn_version: int
