"""Writes JSON checkpoints to an IndexTables log of commits that already has one.

A table with states needs none. A table that was never checkpointed gets none either: IndexTables 0.5.5 reads it from
its commits, and cannot read a table whose `_last_checkpoint` names a JSON checkpoint. Where `_last_checkpoint` names
one already, the table's readers use it.
"""

from __future__ import annotations

import logging
import uuid

from tablefeed.errors import ObjectNotFoundError
from tablefeed.feed.commit.index_states import form_of, point_to
from tablefeed.feed.commit.own_log import all_in_log_of, check_there
from tablefeed.feed.snapshot.index_log import IndexTablesLog
from tablefeed.feed.snapshot.table_log import Snapshot
from tablefeed.feed.write.orphans import delete_orphans
from tablefeed.indextables import names
from tablefeed.indextables.log import last_checkpoint
from tablefeed.indextables.log.json_checkpoint_writer import Attempt, checkpoint_files
from tablefeed.indextables.log.version_file import Writer
from tablefeed.store.base import put_own

logger = logging.getLogger(__name__)


def checkpoint_if_due(snapshot: Snapshot, interval: int, *, part_actions: int | None, now_ms: int) -> bool:
    """Writes the checkpoint of the snapshot's version if the newest is `interval` versions back; says whether it did.

    Raises LogError where the log cannot be read, and StoreError.
    """
    log = snapshot.log
    if not isinstance(log, IndexTablesLog):
        raise TypeError(f"{log.url} is no IndexTables table")
    newest = _newest_checkpoint(log)
    if newest is None or snapshot.version - newest < interval:
        return False
    form = form_of(log, snapshot)
    if form.has_states:
        return False
    return write_json_checkpoint(log, snapshot, writer=form.writer, part_actions=part_actions, now_ms=now_ms)


def write_json_checkpoint(
    log: IndexTablesLog, snapshot: Snapshot, *, writer: Writer, part_actions: int | None, now_ms: int
) -> bool:
    """Puts the checkpoint of the snapshot's version and points `_last_checkpoint` to it; False if there is one already.

    The file that names the parts is put last, and only if it is absent. Before that no reader finds the checkpoint.
    """
    attempt = Attempt(version=snapshot.version, created_ms=now_ms, checkpoint_id=uuid.uuid4().hex[:12])
    live = log.files_of(snapshot.version, snapshot.unreadable)
    parts = list[str]()
    with all_in_log_of(snapshot) as within:
        for file in checkpoint_files(attempt, snapshot.facts, live, writer=writer, actions_per_part=part_actions):
            path = f"{names.LOG_DIR}/{file.name}"
            stands = put_own(log.store, path, file.data, within=within)
            if file.hint is None:
                parts.append(path)
                continue
            if not stands:
                delete_orphans(log.store, parts)
                return False
            check_there(log.store, parts)
            point_to(log, file.hint, within)
            logger.info("checkpoint table=%s version=%d adds=%d", log.url, snapshot.version, file.hint.file_count)
    return True


def _newest_checkpoint(log: IndexTablesLog) -> int | None:
    """The version of the JSON checkpoint in `_last_checkpoint`; None where that is missing or names a state."""
    try:
        hint = last_checkpoint.parse_last_checkpoint(log.store.read(f"{names.LOG_DIR}/{names.LAST_CHECKPOINT}"))
    except ObjectNotFoundError:
        return None
    return None if hint is None or hint.is_state else hint.version
