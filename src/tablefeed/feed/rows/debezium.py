"""Debezium's change events, in columns or as JSON text, as plain events.

The form is that of "Change event values" in Debezium's pages on its connectors: `before`, `after`, `op`, `source`,
`ts_ms`, as columns, as members of one column `value` or `payload`, or as JSON in a column `value` beside Kafka's `key`.
A plain event has the columns of the row. After them come the other columns of the changes, named with two underscores.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tablefeed.data.retype import is_bytes, is_text
from tablefeed.delta import names
from tablefeed.delta.schema.arrow_schema import to_arrow
from tablefeed.errors import TABLE, InvalidEventsError, InvalidRowsError, SchemaMismatchError
from tablefeed.feed.rows.asking import Asking
from tablefeed.feed.rows.columns import LONG, counting, flat, gather, nulls, only
from tablefeed.feed.rows.debezium_values import UNAVAILABLE_TEXTS, Declared, Read, reader, unavailable
from tablefeed.feed.rows.folding import ABSENT, END_AT, START_AT
from tablefeed.model.schema import Struct

OP, ORDER = "__op", "__position"
_TS, _SOURCE_TS, _OFFSET = "__ts_ms", "__source_ts_ms", "__offset"
_PARTS = ("before", "after", "op", "source", "ts_ms", "ts_us", "ts_ns", "transaction")
_OPS = ("c", "u", "r", "d", "t")
_POSITION = pa.struct({"log": pa.string(), "position": LONG, "row": LONG, "live": LONG})
"""An event's place in the source's log. At one place an event of a snapshot is older than any other."""


@dataclass(slots=True)
class _Events:
    """Events as columns: their rows, the index of each in the changes, and the fields of its envelope."""

    rows: dict[str, Any]  # Any: arrays, or lists while they grow
    absent: dict[str, Any]
    at: list[int] = field(default_factory=list)
    op: list[str] = field(default_factory=list)
    source: list[Mapping[str, Any]] = field(default_factory=list)
    ts_ms: list[int | None] = field(default_factory=list)

    def add(self, at: int, op: str, source: Mapping[str, Any], ts_ms: int | None) -> None:
        """Adds an event without its row."""
        self.at.append(at)
        self.op.append(op)
        self.source.append(source)
        self.ts_ms.append(ts_ms)


def unwrapped(changes: pa.Table, asked: Asking, target: Struct) -> tuple[pa.Table, Asking]:
    """See `envelopes.unwrapped`."""
    beside, envelope = _envelope(changes)
    found = _of_json(changes, asked, _wanted(asked, target)) if envelope is None else _of_columns(envelope, asked)
    sequence_by = asked.sequence_by
    if not sequence_by:
        sequence_by = (_OFFSET,) if {"offset", "partition"} <= {*beside.column_names} else (ORDER,)
        if sequence_by == (_OFFSET,) and "t" in found.op:
            raise _refused("the offset of a truncate orders it in one partition only. Set sequence_by, or filter it.")
    columns = {f"__{name}": beside[name].take(pa.array(found.at, LONG)) for name in beside.column_names}
    columns |= _said(found, with_order=sequence_by == (ORDER,))
    taken = [name for name in found.rows if name in columns]
    if taken:
        raise SchemaMismatchError(
            f"Column {taken[0]} of {TABLE} has the name of a column that Debezium's envelope gets. "
            "List it in except_column_list."
        )
    # Of JSON, what is not wanted is left out already.
    excepted = (*(() if envelope is None else asked.except_column_list or ()), *columns)
    return pa.table({**found.rows, **columns}), replace(
        asked,
        source=None,
        sequence_by=sequence_by,
        apply_as_deletes=asked.apply_as_deletes or f"{OP} = 'd'",
        apply_as_truncates=asked.apply_as_truncates or f"{OP} = 't'",
        except_column_list=asked.except_column_list if asked.column_list is not None else excepted,
        absent=tuple(found.absent),
    )


def _said(found: _Events, *, with_order: bool) -> dict[str, Any]:
    """The columns with the fields of each event's envelope."""
    try:
        columns = {
            OP: pa.array(found.op, pa.string()),
            _TS: pa.array(found.ts_ms, LONG),
            _SOURCE_TS: pa.array([source.get("ts_ms") for source in found.source], LONG),
        }
        if with_order:
            columns[ORDER] = pa.array(map(_position, found.source, found.op), _POSITION)
    except (pa.ArrowException, AttributeError, OverflowError, UnicodeError) as error:
        raise _refused(f"the field source or ts_ms of an event cannot be read: {error}. Filter it.") from error
    if found.absent:
        columns[ABSENT] = pa.StructArray.from_arrays([flat(each) for each in found.absent.values()], [*found.absent])
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


def _of_columns(envelope: Mapping[str, pa.ChunkedArray], asked: Asking) -> _Events:
    after, op, count = envelope["after"], envelope["op"].to_pylist(), len(envelope["op"])
    before = envelope.get("before", nulls(count, after.type))
    # A column in which all is null may have no type.
    before, after = (
        nulls(count, other.type) if pa.types.is_null(each.type) else each
        for each, other in ((before, after), (after, before))
    )
    for name, image in (("after", after), ("before", before)):
        if not pa.types.is_struct(image.type):
            raise SchemaMismatchError(
                f"The column {name} of the changes for {TABLE} is {image.type}, and must be a struct. Decode it."
            )
    old, new = _members(before), _members(after)
    is_key = {name: name.lower() in {key.lower() for key in asked.keys} for name in new}
    pairs = [(old[name].to_pylist(), new[name].to_pylist()) for name in new if is_key[name] and name in old]
    sources, times = envelope["source"].to_pylist(), envelope.get("ts_ms", nulls(count)).to_pylist()
    found, places = _Events({}, {}), []
    for at, kind in enumerate(op):
        _check_op(kind)
        moved = kind == "u" and any(one[at] is not None and one[at] != other[at] for one, other in pairs)
        # The image of an event: `after`, or `before` as if it came behind it; a truncate has none.
        image = {"d": count + at, "t": None}.get(kind, at)
        for each, place in [("d", count + at), (kind, image)] if moved else [(kind, image)]:
            found.add(at, each, sources[at] or {}, times[at])
            places.append(place)
    for name, given in new.items():
        # Arrow does not take values of a view by their index.
        column = given.cast({pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}.get(given.type, given.type))
        values = flat(gather([column, _cast(old.get(name, nulls(count)), column.type, name)], pa.array(places, LONG)))
        if not is_key[name] and (absent := unavailable(values)) is not None:
            found.absent[name] = absent
            values = values.take(only(counting(len(values)), pc.invert(absent)))
        found.rows[name] = values
    return found


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


def _of_json(changes: pa.Table, asked: Asking, wanted: pa.Schema) -> _Events:
    images = _Images(wanted, asked)
    found = _Events({name: [] for name in wanted.names}, {})
    absent: dict[str, list[bool]] = {name: [] for name in wanted.names if name.lower() not in images.keys}
    texts = changes["value"].to_pylist()
    kafka_keys = changes["key"].to_pylist() if "key" in changes.column_names else [None] * len(texts)
    for at, (text, kafka_key) in enumerate(zip(texts, kafka_keys, strict=True)):
        for op, envelope, row in images.events(text, kafka_key):
            found.add(at, op, envelope.get("source") or {}, envelope.get("ts_ms"))
            for name in wanted.names:
                found.rows[name].append(row.get(name))
                if name in absent:
                    absent[name].append(name not in row)
    found.rows = {column.name: images.array(column, found.rows[column.name]) for column in wanted}
    found.absent = {name: pa.array(flags, pa.bool_()) for name, flags in absent.items()}
    return found


class _Images:
    """Reads the JSON of rows as values of the columns `wanted`."""

    def __init__(self, wanted: pa.Schema, asked: Asking) -> None:
        self.keys = {name.lower() for name in asked.keys}
        self._columns = {column.name.lower(): column for column in wanted}
        self._ignored = None if asked.column_list else {name.lower() for name in asked.except_column_list or ()}
        self._readers: dict[tuple[str, Declared | None], Read] = {}

    def events(
        self, text: str | bytes | None, kafka_key: str | bytes | None
    ) -> Iterator[tuple[str, Mapping[str, Any], dict[str, Any]]]:
        """Gives the events of one message: their op, envelope and row, in which fields may be absent."""
        envelope, fields = _payload(text)
        if envelope is None:
            yield "d", {}, self._key(kafka_key)
            return
        op = envelope.get("op")
        _check_op(op)
        if op == "t":
            yield op, envelope, {}
            return
        declared = {name: one.get("fields") for name, one in _by_name(fields or []).items()}
        old = self._row(envelope.get("before"), declared.get("before"), keys_only=True)
        if op == "d":
            yield op, envelope, old if len(old) == len(self.keys) else self._key(kafka_key)
            return
        new = self._row(envelope.get("after"), declared.get("after"))
        if op == "u" and any(new.get(name) != value for name, value in old.items()):
            yield "d", envelope, {**new, **old}
        yield op, envelope, new

    def _key(self, text: str | bytes | None) -> dict[str, Any]:
        return self._row(*_payload(text), keys_only=True)

    def _row(self, image: Any, fields: Any, *, keys_only: bool = False) -> dict[str, Any]:
        declared = None if fields is None else {name: Declared.of(one) for name, one in _by_name(fields).items()}
        row: dict[str, Any] = {}
        if type(image) not in (dict, type(None)):
            raise _refused("the row of an event is no JSON object. Give the events in columns.")
        for name, value in (image or {}).items():
            if keys_only and name.lower() not in self.keys:
                continue
            column = self._columns.get(name.lower())
            if column is None:
                self._check_ignored(name)
            elif column.name in row:
                raise _refused(f"an event has two fields {name!r} that differ only in case. Rename one.")
            elif not (type(value) is str and value in UNAVAILABLE_TEXTS):
                row[column.name] = self._value(column, None if declared is None else declared.get(name), value)
        return row

    def _check_ignored(self, name: str) -> None:
        if self._ignored is not None and name.lower() not in self._ignored:
            raise SchemaMismatchError(
                f"The changes have a column that {TABLE} lacks: {name}. Nothing was committed. List it in "
                "except_column_list, or add it to the table first.",
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

    @staticmethod
    def array(column: pa.Field, values: list[Any]) -> pa.Array:
        """Gives the values of a column."""
        try:
            return pa.array(values, column.type)
        except (pa.ArrowException, OverflowError, UnicodeError) as error:
            raise _no_value(column, str(error)) from error


def _payload(text: str | bytes | None) -> tuple[Any, Any]:
    """Gives the payload of a message, and the description of its fields; None for null, and for no description."""
    if text is None:
        return None, None
    try:
        found = json.loads(text, parse_float=Decimal)
    except (ValueError, RecursionError) as error:
        raise _refused(f"an event is no JSON: {error}. Filter it, or give the events in columns.") from error
    schema = None
    if type(found) is dict and found.keys() == {"schema", "payload"}:
        schema, found = found["schema"], found["payload"]
    if any(type(each) not in (dict, type(None)) for each in (schema, found)):
        raise _refused("an event is no JSON object. Filter it, or give the events in columns.")
    return found, (schema or {}).get("fields")


def _by_name(fields: Any) -> dict[str, Mapping[str, Any]]:
    """Gives the descriptions of fields by the names of these."""
    if type(fields) is not list or any(type(one) is not dict or type(one.get("field")) is not str for one in fields):
        raise _refused("the schema of an event does not name its fields as Kafka Connect does. Filter it.")
    return {one["field"]: one for one in fields}


# --- both -----------------------------------------------------------------------------------------------------------


def _check_op(op: object) -> None:
    if op not in _OPS:
        raise _refused(f"op is {op!r} in an event, which changes no row. Filter such events.")


def _position(source: Mapping[str, Any], op: str) -> tuple[str | None, int | None, int | None, int]:
    """Gives the position of an event in the log of its source. Positions order all events of a key.

    The changes of a Postgres row are ordered by their own LSN, because of row locks, whatever the order of commits.
    """
    is_live = int(op != "r")
    log: str | None
    match source.get("connector"):
        case "postgresql":
            log, position, row = "", source.get("lsn"), 0
        case "mysql" | "mariadb":
            number = str(source.get("file") or "").rpartition(".")[2]
            log, position, row = number.zfill(20) if number else None, source.get("pos"), source.get("row") or 0
        case "sqlserver":
            commit, change = source.get("commit_lsn"), source.get("change_lsn")
            log = f"{commit} {change or ''}" if commit and (change or not is_live) else None
            position, row = source.get("event_serial_no") or 0, 0
        case None:
            why = "a null value, or an event whose source names no connector, has no position in a log"
            raise _refused(f"{why}. Keep Kafka's columns offset and partition, or filter it.")
        case other:
            raise _refused(
                f"the order of Debezium's connector {other!r} is not known. Set sequence_by, as to {_OFFSET}."
            )
    if not is_live:
        log, position = log or "", position or 0
    return log, position, row, is_live


def _no_value(column: pa.Field, value: Any) -> InvalidRowsError:
    return InvalidRowsError(
        f"A change for {TABLE} has no value of column {column.name}, which is {column.type}: {value!r:.200}. Nothing "
        "was committed. Correct it, or change the column's type."
    )


def _refused(why: str) -> InvalidEventsError:
    return InvalidEventsError(f"{TABLE} cannot take these changes: {why}")
