"""Deletes old log files as the table's properties allow (PROTOCOL.md, "Metadata Cleanup", "Checkpoint Protection").

log/cleanup.py decides by the names which files are old. What a consumer has still to read is young (consumers.py).
Before the first file is deleted, what the log will begin with is read whole, and the newest version is read again: it
must be the same table with the same properties. The consumers are read again while files are deleted. The oldest file
is deleted first, so a cleanup that breaks off leaves a log that begins later.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from tablefeed.delta import features, names
from tablefeed.delta.checkpoint.reading import read_top_level
from tablefeed.delta.intervals import DAY_MS
from tablefeed.errors import LogError, ObjectNotFoundError, TablefeedError, naming, naming_its_table
from tablefeed.feed.commit.own_log import delete_as_listed
from tablefeed.feed.snapshot.segment_reader import SegmentReader
from tablefeed.feed.snapshot.table_log import Snapshot, TableLog, required_commit
from tablefeed.feed.upkeep.consumers import FILES_A_LOOK, Cleaned, came_meanwhile, readers
from tablefeed.feed.upkeep.delta_checkpoint import write_classic_twin
from tablefeed.feed.upkeep.leftovers import sweep
from tablefeed.log.cleanup import Cleanup, expired
from tablefeed.log.segment import LogSegment
from tablefeed.model.actions import Version
from tablefeed.model.logfile import LogFile, LogFileKind

logger = logging.getLogger(__name__)


@naming_its_table
def clean_up(snapshot: Snapshot, *, now_ms: int, before_step: Callable[[], None] = lambda: None) -> Cleaned:
    """Deletes the log files that no kept version needs; does not count sidecars and temporary files.

    `snapshot` says which table is meant. The properties are those of the newest version, which is read before the
    decision and again before anything is deleted. Nothing is deleted unless a checkpoint that is at least as old as the
    retention, counted back to midnight in UTC, was read whole. Where one cannot be read, a warning names it and the one
    before it is tried. Temporary files that our killed writers left are deleted after a day, even if nothing else is.
    `before_step` is called before each step while the checkpoint is read.

    Does nothing where the table has turned the cleanup off or was made anew. Raises LogError, UnsupportedFeatureError
    and StoreError; files that were deleted before the error stay deleted.
    """
    log = snapshot.log
    newest = log.advance(snapshot)
    features.check_writable(newest.protocol, newest.metadata, removes=False)
    properties = newest.properties
    if newest.head is None or newest.metadata.table_id != snapshot.metadata.table_id or not properties.cleans_log:
        return Cleaned()
    sweep(log, names.LOG_DIR, now_ms=now_ms)
    consumers, cutoff_ms = readers(log, now_ms=now_ms), properties.log_cutoff_ms(now_ms=now_ms)
    listing = log.listing()
    without_them = expired(listing, cutoff_ms=cutoff_ms)
    waits_for = consumers.before(without_them.kept if without_them is not None else None)
    if waits_for:
        logger.info("cleanup table=%s waits_for=%s", log.url, ",".join(waits_for))
    cleanup = _readable(newest, listing, cutoff_ms=cutoff_ms, held=consumers.slowest, before_step=before_step)
    if cleanup is None:
        return Cleaned(waits_for=waits_for)
    if not _is_as_before(newest):  # reading the base may have taken long
        logger.warning("cleanup put off table=%s: it was restored, made anew or given other properties", log.url)
        return Cleaned(waits_for=waits_for)
    write_classic_twin(newest, cleanup.base.checkpoint)  # before the checkpoints that older readers used are gone
    deleted, base = 0, cleanup.base.checkpoint[0]
    without = f"{names.LOG_DIR}/{base.name}", base
    for number, log_file in enumerate(cleanup.files):
        if not number % FILES_A_LOOK and (came := came_meanwhile(log, cleanup.kept, now_ms=now_ms, deleted=deleted)):
            return Cleaned(log_files=deleted, waits_for=came)
        deleted += delete_as_listed(log.store, f"{names.LOG_DIR}/{log_file.name}", log_file, without=without)
    sidecars = _delete_sidecars(log, now_ms=now_ms)
    logger.info("cleanup table=%s kept=%d log_files=%d sidecars=%d", log.url, cleanup.kept, deleted, sidecars)
    return Cleaned(log_files=deleted, waits_for=waits_for)


def _is_as_before(newest: Snapshot) -> bool:
    """Whether the log still contains `newest`, and the protocol and properties are still the same."""
    latest = newest.log.advance(newest)
    return (
        newest.log.head(newest.version) == newest.head
        and latest.metadata.table_id == newest.metadata.table_id
        and (latest.protocol, latest.metadata.configuration) == (newest.protocol, newest.metadata.configuration)
    )


def _readable(
    snapshot: Snapshot,
    listing: list[LogFile],
    *,
    cutoff_ms: int,
    held: Version | None,
    before_step: Callable[[], None],
) -> Cleanup | None:
    """The files that may be deleted, after their base was read whole; None where none may."""
    log = snapshot.log
    unreadable: frozenset[str] = frozenset()
    while (cleanup := expired(listing, cutoff_ms=cutoff_ms, unreadable=unreadable, held=held)) is not None:
        if not _is_allowed(snapshot, cleanup, cutoff_ms):
            return None
        if is_readable(log, cleanup.base, before_step=before_step):
            return cleanup
        unreadable |= {part.name for part in cleanup.base.checkpoint}
    return None


def is_readable(log: TableLog, base: LogSegment, *, before_step: Callable[[], None] = lambda: None) -> bool:
    """Whether `base` can be read whole; where it cannot, a warning names its checkpoint and the error."""
    try:
        SegmentReader(log.store).check(base, before_step=before_step)
    except (LogError, ObjectNotFoundError) as error:
        names_of = ",".join(part.name for part in base.checkpoint)
        logger.warning("unreadable checkpoint table=%s checkpoint=%s: %s", log.url, names_of, error)
        return False
    return True


def _is_allowed(snapshot: Snapshot, cleanup: Cleanup, cutoff_ms: int) -> bool:
    # "Checkpoint Protection": the versions before that one may only be deleted all at once.
    if cleanup.kept < snapshot.properties.protected_before:
        return False
    if not snapshot.properties.keeps_commit_times:
        return True
    # The file may be older or, as a copy, younger than the commit in it: both times must be old.
    commit = required_commit(snapshot.log, cleanup.cutoff)
    return commit.committed_at_ms is not None and commit.committed_at_ms <= cutoff_ms


def _delete_sidecars(log: TableLog, *, now_ms: int) -> int:
    """Deletes sidecars a day old or older that no checkpoint names; none where a checkpoint cannot be read."""
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
            with naming(log.url), log.store.open_input(f"{names.LOG_DIR}/{log_file.name}") as source:
                owned |= set(read_top_level([(log_file, source)], root_url=log.url).sidecars)
        except TablefeedError as error:
            logger.warning("sidecars kept table=%s checkpoint=%s: %s", log.url, log_file.name, error)
            return 0
    unowned = [name for name in old if f"{folder}/{name}" not in owned]
    for name in unowned:
        log.store.delete(f"{folder}/{name}")
    return len(unowned)
