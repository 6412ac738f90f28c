"""Where a stream begins, as its user named it, and whether the log still has that.

Versions only; what is delivered between them is `source.py`'s. The rules are Delta-Spark's for a stream's starting
options.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import UTC, tzinfo
from typing import Literal

from tablefeed.errors import LogError, VersionNotFoundError
from tablefeed.feed.table_log import Snapshot
from tablefeed.feed.timeline import Times, commit_times, first_at_or_after, parse_timestamp
from tablefeed.feed.timestamp_text import read_timestamp
from tablefeed.model.actions import Version
from tablefeed.model.logfile import LogFileKind

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """One end of a stream as its user named it: by `version` or by `timestamp`, or not at all.

    A timestamp that names no zone is in `time_zone`, in UTC where that is None.
    """

    version: int | Literal["latest"] | None = None
    timestamp: str | None = None
    time_zone: tzinfo | None = None

    @property
    def is_named(self) -> bool:
        """Whether the user named it at all."""
        return self.version is not None or self.timestamp is not None


def start_version(start: Bound, newest: Snapshot) -> Version | None:
    """Gives the first version whose commit is delivered; None: the whole table first.

    It is at most one past `newest`. A time means the first commit at or after it, of those that the log still has.
    Raises VersionNotFoundError where the log does not have the version, TableError
    (DELTA_TIMESTAMP_GREATER_THAN_COMMIT) where no commit is that late, and IllegalOptionError
    (DELTA_TIMESTAMP_INVALID) for a text that is no time.
    """
    if start.timestamp is not None:
        since_ms = _milliseconds(start.timestamp, start.time_zone, option="startingTimestamp")
        first = first_at_or_after(_times(newest), since_ms, url=newest.log.url)
        _check_readable(first, newest)
        return first
    match start.version:
        case None:
            return None
        case "latest":
            return Version(newest.version + 1)
        case version:
            first = Version(version)
            _check_available(first, newest)
            return first


def _times(newest: Snapshot) -> Times:
    log_files = newest.log.listing()
    commits = [f for f in log_files if f.kind is LogFileKind.COMMIT and f.version <= newest.version]
    return commit_times(newest.log, commits, newest.metadata)


def _milliseconds(timestamp: str, time_zone: tzinfo | None, *, option: str) -> int:
    at_ms = parse_timestamp(timestamp, argument=option, zone=time_zone or UTC)
    read = read_timestamp(timestamp)
    if read is not None and read.tzinfo is None:
        # A user who named no zone anywhere may have meant the session's, which is not told to a Python source.
        level = logging.WARNING if time_zone is None else logging.INFO
        logger.log(level, "option=%s value=%s names no time zone, read in %s", option, timestamp, time_zone or "UTC")
    return at_ms


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
