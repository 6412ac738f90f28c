"""At which versions a stream begins and ends by its options, and whether the log still has them.

What is delivered between them is decided in source.py. The rules for the begin are Delta-Spark's for a stream's
starting options. Delta-Spark's streams have no end; ours has the option names of Delta-Spark's batch reads.
"""

from __future__ import annotations

import logging
from datetime import UTC

from tablefeed.errors import IllegalOptionError, LogError, TableError, VersionNotFoundError
from tablefeed.feed.arguments import Bound
from tablefeed.feed.snapshot.table_log import Snapshot
from tablefeed.feed.snapshot.timeline import Timeline, parse_timestamp
from tablefeed.feed.timestamp_text import is_whole_millisecond, read_timestamp
from tablefeed.model.actions import Version
from tablefeed.model.logfile import LogFileKind

logger = logging.getLogger(__name__)


def start_version(start: Bound, newest: Snapshot) -> Version | None:
    """Gives the first version whose commit is delivered; None: the stream delivers the whole table first.

    The version is at most one after `newest`. A time means the first commit at or after it that the log still has.
    Raises VersionNotFoundError where the log does not have the version, TableError
    (DELTA_TIMESTAMP_GREATER_THAN_COMMIT) where no commit is that late, and IllegalOptionError
    (DELTA_TIMESTAMP_INVALID) for a text that is no time.
    """
    if start.timestamp is not None:
        since_ms = _moment(start, option="startingTimestamp")
        first = _timeline(newest).first_at_or_after(since_ms)
        if not start.inclusive:
            first = _first_after(newest, since_ms) or Version(newest.version + 1)
        _check_readable(first, newest)
        return first
    match start.version:
        case None:
            return None
        case "latest":
            return Version(newest.version + 1)
        case version:
            _check_available(Version(version), newest, least=0 if start.inclusive else -1)
            return Version(version if start.inclusive else version + 1)


class Ending:
    """The last version of a stream, as far as the log shows it by now.

    A time means the last commit at or before it. That commit is known only once a later one exists. Until then the log
    is loaded again for each new commit. Once known, the last version does not change.
    """

    def __init__(self, end: Bound, begun: Snapshot) -> None:
        self._end, self._log = end, begun.log
        self._last: Version | None = None
        self._until_ms: int | None = None
        self._known_to = begun.version
        self._is_logged = False
        if isinstance(end.version, int):
            self._last = Version(end.version if end.inclusive else end.version - 1)
        if end.timestamp is not None:
            self._until_ms = _last_millisecond(end)
            self._look(begun, self._until_ms)

    @property
    def last(self) -> Version | None:
        """The last version to deliver; None where the stream has no end, or the last version is not known yet."""
        return self._last

    def is_past(self, version: Version) -> bool:
        """Whether the commit of `version`, which exists, must not be delivered, or not yet. May load the log again."""
        if self._last is None and self._until_ms is not None and version > self._known_to:
            self._look(self._log.load(), self._until_ms)
            if self._last is None and version > self._known_to:
                return True  # the commit was read by name but is not listed yet: a later call decides
        return self._last is not None and version > self._last

    def check(self, start: Bound, first: Version) -> None:
        """Raises IllegalOptionError (DELTA_INVALID_CDC_RANGE) where the end is before `first`, the version of `start`.

        An empty range is allowed between two times without a commit, or with an exclusive bound. Any end is allowed for
        a query that starts at "latest": the table may have passed the end already.
        """
        if self._last is None or self._last >= first or start.version == "latest":
            return
        named_alike = start.timestamp is not None and self._end.timestamp is not None
        if self._last == first - 1 and (named_alike or not (start.inclusive and self._end.inclusive)):
            return
        raise self._inverted(first)

    def snapshot(self, newest: Snapshot) -> Version:
        """Gives the version of the initial snapshot: that of `newest`, or the last version where the end is earlier.

        Raises as `check` does for an end before version 0, and VersionNotFoundError for a version that is gone.
        """
        if self._last is None or self._last >= newest.version:
            return newest.version
        if self._last < 0:
            raise self._inverted(0)
        return self._log.load(self._last).version

    def log_reached(self, *, query_ends: bool) -> None:
        """Logs once that the stream is past its last version. A Python source cannot end a query that does not end."""
        if not self._is_logged:
            level = logging.INFO if query_ends else logging.WARNING
            text = "url=%s version=%d was the last of this query, which now stays idle"
            logger.log(level, text, self._log.url, self._last)
        self._is_logged = True

    def _inverted(self, first: int) -> IllegalOptionError:
        version, timestamp = self._end.version, self._end.timestamp
        is_left_out = "" if self._end.inclusive else "is left out by endingBoundInclusive=false, so the last version "
        return IllegalOptionError(
            option="endingVersion" if timestamp is None else "endingTimestamp",
            value=str(version if timestamp is None else timestamp),
            explain=f"{is_left_out}is before the start, which is version {first}",
            error_class="DELTA_INVALID_CDC_RANGE",
        )

    def _look(self, newest: Snapshot, until_ms: int) -> None:
        past = _first_after(newest, until_ms)
        if past is not None:
            self._last = Version(past - 1)
        self._known_to = newest.version


def _first_after(newest: Snapshot, at_ms: int) -> Version | None:
    """The first version that was committed after `at_ms`; None where there is none yet."""
    try:
        return _timeline(newest).first_at_or_after(at_ms + 1)
    except TableError as error:
        if error.error_class != "DELTA_TIMESTAMP_GREATER_THAN_COMMIT":
            raise
        return None


def _timeline(newest: Snapshot) -> Timeline:
    log_files = newest.log.listing()
    return Timeline(newest, [f for f in log_files if f.kind is LogFileKind.COMMIT and f.version <= newest.version])


def _last_millisecond(end: Bound) -> int:
    """The last whole millisecond within `end`: commit times have no smaller unit."""
    until_ms = _moment(end, option="endingTimestamp")
    return until_ms if end.inclusive or not is_whole_millisecond(end.timestamp) else until_ms - 1


def _moment(bound: Bound, *, option: str) -> int:
    """The timestamp of `bound` in milliseconds since 1970 UTC, rounded down as Delta-Spark does."""
    text, zone = str(bound.timestamp), bound.time_zone
    at_ms = parse_timestamp(text, argument=option, zone=zone or UTC)
    read = read_timestamp(text)
    if read is not None and read.tzinfo is None:
        # A user who named no zone may have meant the session's, which Spark does not pass to a Python source.
        level = logging.WARNING if zone is None else logging.INFO
        logger.log(level, "option=%s value=%s has no time zone, read in %s", option, text, zone or "UTC")
    return at_ms


def _check_available(version: Version, newest: Snapshot, *, least: int) -> None:
    """Raises VersionNotFoundError unless `version` is from the earliest commit's version plus `least` to `newest`."""
    earliest = min(
        (f.version for f in newest.log.listing() if f.kind is LogFileKind.COMMIT), default=Version(newest.version + 1)
    )
    if not earliest + least <= version <= newest.version:
        raise VersionNotFoundError(url=newest.log.url, version=version, earliest=earliest, latest=newest.version)
    _check_readable(version, newest)


def _check_readable(version: Version, newest: Snapshot) -> None:
    """Raises UnsupportedFeatureError where the table at `version` has a feature that is not handled."""
    try:
        newest.log.load(version)
    except LogError:
        return  # there is no snapshot at that version any more; the commits are checked when they are read
