"""Sets columns in the rows for which a predicate is true."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain

import pyarrow as pa

from tablefeed.data.predicate import RowFilter
from tablefeed.data.sql import Asked, Program
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
from tablefeed.model.actions import Txn
from tablefeed.model.schema import Struct


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignments:
    """The SQL texts of new values, by the columns that get them, as the table spells these; and their program."""

    texts: Mapping[str, str]
    program: Program

    def of(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Gives `rows` with the new values. Raises InvalidRowsError where Spark would raise for a row."""
        values = dict(zip(self.texts, evaluated(self.program, rows, doing="update"), strict=True))
        columns = [
            values[field.name].cast(field.type) if field.name in values else column
            for field, column in zip(rows.schema, rows.columns, strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, schema=rows.schema)


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


def assignments(given: Mapping[str, str], schema: Struct, *, made: frozenset[str], now_us: int) -> Assignments:
    """Gives the `given` SQL texts of new values by column, for rows of `schema`; `made` are its identity columns.

    Raises IllegalOptionError for an unknown column and for an expression that is not evaluated exactly as Spark does.
    """
    texts = as_spelled(given, schema, option="set")
    identity = next((name for name in texts if name in made), None)
    if identity is not None:
        raise SchemaMismatchError(
            f"Column {identity!r} of {TABLE} is an identity column, whose values are not updated. Nothing was "
            "committed. Leave it out.",
            error_class="DELTA_IDENTITY_COLUMNS_UPDATE_NOT_SUPPORTED",
        )
    kinds = {field.name: field.type for field in schema}
    asked = [Asked(text=text, wanted=kinds[name]) for name, text in texts.items()]
    if not texts:
        raise IllegalOptionError(option="set", value="{}", explain="must name a column and its new value")
    return Assignments(texts=texts, program=compiled(asked, schema, option="set", now_us=now_us))


def updating(
    target: TargetRows,
    given: Mapping[str, str],
    rows: RowFilter | None,
    *,
    shown: str | None,
    txn: Txn | None,
    now_ms: Callable[[], int],
) -> Transaction | None:
    """Gives the transaction that sets the columns of `given` in the rows for which `rows` is true; None: in all.

    `shown` is the predicate in the log. None where there is no such row, and no `txn` to record. A generated column
    that is not set is generated anew.
    """
    snapshot, begun_ms = target.snapshot, now_ms()
    schema = snapshot.schema
    target.check_rows_may_go()
    new = assignments(given, schema, made=frozenset(target.identity), now_us=begun_ms * 1000)
    generated = target.generated.difference(new.texts)
    brought = Struct(tuple(field for field in schema if field.name not in generated))
    plan = plan_delta_write(snapshot.log, snapshot, brought, kind=WriteKind.CHANGE, now_ms=begun_ms)
    hits = list(target.hits(rows))
    if not hits and txn is None:
        return None

    def after() -> Iterator[pa.RecordBatch]:
        return (new.of(batch).drop_columns(sorted(generated)) for batch in target.rows_of(hits, with_ids=True))

    with deleted_on_error(snapshot.log.store) as written:
        files = write_delta_task(replace(plan, carried=target.id_column), after(), task=0, now_ms=begun_ms)
        written += (file.path for file in files)
        rewriting = taken_out(
            plan,
            target,
            hits,
            now_ms=begun_ms,
            changes=lambda: chain(
                with_change(target.rows_of(hits), ChangeType.UPDATE_PREIMAGE),
                with_change(target.read(files, target.schema), ChangeType.UPDATE_POSTIMAGE),
            ),
            updates=bool(hits),
        )
    metrics = {"numUpdatedRows": rewriting.deleted_rows, "numCopiedRows": rewriting.copied_rows, **counts(rewriting)}
    metrics["numAddedFiles"] += len(files)
    metrics["numAddedBytes"] += sum(file.size_bytes for file in files)
    predicate = {} if shown is None else {"predicate": json.dumps([shown])}
    return Transaction(
        plan=plan,
        files=files,
        kind=WriteKind.CHANGE,
        operation=TableChange(name="UPDATE", parameters=predicate, metrics=metrics),
        txn=txn,
        rewriting=rewriting,
        reads=lambda file: target.may_match(file, rows),
    )
