"""When each version was committed, and which version a time means.

A commit's time is its in-commit timestamp where the table keeps them (PROTOCOL.md, "In-Commit Timestamps"), before
that its log file's modification time, made to grow strictly with the version as Delta-Spark makes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, tzinfo

from tablefeed.errors import IllegalOptionError, TableError
from tablefeed.feed.table_log import TableLog
from tablefeed.feed.timestamp_text import read_timestamp
from tablefeed.model.actions import Commit, Metadata, Version
from tablefeed.model.logfile import LogFile, LogFileKind

_ENABLED = "delta.enableInCommitTimestamps"
_ENABLED_SINCE = "delta.inCommitTimestampEnablementVersion"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Times = list[tuple[Version, int]]
"""Versions in order and when each was committed, in milliseconds since 1970 UTC."""


def parse_timestamp(value: str | datetime | date, *, argument: str, zone: tzinfo = UTC) -> int:
    """Gives milliseconds since 1970 UTC for a text as Spark reads it, a datetime or a date.

    What names no zone is in `zone`. Raises IllegalOptionError (DELTA_TIMESTAMP_INVALID) for anything else.
    """
    if isinstance(value, str):
        text, read = value, read_timestamp(value)
        if read is None:
            raise IllegalOptionError(
                option=argument,
                value=text,
                explain="must be a timestamp such as '2024-01-31 12:00:00' or '2024-01-31T12:00:00Z'",
                error_class="DELTA_TIMESTAMP_INVALID",
            )
        value = read
    if not isinstance(value, date):
        raise IllegalOptionError(
            option=argument,
            value=str(value),
            explain="must be a text, a datetime or a date",
            error_class="DELTA_TIMESTAMP_INVALID",
        )
    if not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day, tzinfo=zone)
    if value.tzinfo is None:
        value = value.replace(tzinfo=zone)
    return (value - _EPOCH) // timedelta(milliseconds=1)  # in whole numbers: a float loses the last millisecond


def version_at(log: TableLog, timestamp_ms: int) -> Version:
    """Gives the newest version committed at or before `timestamp_ms`; raises as `last_at_or_before` does."""
    newest = log.load()
    commits = [f for f in log.listing() if f.kind is LogFileKind.COMMIT and f.version <= newest.version]
    return last_at_or_before(commit_times(log, commits, newest.metadata), timestamp_ms, url=log.url)


def last_at_or_before(times: Times, timestamp_ms: int, *, url: str) -> Version:
    """Gives the newest version of `times` committed at or before `timestamp_ms`.

    Raises TableError where the time is before the first commit that the log still has, or after the newest: such a
    question has no answer that stays true.
    """
    if not times or timestamp_ms < times[0][1]:
        raise TableError(
            f"{url} has no commit at or before {_text(timestamp_ms)}"
            + (f": the earliest that its log still has is of {_text(times[0][1])}." if times else "."),
            url=url,
            error_class="DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION",
        )
    if timestamp_ms > times[-1][1]:
        raise _after_newest(times, timestamp_ms, "Leave the timestamp out to read the newest version.", url)
    return max(version for version, at_ms in times if at_ms <= timestamp_ms)


def first_at_or_after(times: Times, timestamp_ms: int, *, url: str) -> Version:
    """Gives the earliest version of `times` committed at or after `timestamp_ms`; TableError where none is yet."""
    found = min((version for version, at_ms in times if at_ms >= timestamp_ms), default=None)
    if found is None:
        raise _after_newest(times, timestamp_ms, "Read again when there is a later one.", url)
    return found


def _after_newest(times: Times, timestamp_ms: int, remedy: str, url: str) -> TableError:
    newest = f", of {_text(times[-1][1])}" if times else ""
    return TableError(
        f"{_text(timestamp_ms)} is after the newest commit of {url}{newest}. {remedy}",
        url=url,
        error_class="DELTA_TIMESTAMP_GREATER_THAN_COMMIT",
    )


def commit_times(log: TableLog, commits: list[LogFile], metadata: Metadata) -> Times:
    """Gives each commit's version and time in milliseconds, growing strictly."""
    since = _in_commit_since(metadata, log.url)
    times: Times = []
    for log_file in commits:
        at_ms = log_file.modified_ms
        if since is not None and log_file.version >= since:
            at_ms = log.required_commit(log_file).committed_at_ms or at_ms
        if times and at_ms <= times[-1][1]:
            at_ms = times[-1][1] + 1
        times.append((log_file.version, at_ms))
    return times


def monotone(commits: Iterable[LogFile]) -> Iterator[LogFile]:
    """Gives `commits`, which come in order, with modification times that grow strictly.

    So a commit that is read from one of them has its in-commit timestamp, or this time where it has none. Delta-Spark
    looks back over a hundred commits to make times grow, here it is all that the log still has.
    """
    latest_ms: int | None = None
    for log_file in commits:
        at_ms = log_file.modified_ms
        latest_ms = at_ms if latest_ms is None else max(at_ms, latest_ms + 1)
        yield replace(log_file, modified_ms=latest_ms)


def committed_at_ms(commit: Commit) -> int:
    """Gives the time of a commit that was read with it; 0 where nobody asked the store."""
    return commit.committed_at_ms or 0


def _in_commit_since(metadata: Metadata, url: str) -> int | None:
    if metadata.configuration.get(_ENABLED, "false").lower() != "true":
        return None
    since = metadata.configuration.get(_ENABLED_SINCE, "0")
    if not since.isdecimal():
        raise TableError(f"The property {_ENABLED_SINCE} of {url} is {since!r}, which is no version. Set it.", url=url)
    return int(since)


def _text(at_ms: int) -> str:
    try:
        return (_EPOCH + timedelta(milliseconds=at_ms)).isoformat(sep=" ", timespec="milliseconds")
    except OverflowError:
        return f"{at_ms} ms since 1970"
