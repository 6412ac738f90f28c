"""Writes rows to a table exactly once: planned on the driver, written by tasks, committed on the driver.

Each of the three steps may run in another process, so each passes a small value to the next. Written files are
invisible until one put commits them (docs/explanation/exactly-once.md covers every point at which a process can crash).
The plan and the files depend on the table's format: delta_plan.py and delta_write.py, or split_write.py. Each process
imports what its step needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from tablefeed.errors import naming_its_table
from tablefeed.feed.write.write_plan import DeltaPlan, SplitPlan, WritePlan
from tablefeed.feed.write.write_rules import WriteRules
from tablefeed.log.conflicts import WriteKind
from tablefeed.model.actions import AddFile, Txn
from tablefeed.model.schema import Struct
from tablefeed.store import Store

if TYPE_CHECKING:
    import pyarrow as pa

    from tablefeed.feed.snapshot.table_log import Snapshot, TableLog


@naming_its_table
def plan_write(
    log: TableLog,
    snapshot: Snapshot | None,
    incoming: pa.Schema | str,
    *,
    partition_by: Sequence[str],
    kind: WriteKind,
    rules: WriteRules | None = None,
    now_ms: int | None = None,
) -> WritePlan:
    """Plans a write of rows with the schema `incoming` to the table, or to a new table where `snapshot` is None.

    The table's schema stays, or changes as `rules` allow. `incoming` is Spark's JSON where Spark's schema says more
    than Arrow's. `now_ms` is the time of the write, which column defaults may use; None: the time
    of this call. Raises TableError for rows that do not fit and for a table that cannot be written or made, and
    OptionError.
    """
    from tablefeed.feed.snapshot.delta_log import DeltaLog

    rows = _columns(incoming)
    if isinstance(log, DeltaLog):
        from tablefeed.feed.write.delta_plan import plan_delta_write

        return plan_delta_write(log, snapshot, rows, partition_by=partition_by, kind=kind, rules=rules, now_ms=now_ms)
    from tablefeed.feed.write.split_write import plan_split_write

    return plan_split_write(log, snapshot, rows, partition_by=partition_by, rules=rules or WriteRules())


@naming_its_table
def write_task(
    plan: WritePlan,
    batches: Iterable[pa.RecordBatch],
    *,
    task: int,
    task_count: int | None = None,
    txn: Txn | None = None,
    now_ms: int,
    store: Store | None = None,
) -> tuple[AddFile, ...]:
    """Writes the rows of one task to new data files, durable when this returns; gives the adds for a commit.

    `task`, from 0, is unique among the tasks of a write, and `task_count` is their number, None: not known. Identity
    values are unique by it. `txn` is what the commit will record; it is part of the names of splits. A random part
    makes file names differ between attempts of one task. `store` is the table's; None: it is opened. Raises
    InvalidRowsError, SchemaMismatchError, UnsupportedExpressionError, StoreError and NotExclusiveError, after it tried
    to delete its files.
    """
    match plan:
        case DeltaPlan():
            from tablefeed.feed.write.delta_write import write_delta_task

            return write_delta_task(plan, batches, task=task, task_count=task_count, now_ms=now_ms, store=store)
        case SplitPlan():
            from tablefeed.feed.write.split_write import write_split_task

            return write_split_task(plan, batches, task=task, txn=txn, now_ms=now_ms, store=store)


def _columns(incoming: pa.Schema | str) -> Struct:
    if isinstance(incoming, str):
        from tablefeed.delta.schema.schema_string import from_spark

        return from_spark(incoming)
    from tablefeed.delta.schema.arrow_schema import from_arrow

    return from_arrow(incoming)
