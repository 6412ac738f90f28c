"""When commits were made, for a reader that follows a log.

A commit's time is its own, such as an in-commit timestamp. Otherwise it is its log file's time, made to grow strictly
from the first listed commit on (`timeline.monotone`). The log is listed once for that.
"""

from __future__ import annotations

from tablefeed.feed.snapshot.table_log import TableLog
from tablefeed.feed.snapshot.timeline import monotone
from tablefeed.model.actions import Commit, Version
from tablefeed.model.logfile import LogFileKind


class CommitTimes:
    """The times of the commits of one log, in milliseconds since 1970 UTC. File times are kept until forgotten."""

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
