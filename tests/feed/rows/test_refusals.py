"""What cannot be folded is refused by name: arguments before anything is read, events before anything is written."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from support.change_events import Event, Target, delete, table_of, upsert
from tablefeed.errors import (
    ConflictingOptionsError,
    IllegalOptionError,
    InvalidEventsError,
    SchemaMismatchError,
    TablefeedError,
    UnsupportedOptionError,
)
from tablefeed.feed.rows.fold import fold
from tablefeed.feed.rows.folding import KIND, Folding, Known, chosen_columns

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string())])
HOW = Folding(schema=SCHEMA, keys=("id",), sequence=pa.int64())
HISTORY = replace(HOW, scd_type=2)
TWO = pa.struct([("a", pa.int64()), ("b", pa.float64())])
BOTH = pytest.mark.parametrize("how", [HOW, HISTORY], ids=["rows", "history"])
VARIANT = pa.struct([pa.field("value", pa.binary()), pa.field("metadata", pa.binary(), metadata={"variant": "true"})])


@BOTH
@pytest.mark.parametrize("make", [upsert, delete])
def test_an_event_without_a_key_is_refused(how: Folding, make: Any) -> None:
    """Scenario 10."""
    target = Target(how)

    with pytest.raises(
        InvalidEventsError, match=r"1 events have null or NaN in the key column id, .* sequence 6"
    ) as caught:
        target.apply(upsert(5, id=1), make(6, id=None))

    assert caught.value.error_class == "AUTOCDC_MICROBATCH_VALIDATION.NULL_KEY"
    assert (target.shown(), target.remembered()) == ([], [])


@BOTH
@pytest.mark.parametrize(
    ("sequence", "missing"),
    [
        (pa.int64(), None),
        (TWO, None),
        (TWO, {"a": None, "b": 1.0}),
        (TWO, {"a": 1, "b": math.nan}),
        (pa.float64(), math.nan),
    ],
    ids=str,
)
def test_an_event_without_a_place_in_the_order_is_refused(how: Folding, sequence: pa.DataType, missing: object) -> None:
    """Scenarios 8 and 10: null, also within a struct, and NaN."""
    with pytest.raises(InvalidEventsError, match=r"1 events have null or NaN as their sequence .* key id=7") as caught:
        Target(replace(how, sequence=sequence)).apply(upsert(missing, id=7))

    assert caught.value.error_class == "AUTOCDC_MICROBATCH_VALIDATION.NULL_SEQUENCE"


@pytest.mark.parametrize(
    "sequence",
    [
        pa.map_(pa.string(), pa.int64()),
        VARIANT,
        pa.list_(pa.int64()),
        pa.struct([("a", pa.int64()), ("b", pa.list_(pa.int64()))]),
        pa.struct([("a", VARIANT)]),
        pa.struct([]),
        pa.null(),
        pa.month_day_nano_interval(),
    ],
    ids=str,
)
def test_a_sequence_that_has_no_order_is_refused_at_the_start(sequence: pa.DataType) -> None:
    """Scenario 11."""
    with pytest.raises(IllegalOptionError, match="'sequence_by': it has no order") as caught:
        replace(HOW, sequence=sequence)

    assert caught.value.error_class == "AUTOCDC_MICROBATCH_VALIDATION.NON_ORDERABLE_SEQUENCE"


@pytest.mark.parametrize(
    ("sequence", "values"),
    [
        (pa.int8(), [-1, 0, 1]),
        (pa.uint64(), [0, 2**63, 2**64 - 1]),
        (pa.float32(), [-math.inf, -1.5, math.inf]),
        (pa.decimal128(38, 2), [-1, 0, 10]),
        (pa.bool_(), [False, True]),
        (pa.string(), ["", "A", "a", "ä", "\U0001f600"]),
        (pa.binary(), [b"", b"\x00", b"\xff"]),
        (pa.date32(), [-1, 0, 1]),
        (pa.timestamp("us", "UTC"), [-1, 0, 1]),
        (
            pa.struct([("a", pa.struct([("b", pa.int8())])), ("c", pa.string())]),
            [{"a": {"b": 1}, "c": "y"}, {"a": {"b": 2}, "c": "x"}],
        ),
    ],
    ids=str,
)
def test_every_plain_type_has_its_order(sequence: pa.DataType, values: list[Any]) -> None:
    events: list[Event] = [upsert(value, id=1, name=str(at)) for at, value in enumerate(values)]

    for order in (events, events[::-1], events[1:] + events[:1]):
        target = Target(replace(HOW, sequence=sequence))
        for event in order:
            target.apply(event)
        assert target.shown() == [{"id": 1, "name": str(len(values) - 1)}]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"keys": ()}, "[AUTOCDC_EMPTY_KEYS]"),
        ({"keys": ("no",)}, "'keys': it must name columns among id, name"),
        ({"scd_type": 3}, "'stored_as_scd_type': it must be 1 or 2"),
        ({"ignore_nulls": ("id",)}, "'ignore_null_updates': it must name columns among name"),
        ({"absent": ("no",)}, "'ignore_null_updates': it must name columns among name"),
        ({"tracked": ("id",), "scd_type": 2}, "'track_history_column_list': it must name columns among name"),
        ({"tracked": ("name",)}, "[AUTOCDC_TRACK_HISTORY_REQUIRES_SCD2]"),
        ({"sequence_column": "no"}, "'sequence_by': it must name columns among id, name"),
        ({"sequence_column": "name"}, "'sequence_by': it has type string in the table and int64 in the changes"),
        ({"schema": pa.schema([("id", pa.list_(pa.int64()))])}, "'keys': it has type list"),
        ({"schema": pa.schema([("id", TWO)])}, "'keys': it has type struct"),
        ({"schema": SCHEMA.append(pa.field("__start_at", TWO))}, "[AUTOCDC_RESERVED_COLUMN_NAME_CONFLICT]"),
        (
            {"schema": SCHEMA.append(pa.field("s", TWO)), "ignore_nulls": ("s",)},
            "Option 'ignore_null_updates' is not supported here. Column s is a struct.",
        ),
    ],
    ids=lambda given: " and ".join(given) if isinstance(given, dict) else "",
)
def test_a_folding_that_cannot_be_followed_cannot_be_made(arguments: dict[str, Any], says: str) -> None:
    with pytest.raises(TablefeedError) as caught:
        replace(HOW, **arguments)

    assert says in str(caught.value)


def test_columns_are_chosen_by_all_a_list_or_all_but_a_list() -> None:
    """Scenario 18."""
    among = ("a", "b", "c")

    assert chosen_columns("ignore_null_updates", among, only=None, but=None) is None
    assert chosen_columns("ignore_null_updates", among, every=True, only=None, but=None) == among
    assert chosen_columns("ignore_null_updates", among, only=["c", "a"], but=None) == ("a", "c")
    assert chosen_columns("track_history", among, only=None, but=["b"]) == ("a", "c")
    assert chosen_columns("track_history", among, only=[], but=None) == ()


def test_the_ways_to_choose_columns_exclude_each_other() -> None:
    """Scenario 18."""
    for every, only, but in [(True, ["a"], None), (True, None, ["a"]), (False, ["a"], ["b"])]:
        with pytest.raises(ConflictingOptionsError, match="AUTOCDC_CONFLICTING_IGNORE_NULL_UPDATES_OPTIONS"):
            chosen_columns("ignore_null_updates", ["a", "b"], every=every, only=only, but=but)
    with pytest.raises(ConflictingOptionsError, match="AUTOCDC_BOTH_TRACK_HISTORY_COLUMN_LIST"):
        chosen_columns("track_history", ["a", "b"], only=["a"], but=["b"])
    with pytest.raises(IllegalOptionError, match="'track_history_except_column_list': it must name columns among a, b"):
        chosen_columns("track_history", ["a", "b"], only=None, but=["no"])


@BOTH
def test_a_column_of_another_type_or_none_is_refused(how: Folding) -> None:
    events = table_of([upsert(1, id=1, name="a")], how)
    nothing = Known(rows=how.row_schema.empty_table(), state=how.state_schema.empty_table())

    with pytest.raises(SchemaMismatchError, match="the column name must be string, and is missing"):
        fold(events.drop_columns("name"), nothing, how)
    with pytest.raises(SchemaMismatchError, match="the column name must be string, and is large_string"):
        fold(events.set_column(1, "name", events["name"].cast(pa.large_string())), nothing, how)
    with pytest.raises(SchemaMismatchError, match="the column id must be int64, and is missing"):
        fold(events, replace_rows(nothing, nothing.rows.drop_columns("id")), how)


def replace_rows(known: Known, rows: pa.Table) -> Known:
    return replace(known, rows=rows)


def test_an_event_of_no_known_kind_is_refused() -> None:
    for kind in ("merge", None):
        with pytest.raises(InvalidEventsError, match="an event is no upsert, no delete and no truncate"):
            Target(HOW).apply({**upsert(1, id=1), KIND: kind})


def test_ignored_nulls_in_a_struct_are_refused_and_absent_structs_are_not() -> None:
    schema = SCHEMA.append(pa.field("s", TWO))

    with pytest.raises(UnsupportedOptionError):
        replace(HOW, schema=schema, ignore_nulls=("s",))
    target = Target(replace(HOW, schema=schema, absent=("s",)))
    target.apply(upsert(1, id=1, s={"a": 1, "b": None}))
    target.apply(upsert(2, id=1))

    assert target.shown() == [{"id": 1, "name": None, "s": {"a": 1, "b": None}}]
