"""Turns the changes that a user gives into the events that `fold` takes: kind, sequence, columns of the table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import tzinfo

import pyarrow as pa
import pyarrow.compute as pc

from tablefeed.data.assignment import Assignment
from tablefeed.data.casts import INVALID_INPUT, by_value, cast
from tablefeed.data.partition import empty_is_null
from tablefeed.data.retype import is_text
from tablefeed.delta.schema.arrow_schema import from_arrow, to_arrow
from tablefeed.errors import TABLE, ConflictingOptionsError, IllegalOptionError, SchemaMismatchError
from tablefeed.feed.rows.apply import Batch, check
from tablefeed.feed.rows.asking import Asking
from tablefeed.feed.rows.columns import first, in_one_array, member, struct_of, with_types
from tablefeed.feed.rows.envelopes import unwrapped
from tablefeed.feed.rows.expressions import converted, held, in_plain_types
from tablefeed.feed.rows.folding import ABSENT, END_AT, KIND, SEQUENCE, START_AT, Folding, Kind, chosen_columns
from tablefeed.feed.rows.snapshot_events import type_of
from tablefeed.feed.write.align import align, aligned, check_zone
from tablefeed.feed.write.table_change import changed_table
from tablefeed.feed.write.target_rows import TargetRows
from tablefeed.feed.write.write_rules import WriteRules
from tablefeed.model.schema import DataType, Field, Primitive, Struct, describe, widens
from tablefeed.model.spark_texts import keeps_moment


def batch_of(changes: pa.Table, asked: Asking, target: Struct, partition_columns: Sequence[str]) -> Batch:
    """Gives the events of `changes`, in their order, for a table with the columns of `target`.

    Raises OptionError for arguments that name no column or exclude each other, SchemaMismatchError for changes that do
    not fit the table and for keys that it would round, InvalidRowsError for a value that does not; else as `unwrapped`.
    """
    changes, asked = unwrapped(changes, asked, target)
    typed = with_types({name: changes[name] for name in changes.column_names}, to_arrow(target))
    kinds = pa.schema([each.with_type(typed[each.name].type) for each in changes.schema])
    changes = pa.Table.from_arrays([*typed.values()], schema=kinds)
    source = from_arrow(changes.schema)
    spelled = {field.name.lower(): field.name for field in source}
    marked = _marked(source, changes.schema)
    _refuse_collated(marked, asked)
    chosen = _chosen(asked, source, spelled)
    columns = _of_table(chosen, target, asked)
    sequence = _sequence(changes, asked, spelled)
    how = _folding(asked, columns, target, sequence.type)
    assignment = Assignment(zone=asked.time_zone)
    check_zone(columns, source, assignment)
    alignment = align(columns, source, partition_columns=partition_columns)
    fitted = pa.Table.from_batches(aligned(changes.to_batches(), alignment, how.schema, assignment), how.schema)
    for name in how.keys:
        _refuse_rounded(name, changes[spelled[name.lower()]], fitted[name], asked.time_zone)
    fitted = empty_is_null(fitted, [name for name in how.schema.names if name in partition_columns])
    sequence = converted(sequence, how.sequence, "sequence of the changes")
    events = fitted.append_column(KIND, _kinds(changes, asked, marked))
    if how.absent:
        marks = {name.lower(): member(changes[ABSENT], name) for name in asked.absent}
        events = events.append_column(ABSENT, struct_of({name: marks[name.lower()] for name in how.absent}))
    return Batch(events=events.append_column(SEQUENCE, sequence), how=how)


def _refuse_rounded(name: str, given: pa.ChunkedArray, kept: pa.ChunkedArray, zone: tzinfo | None) -> None:
    """Raises SchemaMismatchError where the key column `name` keeps another number or time than was given.

    `zone` is the one in which dates and times without zone were read as instants.
    """
    if pa.types.is_dictionary(given.type):
        given = given.cast(given.type.value_type)
    if given.type == kept.type:
        return
    exact, back = given, kept
    if is_text(given.type) and (pa.types.is_decimal(kept.type) or pa.types.is_date(kept.type)):
        wide = pa.timestamp("us") if pa.types.is_date(kept.type) else pa.decimal256(76, 38)
        convert = cast(given.type, wide, zone=None)
        exact, back = pa.chunked_array(map(convert, given.chunks), wide), kept.cast(wide)
    elif is_text(given.type) and pa.types.is_timestamp(kept.type):
        of = zone if _is_instant(kept.type) else None
        keeps = by_value(given.type, pa.bool_(), lambda text: keeps_moment(text, of), INVALID_INPUT)
        whole = pa.chunked_array(map(keeps, given.chunks), pa.bool_())
        exact, back = kept, pc.if_else(whole, kept, pa.scalar(None, kept.type))
    elif _is_instant(given.type) != _is_instant(kept.type) and pa.types.is_temporal(given.type):
        plain = given.type if pa.types.is_date(given.type) else pa.timestamp("us", tz=given.type.tz)
        convert = cast(kept.type, plain, zone)
        back = pa.chunked_array(map(convert, kept.chunks), plain).cast(given.type)
    elif _is_measured(given.type) and _is_measured(kept.type):
        try:
            back = kept.cast(given.type, safe=False)
        except pa.ArrowException:  # a double that was rounded up to one digit more than the decimal has
            back = pa.nulls(len(given), given.type)
    else:
        return
    # Not-a-number is the only value that does not equal itself. It is refused later, and so is null.
    unequal = pc.and_(pc.fill_null(pc.not_equal(back, exact), fill_value=True), pc.equal(exact, exact))
    if (at := first(unequal)) is not None:
        raise SchemaMismatchError(
            f"The key column {name} of {TABLE} is {kept.type} and cannot hold the key {given[at].cast(pa.string())} of "
            f"the changes, which is {given.type}: it would become the key {kept[at].cast(pa.string())}. Nothing was "
            "committed. Cast the keys, or filter these changes.",
            error_class="DELTA_FAILED_TO_MERGE_FIELDS",
        )


def _is_instant(kind: pa.DataType) -> bool:
    return pa.types.is_timestamp(kind) and kind.tz is not None


def _is_measured(kind: pa.DataType) -> bool:
    is_a = pa.types
    return any(check(kind) for check in (is_a.is_integer, is_a.is_floating, is_a.is_decimal, is_a.is_temporal))


@in_one_array()
def fitted(target: TargetRows, changes: pa.Table, asked: Asking) -> tuple[TargetRows, Batch]:
    """Gives the events of `changes`, and the table with the columns that they add to it where the user asked for it.

    Raises as `batch_of` and `check`, and SchemaMismatchError and UnsupportedFeatureError for columns that the table
    cannot have.
    """
    if asked.merge_schema:
        target = _with_new_columns(target, changes.schema, asked)
    batch = batch_of(changes, asked, target.snapshot.schema, target.snapshot.metadata.partition_columns)
    check(target, batch.how)
    return target.in_zone(asked.time_zone), batch


def _with_new_columns(target: TargetRows, changes: pa.Schema, asked: Asking) -> TargetRows:
    snapshot = target.snapshot
    plain, asked = unwrapped(changes.empty_table(), asked, snapshot.schema)
    source = from_arrow(plain.schema)
    chosen = _chosen(asked, source, {field.name.lower(): field.name for field in source})
    known = {name.lower() for name in snapshot.schema.names}
    new = Struct(tuple(field for field in source if field.name in chosen and field.name.lower() not in known))
    if not new.fields:
        return target
    table = changed_table(snapshot, new, rules=WriteRules(merges_schema=True))
    after = replace(snapshot, metadata=table.metadata or snapshot.metadata, protocol=table.protocol)
    return TargetRows(after, before=snapshot)


def _chosen(asked: Asking, source: Struct, spelled: dict[str, str]) -> tuple[str, ...]:
    """The columns of the source that the table gets."""
    if asked.column_list is not None and asked.except_column_list is not None:
        raise ConflictingOptionsError(options=("column_list", "except_column_list"), remedy="Set one of them.")
    but = {_column(name, spelled, "except_column_list") for name in asked.except_column_list or ()}
    if asked.column_list is None:
        return tuple(name for name in source.names if name not in but)
    only = {_column(name, spelled, "column_list") for name in asked.column_list}
    return tuple(name for name in source.names if name in only)


def _column(name: str, spelled: dict[str, str], option: str) -> str:
    found = spelled.get(name.lower())
    if found is None:
        explain = f"is no column of the changes, which have {', '.join(spelled.values())}"
        raise IllegalOptionError(option=option, value=name, explain=explain)
    return found


def _of_table(chosen: Sequence[str], target: Struct, asked: Asking) -> Struct:
    """The columns of the table that events fill."""
    own = (START_AT, END_AT) if asked.stored_as_scd_type == 2 else ()
    missing = [name for name in own if name not in target.names]
    if missing:
        raise SchemaMismatchError(
            f"{TABLE} has no column {missing[0]}, which keeps the history of its rows (SCD type 2). Nothing was "
            "committed. Create the table with it, in the type of sequence_by.",
            error_class="AUTOCDC_SCD2_TARGET_COLUMNS_MISSING",
        )
    known = {name.lower() for name in target.names}
    extra = [name for name in chosen if name.lower() not in known]
    if extra:
        raise SchemaMismatchError(
            f"The changes have columns that {TABLE} lacks: {', '.join(extra)}. Nothing was committed. List them in "
            "except_column_list, or let apply_changes add them: merge_schema=True.",
            error_class="DELTA_METADATA_MISMATCH",
        )
    named = {name.lower() for name in chosen}
    return Struct(tuple(field for field in target if field.name.lower() in named and field.name not in own))


def _folding(asked: Asking, columns: Struct, target: Struct, sequence: pa.DataType) -> Folding:
    # A delete may have only its key, so all fields are nullable here. Rows are checked when they are written.
    schema = pa.schema([(field.name, field.type) for field in to_arrow(columns)])
    by_name = {name.lower(): name for name in schema.names}

    def ours(names: Sequence[str] | None) -> tuple[str, ...] | None:
        return None if names is None else tuple(by_name.get(name.lower(), name) for name in names)

    keys = ours(asked.keys) or ()
    values = [name for name in schema.names if name not in keys]
    sparse = chosen_columns(
        "ignore_null_updates",
        values,
        every=asked.ignore_null_updates,
        only=ours(asked.ignore_null_updates_column_list),
        but=ours(asked.ignore_null_updates_except_column_list),
    )
    absent = {name.lower() for name in asked.absent}
    tracked = chosen_columns(
        "track_history",
        values,
        only=ours(asked.track_history_column_list),
        but=ours(asked.track_history_except_column_list),
    )
    kind = type_of(from_arrow(pa.schema([("s", sequence)])), "s")
    own = by_name.get(asked.sequence_by[0].lower()) if len(asked.sequence_by) == 1 else None
    stored = type_of(columns, own) if own is not None and own not in (sparse or ()) else None
    if asked.stored_as_scd_type == 2:
        kind, own = _interval(kind, target), None
    elif stored is not None and _keeps_order(kind, stored):
        kind = stored
    else:
        own = None  # if the table does not hold it exactly, the state has it
    return Folding(
        schema=schema,
        keys=keys,
        sequence=to_arrow(Struct((Field("s", kind, nullable=True),))).field(0).type,
        scd_type=asked.stored_as_scd_type,
        sequence_column=own,
        ignore_nulls=sparse or (),
        absent=tuple(name for name in values if name.lower() in absent),
        tracked=tracked,
        ties=asked.ties,
        leaves_columns=len(columns.fields) < len(target.fields),
        snapshot_at=asked.snapshot_at,
        forget_after_ms=None if (seconds := asked.tombstone_gc_threshold_in_seconds) is None else 1000 * seconds,
    )


def _keeps_order(given: DataType, stored: DataType) -> bool:
    """Whether a column of the type `stored` holds the values of `given` exactly, or refuses one."""
    return given == stored or widens(given, stored) or (given in _INTEGERS and stored in _INTEGERS)


_INTEGERS = tuple(Primitive(name) for name in ("byte", "short", "integer", "long"))


def _interval(given: DataType, target: Struct) -> DataType:
    """The type of START_AT and END_AT. Raises SchemaMismatchError unless both can hold the sequence."""
    start, end = (type_of(target, name) for name in (START_AT, END_AT))
    if start != end or not (given == start or widens(given, start)):
        types = ", ".join(f"{name} is {describe(kind)}" for name, kind in ((START_AT, start), (END_AT, end)))
        raise SchemaMismatchError(
            f"The columns that keep the history of {TABLE} do not fit sequence_by, which is {describe(given)}: {types}."
            " Nothing was committed. Create the table with both in the type of sequence_by, or cast sequence_by.",
            error_class="DELTA_FAILED_TO_MERGE_FIELDS",
        )
    return start


def _sequence(changes: pa.Table, asked: Asking, spelled: dict[str, str]) -> pa.ChunkedArray:
    names = [_column(name, spelled, "sequence_by") for name in asked.sequence_by]
    if len(names) == 1:
        return changes[names[0]]
    columns = [changes[name].combine_chunks() for name in names]
    return pa.chunked_array([pa.StructArray.from_arrays(columns, names)])


def _marked(source: Struct, changes: pa.Schema) -> Struct:
    """Gives `source` with the metadata in `changes`, where spark/char.py marks CHAR and collated columns."""
    marks = (
        {key.decode(errors="replace"): value.decode(errors="replace") for key, value in (each.metadata or {}).items()}
        for each in changes
    )
    return Struct(tuple(replace(field, metadata=each) for field, each in zip(source, marks, strict=True)))


def _refuse_collated(marked: Struct, asked: Asking) -> None:
    collated = {field.name.lower() for field in marked if "__COLLATIONS" in field.metadata}
    for option, names in (("keys", asked.keys), ("sequence_by", asked.sequence_by)):
        for name in names:
            if name.lower() in collated:
                explain = "has a collation, whose order and equal texts are not known here; cast the column to STRING"
                raise IllegalOptionError(option=option, value=name, explain=explain)


def _kinds(changes: pa.Table, asked: Asking, source: Struct) -> pa.Array:
    kinds = pa.repeat(pa.scalar(str(Kind.UPSERT)), changes.num_rows)
    given = {"apply_as_deletes": Kind.DELETE, "apply_as_truncates": Kind.TRUNCATE}
    rows = None
    for option, kind in given.items():
        text = getattr(asked, option)
        if text is not None:
            rows = in_plain_types(changes, source, of="changes") if rows is None else rows
            kinds = pc.if_else(
                held(rows, text, source, option=option, zone=asked.time_zone), pa.scalar(str(kind)), kinds
            )
    return kinds
