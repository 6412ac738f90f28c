"""What the targets of texts, and of what the feed keeps and gets, decode with; as log_decoders.py."""

from __future__ import annotations

import json

import pyarrow as pa

from fuzzing.log_decoders import URL, as_text
from support.logs import log_of
from tablefeed.data.rule_evaluation import RowRules, Setting
from tablefeed.delta import codec
from tablefeed.delta.schema.arrow_schema import to_arrow
from tablefeed.feed.api.append import txn_of
from tablefeed.feed.changes.java_regex import java_regex
from tablefeed.feed.rows import state
from tablefeed.feed.rows.asking import Asking, Source
from tablefeed.feed.rows.envelopes import unwrapped
from tablefeed.feed.rows.folding import Folding
from tablefeed.feed.scan.where import row_filter
from tablefeed.feed.stream.offset_json import offset_from_json, offset_to_json
from tablefeed.feed.timestamp_text import read_timestamp, read_zone
from tablefeed.feed.upkeep.consumers import Consumers
from tablefeed.model.actions import Commit, Version
from tablefeed.model.rules import Check, TableRules
from tablefeed.model.schema import DataType, Decimal, Field, Primitive, Struct
from tablefeed.store.memory import MemoryStore

# --- texts ----------------------------------------------------------------------------------------------------------

_TYPES: dict[str, DataType] = {
    "id": Primitive("long"),
    "s": Primitive("string"),
    "f": Primitive("double"),
    "d": Primitive("date"),
    "at": Primitive("timestamp"),
    "b": Primitive("boolean"),
    "price": Decimal(10, 2),
    "deep": Struct((Field("x", Primitive("integer"), nullable=True),)),
}
COLUMNS = Struct(tuple(Field(name, kind, nullable=True) for name, kind in _TYPES.items()))
_ROWS = pa.Table.from_pylist(
    [
        {"id": 1, "s": "a", "f": 0.5, "d": 1, "at": 1, "b": True, "price": None, "deep": {"x": 1}},
        dict.fromkeys(COLUMNS.names),
    ],
    to_arrow(COLUMNS),
)


def where(data: bytes) -> None:
    """A predicate, which filters rows."""
    found = row_filter(as_text(data), COLUMNS)
    _ROWS.filter(found.condition)


def rule(data: bytes) -> None:
    """The expression of a CHECK constraint, which judges rows."""
    rules = TableRules(checks=(Check(name="c", expression=as_text(data)),))
    RowRules(rules, COLUMNS, Setting(absent=frozenset(), time_zone="UTC", now_us=1))(_ROWS.to_batches()[0])


def timestamp_text(data: bytes) -> None:
    """A timestamp and a zone as users write them; None where the text is neither."""
    read_timestamp(as_text(data))
    read_zone(as_text(data))


def regex(data: bytes) -> None:
    """`excludeRegex`, a pattern of Java's.

    Only a pattern of few repeats is searched for, in a short text: others may try each way to divide the text, in Java
    as in Python.
    """
    pattern = java_regex(as_text(data), option="excludeRegex")
    if sum(map(data.count, b"*+?{")) <= 3:
        pattern.finds("part-é.gz")


# --- what the feed keeps and gets -----------------------------------------------------------------------------------


def offset(data: bytes) -> None:
    """An offset, written and read again. Spark parses the JSON."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return
    found = offset_from_json(value, url=URL)
    assert offset_from_json(offset_to_json(found), url=URL) == found


def debezium(data: bytes) -> None:
    """The value of a message, after the first line its key."""
    kafka_key, _, value = data.partition(b"\n")
    columns_of_message = {"key": pa.array([kafka_key or None]), "value": pa.array([value])}
    asked = Asking(keys=("id",), sequence_by=(), source=Source.DEBEZIUM)
    events, _ = unwrapped(pa.table(columns_of_message), asked, COLUMNS)
    events.validate(full=True)


ROW_STATE = Folding(schema=pa.schema({"id": pa.int64(), "v": pa.string()}), keys=("id",), sequence=pa.int64())


def row_state(data: bytes) -> None:
    """A file of the state of apply_changes."""
    store = MemoryStore("t")
    store.put_if_absent("a.parquet", data)
    named = state.State(files=(state.StateFile(path="a.parquet", row_count=2),))
    state.remembered(named, store, None, ROW_STATE).validate(full=True)


def consumer(data: bytes) -> None:
    """The file of a consumer."""
    store = MemoryStore("t")
    store.put_if_absent("_tablefeed/consumers/a.json", data)
    [each.expires_at_ms for each in Consumers(log_of(store)).list()]


def app_id(data: bytes) -> None:
    """The id of an application, and on a second line the number of its write; in a commit and back."""
    name, _, number = data.decode(errors="surrogateescape").partition("\n")
    txn = txn_of(name, int(number[:30]) if number.isdecimal() else len(number))
    assert txn is not None
    written = codec.encode_commit(Commit(version=Version(3), files=(), txns=(txn,), committed_at_ms=None))
    assert codec.decode_commit(written, version=Version(3), log_file="3.json", modified_ms=5).txns == (txn,)
