"""Which versions a caller of the change feed means. The bounds may be versions or times.

Both bounds are included unless the caller excludes them. The rules are Delta-Spark's for batch reads (CDCReader), with
one difference: an end after the newest version is refused. Whoever went on after such an end would miss versions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, tzinfo

from tablefeed.errors import ConflictingOptionsError, IllegalOptionError, VersionNotFoundError
from tablefeed.feed.arguments import whole_number
from tablefeed.feed.snapshot.bounds import check_available
from tablefeed.feed.snapshot.table_log import Snapshot
from tablefeed.feed.snapshot.timeline import Timeline, parse_timestamp
from tablefeed.log.segment import earliest_reproducible, earliest_version
from tablefeed.model.actions import Version
from tablefeed.model.logfile import LogFile, LogFileKind

Timestamp = str | datetime | date


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeBounds:
    """The bounds that a caller gave. None: not given.

    A time that names no zone is read in `time_zone`. A bound that is not inclusive is not itself in the range.
    """

    start_version: int | None = None
    end_version: int | None = None
    start_timestamp: Timestamp | None = None
    end_timestamp: Timestamp | None = None
    time_zone: tzinfo = UTC
    start_inclusive: bool = True
    end_inclusive: bool = True


def change_versions(bounds: ChangeBounds, newest: Snapshot, log_files: Sequence[LogFile]) -> range:
    """Gives the versions that `bounds` mean; an empty range where they leave no commit, as two times may.

    Without a start, the range begins at the earliest version that has its commit and can be loaded. Without an end, it
    goes to `newest`. A start time means the first commit at or after it, an end time the last at or before it. Raises
    ConflictingOptionsError (DELTA_MULTIPLE_CDC_BOUNDARY), IllegalOptionError (DELTA_INVALID_CDC_RANGE),
    VersionNotFoundError (DELTA_CDC_START_VERSION_AFTER_LATEST or DELTA_VERSION_NOT_FOUND), and TableError for a time
    outside the log.
    """
    url = newest.log.url
    _refuse_two("start_version", bounds.start_version, "start_timestamp", bounds.start_timestamp)
    _refuse_two("end_version", bounds.end_version, "end_timestamp", bounds.end_timestamp)
    start, end = _versions(bounds, newest, log_files)
    earliest = _earliest(log_files, newest.version)
    first = earliest if start is None else start
    last = newest.version if end is None else end
    if first > newest.version:
        raise VersionNotFoundError(
            url=url,
            version=first,
            earliest=earliest,
            latest=newest.version,
            error_class="DELTA_CDC_START_VERSION_AFTER_LATEST",
        )
    by_time = bounds.start_timestamp is not None and bounds.end_timestamp is not None
    if last < first - (1 if by_time else 0):
        raise _inverted(bounds, first)
    if last >= first:
        check_available((first, last), earliest=earliest, newest=newest.version, url=url)
    if not bounds.start_inclusive and bounds.start_version is not None:
        first += 1
    if not bounds.end_inclusive and bounds.end_version is not None:
        last -= 1
    return range(first, max(first, last + 1))


def _versions(bounds: ChangeBounds, newest: Snapshot, log_files: Sequence[LogFile]) -> tuple[int | None, int | None]:
    start = None if bounds.start_version is None else whole_number(bounds.start_version, argument="start_version")
    end = None if bounds.end_version is None else whole_number(bounds.end_version, argument="end_version")
    if bounds.start_timestamp is None and bounds.end_timestamp is None:
        return start, end
    since_ms = _ms(bounds.start_timestamp, bounds.time_zone, "start_timestamp")
    until_ms = _ms(bounds.end_timestamp, bounds.time_zone, "end_timestamp")
    commits = [f for f in log_files if f.kind is LogFileKind.COMMIT and f.version <= newest.version]
    timeline = Timeline(newest, commits)
    if since_ms is not None:
        start = timeline.first_at_or_after(since_ms if bounds.start_inclusive else since_ms + 1)
    if until_ms is not None:
        end = timeline.last_at_or_before(until_ms if bounds.end_inclusive else until_ms - 1)
    if since_ms is not None and until_ms is not None and until_ms < since_ms:
        raise _inverted(bounds, start or 0)
    return start, end


def _earliest(log_files: Sequence[LogFile], newest: Version) -> Version:
    """The earliest version that can be loaded as a snapshot and has its own commit and all later ones."""
    earliest = earliest_version(log_files)
    if not earliest:
        return newest if earliest is None else earliest
    readable = earliest_reproducible(f for f in log_files if f.version >= earliest - 1)
    return newest if readable is None else max(earliest, readable)


def _ms(value: Timestamp | None, zone: tzinfo, argument: str) -> int | None:
    return None if value is None else parse_timestamp(value, argument=argument, zone=zone)


def _refuse_two(version: str, number: int | None, timestamp: str, time: Timestamp | None) -> None:
    if number is not None and time is not None:
        raise ConflictingOptionsError(
            options=(version, timestamp), remedy="Give one of them.", error_class="DELTA_MULTIPLE_CDC_BOUNDARY"
        )


def _inverted(bounds: ChangeBounds, first: int) -> IllegalOptionError:
    option = "end_version" if bounds.end_timestamp is None else "end_timestamp"
    value = bounds.end_version if bounds.end_timestamp is None else bounds.end_timestamp
    return IllegalOptionError(
        option=option,
        value=str(value),
        explain=f"is before the start, which is version {first}",
        error_class="DELTA_INVALID_CDC_RANGE",
    )
