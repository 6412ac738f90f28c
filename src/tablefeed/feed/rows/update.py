"""Deletes the rows for which a predicate is true, or sets columns in them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import chain

import pyarrow as pa

from tablefeed.data.predicate import RowFilter
from tablefeed.data.retype import in_form
from tablefeed.data.sql import Asked
from tablefeed.delta.commit_info import TableChange
from tablefeed.errors import TABLE, IllegalOptionError, SchemaMismatchError
from tablefeed.feed.commit.transaction import Transaction
from tablefeed.feed.rows.expressions import compiled, evaluated
from tablefeed.feed.write.change_data import with_change
from tablefeed.feed.write.delta_plan import plan_delta_write
from tablefeed.feed.write.delta_write import write_delta_task
from tablefeed.feed.write.orphans import deleted_on_error
from tablefeed.feed.write.taking_out import counts, taken_out
from tablefeed.feed.write.target_rows import TargetRows
from tablefeed.log.changes import ChangeType
from tablefeed.log.conflicts import WriteKind
from tablefeed.model.actions import AddFile, Txn
from tablefeed.model.schema import Struct


def as_spelled(given: Mapping[str, str], schema: Struct, *, option: str) -> dict[str, str]:
    """Gives the `given` texts by column, as `schema` spells it. Raises IllegalOptionError for another column or a twin.

    `option` names where the texts were given.
    """
    spelled = {name.lower(): name for name in schema.names}
    texts: dict[str, str] = {}
    for name, text in given.items():
        ours = spelled.get(name.lower())
        if ours is None or ours in texts:
            reason = f"is no column of {TABLE}" if ours is None else "is set twice"
            raise IllegalOptionError(option=option, value=name, explain=f"{reason}; it has {', '.join(schema.names)}")
        texts[ours] = text
    return texts


def deletion(
    target: TargetRows, rows: RowFilter, *, shown: str, txn: Txn | None, now_ms: Callable[[], int]
) -> Transaction | None:
    """Gives the transaction that deletes the rows for which `rows` is true; `shown` is the predicate in the log.

    None where there is no such row, and no `txn` to record.
    """
    return _changing(target, rows, None, shown=shown, txn=txn, now_ms=now_ms())


def updating(
    target: TargetRows,
    given: Mapping[str, str],
    rows: RowFilter | None,
    *,
    shown: str | None,
    txn: Txn | None,
    now_ms: Callable[[], int],
) -> Transaction | None:
    """Does as `deletion`, but sets the columns of `given` in the rows; `rows` and `shown` are None for all rows.

    A generated column that is not set is generated anew. Raises IllegalOptionError for an unknown column and for an
    expression that is not evaluated exactly as Spark does, InvalidRowsError where Spark would raise for a row.
    """
    schema, begun_ms = target.snapshot.schema, now_ms()
    texts = as_spelled(given, schema, option="set")
    identity = next((name for name in texts if name in target.identity), None)
    if identity is not None:
        raise SchemaMismatchError(
            f"Column {identity!r} of {TABLE} is an identity column, whose values are not updated. Nothing was "
            "committed. Leave it out.",
            error_class="DELTA_IDENTITY_COLUMNS_UPDATE_NOT_SUPPORTED",
        )
    if not texts:
        raise IllegalOptionError(option="set", value="{}", explain="must name a column and its new value")
    kinds = {field.name: field.type for field in schema}
    asked = [Asked(text=text, wanted=kinds[name]) for name, text in texts.items()]
    program = compiled(asked, schema, option="set", now_us=begun_ms * 1000, zone=target.zone)
    generated = target.generated.difference(texts)

    def new(batch: pa.RecordBatch) -> pa.RecordBatch:
        for name, value in zip(texts, evaluated(program, batch, doing="update"), strict=True):
            at = batch.schema.get_field_index(name)
            field = batch.schema.field(at)
            batch = batch.set_column(at, field, in_form(value, field.type))
        return batch.drop_columns(sorted(generated))

    kept = Struct(tuple(field for field in schema if field.name not in generated))
    return _changing(target, rows, (kept, new), shown=shown, txn=txn, now_ms=begun_ms)


def _changing(
    target: TargetRows,
    rows: RowFilter | None,
    update: tuple[Struct, Callable[[pa.RecordBatch], pa.RecordBatch]] | None,
    *,
    shown: str | None,
    txn: Txn | None,
    now_ms: int,
) -> Transaction | None:
    """Deletes rows, or replaces them by `update`: the columns of the new rows, and what makes them from a batch."""
    snapshot = target.snapshot
    target.check_rows_may_go()
    brought = snapshot.schema if update is None else update[0]
    plan = plan_delta_write(
        snapshot.log,
        snapshot,
        brought,
        kind=WriteKind.CHANGE,
        rules=target.write_rules,
        now_ms=now_ms,
        adds_rows=update is not None,
    )
    hits = list(target.hits(rows))
    if not hits and txn is None:
        return None
    files: tuple[AddFile, ...] = ()
    with deleted_on_error(snapshot.log.store) as written:
        if update is not None:
            after = map(update[1], target.rows_of(hits, with_ids=True))
            kept = replace(plan, carried=target.id_column)
            files = write_delta_task(kept, after, task=0, now_ms=now_ms, store=snapshot.log.store)
            written += (file.path for file in files)
        rewriting = taken_out(
            plan,
            target,
            hits,
            now_ms=now_ms,
            changes=lambda: chain(
                with_change(target.rows_of(hits), ChangeType.UPDATE_PREIMAGE if files else ChangeType.DELETE),
                with_change(target.read(files, target.schema), ChangeType.UPDATE_POSTIMAGE),
            ),
            updates=bool(files),
        )
    name, metric = ("DELETE", "numDeletedRows") if update is None else ("UPDATE", "numUpdatedRows")
    metrics = {metric: rewriting.deleted_rows, "numCopiedRows": rewriting.copied_rows, **counts(rewriting)}
    metrics["numAddedFiles"] += len(files)
    metrics["numAddedBytes"] += sum(file.size_bytes for file in files)
    predicate = {} if shown is None else {"predicate": json.dumps([shown])}
    return Transaction(
        plan=plan,
        files=files,
        kind=WriteKind.CHANGE,
        operation=TableChange(name=name, parameters=predicate, metrics=metrics),
        txn=txn,
        rewriting=rewriting,
        reads=lambda file: target.may_match(file, rows),
    )
