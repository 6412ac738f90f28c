"""Which versions a caller of the change feed means. The bounds may be versions or times.

Both bounds are included unless the caller excludes them. The rules are Delta-Spark's for batch reads (CDCReader), with
one difference: an end after the newest version is refused. Whoever went on after such an end would miss versions.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC

from tablefeed.errors import ConflictingOptionsError, IllegalOptionError, VersionNotFoundError
from tablefeed.feed.arguments import Bound, whole_number
from tablefeed.feed.snapshot.bounds import check_available
from tablefeed.feed.snapshot.table_log import Snapshot
from tablefeed.feed.snapshot.timeline import Timeline, parse_timestamp
from tablefeed.feed.timestamp_text import is_whole_millisecond
from tablefeed.log.segment import earliest_reproducible, earliest_version
from tablefeed.model.actions import Version
from tablefeed.model.logfile import LogFile, LogFileKind


def change_versions(start: Bound, end: Bound, newest: Snapshot, log_files: Sequence[LogFile]) -> range:
    """Gives the versions from `start` to `end`; an empty range where they leave no commit, as two times may.

    Without a start, the range begins at the earliest version that has its commit and can be loaded. Without an end, it
    goes to `newest`. A start time means the first commit at or after it, an end time the last at or before it. Raises
    ConflictingOptionsError (DELTA_MULTIPLE_CDC_BOUNDARY), IllegalOptionError (DELTA_INVALID_CDC_RANGE),
    VersionNotFoundError (DELTA_CDC_START_VERSION_AFTER_LATEST or DELTA_VERSION_NOT_FOUND), and TableError for a time
    outside the log.
    """
    url = newest.log.url
    _refuse_two(start, "start")
    _refuse_two(end, "end")
    named_first, named_last = _versions(start, end, newest, log_files)
    earliest = _earliest(log_files, newest.version)
    first = earliest if named_first is None else named_first
    last = newest.version if named_last is None else named_last
    if first > newest.version:
        raise VersionNotFoundError(
            url=url,
            version=first,
            earliest=earliest,
            latest=newest.version,
            error_class="DELTA_CDC_START_VERSION_AFTER_LATEST",
        )
    if last < first and (start.timestamp is None or end.timestamp is None):  # two times may have no commit between them
        raise _inverted(end, first)
    if last >= first:
        check_available((first, last), earliest=earliest, newest=newest.version, url=url)
    if not start.inclusive and start.version is not None:
        first += 1
    if not end.inclusive and end.version is not None:
        last -= 1
    return range(first, max(first, last + 1))


def _versions(
    start: Bound, end: Bound, newest: Snapshot, log_files: Sequence[LogFile]
) -> tuple[int | None, int | None]:
    first = None if start.version is None else whole_number(start.version, argument="start_version")
    last = None if end.version is None else whole_number(end.version, argument="end_version")
    if start.timestamp is None and end.timestamp is None:
        return first, last
    since_ms, until_ms = _ms(start, "start_timestamp"), _ms(end, "end_timestamp")
    commits = [f for f in log_files if f.kind is LogFileKind.COMMIT and f.version <= newest.version]
    timeline = Timeline(newest, commits)
    if since_ms is not None:
        first = timeline.first_at_or_after(since_ms if start.inclusive else since_ms + 1)
    if until_ms is not None:
        includes_ms = end.inclusive or not is_whole_millisecond(end.timestamp)  # commit times have no smaller unit
        last = timeline.last_at_or_before(until_ms if includes_ms else until_ms - 1)
    if since_ms is not None and until_ms is not None and until_ms < since_ms:
        raise _inverted(end, first or 0)
    return first, last


def _earliest(log_files: Sequence[LogFile], newest: Version) -> Version:
    """The earliest version that can be loaded as a snapshot and has its own commit and all later ones."""
    earliest = earliest_version(log_files)
    if not earliest:
        return newest if earliest is None else earliest
    readable = earliest_reproducible(f for f in log_files if f.version >= earliest - 1)
    return newest if readable is None else max(earliest, readable)


def _ms(bound: Bound, argument: str) -> int | None:
    if bound.timestamp is None:
        return None
    return parse_timestamp(bound.timestamp, argument=argument, zone=bound.time_zone or UTC)


def _refuse_two(bound: Bound, side: str) -> None:
    if bound.version is not None and bound.timestamp is not None:
        raise ConflictingOptionsError(
            options=(f"{side}_version", f"{side}_timestamp"),
            remedy="Give one of them.",
            error_class="DELTA_MULTIPLE_CDC_BOUNDARY",
        )


def _inverted(end: Bound, first: int) -> IllegalOptionError:
    return IllegalOptionError(
        option="end_version" if end.timestamp is None else "end_timestamp",
        value=str(end.version if end.timestamp is None else end.timestamp),
        explain=f"is before the start, which is version {first}",
        error_class="DELTA_INVALID_CDC_RANGE",
    )
