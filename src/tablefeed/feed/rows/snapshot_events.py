"""Turns snapshots of a source into change events, and applies several snapshots in their order.

At the version of a snapshot there is an upsert of each of its rows, and a delete of each key that the table has. An
upsert wins over a delete at one sequence, so only rows of keys that the snapshot lacks are deleted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tablefeed.delta.schema.arrow_schema import from_arrow
from tablefeed.errors import TABLE, IllegalOptionError, InvalidEventsError, SchemaMismatchError
from tablefeed.feed.rows import state as states
from tablefeed.feed.rows.apply import Batch
from tablefeed.feed.rows.asking import Asking
from tablefeed.feed.rows.folding import END_AT, KIND, SEQUENCE, Kind
from tablefeed.feed.snapshot.table_log import Snapshot
from tablefeed.feed.write.target_rows import TargetRows
from tablefeed.model.outcome import AlreadyApplied, Committed
from tablefeed.model.schema import DataType, Struct, plain, widens

AT, IS_GONE = "__SNAPSHOT_AT", "__IS_GONE"
"""Columns of a snapshot: its version, and whether it may lack the key."""


def as_events(rows: pa.Table, asked: Asking) -> tuple[pa.Table, Asking]:
    """Gives the rows of a snapshot as events, as `envelopes.unwrapped` does; rows with a true IS_GONE are deletes."""
    events = rows.append_column(AT, pa.repeat(asked.snapshot_at, rows.num_rows))
    own = tuple(name for name in (AT, IS_GONE) if name in events.column_names)
    excepted = asked.except_column_list if asked.column_list is not None else (*(asked.except_column_list or ()), *own)
    deletes = f"{IS_GONE} = true" if IS_GONE in own else None
    return events, replace(asked, sequence_by=(AT,), apply_as_deletes=deletes, except_column_list=excepted)


def refuse_own_columns(rows: pa.Schema, *own: str) -> None:
    """Raises SchemaMismatchError where `rows` of a user have a column named as in `own`, else a snapshot's."""
    taken = [name for name in rows.names if name.upper() in (own or (AT, IS_GONE))]
    if taken:
        raise SchemaMismatchError(
            f"The rows for {TABLE} have a column {taken[0]}, a name that tablefeed uses itself. Nothing was committed. "
            "Rename the column, or drop it.",
            error_class="AUTOCDC_RESERVED_COLUMN_NAME_CONFLICT",
        )


def with_deletes(target: TargetRows, batch: Batch) -> Batch:
    """Adds a delete of each key of the table to the events of a snapshot. Gives other events unchanged."""
    how, events = batch.how, batch.events
    if how.snapshot_at is None:
        return batch
    names = (*how.keys, *((END_AT,) if how.scd_type == 2 else ()))
    wanted = pa.schema([target.schema.field(name) for name in names])
    known = pa.Table.from_batches(target.read(target.files(None), wanted), wanted)
    if how.scd_type == 2:
        known = known.filter(pc.is_null(known[END_AT]))
    count = known.num_rows
    columns = {field.name: pa.nulls(count, field.type) for field in events.schema}
    columns |= {name: known[name] for name in how.keys}
    columns[KIND] = pa.repeat(pa.scalar(str(Kind.DELETE)), count)
    # As a column: Arrow does not take a scalar's time zone for another one.
    columns[SEQUENCE] = pa.repeat(how.snapshot_at, count).cast(how.sequence)
    return replace(batch, events=pa.concat_tables([events, pa.table(columns, schema=events.schema)]))


def is_applied(table: Snapshot, at: pa.Scalar | None) -> bool:
    """Whether the newest applied snapshot has the version `at`. Raises InvalidEventsError if `at` is older.

    `at` is None for changes that are no snapshot.
    """
    known = None if at is None else states.read_state(table).snapshot_at
    if at is None or known is None:
        return False
    given, kept = (type_of(from_arrow(pa.schema([(AT, each)])), AT) for each in (at.type, known.type))
    if given != kept and not widens(given, kept):
        return False  # `fold` refuses the other type, such as a time of the day where dates are kept
    try:
        version = at.cast(known.type)
    except pa.ArrowException:
        return False  # the type cannot hold it: it is refused later
    if pc.less(version, known).as_py():
        raise InvalidEventsError(
            f"Version {known.as_py()!r} of the source was applied to {TABLE}, so the older snapshot of version "
            f"{version.as_py()!r} is refused. Nothing was committed. Give snapshots in the order of their versions.",
            error_class="AUTOCDC_SNAPSHOT_OUT_OF_ORDER",
        )
    return bool(version == known)


def type_of(schema: Struct, name: str) -> DataType:
    """The type of a column, without its metadata."""
    return next(field.type for field in plain(schema) if field.name == name)


def in_order(
    snapshots: tuple[Any, Any] | Callable[[Any], tuple[Any, Any] | None],
    newest: Callable[[], Snapshot],
    apply: Callable[[Any, pa.Scalar], Committed | AlreadyApplied],
) -> Committed:
    """Applies the snapshots that `snapshots` gives, in order. Gives the last commit, or else the table's version."""
    done: Committed | None = None
    while True:
        table = newest()
        known = states.read_state(table).snapshot_at
        found: Any = snapshots(None if known is None else known.as_py()) if callable(snapshots) else snapshots
        if found is None and callable(snapshots):
            return done or Committed(version=table.version, written=False)
        if not isinstance(found, tuple) or len(found) != 2:
            explain = "must give a snapshot as a pair: its rows and its version"
            raise IllegalOptionError(option="snapshots", value=str(found), explain=explain)
        rows, at = found[0], _scalar(found[1])
        if is_applied(table, at):
            return done or Committed(version=table.version, written=False)
        outcome = apply(rows, at)
        done = outcome if isinstance(outcome, Committed) else Committed(version=outcome.version, written=False)
        if not callable(snapshots):
            return done


def _scalar(version: Any) -> pa.Scalar:
    try:
        found = pa.scalar(version)
    except (pa.ArrowException, OverflowError, UnicodeEncodeError):
        found = pa.scalar(None)
    kind = found.type
    if pc.is_null(found, nan_is_null=True).as_py() or pa.types.is_boolean(kind) or pa.types.is_nested(kind):
        explain = "must come with a version: a number, a text, a date or a time"
        raise IllegalOptionError(option="snapshots", value=repr(version), explain=explain)
    return found
