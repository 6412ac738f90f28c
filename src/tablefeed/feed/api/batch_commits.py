"""Finds the commits of a streaming query's batches in the log of the table that it writes, and says what each did.

Spark does not say what a Python sink wrote. The log does, exactly once: each batch is a commit with its `txn`. So
this needs no cooperation of the process that commits, and holds for every writer that records its batches, also the
Delta JAR. Only Delta tables have a `txn` in each commit.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tablefeed.delta.names import BAD_RECORDS
from tablefeed.delta.stats.stats_text import num_records
from tablefeed.feed.arguments import location, store_options
from tablefeed.feed.snapshot.known_state import newest_state
from tablefeed.model.actions import Commit, Txn, Version
from tablefeed.model.schema import Struct

LOOK_BACK = 100
"""The most commits that are read to find one batch. Those after it are other writers', made while its event waited."""

_ROW_CHANGES = {
    "insert": "numTargetRowsInserted",
    "update": "numTargetRowsUpdated",
    "delete": "numTargetRowsDeleted",
}
"""The operationMetrics of a commit that changed rows (Delta-Spark's MERGE), by the kind of change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchCommit:
    """What the commit of a batch did to the table at `url`, whose schema is `schema`.

    `rows` counts inserted, updated and deleted rows; a kind that the commit does not count is absent. Files that are
    described anew, such as those of which rows were deleted, count neither as added nor as removed. `bad_rows` were
    taken out of the batch (the option `badRecords`). `concurrent_commits` are those of other writers between the
    version that was read for the batch and its own.
    """

    url: str
    version: Version
    schema: Struct
    rows: Mapping[str, int]
    files_added: int
    bytes_added: int
    files_removed: int
    bytes_removed: int
    bad_rows: int
    concurrent_commits: int


class BatchCommits:
    """The commits of batches in the table at `url`. Raises IllegalOptionError where the arguments are wrong."""

    def __init__(self, url: str | os.PathLike[str], storage_options: Mapping[str, str] | None = None) -> None:
        self._location, self._options = location(url), store_options(storage_options)
        self._found = -1

    def find(self, txn: Txn) -> BatchCommit | None:
        """Gives the commit of `txn`; None where the table has none. Later batches may be committed already.

        Reads the commits since the last one found, at most `LOOK_BACK`. Raises TableError, LogError, StoreError.
        """
        log, state = newest_state(self._location, self._options)
        recorded = None if state is None else state.facts.txns.get(txn.app_id)
        if state is None or recorded is None or recorded.txn_version < txn.txn_version:
            return None
        first = max(self._found + 1 if self._found <= state.version else 0, state.version - LOOK_BACK + 1, 0)
        for version in range(state.version, first - 1, -1):
            commit = log.commit(Version(version))
            if commit is not None and _records(commit, txn):
                self._found = version
                return _described(commit, log.url, state.schema)
        return None


def _records(commit: Commit, txn: Txn) -> bool:
    return any((each.app_id, each.txn_version) == (txn.app_id, txn.txn_version) for each in commit.txns)


def _described(commit: Commit, url: str, schema: Struct) -> BatchCommit:
    again = {file.path for file in commit.added} & {file.path for file in commit.removed}
    added = [file for file in commit.added if file.path not in again]
    removed = [file for file in commit.removed if file.path not in again]
    info = commit.info or {}
    read = info.get("readVersion")
    return BatchCommit(
        url=url,
        version=commit.version,
        schema=schema,
        rows=_row_changes(info) or {"insert": _row_count(file.stats for file in added)},
        files_added=len(added),
        bytes_added=sum(file.size_bytes for file in added),
        files_removed=len(removed),
        bytes_removed=sum(file.size_bytes or 0 for file in removed),
        bad_rows=_bad_rows(info),
        concurrent_commits=commit.version - 1 - read if type(read) is int and 0 <= read < commit.version else 0,
    )


def _row_changes(info: Mapping[str, object]) -> dict[str, int]:
    """The row changes that the commit counts itself; empty for one that only appends or overwrites."""
    metrics = info.get("operationMetrics")
    counts = metrics if isinstance(metrics, Mapping) else {}
    texts = {kind: str(counts[name]) for kind, name in _ROW_CHANGES.items() if name in counts}
    return {kind: int(text) for kind, text in texts.items() if text.isdecimal()}


def _bad_rows(info: Mapping[str, object]) -> int:
    match info.get(BAD_RECORDS):
        case {"files": [*files]}:
            return _row_count(file.get("stats") for file in files if isinstance(file, Mapping))
    return 0


def _row_count(stats: Iterable[str | None]) -> int:
    return sum(num_records(text) or 0 for text in stats)
