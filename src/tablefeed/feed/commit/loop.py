"""Commits written files to a table with one put, after a check against the concurrent commits of other writers.

Concurrency is optimistic: the next version is put if absent. A writer that loses the put reads what was committed
meanwhile. Where nothing of it conflicts with its own transaction, it tries the version after it. Data files are never
written again. What a commit consists of depends on the table's format: delta_commit.py and index_commit.py.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tablefeed.errors import (
    CommitError,
    CommitUnknownError,
    ConflictError,
    LogError,
    NotExclusiveError,
    TableError,
    TablefeedError,
    naming_its_table,
)
from tablefeed.feed.commit.collisions import check_collision
from tablefeed.feed.commit.delta_commit import DeltaCommit, recorded_version
from tablefeed.feed.commit.settled_put import put_settled
from tablefeed.feed.commit.transaction import FormatCommit, Put, Replay, Surroundings, Transaction
from tablefeed.feed.snapshot.known_state import caught_up
from tablefeed.feed.snapshot.open_log import refuse_other_log
from tablefeed.feed.snapshot.table_log import Snapshot, TableLog
from tablefeed.feed.write.orphans import delete_after_error, delete_after_replay, delete_orphans
from tablefeed.feed.write.write_plan import DeltaPlan, SplitPlan
from tablefeed.log.conflicts import WriteKind
from tablefeed.model.actions import Txn
from tablefeed.model.outcome import AlreadyApplied, Committed
from tablefeed.store.local import LocalStore
from tablefeed.wording.log_lines import log_facts

logger = logging.getLogger(__name__)

UNSEEN_PAUSE_S = 0.5
"""The longest wait if a version is taken, but no commit can be read there: until one can, a try costs requests only."""


def changes_nothing(transaction: Transaction, now: Callable[[], Snapshot | None]) -> bool:
    """Whether the commit of `transaction` would hold nothing, or only a txn that the table has not recorded yet.

    False for a table that is not there yet. `now` loads the table, where the plan does not know what the application
    has recorded.
    """
    plan, txn = transaction.plan, transaction.txn
    if transaction.files or transaction.kind is not WriteKind.APPEND or plan.changes_table:
        return False
    if txn is None or plan.records_all or txn.app_id in plan.recorded:
        return txn is None or plan.recorded.get(txn.app_id, -1) < txn.txn_version
    return recorded_version(now(), txn) is None


@naming_its_table
def commit(
    log: TableLog, snapshot: Snapshot | None, transaction: Transaction, around: Surroundings
) -> tuple[Committed | AlreadyApplied, Snapshot]:
    """Commits `transaction`, or finds that it is committed already; gives the outcome and the table's state after it.

    `snapshot` is the newest state that the caller knows, None where it knows none. Raises ConflictError where
    another commit conflicts with ours, and TableError where the table cannot be written any more; the files of
    `transaction` are then deleted, unless a commit may name them or they are to stay. Raises CommitUnknownError where
    it cannot be known whether our commit holds, NotExclusiveError where the store cannot promise a single winner, and
    CommitError as `check_collision` and for the last possible version.
    """
    ours = _in_its_format(log, transaction, around)
    try:
        return _committed(ours, log, snapshot, transaction, around)
    finally:
        ours.close()


def _committed(
    ours: FormatCommit, log: TableLog, snapshot: Snapshot | None, transaction: Transaction, around: Surroundings
) -> tuple[Committed | AlreadyApplied, Snapshot]:
    with _deleted_if_just_written(log, transaction):
        state, lost = caught_up(log, snapshot), 0
    while True:
        try:
            with _deleted_if_just_written(log, transaction):
                if state is None and transaction.plan.found is None:
                    # After a first commit in each format, readers would see one table: the other's rows would be lost.
                    refuse_other_log(log.store, transaction.plan.table_format)
                state = _after_lost_put(log, state, ours.longest_pause_s(lost), around) if lost else ours.begin(state)
                found = _outcome_or_put(ours, log, transaction, state)
        except (CommitUnknownError, NotExclusiveError):
            raise  # the commit may be in the log
        except TablefeedError as error:
            is_excluded = isinstance(error, ConflictError | TableError | LogError) and not transaction.files_stay
            excluded = transaction.paths if is_excluded else ()
            up_to = -1 if state is None else state.version
            delete_after_error(log, (*excluded, *ours.own_paths), range(transaction.plan.next_version, up_to + 1))
            raise
        if not isinstance(found, Put):
            return found
        # From here on the commit may be in the log, but for a ConflictError. So this is outside of the block whose
        # errors delete files.
        try:
            head = put_settled(found, around)
        except ConflictError:
            delete_orphans(log.store, () if transaction.files_stay else transaction.paths)
            raise
        if head is not None:
            after = ours.after(found, head)
            facts = {
                "table": log.url,
                "version": found.version,
                "operation": transaction.operation.operation[0],
                "files": len(transaction.files),
                "lost": lost,
            }
            log_facts(logger, "commit", facts if transaction.txn is None else {**facts, **_named(transaction.txn)})
            around.on_committed(after, found.commit, found.also_removed)
            return Committed(version=found.version), after
        delete_orphans(log.store, found.parts)
        lost += 1


@contextmanager
def _deleted_if_just_written(log: TableLog, transaction: Transaction) -> Iterator[None]:
    """Deletes the files of a change of rows where the block, in which nothing is put, raises.

    They were written for this call alone. Those of another write may be committed already, by an earlier call.
    """
    try:
        yield
    except TablefeedError:
        if transaction.kind is WriteKind.CHANGE:
            delete_orphans(log.store, transaction.paths)
        raise


def _outcome_or_put(
    ours: FormatCommit, log: TableLog, transaction: Transaction, state: Snapshot | None
) -> tuple[Committed | AlreadyApplied, Snapshot] | Put:
    """Gives the commit to put after `state`; where there is nothing to put, the outcome and `state`."""
    replay = ours.replayed(state)
    if replay is not None and state is not None and transaction.txn is not None:
        return _already_applied(ours, transaction, transaction.txn, replay, state), state
    ours.check(state)
    if state is not None and ours.changes_nothing(state):
        is_made = transaction.plan.found is None  # the table itself, as its version 0
        return Committed(version=state.version, written=is_made), state
    if isinstance(log.store, LocalStore):
        _check_same_disk(log, transaction)
    return ours.prepared(state)


def _check_same_disk(log: TableLog, transaction: Transaction) -> None:
    """Raises CommitError if a file is not on this disk: Spark's tasks may run on machines that do not share it."""
    absent = [path for path in transaction.paths if not log.store.exists(path)]
    if absent:
        raise CommitError(
            f"{len(absent)} of {len(transaction.paths)} new files are not at {log.url} on the machine that commits, "
            f"such as {absent[0]}. A task wrote them to the disk of another machine, or they were deleted since. "
            "Nothing was committed. Use a table on an object store, or run the query on one machine.",
            url=log.url,
        )


def _after_lost_put(
    log: TableLog, known: Snapshot | None, longest_pause_s: float, around: Surroundings
) -> Snapshot | None:
    """Waits; gives the newest state, loaded anew where the version that came after `known` is gone again.

    If no commit can be read at the version that was taken, it waits again, up to `UNSEEN_PAUSE_S`.
    """
    if longest_pause_s:
        around.sleep(around.uniform() * longest_pause_s)
    state = caught_up(log, known)
    if state is not known:
        return state
    around.sleep(around.uniform() * UNSEEN_PAUSE_S)
    return caught_up(log, None)


def _in_its_format(log: TableLog, transaction: Transaction, around: Surroundings) -> FormatCommit:
    match transaction.plan:
        case DeltaPlan() as plan:
            return DeltaCommit(log, plan, transaction, around)
        case SplitPlan() as plan:
            from tablefeed.feed.commit.index_commit import IndexCommit

            return IndexCommit(log, plan, transaction, around)


def _already_applied(
    ours: FormatCommit, transaction: Transaction, txn: Txn, replay: Replay, state: Snapshot
) -> AlreadyApplied:
    log, recorded = state.log, replay.txn_version
    log_facts(logger, "replay", {"table": log.url, **_named(txn), "recorded": recorded})
    if replay.commit is not None:
        delete_after_replay(log.store, (*transaction.paths, *ours.own_paths), replay.commit)
    check_collision(txn, recorded, transaction.on_collision, url=log.url)
    return AlreadyApplied(version=state.version, recorded_txn_version=recorded)


def _named(txn: Txn) -> dict[str, object]:
    return {"app_id": txn.app_id, "txn_version": txn.txn_version}
