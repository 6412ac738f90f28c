"""When each version was committed, and which version a time means.

A commit's time is its in-commit timestamp where the table keeps them (PROTOCOL.md, "In-Commit Timestamps"), before
that its log file's modification time, made to grow strictly with the version as Delta-Spark makes it.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

from tablefeed.errors import IllegalOptionError, TableError
from tablefeed.feed.table_log import TableLog
from tablefeed.model.actions import Commit, Metadata, Version
from tablefeed.model.logfile import LogFile, LogFileKind

_ENABLED = "delta.enableInCommitTimestamps"
_ENABLED_SINCE = "delta.inCommitTimestampEnablementVersion"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def parse_timestamp(value: str | datetime | date, *, argument: str) -> int:
    """Gives milliseconds since 1970 UTC for an ISO 8601 text, a datetime or a date; UTC where no zone is named."""
    if isinstance(value, str):
        text = value
        try:
            value = datetime.fromisoformat(text.strip())
        except ValueError as error:
            raise IllegalOptionError(
                option=argument,
                value=text,
                explain="must be a timestamp such as '2024-01-31 12:00:00' or '2024-01-31T12:00:00Z'",
                error_class="DELTA_TIMESTAMP_INVALID",
            ) from error
    if not isinstance(value, date):
        raise IllegalOptionError(
            option=argument,
            value=str(value),
            explain="must be a text, a datetime or a date",
            error_class="DELTA_TIMESTAMP_INVALID",
        )
    if not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day, tzinfo=UTC)
    if value.tzinfo is None:
        value = value.replace(tzinfo=UTC)
    return (value - _EPOCH) // timedelta(milliseconds=1)  # in whole numbers: a float loses the last millisecond


def version_at(log: TableLog, timestamp_ms: int) -> Version:
    """Gives the newest version committed at or before `timestamp_ms`.

    Raises TableError where the time is before the first commit that the log still has, or after the newest: such a
    question has no answer that stays true.
    """
    newest = log.load()
    commits = [f for f in log.listing() if f.kind is LogFileKind.COMMIT and f.version <= newest.version]
    times = commit_times(log, commits, newest.metadata)
    if not times or timestamp_ms < times[0][1]:
        raise TableError(
            f"{log.url} has no commit at or before {_text(timestamp_ms)}"
            + (f": the earliest that its log still has is of {_text(times[0][1])}." if times else "."),
            url=log.url,
            error_class="DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION",
        )
    if timestamp_ms > times[-1][1]:
        raise TableError(
            f"{_text(timestamp_ms)} is after the newest commit of {log.url}, of {_text(times[-1][1])}. Leave the "
            "timestamp out to read the newest version.",
            url=log.url,
            error_class="DELTA_TIMESTAMP_GREATER_THAN_COMMIT",
        )
    return max(version for version, at_ms in times if at_ms <= timestamp_ms)


def commit_times(log: TableLog, commits: list[LogFile], metadata: Metadata) -> list[tuple[Version, int]]:
    """Gives each commit's version and time in milliseconds, growing strictly."""
    since = _in_commit_since(metadata, log.url)
    times: list[tuple[Version, int]] = []
    for log_file in commits:
        at_ms = log_file.modified_ms
        if since is not None and log_file.version >= since:
            at_ms = log.required_commit(log_file).committed_at_ms or at_ms
        if times and at_ms <= times[-1][1]:
            at_ms = times[-1][1] + 1
        times.append((log_file.version, at_ms))
    return times


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
