"""Old log files, deleted as the table's properties allow (PROTOCOL.md, "Metadata Cleanup", "Checkpoint Protection").

Which are old, log/cleanup.py says. They go oldest first: a cleanup that breaks off leaves a log that begins later.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from tablefeed.delta import names
from tablefeed.delta.checkpoint import read_top_level
from tablefeed.delta.retention import DAY_MS, protected_before, retention_of
from tablefeed.errors import TablefeedError
from tablefeed.feed.checkpointing import write_classic_twin
from tablefeed.feed.table_log import Snapshot, TableLog
from tablefeed.log.cleanup import Cleanup, expired
from tablefeed.model.logfile import LogFile, LogFileKind

logger = logging.getLogger(__name__)


def clean_up(snapshot: Snapshot, *, now_ms: int) -> int:
    """Deletes what no version that the table wants to keep is read from; gives how many files of the log went.

    Nothing is deleted without a whole checkpoint to begin from, which is never past the newest one that is as old as
    the table's retention, counted from midnight in UTC. What a kill left half written goes after a day in any case, and
    is not counted. Raises LogError and StoreError; what is deleted by then may be.
    """
    log, retention = snapshot.log, retention_of(snapshot.metadata)
    if not retention.cleans_log:
        return 0
    _sweep(log, now_ms=now_ms)
    cutoff_ms = retention.log_cutoff_ms(now_ms=now_ms)
    listing = log.listing()
    cleanup = expired(listing, cutoff_ms=cutoff_ms)
    if cleanup is None or not _is_allowed(snapshot, cleanup, cutoff_ms):
        return 0
    write_classic_twin(snapshot)  # before anything goes that an older reader would have gone by
    for log_file in cleanup.files:
        log.store.delete(f"{names.LOG_DIR}/{log_file.name}")
    gone = {log_file.name for log_file in cleanup.files}
    sidecars = _delete_sidecars(log, [f for f in listing if f.name not in gone], now_ms=now_ms)
    logger.info(
        "cleanup table=%s kept=%d log_files=%d sidecars=%d", log.url, cleanup.kept, len(cleanup.files), sidecars
    )
    return len(cleanup.files)


def _sweep(log: TableLog, *, now_ms: int) -> None:
    """Removes what writers of ours that were killed left in the log's directories a day ago."""
    folders = (names.LOG_DIR, f"{names.LOG_DIR}/{names.SIDECARS_DIR}")
    swept = sum(log.store.sweep(folder, before_ms=now_ms - DAY_MS) for folder in folders)
    if swept:
        logger.info("sweep table=%s temporary_files=%d", log.url, swept)


def _is_allowed(snapshot: Snapshot, cleanup: Cleanup, cutoff_ms: int) -> bool:
    # "Checkpoint Protection": all before that version goes at once, or nothing.
    if cleanup.kept < protected_before(snapshot.metadata):
        return False
    properties = snapshot.metadata.configuration
    if properties.get(names.ENABLE_IN_COMMIT_TIMESTAMPS, "").lower() != "true":
        return True
    # A file may be older than what is in it, as one that was copied is younger: both must be old.
    commit = snapshot.log.required_commit(cleanup.cutoff)
    return commit.committed_at_ms is not None and commit.committed_at_ms <= cutoff_ms


def _delete_sidecars(log: TableLog, kept: Iterable[LogFile], *, now_ms: int) -> int:
    """Deletes the sidecars that no checkpoint among `kept` names and that are a day old; none if in doubt."""
    folder = f"{names.LOG_DIR}/{names.SIDECARS_DIR}"
    old_ms = now_ms // DAY_MS * DAY_MS - DAY_MS
    old = [entry.name for entry in log.store.list(folder) if entry.modified_ms < old_ms]
    if not old:
        return 0
    owned: set[str] = set()
    for log_file in kept:
        if log_file.kind not in (LogFileKind.CHECKPOINT, LogFileKind.CHECKPOINT_V2):
            continue
        try:
            with log.store.open_input(f"{names.LOG_DIR}/{log_file.name}") as source:
                owned |= set(read_top_level([(log_file, source)], url=log.url).sidecars)
        except TablefeedError as error:
            logger.warning("sidecars kept table=%s checkpoint=%s: %s", log.url, log_file.name, error)
            return 0
    unowned = [name for name in old if f"{folder}/{name}" not in owned]
    for name in unowned:
        log.store.delete(f"{folder}/{name}")
    return len(unowned)
