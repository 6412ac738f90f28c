"""A commit to a Delta table: one JSON file, put as the next version.

A new table's version 0 has its files already. Commits of other writers since the write was planned are checked for
conflicts (concurrent.py).
"""

from __future__ import annotations

from dataclasses import replace

from tablefeed.delta import codec, names
from tablefeed.feed.commit.concurrent import check_concurrent
from tablefeed.feed.commit.entry import DeltaWrite, commit_entry, removal_of
from tablefeed.feed.commit.transaction import FormatCommit, Put, Replay, Surroundings, Transaction
from tablefeed.feed.snapshot.delta_log import DeltaLog
from tablefeed.feed.snapshot.table_log import Snapshot, TableLog
from tablefeed.feed.write.orphans import first_recording
from tablefeed.feed.write.row_replacement import rewritten
from tablefeed.feed.write.write_plan import DeltaPlan
from tablefeed.log.replay import fold
from tablefeed.model.actions import AddFile, CdcFile, Facts, Txn
from tablefeed.store import Entry

RACES_BEFORE_JITTER = 2
"""Lost puts without a wait: one or two losses are chance, more mean that many writers compete."""

JITTER_DOUBLES = 6
"""How often the longest wait doubles: by then it has reached `LONGEST_JITTER_S`."""

LONGEST_JITTER_S = 0.5


def recorded_version(state: Snapshot | None, txn: Txn | None) -> int | None:
    """Gives the version that `state` records of the application of `txn`; None where it is below that of `txn`."""
    recorded = state.facts.txns.get(txn.app_id) if state is not None and txn is not None else None
    return None if recorded is None or txn is None or recorded.txn_version < txn.txn_version else recorded.txn_version


class DeltaCommit(FormatCommit):
    """As `FormatCommit`. As in Delta-Spark, a commit without files is one too.

    It never gives up: each lost put means that another writer's commit succeeded.
    """

    def __init__(self, log: TableLog, plan: DeltaPlan, transaction: Transaction, around: Surroundings) -> None:
        if not isinstance(log, DeltaLog):
            raise TypeError(f"{log.url} is no Delta table")
        self._log, self._around = log, around
        self._write = DeltaWrite(plan=plan, transaction=transaction)
        self._checked = plan.version

    @property
    def own_files(self) -> tuple[AddFile | CdcFile, ...]:
        """The files of the `Rewriting` of a replaceWhere."""
        return () if self._write.rewriting is None else self._write.rewriting.written

    def replayed(self, state: Snapshot | None) -> Replay | None:
        """As `FormatCommit`; the commit is looked for only where there are files that it may name."""
        txn = self._write.transaction.txn
        recorded = recorded_version(state, txn)
        if txn is None or recorded is None:
            return None
        files = (*self._write.transaction.files, *self.own_files)
        commit = first_recording(self._log, txn, self._write.plan.next_version) if files else None
        return Replay(txn_version=recorded, commit=commit)

    def check(self, state: Snapshot | None) -> None:
        """Raises as `check_concurrent`, for the commits that were not checked before."""
        self._checked = check_concurrent(self._log, self._write, state, self._checked)

    def prepared(self, state: Snapshot | None) -> Put:
        """As `FormatCommit`. Raises as `rewritten`, `removal_of` and `commit_entry`."""
        log, plan, files = self._log, self._write.plan, self._write.transaction.files
        if self._write.rewriting is None and state is not None and plan.replaces.by_row is not None:
            # Once: a later commit that touches the rewritten files conflicts with ours.
            rewriting = rewritten(log, state, plan, files, now_ms=self._around.now_ms())
            self._write = replace(self._write, rewriting=rewriting)
        now_ms = self._around.now_ms()
        removal, rows = removal_of(self._write, state, now_ms)
        entry = commit_entry(self._write, state, replaced=removal.counts, replaced_rows=rows, now_ms=now_ms)
        return Put(
            log=log,
            base=state,
            name=names.commit_name(entry.version),
            data=codec.encode_commit(entry, removal.lines()),
            commit=entry,
            also_removed=removal.counts,
        )

    def after(self, put: Put, head: Entry) -> Snapshot:
        """As `FormatCommit`. The commit is not read back: a store that fails now must not hide that it holds."""
        base = put.base
        facts = fold(Facts() if base is None else base.facts, [put.commit])
        unreadable = frozenset[str]() if base is None else base.unreadable
        return self._log.snapshot(put.version, facts, unreadable=unreadable, head=head)

    def longest_pause_s(self, lost: int) -> float:
        """No pause after the first lost puts, then one that doubles."""
        return 0.0 if lost <= RACES_BEFORE_JITTER else min(LONGEST_JITTER_S, 0.01 * 2 ** min(lost, JITTER_DOUBLES))
