"""Commits of ours to the logs of `support.logs`: planned, made behind others' commits, or among faults of the store."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

from support.actions import add as an_add
from support.faulty_store import Fault, FaultyStore
from support.logs import ID, NOW_MS, Action, a_table, commit_path, log_of, put
from tablefeed.feed.commit.loop import commit
from tablefeed.feed.commit.transaction import Operation, Surroundings, Transaction, batch_write, micro_batch
from tablefeed.feed.snapshot.delta_log import DeltaLog
from tablefeed.feed.snapshot.known_state import current_snapshot
from tablefeed.feed.snapshot.table_log import Snapshot, TableLog
from tablefeed.feed.write.sink import plan_write, write_task
from tablefeed.feed.write.write_plan import DeltaPlan
from tablefeed.feed.write.write_rules import WriteRules
from tablefeed.log.conflicts import WriteKind
from tablefeed.model.actions import AddFile, Txn, Version
from tablefeed.model.outcome import AlreadyApplied, Committed
from tablefeed.store import LocalStore, Store


def a_file(path: str, *, rows: int = 1) -> AddFile:
    return an_add(path, modified_ms=NOW_MS, stats=json.dumps({"numRecords": rows}))


def a_write(
    log: TableLog,
    snapshot: Snapshot | None,
    *paths: str,
    kind: WriteKind = WriteKind.APPEND,
    txn: tuple[str, int] | None = None,
    schema: pa.Schema = ID,
    rules: WriteRules | None = None,
) -> Transaction:
    """A write of the files `paths`, which are planned and, in the store, there, and not committed yet."""
    for path in paths:
        log.store.replace(path, b"rows")
    operation: Operation = batch_write(kind, ()) if txn is None else micro_batch(kind, *txn)
    return Transaction(
        plan=plan_write(log, snapshot, schema, partition_by=(), kind=kind, rules=rules),
        files=tuple(a_file(path) for path in paths),
        kind=kind,
        operation=operation,
        txn=None if txn is None else Txn(app_id=txn[0], txn_version=txn[1]),
    )


def written(
    log: TableLog,
    rows: pa.Table,
    *,
    kind: WriteKind = WriteKind.APPEND,
    txn: tuple[str, int] | None = None,
    rules: WriteRules | None = None,
    known: Snapshot | None = None,
) -> Transaction:
    """A write whose `rows` are in data files, and not committed yet; planned against `known` or the newest state."""
    recorded = None if txn is None else Txn(app_id=txn[0], txn_version=txn[1])
    plan = plan_write(log, known or current_snapshot(log), rows.schema, partition_by=(), kind=kind, rules=rules)
    return Transaction(
        plan=plan,
        files=write_task(plan, rows.to_batches(), task=0, txn=recorded, now_ms=NOW_MS),
        kind=kind,
        operation=batch_write(kind, (), rules) if txn is None else micro_batch(kind, *txn),
        txn=recorded,
    )


def commit_files(
    log: TableLog, *paths: str, around: Surroundings | None = None, **how: Any
) -> tuple[Committed | AlreadyApplied, Snapshot]:
    """A write of the files `paths`, which is planned against the newest state and committed at once."""
    known = current_snapshot(log)
    return commit(log, known, a_write(log, known, *paths, **how), around or still())


def commit_behind(log: TableLog, *rivals: Sequence[Action], **how: Any) -> tuple[Committed | AlreadyApplied, Snapshot]:
    """A write of the file `ours`, which is planned before the commits `rivals` and committed after them."""
    known = log.load()
    ours = a_write(log, known, "ours", **how)
    for version, actions in enumerate(rivals, start=known.version + 1):
        put(log.store, version, actions)
    return commit(log, known, ours, still())


def raced(table: Store | Path, *rivals: Callable[[], object]) -> DeltaLog:
    """A log whose first puts of a commit are each preceded by a rival."""
    faults = [
        Fault(operation="put_if_absent", name="_delta_log", at=n, hook=lambda rival=rival: rival())  # type: ignore[misc]
        for n, rival in enumerate(rivals, start=1)
    ]
    return log_of(FaultyStore(LocalStore(str(table)) if isinstance(table, Path) else table, faults=faults))


def delta_plan(write: Transaction) -> DeltaPlan:
    assert isinstance(write.plan, DeltaPlan)
    return write.plan


def still(sleeps: list[float] | None = None) -> Surroundings:
    """A clock that stands, and waits that take no time and are noted in `sleeps`."""
    return Surroundings(now_ms=lambda: NOW_MS, sleep=(sleeps if sleeps is not None else []).append, uniform=lambda: 0.5)


def committed(version: int, *, written: bool = True) -> Committed:
    return Committed(version=Version(version), written=written)


def already_applied(version: int, *, recorded: int) -> AlreadyApplied:
    return AlreadyApplied(version=Version(version), recorded_txn_version=recorded)


def faulty(*faults: Fault) -> tuple[FaultyStore, DeltaLog]:
    """A table of one version whose store has `faults` from now on; its calls are counted from here too."""
    store = FaultyStore(a_table().store, faults=faults)
    return store, log_of(store)


def dead(when: Literal["before", "after"]) -> tuple[Fault, ...]:
    """Every put of a commit fails, and every reading of what stands."""
    puts = tuple(Fault(operation="put_if_absent", at=n, when=when) for n in range(1, 20))
    return puts + tuple(Fault(operation="read", name=commit_path(1), at=n) for n in range(1, 20))
