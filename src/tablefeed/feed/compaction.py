"""Log compaction files: some commits as one, for readers that take them (PROTOCOL.md, "Log Compaction Files")."""

from __future__ import annotations

from tablefeed.delta import names
from tablefeed.delta.compaction import compact
from tablefeed.errors import LogGapError
from tablefeed.feed.table_log import TableLog
from tablefeed.model.actions import Version


def write_compaction(log: TableLog, first: Version, last: Version) -> None:
    """Writes the commits from `first` to `last` as one file. Raises LogError and StoreError."""
    commits = []
    for version in range(first, last + 1):
        commit = log.commit(Version(version))
        if commit is None:
            raise LogGapError(url=log.url, expected=version, found=None, remedy="No compaction was written.")
        commits.append(commit)
    log.store.put_if_absent(f"{names.LOG_DIR}/{names.compaction_name(first, last)}", compact(commits))
