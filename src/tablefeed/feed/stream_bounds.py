"""Where a stream begins, as its user named it, and whether the log still has that.

Versions only; what is delivered between them is `source.py`'s. The rules are Delta-Spark's for a stream's starting
options.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tablefeed.errors import LogError, VersionNotFoundError
from tablefeed.feed.table_log import Snapshot
from tablefeed.model.actions import Version
from tablefeed.model.logfile import LogFileKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """One end of a stream as its user named it; None: not named."""

    version: int | Literal["latest"] | None = None


def start_version(start: Bound, newest: Snapshot) -> Version | None:
    """Gives the first version whose commit is delivered; None: the whole table first.

    It is at most one past `newest`. Raises VersionNotFoundError where the log does not have the version.
    """
    match start.version:
        case None:
            return None
        case "latest":
            return Version(newest.version + 1)
        case version:
            first = Version(version)
            _check_available(first, newest)
            return first


def _check_available(version: Version, newest: Snapshot) -> None:
    earliest = min(
        (f.version for f in newest.log.listing() if f.kind is LogFileKind.COMMIT), default=Version(newest.version + 1)
    )
    if not earliest <= version <= newest.version:
        raise VersionNotFoundError(url=newest.log.url, version=version, earliest=earliest, latest=newest.version)
    _check_readable(version, newest)


def _check_readable(version: Version, newest: Snapshot) -> None:
    try:
        newest.log.load(version)
    except LogError:
        return  # no snapshot there any more; the commits themselves are checked as they are read
