"""`tablefeed.checkpoint`: writes a checkpoint of the newest version now, so that readers begin there.

A Delta log gets a checkpoint. An IndexTables log of commits gets the state of its newest version, as from IndexTables'
own CHECKPOINT. From then on its readers use states, and each of our commits also puts a state. A log that already has a
readable checkpoint or state of its newest version is not changed.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass

from tablefeed.delta import features
from tablefeed.delta.names import checkpoint_name
from tablefeed.errors import LogError, ObjectNotFoundError, UnsupportedFeatureError, naming_its_table
from tablefeed.feed.arguments import location, store_options, switch
from tablefeed.feed.progress_lines import logged
from tablefeed.feed.snapshot.delta_log import DeltaLog, DeltaSnapshot
from tablefeed.feed.snapshot.index_log import IndexSnapshot, IndexTablesLog
from tablefeed.feed.snapshot.open_log import open_log
from tablefeed.feed.snapshot.table_log import TableLog
from tablefeed.feed.upkeep import delta_cleanup
from tablefeed.feed.upkeep.consumers import Cleaned
from tablefeed.feed.upkeep.delta_checkpoint import wants_v2, write_checkpoint
from tablefeed.feed.upkeep.delta_cleanup import is_readable
from tablefeed.indextables import names as index_names
from tablefeed.indextables.log import protocol as index_protocol
from tablefeed.log.segment import LogSegment, whole_checkpoints
from tablefeed.model.actions import Version
from tablefeed.model.notebook import InNotebooks
from tablefeed.model.progress import OnProgress, unreported

logger = logging.getLogger(__name__)

_KNOWS_STATES = 4
"""The first protocol version of IndexTables whose readers all know states."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpointed(InNotebooks):
    """`written`: a checkpoint or state of `version` was written now. False where there was one already.

    Where the one that is there cannot be read and keeps the name, a warning names it. `log_files_deleted` counts the
    old files of the log that were deleted, and `waits_for` has the ids of the consumers for which others were kept.
    """

    version: Version
    written: bool
    log_files_deleted: int = 0
    waits_for: tuple[str, ...] = ()


def checkpoint(
    url: str | os.PathLike[str],
    *,
    clean_up: bool = False,
    storage_options: Mapping[str, str] | None = None,
    on_progress: OnProgress | None = None,
) -> Checkpointed:
    """Writes a checkpoint of the newest version of the table at `url`. No row changes.

    A Delta table gets a checkpoint, in the form that its properties ask for. An IndexTables table whose log is of JSON
    alone gets an Avro state, with its doc mappings, and `_last_checkpoint` points to it. From then on no writer may use
    `spark.indextables.state.format=json`: readers of states do not see its commits. With `clean_up` old versions are
    deleted from the log. For a Delta table its properties decide which. For an IndexTables table these are commits
    after 30 days, states after 168 hours, and manifests that no state names after 24 hours; the newest two versions
    stay, and so does everything that a kept version is read from. Versions that a consumer has still to read stay too.
    `on_progress` is called while the checkpoint of a Delta table is written; an error that it raises ends the work.

    Raises UnsupportedFeatureError for a table that cannot be written here, or whose readers may not know states,
    LogError for an IndexTables table that is still at version 0, and StoreError.
    """
    log = open_log(location(url), store_options(storage_options))
    cleans = switch(clean_up, argument="clean_up")
    now_ms = time.time_ns() // 1_000_000
    return checkpointed(log, clean_up=cleans, now_ms=now_ms, on_progress=logged(on_progress, url=log.url))


def checkpointed(
    log: DeltaLog | IndexTablesLog, *, clean_up: bool, now_ms: int, on_progress: OnProgress = unreported
) -> Checkpointed:
    """Does `checkpoint` on an open log at a given time."""
    snapshot = log.load()
    if isinstance(snapshot, DeltaSnapshot):
        written = _checkpoint(snapshot, on_progress)
        cleaned = delta_cleanup.clean_up(snapshot, now_ms=now_ms) if clean_up else Cleaned()
    else:
        from tablefeed.feed.upkeep import index_cleanup
        from tablefeed.indextables.log.retention import Retention

        written = _state(snapshot, now_ms)
        cleaned = index_cleanup.clean_up(snapshot.log, Retention(), now_ms=now_ms) if clean_up else Cleaned()
    return Checkpointed(
        version=snapshot.version,
        written=written,
        log_files_deleted=cleaned.log_files,
        waits_for=cleaned.waits_for,
    )


@naming_its_table
def _checkpoint(snapshot: DeltaSnapshot, on_progress: OnProgress) -> bool:
    # A table that may not be written may not get a checkpoint either.
    features.check_writable(snapshot.protocol, snapshot.metadata, removes=False)
    log, version = snapshot.log, snapshot.version
    there = whole_checkpoints(log.listing(version)).get(version, [])
    if any(is_readable(log, LogSegment(version=version, checkpoint=each, commits=())) for each in there):
        return False
    name = checkpoint_name(version)
    if not wants_v2(snapshot) and log.store.exists(f"{log.directory}/{name}"):
        _warn_of_taken_name(log, name)
        return False
    write_checkpoint(snapshot, on_progress=on_progress)
    return True


def _warn_of_taken_name(log: TableLog, name: str) -> None:
    logger.warning("checkpoint not written table=%s: delete %s, which cannot be read, and run it again", log.url, name)


def _state(snapshot: IndexSnapshot, now_ms: int) -> bool:
    from tablefeed.feed.commit.index_states import form_of, put_whole

    log = snapshot.log
    index_protocol.refuse_writing(snapshot.protocol, url=log.url)
    if not snapshot.version:
        raise LogError(
            f"{log.url} has no version after 0 yet, and a state of version 0 counts for nothing. Write to it first.",
            url=log.url,
            error_class="INDEXTABLES_NOTHING_TO_CHECKPOINT",
        )
    name = index_names.state_name(snapshot.version)
    if log.store.exists(f"{index_names.LOG_DIR}/{name}"):
        if not _is_state_readable(log, snapshot.version):
            _warn_of_taken_name(log, name)
        return False
    known = min(snapshot.protocol.min_reader_version, snapshot.protocol.min_writer_version)
    if known < _KNOWS_STATES:
        raise UnsupportedFeatureError(
            f"{log.url} is of protocol {known}, whose readers may not know states. Nothing was done. "
            "Upgrade the table with IndexTables first.",
            url=log.url,
            features=("avroState",),
            error_class="INDEXTABLES_STATES_UNKNOWN",
        )
    return put_whole(log, snapshot, writer=form_of(log, snapshot).writer, now_ms=now_ms)


def _is_state_readable(log: IndexTablesLog, version: Version) -> bool:
    try:
        state = log.state(version)
        for _ in log.live_in(state) if state is not None else ():
            pass
    except (LogError, ObjectNotFoundError):
        return False
    return True
