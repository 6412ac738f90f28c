"""When commits were made, for a reader that goes through a log for as long as it lives.

As `timeline.monotone` has it: a commit's own in-commit timestamp, else its log file's time, made to grow strictly from
the begin of the log on, so that the same commit is always of the same time. The log is listed once for that.
"""

from __future__ import annotations

from tablefeed.feed.snapshot.table_log import TableLog
from tablefeed.feed.snapshot.timeline import monotone
from tablefeed.model.actions import Commit, Version
from tablefeed.model.logfile import LogFileKind


class CommitTimes:
    """The times of the commits of one log, in milliseconds since 1970 UTC. Kept are those that were not forgotten."""

    def __init__(self, log: TableLog) -> None:
        self._log = log
        self._known: dict[Version, int] = {}

    def of(self, commit: Commit) -> int | None:
        """Gives when `commit` was made; None where its log file is gone."""
        return self._file_time(commit.version) if commit.committed_at_ms is None else commit.committed_at_ms

    def of_version(self, version: Version) -> int | None:
        """Gives when the commit of `version`, which is read for it, was made; None where it is gone."""
        commit = self._log.commit(version)
        return None if commit is None else self.of(commit)

    def forget_before(self, version: Version) -> None:
        """Drops the times below `version`, but for the newest one."""
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
        """Asks for the files behind `newest`, one by one: each may be older than the one before it."""
        latest_ms = self._known[newest]
        for number in range(newest + 1, version + 1):
            entry = self._log.head(Version(number))
            if entry is not None:
                latest_ms = max(entry.modified_ms, latest_ms + 1)
                self._known[Version(number)] = latest_ms
