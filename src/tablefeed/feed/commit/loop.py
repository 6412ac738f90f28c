"""Commits written files to a table with one put, after a check against the commits of other writers.

Concurrency is optimistic: the next version is put if absent. A writer that loses the race reads the commits that won.
Where none of them conflicts with its own, it tries the version after them. Data files are never written again. Where
the answer of a put was lost, the commit is read back: the random `txnId` in its commitInfo says whether it is ours.
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
"""Lost races without a wait: one or two losses are chance, more mean that many writers compete."""

JITTER_DOUBLES = 6
"""How often the longest wait doubles: by then it has reached `LONGEST_JITTER_S`."""

LONGEST_JITTER_S = 0.5


def changes_nothing(transaction: Transaction, now: Callable[[], Snapshot | None]) -> bool:
    """Whether the commit of `transaction` would hold nothing, or only a txn that the table has not recorded yet.

    False for a table that is not there yet. `now` loads the table, where the plan does not know what the application
    has recorded.
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
    """Commits `transaction`, or finds that it is committed already; gives the outcome and the table's state after it.

    `snapshot` is the newest state that the caller knows, None where there was no table. Raises ConflictError where
    another commit conflicts with ours; the files of `transaction` are then deleted, unless a commit may name them.
    Raises CommitUnknownError where it cannot be known whether our commit holds, NotExclusiveError where the store
    cannot promise a single winner, and CommitError as `check_replay` and `commit_entry` do.
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
    """Gives the newest state after a lost race, loaded anew where the version that came after `known` is gone again."""
    state = caught_up(log, known)
    return state if state is not known else caught_up(log, None)


def _with_rewriting(
    log: TableLog, transaction: Transaction, state: Snapshot | None, around: Surroundings
) -> Transaction:
    """Writes the `Rewriting` of a replaceWhere, once: a later commit that touches its files conflicts with ours."""
    if transaction.rewriting is not None or state is None or transaction.plan.replaces.by_row is None:
        return transaction
    rewriting = rewritten(log, state, transaction.plan, transaction.files, now_ms=around.now_ms())
    return replace(transaction, rewriting=rewriting)


@contextmanager
def _dropped_unless_well(log: TableLog, transaction: Transaction) -> Iterator[None]:
    """Deletes the files of the `Rewriting` on a TablefeedError. Not for a put: its commit may hold all the same."""
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
    # Not read back: a store that fails now must not hide that the commit holds.
    if state is None:
        return log.snapshot(entry.version, fold(Facts(), [entry]), head=head)
    return log.snapshot(entry.version, fold(state.facts, [entry]), unreadable=state.unreadable, head=head)
