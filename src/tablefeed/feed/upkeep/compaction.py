"""Log compaction files: several commits in one, for readers that use them (PROTOCOL.md, "Log Compaction Files")."""

from __future__ import annotations

from tablefeed.delta import names
from tablefeed.delta.checkpoint.compaction import compact
from tablefeed.errors import LogGapError
from tablefeed.feed.commit.own_log import in_log_of
from tablefeed.feed.snapshot.table_log import Snapshot
from tablefeed.model.actions import Version


def write_compaction(snapshot: Snapshot, first: Version) -> None:
    """Writes the commits from `first` up to the snapshot's as one file. Raises LogError and StoreError."""
    log, last = snapshot.log, snapshot.version
    commits = []
    for version in range(first, last + 1):
        commit = log.commit(Version(version))
        if commit is None:
            raise LogGapError(url=log.url, expected=version, found=None, remedy="No compaction was written.")
        commits.append(commit)
    path = f"{names.LOG_DIR}/{names.compaction_name(first, last)}"
    log.store.put_if_absent(path, compact(commits), within=in_log_of(snapshot))
