"""The one put that makes written files part of a table, and what is done about everyone else's.

Optimistic: the next version is put if absent; who loses looks at what won and, where nothing in it excludes us, tries
the version after it. Data files are never written again. A put whose answer was lost is settled by reading back whose
commit stands, by the random `txnId` in its commitInfo.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from tablefeed.delta import codec, names
from tablefeed.errors import ConflictError, TablefeedError
from tablefeed.feed.commit.entry import commit_entry, removal_of
from tablefeed.feed.commit.losers import delete_excluded, delete_replayed
from tablefeed.feed.commit.replays import check_replay
from tablefeed.feed.commit.rivals import check_rivals
from tablefeed.feed.commit.settled_put import Put, put_settled
from tablefeed.feed.commit.transaction import Surroundings, Transaction
from tablefeed.feed.snapshot.known_state import caught_up
from tablefeed.feed.snapshot.table_log import Snapshot, TableLog
from tablefeed.feed.write.row_replacement import drop, rewritten
from tablefeed.log.replay import fold
from tablefeed.log.transaction import WriteKind
from tablefeed.model.actions import Commit, Facts, Txn
from tablefeed.model.outcome import AlreadyApplied, Committed
from tablefeed.store import Entry

logger = logging.getLogger(__name__)

RACES_BEFORE_JITTER = 2
"""Races lost before we wait: one or two losses are other writers' luck, more are a crowd."""

JITTER_DOUBLES = 6
"""How often: by then it has reached `LONGEST_JITTER_S`."""

LONGEST_JITTER_S = 0.5


def changes_nothing(transaction: Transaction, now: Callable[[], Snapshot | None]) -> bool:
    """Whether its commit would hold no more than its txn, new to the table when it was planned.

    `now` loads the table where the plan does not tell.
    """
    plan, txn = transaction.plan, transaction.txn
    is_empty = not transaction.files and transaction.kind is WriteKind.APPEND
    if not is_empty or plan.found is None or plan.metadata is not None:
        return False
    if txn is None or plan.tells_all or txn.app_id in plan.recorded:
        return txn is None or plan.recorded.get(txn.app_id, -1) < txn.txn_version
    return _replayed(now(), txn) is None


def commit(
    log: TableLog, snapshot: Snapshot | None, transaction: Transaction, around: Surroundings
) -> tuple[Committed | AlreadyApplied, Snapshot]:
    """Commits `transaction` to the table, or finds that it has been; gives the outcome and the table's state then.

    `snapshot` is the newest state that the caller knows, None where there was no table. Raises ConflictError where a
    rival's commit excludes ours, whose files are then gone again, CommitUnknownError where the store will not say,
    NotExclusiveError where it cannot promise a single winner, and CommitError for a collision that is to fail.
    """
    if log.has_splits:
        from tablefeed.feed.commit.index_commit import commit_splits

        return commit_splits(log, snapshot, transaction, around)
    try:
        return _committed(log, snapshot, transaction, around)
    except ConflictError as conflict:
        delete_excluded(log, transaction, conflict.winner)
        raise


def _committed(
    log: TableLog, snapshot: Snapshot | None, transaction: Transaction, around: Surroundings
) -> tuple[Committed | AlreadyApplied, Snapshot]:
    state = caught_up(log, snapshot)
    checked = transaction.plan.version
    races = 0
    while True:
        replayed = _replayed(state, transaction.txn)
        if replayed is not None and state is not None and transaction.txn is not None:
            delete_replayed(log, transaction)
            check_replay(transaction.txn, replayed.recorded_txn_version, transaction.on_collision, url=log.url)
            return replayed, state
        with _dropped_unless_well(log, transaction):
            checked = check_rivals(log, transaction, state, checked)
        transaction = _with_rewriting(log, transaction, state, around)
        now_ms = around.now_ms()
        with _dropped_unless_well(log, transaction):
            removal, rows = removal_of(transaction, state, now_ms)
            entry = commit_entry(transaction, state, replaced=removal.counts, replaced_rows=rows, now_ms=now_ms)
        head = _put(log, state, entry, removal.lines(), around)
        if head is not None:
            logger.info(
                "commit table=%s version=%d operation=%s files=%d",
                log.url,
                entry.version,
                transaction.operation.operation[0],
                len(transaction.files),
            )
            after = _after(log, state, entry, head)
            around.stood(after, entry, removal.counts)
            return Committed(version=entry.version), after
        races += 1
        if races > RACES_BEFORE_JITTER:
            around.sleep(around.uniform() * min(LONGEST_JITTER_S, 0.01 * 2 ** min(races, JITTER_DOUBLES)))
        with _dropped_unless_well(log, transaction):
            state = _caught_up(log, state)


def _caught_up(log: TableLog, known: Snapshot | None) -> Snapshot | None:
    """Gives the newest state after a put that failed: a version came after `known`, though it may be gone again."""
    state = caught_up(log, known)
    return state if state is not known else caught_up(log, None)


def _with_rewriting(
    log: TableLog, transaction: Transaction, state: Snapshot | None, around: Surroundings
) -> Transaction:
    """Gives `transaction` with what has to be written beside its files, once: what rivals do to it, excludes it."""
    if transaction.rewriting is not None or state is None or transaction.plan.replaces.by_row is None:
        return transaction
    rewriting = rewritten(log, state, transaction.plan, transaction.files, now_ms=around.now_ms())
    return replace(transaction, rewriting=rewriting)


@contextmanager
def _dropped_unless_well(log: TableLog, transaction: Transaction) -> Iterator[None]:
    """Deletes what was written for the commit, where it fails by what is done here; never around a put."""
    try:
        yield
    except TablefeedError:
        if transaction.rewriting is not None:
            drop(log, transaction.rewriting)
        raise


def _replayed(state: Snapshot | None, txn: Txn | None) -> AlreadyApplied | None:
    recorded = state.facts.txns.get(txn.app_id) if state is not None and txn is not None else None
    if state is None or txn is None or recorded is None or recorded.txn_version < txn.txn_version:
        return None
    logger.info(
        "replay table=%s app_id=%s txn_version=%d recorded=%d",
        state.log.url,
        txn.app_id,
        txn.txn_version,
        recorded.txn_version,
    )
    return AlreadyApplied(version=state.version, recorded_txn_version=recorded.txn_version)


def _put(
    log: TableLog, state: Snapshot | None, entry: Commit, removes: Iterable[memoryview], around: Surroundings
) -> Entry | None:
    """Puts `entry` as the version after `state`; gives its file, None where another commit has the version."""
    name, data = names.commit_name(entry.version), codec.encode_commit(entry, removes)
    return put_settled(Put(log=log, base=state, name=name, data=data, is_ours=lambda: _is_there(log, entry)), around)


def _is_there(log: TableLog, entry: Commit) -> bool:
    theirs = log.commit_facts(entry.version)
    ours = (entry.info or {})[names.TXN_ID]
    return theirs is not None and theirs.info is not None and theirs.info.get(names.TXN_ID) == ours


def _after(log: TableLog, state: Snapshot | None, entry: Commit, head: Entry) -> Snapshot:
    # Not read back: a store that fails now must not hide that the commit stands.
    if state is None:
        return log.snapshot(entry.version, fold(Facts(), [entry]), head=head)
    return log.snapshot(entry.version, fold(state.facts, [entry]), unreadable=state.unreadable, head=head)
