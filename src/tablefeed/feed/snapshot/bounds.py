"""The commits of a bounded read: checks that the log has the versions asked for, and gives their commits in order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tablefeed.errors import LogGapError, ObjectNotFoundError, VersionNotFoundError
from tablefeed.feed.snapshot.same_table import SameTable
from tablefeed.feed.snapshot.table_log import Snapshot, TableLog, required_commit
from tablefeed.model.actions import Commit, Metadata, Version
from tablefeed.model.logfile import LogFile, LogFileKind


def check_available(versions: Iterable[int], *, earliest: Version, newest: Version, url: str) -> None:
    """Raises VersionNotFoundError for the first of `versions` that is not among `earliest` to `newest`."""
    for version in versions:
        if not earliest <= version <= newest:
            raise VersionNotFoundError(url=url, version=version, earliest=earliest, latest=newest)


def read_commits(newest: Snapshot, log_files: Iterable[LogFile], versions: range) -> Iterator[Commit]:
    """Gives the commits of `versions`, each read when it is asked for, with the file times of `log_files`.

    `log_files` is the listed log of `newest`. Raises LogGapError for a version that is not listed or was removed
    since, and the errors of `SameTable` where another table was made at the same path.
    """
    log = newest.log
    same_table = SameTable(newest, remedy="Read again.")
    listed = {f.version: f for f in log_files if f.kind is LogFileKind.COMMIT and f.version in versions}
    for version in versions:
        try:
            commit = required_commit(log, listed[Version(version)])
        except (KeyError, ObjectNotFoundError) as error:
            same_table.compare()
            raise LogGapError(
                url=log.url,
                expected=version,
                found=None,
                remedy="Its log file was removed while the log was read, or before. Read from a later version.",
            ) from error
        same_table.compare()
        yield commit


def check_protocol(commit: Commit, metadata: Metadata, *, log: TableLog) -> None:
    """Raises UnsupportedFeatureError where `commit` changes the protocol to one that is not handled.

    `metadata` is the table's. It is used if the commit has none.
    """
    if commit.protocol is not None:
        log.check_readable(commit.protocol, commit.metadata or metadata)
