"""When each version was committed, and which version a timestamp selects.

A commit's time is its in-commit timestamp where the table keeps them (PROTOCOL.md, "In-Commit Timestamps"). Before that
it is its log file's modification time, made to grow strictly with the version as in Delta-Spark.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, tzinfo

from tablefeed.delta import names
from tablefeed.errors import IllegalOptionError, LogError, TableError
from tablefeed.feed.snapshot.table_log import OwnTimes, Snapshot, TableLog, TimeOf, required_commit
from tablefeed.feed.timestamp_text import read_timestamp
from tablefeed.log.segment import earliest_reproducible
from tablefeed.model.actions import Commit, Version
from tablefeed.model.cached import cached_property
from tablefeed.model.logfile import LogFile, LogFileKind

_NUMBER = re.compile(r"[0-9]{1,19}")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def parse_timestamp(value: str | datetime | date, *, argument: str, zone: tzinfo = UTC) -> int:
    """Gives milliseconds since 1970 UTC for a datetime, a date, or a text as Spark reads timestamps.

    A value without a time zone is in `zone`. Raises IllegalOptionError (DELTA_TIMESTAMP_INVALID) for anything else.
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
    if not isinstance(value, date) or value != value:  # such as NaT of pandas, a datetime that is no time
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
    """Gives the newest version committed at or before `timestamp_ms`, among those that can be loaded and have a commit.

    Raises as `Timeline.last_at_or_before` does.
    """
    newest = log.load()
    listing = log.listing()
    earliest = earliest_reproducible(listing) or 0
    commits = [f for f in listing if f.kind is LogFileKind.COMMIT and earliest <= f.version <= newest.version]
    return Timeline(newest, commits).last_at_or_before(timestamp_ms)


class Timeline:
    """When `commits`, in ascending order up to the newest version, were made. A search in Delta's log reads few.

    For a time since the table began to keep in-commit timestamps only the versions since then count; for an earlier
    time only the versions before ("Recommendations for Readers of Tables with In-Commit Timestamps"). Searches raise
    TableError where no answer exists or a later commit could change it, and LogError for a commit without the in-commit
    timestamp that it should have.
    """

    def __init__(self, newest: Snapshot, commits: Sequence[LogFile]) -> None:
        self._newest, self._url, self._commits = newest, newest.log.url, commits

    def last_at_or_before(self, timestamp_ms: int) -> Version:
        """Gives the newest version committed by then; TableError where none was, or a newer one may still come."""
        if not self._commits:
            raise self._before_earliest(timestamp_ms, "its log holds none that can be read")
        commits, time_of = self._that_count(timestamp_ms)
        if timestamp_ms < time_of(commits[0]):
            earliest = _text(time_of(commits[0]))
            raise self._before_earliest(timestamp_ms, f"the earliest that can still be read is of {earliest}")
        if commits[-1] is self._commits[-1] and timestamp_ms > time_of(commits[-1]):
            remedy = "Leave the timestamp out to read the newest version."
            raise self._after_newest(timestamp_ms, time_of(commits[-1]), remedy)
        return commits[bisect_right(commits, timestamp_ms, key=time_of) - 1].version

    def first_at_or_after(self, timestamp_ms: int) -> Version:
        """Gives the earliest version committed then or later; TableError where there is none yet."""
        if not self._commits:
            raise self._after_newest(timestamp_ms, None, "Read again when there is a later one.")
        commits, time_of = self._that_count(timestamp_ms)
        found = bisect_left(commits, timestamp_ms, key=time_of)
        if found < len(commits):
            return commits[found].version
        if commits[-1] is self._commits[-1]:
            raise self._after_newest(timestamp_ms, time_of(commits[-1]), "Read again when there is a later one.")
        return self._commits[len(commits)].version  # the one that turned in-commit timestamps on

    def _that_count(self, timestamp_ms: int) -> tuple[Sequence[LogFile], TimeOf]:
        """Gives the commits among which `timestamp_ms` is searched, and their times."""
        own = self._newest.own_times()
        if own is None:
            return self._commits, growing(self._commits)
        before = [f for f in self._commits if f.version < own.since]
        if before and timestamp_ms < own.since_ms:
            return before, growing(before)
        return self._since

    @cached_property
    def _since(self) -> tuple[Sequence[LogFile], TimeOf]:
        """The commits that have a time of their own, and these times."""
        own = self._newest.own_times()
        since = [f for f in self._commits if own is not None and f.version >= own.since]
        # If the property names a future version, no commit is left: the error then comes from reading the newest one.
        since = since or list(self._commits[-1:])
        return since, growing(since) if own is None else own.read(since)

    def _before_earliest(self, timestamp_ms: int, why: str) -> TableError:
        return TableError(
            f"{self._url} has no commit at or before {_text(timestamp_ms)}: {why}.",
            url=self._url,
            error_class="DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION",
        )

    def _after_newest(self, timestamp_ms: int, newest_ms: int | None, remedy: str) -> TableError:
        newest = "" if newest_ms is None else f", of {_text(newest_ms)}"
        return TableError(
            f"{_text(timestamp_ms)} is after the newest commit of {self._url}{newest}. {remedy}",
            url=self._url,
            error_class="DELTA_TIMESTAMP_GREATER_THAN_COMMIT",
        )


def file_times(commits: Sequence[LogFile], newest: Snapshot) -> dict[Version, int]:
    """Gives the time in milliseconds, growing strictly, of each commit that has none of its own.

    `commits` come in ascending order. Commits that have a time of their own as of `newest` are not in the result.
    """
    own = newest.own_times()
    plain = [f for f in commits if own is None or f.version < own.since]
    return {f.version: f.modified_ms for f in monotone(plain)}


def monotone(commits: Iterable[LogFile]) -> Iterator[LogFile]:
    """Gives `commits`, which come in order, with modification times that grow strictly.

    A commit read with such a file gets this time unless it has an in-commit timestamp. Delta-Spark looks back over a
    hundred commits to make times grow; here all commits given count.
    """
    latest_ms: int | None = None
    for log_file in commits:
        at_ms = log_file.modified_ms
        latest_ms = at_ms if latest_ms is None else max(at_ms, latest_ms + 1)
        yield replace(log_file, modified_ms=latest_ms)


class CommitTimes:
    """The times of the commits of one log, for a reader that follows it, in milliseconds since 1970 UTC.

    A commit's time is its own, such as an in-commit timestamp. Otherwise it is its log file's time, made to grow
    strictly from the first listed commit on (`monotone`). The log is listed once for that. File times are kept until
    they are forgotten.
    """

    def __init__(self, log: TableLog) -> None:
        self._log = log
        self._known: dict[Version, int] = {}

    def of(self, commit: Commit) -> int | None:
        """Gives when `commit` was made; None where it has no time of its own and its log file is gone."""
        return self._file_time(commit.version) if commit.committed_at_ms is None else commit.committed_at_ms

    def of_version(self, version: Version) -> int | None:
        """Reads the commit of `version` and gives when it was made; None where the commit is gone."""
        commit = self._log.commit(version)
        return None if commit is None else self.of(commit)

    def forget_before(self, version: Version) -> None:
        """Drops the kept times below `version`, but never the newest kept one."""
        newest = max(self._known, default=version)
        for old in [known for known in self._known if known < min(version, newest)]:
            del self._known[old]

    def _file_time(self, version: Version) -> int | None:
        if version not in self._known:
            newest = max(self._known, default=None)
            if newest is None or version < newest:
                self._list(version)
            else:
                self._go_on(newest, version)
        return self._known.get(version)

    def _list(self, version: Version) -> None:
        commits = (f for f in self._log.listing() if f.kind is LogFileKind.COMMIT)
        self._known = {f.version: f.modified_ms for f in monotone(commits) if f.version >= version}

    def _go_on(self, newest: Version, version: Version) -> None:
        """Asks for the files after `newest`, one by one, in order: each time must be greater than the one before."""
        latest_ms = self._known[newest]
        for number in range(newest + 1, version + 1):
            entry = self._log.head(Version(number))
            if entry is not None:
                latest_ms = max(entry.modified_ms, latest_ms + 1)
                self._known[Version(number)] = latest_ms


def in_commit_times(newest: Snapshot) -> OwnTimes | None:
    """Gives the in-commit timestamps of the Delta table as of `newest`; None where it does not keep them.

    Raises TableError where its properties do not say since when.
    """
    properties, url = newest.properties, newest.log.url
    if not properties.keeps_commit_times:
        return None
    own_ms = newest.facts.in_commit_timestamp_ms
    known = {} if own_ms is None else {newest.version: own_ms}

    def time_of(log_file: LogFile) -> int:
        if log_file.version not in known:  # each commit is read when its time is asked for, and a search needs few
            known[log_file.version] = _in_commit_ms(newest.log, log_file)
        return known[log_file.version]

    found = (properties.commit_times_since_version, properties.commit_times_since_ms)
    if found == (None, None):
        return OwnTimes(since=0, since_ms=-math.inf, read=lambda _: time_of)
    numbers = [int(text) for text in found if text is not None and _NUMBER.fullmatch(text)]
    if len(numbers) < len(found):
        since = f"{names.IN_COMMIT_TIMESTAMPS_SINCE_VERSION} and {names.IN_COMMIT_TIMESTAMPS_SINCE_TIME}"
        raise TableError(
            f"The properties {since} of {url} are {found[0]!r} and {found[1]!r}, which are no "
            "version and no time. Set both, or neither.",
            url=url,
        )
    return OwnTimes(since=numbers[0], since_ms=numbers[1], read=lambda _: time_of)


def growing(commits: Iterable[LogFile]) -> TimeOf:
    """Gives the modification times of `commits`, which come in order, made to grow strictly."""
    times = {log_file.version: log_file.modified_ms for log_file in monotone(commits)}
    return lambda log_file: times[log_file.version]


def _in_commit_ms(log: TableLog, log_file: LogFile) -> int:
    info = required_commit(log, log_file).info
    at_ms = None if info is None else info.get(names.IN_COMMIT_TIMESTAMP)
    if not isinstance(at_ms, int):
        raise LogError(
            f"The commit {log_file.name} of {log.url} has no in-commit timestamp, though the table has kept them since "
            "before it: its writer broke the protocol. Name the version that you want.",
            url=log.url,
            error_class="DELTA_MISSING_COMMIT_INFO" if info is None else "DELTA_MISSING_COMMIT_TIMESTAMP",
        )
    return at_ms


def _text(at_ms: int) -> str:
    try:
        return (_EPOCH + timedelta(milliseconds=at_ms)).isoformat(sep=" ", timespec="milliseconds")
    except OverflowError:
        return f"{at_ms} ms since 1970"
