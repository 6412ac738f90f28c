"""Debezium's change events, in columns or as JSON text, as plain events.

The form is that of "Change event values" in Debezium's pages on its connectors: `before`, `after`, `op`, `source`,
`ts_ms`, as columns, as members of one column `value` or `payload`, or as JSON in a column `value` beside Kafka's `key`.
A plain event has the columns of the row. After them come the other columns of the changes, named with two underscores.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tablefeed.data.retype import is_bytes, is_text
from tablefeed.delta import names
from tablefeed.delta.schema.arrow_schema import to_arrow
from tablefeed.errors import TABLE, InvalidRowsError, SchemaMismatchError
from tablefeed.feed.rows.asking import Asking
from tablefeed.feed.rows.columns import LONG, flat, gather, is_true, nulls, with_types
from tablefeed.feed.rows.debezium_order import OFFSET, POSITION, position, refuse_shared_places, refused
from tablefeed.feed.rows.debezium_values import UNAVAILABLE_TEXTS, Declared, Read, reader, refuse_unknown, unavailable
from tablefeed.feed.rows.events import key_numbers
from tablefeed.feed.rows.folding import ABSENT, END_AT, START_AT
from tablefeed.model.schema import Struct
from tablefeed.model.shown import shown

OP, ORDER = "__op", "__position"
_TS, _SOURCE_TS = "__ts_ms", "__source_ts_ms"
_SAID = ("op", "source", "ts_ms")
_PARTS = ("before", "after", *_SAID, "ts_us", "ts_ns", "transaction")
_OPS = ("c", "u", "r", "d", "t")


@dataclass(frozen=True, slots=True)
class _Changes:
    """The images of rows before and after each change, by column, and the fields of the envelopes.

    `absent` marks the fields that `new` lacks, `unknown` those with the placeholder of a value that the database did
    not give. If both are None, the placeholders are in `new`.
    """

    old: Mapping[str, pa.ChunkedArray]
    new: Mapping[str, pa.ChunkedArray]
    said: Mapping[str, list[Any]]
    absent: Mapping[str, pa.ChunkedArray] | None = None
    unknown: Mapping[str, pa.ChunkedArray] | None = None

    @property
    def op(self) -> list[Any]:
        return self.said["op"]


def unwrapped(changes: pa.Table, asked: Asking, target: Struct) -> tuple[pa.Table, Asking]:
    """See `envelopes.unwrapped`."""
    beside, envelope = _envelope(changes)
    wanted = _wanted(asked, target)
    found = _of_json(changes, asked, wanted) if envelope is None else _of_columns(envelope, wanted)
    other = [op for op in found.op if op not in _OPS]
    if other:
        raise refused(f"op is {shown(other[0])} in an event, which changes no row. Filter such events.")
    sequence_by = asked.sequence_by
    if not sequence_by:
        sequence_by = (OFFSET,) if {"offset", "partition"} <= {*beside.column_names} else (ORDER,)
        if sequence_by == (OFFSET,) and "t" in found.op:
            raise refused("the offset of a truncate orders it in one partition only. Set sequence_by, or filter it.")
    said = {f"__{name}": beside[name] for name in beside.column_names}
    said |= _said(found, with_order=sequence_by == (ORDER,))
    keys = {name.lower() for name in asked.keys}
    left_out = {name.lower() for name in asked.except_column_list or ()}
    if asked.column_list is not None:
        left_out = {*map(str.lower, found.new)} - {*map(str.lower, asked.column_list)}
    rows, columns = _events(found, said, keys, left_out)
    if ORDER in columns and any((source or {}).get("connector") == "mysql" for source in found.said["source"]):
        events = pa.table({name: rows[name] for name in rows if name.lower() in keys})
        refuse_shared_places(events, columns[ORDER], is_upsert=pc.not_equal(columns[OP], "d"))
    taken = [name for name in rows if name in columns]
    if taken:
        text = f"Column {taken[0]} of {TABLE} has the name of a column that Debezium's envelope gets."
        raise SchemaMismatchError(f"{text} List it in except_column_list.")
    if asked.apply_as_deletes is None and "d" in found.op and {*map(str.lower, sequence_by)} <= {*map(str.lower, rows)}:
        text = f"a delete has in sequence_by ({', '.join(sequence_by)}) the values of its row, so it is not newer"
        raise refused(f"{text}. Leave sequence_by out, or add a column of the envelope to it.")
    # Of JSON, what is not wanted is left out already.
    excepted = (*(() if envelope is None else asked.except_column_list or ()), *columns)
    return pa.table({**rows, **columns}), replace(
        asked,
        source=None,
        sequence_by=sequence_by,
        apply_as_deletes=asked.apply_as_deletes or f"{OP} = 'd'",
        apply_as_truncates=asked.apply_as_truncates or f"{OP} = 't'",
        except_column_list=asked.except_column_list if asked.column_list is not None else excepted,
        absent=tuple(columns[ABSENT].type.names) if ABSENT in columns else (),
    )


def _events(
    found: _Changes, said: Mapping[str, Any], keys: set[str], left_out: set[str]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Gives the rows of the events, by column, and the columns beside them: OP, ABSENT and those of `said`.

    Columns in `left_out` do not go to the table.
    """
    count, events = len(found.op), list(_places(found, keys))
    op, at, keys_at, values_at = ([event[i] for event in events] for i in range(4))
    columns = {name: values.take(pa.array(at, LONG)) for name, values in said.items()}
    columns[OP] = pa.array(op, pa.string())
    # A row that is read or created, and one whose key was changed: then a delete of the same change comes before it.
    begins = pa.array([each in ("c", "r") or (i > 0 and at[i - 1] == at[i]) for i, each in enumerate(op)], pa.bool_())
    rows: dict[str, pa.Array] = {}
    absent: dict[str, pa.Array] = {}
    for name, given in found.new.items():
        is_key = name.lower() in keys
        places = pa.array(keys_at if is_key else values_at, LONG)
        column = _plain(given)
        old = _cast(found.old.get(name, nulls(count, column.type)), column.type, name)
        rows[name] = flat(gather([column, old], places))
        marks = unknown = unavailable(rows[name])
        if found.absent is not None and found.unknown is not None:
            marks, unknown = (
                is_true(flat(gather([each[name], nulls(count, pa.bool_())], places)))
                for each in (found.absent, found.unknown)
            )
        if marks is not None and not is_key:
            if name.lower() not in left_out:
                refuse_unknown(name, pc.and_(unknown, begins))
            absent[name] = marks
            rows[name] = pc.if_else(marks, pa.scalar(None, column.type), rows[name])
    if absent:
        columns[ABSENT] = pa.StructArray.from_arrays([*absent.values()], [*absent])
    return rows, columns


def _places(found: _Changes, keys: set[str]) -> Iterator[tuple[str, int, int | None, int | None]]:
    """Gives for each event its op, and the indices of its change, of its key and of its other values.

    The indices count all images from `after`, then all from `before`. A truncate has no image. An update that changes
    the key becomes two events: a delete, in which only the key is that of `before`, and an upsert.
    """
    shared = [name for name in found.new if name.lower() in keys and name in found.old]
    changed = [_differs(found.old[name], _plain(found.new[name]), name).to_pylist() for name in shared]
    for at, op in enumerate(found.op):
        if op == "u" and any(each[at] for each in changed):
            yield "d", at, len(found.op) + at, at
        image = {"d": len(found.op) + at, "t": None}.get(op, at)
        yield op, at, image, image


def _differs(old: pa.ChunkedArray, new: pa.ChunkedArray, name: str) -> pa.Array:
    """Says of which changes the key column `name` was another one before."""
    # By Arrow: Python has no time after the year 9999, and no text that is not UTF-8.
    before, after = key_numbers([pa.table({name: each}) for each in (_cast(old, new.type, name), new)], [name])
    return pc.and_(flat(pc.is_valid(old)), pc.not_equal(before, after))


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    # Arrow cannot take values by index from arrays of view types, nor compare the values of two dictionaries.
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    return column.cast({pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}.get(kind, kind))


def _said(found: _Changes, *, with_order: bool) -> dict[str, pa.Array]:
    """The columns with the fields of each change's envelope."""
    sources = [source or {} for source in found.said["source"]]
    try:
        columns = {
            _TS: pa.array(found.said["ts_ms"], LONG),
            _SOURCE_TS: pa.array([source.get("ts_ms") for source in sources], LONG),
        }
        if with_order:
            columns[ORDER] = pa.array(map(position, sources, found.op), POSITION)
    except (pa.ArrowException, AttributeError, OverflowError, UnicodeError) as error:
        raise refused(f"the field source or ts_ms of an event cannot be read: {error}. Filter it.") from error
    return columns


def _envelope(changes: pa.Table) -> tuple[pa.Table, dict[str, pa.ChunkedArray] | None]:
    """Gives the other columns and the parts of the envelope; None where these are JSON in the column `value`."""
    have = changes.column_names
    if {"after", "op", "source"} <= {*have}:
        parts = {name: changes[name] for name in have if name in _PARTS}
        return changes.drop_columns([*parts]), parts
    for name in ("value", "payload"):
        kind = changes.schema.field(name).type if name in have else pa.null()
        if pa.types.is_struct(kind) and {"after", "op", "source"} <= {*kind.names}:
            return changes.drop_columns([name]), _members(changes[name])
        if name == "value" and (is_text(kind) or is_bytes(kind)):
            return changes.drop_columns([name]), None
    raise SchemaMismatchError(
        f"The changes for {TABLE} have no envelope of Debezium's: they have the columns {', '.join(have)}. Nothing was "
        "committed. Give before, after, op and source, a struct of these named value, or JSON text named value.",
    )


# --- columns --------------------------------------------------------------------------------------------------------


def _of_columns(envelope: Mapping[str, pa.ChunkedArray], wanted: pa.Schema) -> _Changes:
    after, count = envelope["after"], len(envelope["op"])
    before = envelope.get("before", nulls(count, after.type))
    # A column in which all is null may have no type.
    before, after = (
        nulls(count, other.type) if pa.types.is_null(each.type) else each
        for each, other in ((before, after), (after, before))
    )
    for name, image in (("after", after), ("before", before)):
        if not pa.types.is_struct(image.type):
            text = f"The column {name} of the changes for {TABLE} is {image.type}, and must be a struct."
            raise SchemaMismatchError(f"{text} Decode it.")
    try:
        said = {name: envelope.get(name, nulls(count)).to_pylist() for name in _SAID}
    except (OverflowError, UnicodeDecodeError) as error:  # a time after the year 9999, a text that is not UTF-8
        raise refused(f"the field op, source or ts_ms of an event cannot be read: {error}. Filter it.") from error
    old, new = (with_types(_members(image), wanted) for image in (before, after))
    if pa.types.is_null(envelope["after"].type):
        # Deletes only, which may have the key alone: then the other columns are the table's.
        have = {name.lower() for name in new}
        new |= {column.name: nulls(count, column.type) for column in wanted if column.name.lower() not in have}
    return _Changes(old, new, said)


def _cast(old: pa.ChunkedArray, kind: pa.DataType, name: str) -> pa.ChunkedArray:
    try:
        return old.cast(kind)
    except pa.ArrowException as error:
        text = f"The changes for {TABLE} have {kind} as after.{name}, and {old.type} as before.{name}: {error}."
        raise SchemaMismatchError(f"{text} Nothing was committed. Give both in one type.") from error


def _members(column: pa.ChunkedArray) -> dict[str, pa.ChunkedArray]:
    return {column.type.field(i).name: pc.struct_field(column, [i]) for i in range(column.type.num_fields)}


# --- JSON -----------------------------------------------------------------------------------------------------------


def _wanted(asked: Asking, target: Struct) -> pa.Schema:
    """The columns of the table that events fill."""
    but = {name.lower() for name in (*(asked.except_column_list or ()), START_AT, END_AT)}
    only = {name.lower() for name in (target.names if asked.column_list is None else asked.column_list)} - but
    made = {column.name for column in target if names.GENERATION_EXPRESSION in column.metadata}
    return to_arrow(Struct(tuple(each for each in target if each.name.lower() in only and each.name not in made)))


def _of_json(changes: pa.Table, asked: Asking, wanted: pa.Schema) -> _Changes:
    images = _Images(wanted, asked)
    texts = _texts(changes["value"])
    kafka_keys = _texts(changes["key"]) if "key" in changes.column_names else [None] * len(texts)
    said: dict[str, list[Any]] = {name: [] for name in _SAID}
    new: dict[str, list[Any]] = {name: [] for name in wanted.names}
    old: dict[str, list[Any]] = {name: [] for name in new if name.lower() in images.keys}
    absent: dict[str, list[bool]] = {name: [] for name in new}
    unknown: dict[str, list[bool]] = {name: [] for name in new}
    # Values are kept by column and not by row, because many small objects slow the garbage collector down.
    for text, kafka_key in zip(texts, kafka_keys, strict=True):
        envelope, before, after, placeholders = images.message(text, kafka_key)
        for name in said:
            said[name].append(envelope.get(name))
        for name in old:
            old[name].append(before.get(name, after.get(name)))
        for name in new:
            new[name].append(after.get(name))
            absent[name].append(name not in after)
            unknown[name].append(name in placeholders)
    return _Changes(
        {name: _column(wanted.field(name), values) for name, values in old.items()},
        {name: _column(wanted.field(name), values) for name, values in new.items()},
        said,
        *({name: pa.chunked_array([marks], pa.bool_()) for name, marks in each.items()} for each in (absent, unknown)),
    )


def _texts(column: pa.ChunkedArray) -> list[Any]:
    """The values; as bytes where a text is not UTF-8, so that the event with it is refused."""
    try:
        return list(column.to_pylist())
    except UnicodeDecodeError:
        return list(column.cast(pa.string()).cast(pa.binary()).to_pylist())


class _Images:
    """Reads the JSON of rows as values of the columns `wanted`."""

    def __init__(self, wanted: pa.Schema, asked: Asking) -> None:
        self.keys = {name.lower() for name in asked.keys}
        self._columns = {column.name.lower(): column for column in wanted}
        self._ignored = None if asked.column_list else {name.lower() for name in asked.except_column_list or ()}
        self._readers: dict[tuple[str, Declared | None], Read] = {}
        self._placeholders: set[str] = set()

    def message(
        self, text: str | bytes | None, kafka_key: str | bytes | None
    ) -> tuple[Mapping[str, Any], dict[str, Any], dict[str, Any], set[str]]:
        """Gives the envelope of a message, the rows before and after, and the columns with a placeholder after it.

        Fields of the rows may be absent, and those with a placeholder are.
        """
        envelope, fields = _payload(text)
        envelope = {"op": "d"} if envelope is None else envelope
        declared = {name: one.get("fields") for name, one in _by_name(fields or []).items()}
        before = self._row(envelope.get("before"), declared.get("before"), keys_only=True)
        after, placeholders = self._row(envelope.get("after"), declared.get("after")), {*self._placeholders}
        if envelope.get("op") == "d" and len(before) < len(self.keys):
            before = self._row(*_payload(kafka_key), keys_only=True)
        return envelope, before, after, placeholders

    def _row(self, image: Any, fields: Any, *, keys_only: bool = False) -> dict[str, Any]:
        declared = None if fields is None else {name: Declared.of(one) for name, one in _by_name(fields).items()}
        row: dict[str, Any] = {}
        self._placeholders.clear()
        if type(image) not in (dict, type(None)):
            raise refused("the row of an event is no JSON object. Give the events in columns.")
        for name, value in (image or {}).items():
            if keys_only and name.lower() not in self.keys:
                continue
            column = self._columns.get(name.lower())
            if column is None:
                self._check_ignored(name)
            elif column.name in row:
                raise refused(f"an event has two fields {name!r} that differ only in case. Rename one.")
            elif type(value) is str and value in UNAVAILABLE_TEXTS:
                self._placeholders.add(column.name)
            else:
                row[column.name] = self._value(column, None if declared is None else declared.get(name), value)
        return row

    def _check_ignored(self, name: str) -> None:
        if self._ignored is not None and name.lower() not in self._ignored:
            raise SchemaMismatchError(
                f"The changes have a column that {TABLE} lacks or generates: {name}. Nothing was committed. List it in "
                "except_column_list, or add it to the table first where it is missing.",
                error_class="DELTA_METADATA_MISMATCH",
            )

    def _value(self, column: pa.Field, declared: Declared | None, value: Any) -> Any:
        if value is None:
            return None
        read = self._readers.get((column.name, declared)) or reader(column.type, declared)
        if read is None:
            said = "JSON that does not describe it" if declared is None else f"{declared.name or declared.type}"
            raise SchemaMismatchError(
                f"Column {column.name} of {TABLE} is {column.type}, which is not read exactly from {said}. Nothing was "
                "committed. Let the connector describe values (schemas.enable=true), or give the events in columns.",
                error_class="DELTA_FAILED_TO_MERGE_FIELDS",
            )
        self._readers[column.name, declared] = read
        try:
            return read(value)
        except (TypeError, ValueError, ArithmeticError, KeyError) as error:
            raise _no_value(column, value) from error


def _column(column: pa.Field, values: list[Any]) -> pa.ChunkedArray:
    try:
        return pa.chunked_array([pa.array(values, column.type)])
    except (pa.ArrowException, OverflowError, UnicodeError) as error:
        raise _no_value(column, str(error)) from error


def _payload(text: str | bytes | None) -> tuple[Any, Any]:
    """Gives the payload of a message, and the description of its fields; None for null, and for no description."""
    if text is None:
        return None, None
    try:
        found = json.loads(text, parse_float=Decimal)
    except (ValueError, RecursionError) as error:
        raise refused(f"an event is no JSON: {error}. Filter it, or give the events in columns.") from error
    except ArithmeticError as error:
        raise refused("a number of an event has an exponent beyond 18 digits. Filter it.") from error
    schema = None
    if type(found) is dict and found.keys() == {"schema", "payload"}:
        schema, found = found["schema"], found["payload"]
    if any(type(each) not in (dict, type(None)) for each in (schema, found)):
        raise refused("an event is no JSON object. Filter it, or give the events in columns.")
    return found, (schema or {}).get("fields")


def _by_name(fields: Any) -> dict[str, Mapping[str, Any]]:
    """Gives the descriptions of fields by the names of these."""
    if type(fields) is not list or any(type(one) is not dict or type(one.get("field")) is not str for one in fields):
        raise refused("the schema of an event does not name its fields as Kafka Connect does. Filter it.")
    return {one["field"]: one for one in fields}


# --- both -----------------------------------------------------------------------------------------------------------


def _no_value(column: pa.Field, value: Any) -> InvalidRowsError:
    return InvalidRowsError(
        f"A change for {TABLE} has no value of column {column.name}, which is {column.type}: "
        f"{shown(value, most=200)}. Nothing was committed. Correct it, or change the column's type."
    )
