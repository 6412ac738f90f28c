"""Deletes the rows for which a predicate is true."""

from __future__ import annotations

import json
from collections.abc import Callable

from tablefeed.data.predicate import RowFilter
from tablefeed.delta.commit_info import TableChange
from tablefeed.feed.commit.transaction import Transaction
from tablefeed.feed.write.change_data import with_change
from tablefeed.feed.write.delta_plan import plan_delta_write
from tablefeed.feed.write.taking_out import counts, taken_out
from tablefeed.feed.write.target_rows import TargetRows
from tablefeed.log.changes import ChangeType
from tablefeed.log.conflicts import WriteKind
from tablefeed.model.actions import Txn


def deletion(
    target: TargetRows, rows: RowFilter, *, shown: str, txn: Txn | None, now_ms: Callable[[], int]
) -> Transaction | None:
    """Gives the transaction that deletes the rows for which `rows` is true; `shown` is the predicate in the log.

    None where there is no such row, and no `txn` to record.
    """
    snapshot = target.snapshot
    target.check_rows_may_go()
    plan = plan_delta_write(snapshot.log, snapshot, snapshot.schema, kind=WriteKind.CHANGE)
    hits = list(target.hits(rows))
    if not hits and txn is None:
        return None
    rewriting = taken_out(
        plan,
        target,
        hits,
        now_ms=now_ms(),
        changes=lambda: with_change(target.rows_of(hits), ChangeType.DELETE),
        updates=False,
    )
    metrics = {"numDeletedRows": rewriting.deleted_rows, "numCopiedRows": rewriting.copied_rows, **counts(rewriting)}
    return Transaction(
        plan=plan,
        files=(),
        kind=WriteKind.CHANGE,
        operation=TableChange(name="DELETE", parameters={"predicate": json.dumps([shown])}, metrics=metrics),
        txn=txn,
        rewriting=rewriting,
        reads=lambda file: target.may_match(file, rows),
    )
