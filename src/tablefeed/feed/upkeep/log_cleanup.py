"""Old log files, deleted as the table's properties allow (PROTOCOL.md, "Metadata Cleanup", "Checkpoint Protection").

log/cleanup.py decides by the names which files are old. Before the first of them is deleted, what the log will begin
with is read whole, and the newest version is read again: it must be the same table with the same retention. The oldest
file is deleted first, so a cleanup that breaks off leaves a log that begins later.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from tablefeed.delta import features, names
from tablefeed.delta.checkpoint.reading import read_top_level
from tablefeed.delta.retention import DAY_MS, protected_before, retention_of
from tablefeed.errors import LogError, ObjectNotFoundError, TablefeedError
from tablefeed.feed.snapshot.segment_reader import SegmentReader
from tablefeed.feed.snapshot.table_log import Snapshot, TableLog
from tablefeed.feed.upkeep.checkpointing import write_classic_twin
from tablefeed.feed.upkeep.log_deletion import delete_as_listed
from tablefeed.log.cleanup import Cleanup, expired
from tablefeed.log.segment import LogSegment
from tablefeed.model.logfile import LogFileKind

logger = logging.getLogger(__name__)


def clean_up(snapshot: Snapshot, *, now_ms: int, before_step: Callable[[], None] = lambda: None) -> int:
    """Deletes what no version that the table wants to keep is read from; gives how many files of the log went.

    `snapshot` says which table is meant; its properties are those of the newest version, before anything is decided
    and again before anything is deleted. Nothing is deleted unless a checkpoint that is no newer than the retention,
    counted from midnight in UTC, was read whole: where one cannot be read a warning names it, and the one before it is
    tried. What a kill left half written goes after a day in any case, and is not counted. `before_step` is called again
    and again while the checkpoint is read.

    Raises LogError, UnsupportedFeatureError and StoreError; what is deleted by then may be.
    """
    log = snapshot.log
    newest = log.advance(snapshot)
    features.check_writable(newest.protocol, newest.metadata, url=log.url, removes=False)
    retention = retention_of(newest.metadata)
    if newest.head is None or newest.metadata.table_id != snapshot.metadata.table_id or not retention.cleans_log:
        return 0
    _sweep(log, now_ms=now_ms)
    cleanup = _readable(newest, cutoff_ms=retention.log_cutoff_ms(now_ms=now_ms), before_step=before_step)
    if cleanup is None:
        return 0
    if not _is_as_before(newest):  # reading the base may have taken long
        logger.warning("cleanup put off table=%s: it was restored, made anew or given other properties", log.url)
        return 0
    write_classic_twin(newest, cleanup.base.checkpoint)  # before anything goes that an older reader would have gone by
    deleted = 0
    for log_file in cleanup.files:
        deleted += delete_as_listed(log.store, f"{names.LOG_DIR}/{log_file.name}", log_file)
    sidecars = _delete_sidecars(log, now_ms=now_ms)
    logger.info("cleanup table=%s kept=%d log_files=%d sidecars=%d", log.url, cleanup.kept, deleted, sidecars)
    return deleted


def _is_as_before(newest: Snapshot) -> bool:
    """Whether the log still contains `newest`, and the protocol and properties are still the same."""
    latest = newest.log.advance(newest)
    return (
        newest.log.head(newest.version) == newest.head
        and latest.metadata.table_id == newest.metadata.table_id
        and (latest.protocol, latest.metadata.configuration) == (newest.protocol, newest.metadata.configuration)
    )


def _readable(snapshot: Snapshot, *, cutoff_ms: int, before_step: Callable[[], None]) -> Cleanup | None:
    """Which files may be deleted, once their base was read whole; None where none may."""
    log = snapshot.log
    listing = log.listing()
    unreadable: frozenset[str] = frozenset()
    while (cleanup := expired(listing, cutoff_ms=cutoff_ms, unreadable=unreadable)) is not None:
        if not _is_allowed(snapshot, cleanup, cutoff_ms):
            return None
        if is_readable(log, cleanup.base, before_step=before_step):
            return cleanup
        unreadable |= {part.name for part in cleanup.base.checkpoint}
    return None


def is_readable(log: TableLog, base: LogSegment, *, before_step: Callable[[], None] = lambda: None) -> bool:
    """Reads `base` whole; where that fails a warning says which file it was."""
    try:
        SegmentReader(log.store).check(base, before_step=before_step)
    except (LogError, ObjectNotFoundError) as error:
        names_of = ",".join(part.name for part in base.checkpoint)
        logger.warning("unreadable checkpoint table=%s checkpoint=%s: %s", log.url, names_of, error)
        return False
    return True


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


def _delete_sidecars(log: TableLog, *, now_ms: int) -> int:
    """Deletes the sidecars that no checkpoint of the log names by now and that are a day old; none if in doubt."""
    folder = f"{names.LOG_DIR}/{names.SIDECARS_DIR}"
    old_ms = now_ms // DAY_MS * DAY_MS - DAY_MS
    old = [entry.name for entry in log.store.list(folder) if entry.modified_ms < old_ms]
    if not old:
        return 0
    owned: set[str] = set()
    for log_file in log.listing():
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
