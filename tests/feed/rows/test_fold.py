"""SCD type 1: one row a key, which is that of the newest upsert, whatever comes first and in whatever batch.

A docstring names the scenarios of change data capture that its test shows.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from support.change_events import Target, delete, in_batches, table_of, truncate, upsert
from tablefeed.errors import EqualSequencesError, InvalidRowsError
from tablefeed.feed.rows.fold import fold
from tablefeed.feed.rows.folding import DELETED_AT, KIND, SEQUENCE, SET_AT, Counts, Folding, Known, Ties

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string()), ("city", pa.string())])
HOW = Folding(schema=SCHEMA, keys=("id",), sequence=pa.int64())
SPARSE = replace(HOW, ignore_nulls=("name", "city"))
LAST = replace(HOW, ties=Ties.LAST)
IN_ROWS = replace(HOW, schema=SCHEMA.append(pa.field("at", pa.int64())), sequence_column="at")


def names(target: Target) -> dict[int, str]:
    return {row["id"]: row["name"] for row in target.shown()}


def test_an_event_that_comes_twice_in_a_batch_is_one() -> None:
    """Scenario 1."""
    target = Target(HOW)

    folded = target.apply(upsert(5, id=1, name="a"), upsert(5, id=1, name="a"))

    assert target.shown() == [{"id": 1, "name": "a", "city": None}]
    assert folded.counts == Counts(applied=1, late=0, duplicates=1)


@pytest.mark.parametrize("how", [HOW, IN_ROWS, SPARSE], ids=["sequence in the state", "in the rows", "nulls ignored"])
def test_a_batch_that_is_applied_again_changes_neither_a_row_nor_the_state(how: Folding) -> None:
    """Scenario 1."""
    batch = [upsert(5, id=1, name="a"), upsert(6, id=2, name="b"), delete(7, id=2), delete(8, id=3), truncate(2)]
    target = Target(how)
    target.apply(*batch)

    folded = target.apply(*batch)

    assert (folded.inserts.num_rows, folded.removed.to_pylist()) == (0, [])
    assert (folded.state.num_rows, folded.state_removed.to_pylist()) == (0, [])
    # The upsert of key 2 is older than the delete that is remembered.
    assert folded.counts == Counts(applied=0, late=1, duplicates=4)


@pytest.mark.parametrize("how", [HOW, IN_ROWS, SPARSE], ids=["sequence in the state", "in the rows", "nulls ignored"])
def test_an_older_event_that_comes_later_is_ignored(how: Folding) -> None:
    """Scenario 4."""
    target = in_batches(how, [upsert(5, id=1, name="new", city="x")])

    folded = target.apply(upsert(4, id=1, name="old", city="y"), delete(3, id=1))

    assert names(target) == {1: "new"}
    assert folded.removed.to_pylist() == []
    assert folded.counts.late == (1 if how is SPARSE else 2)


@pytest.mark.parametrize("how", [HOW, IN_ROWS, SPARSE], ids=["sequence in the state", "in the rows", "nulls ignored"])
def test_an_upsert_that_is_older_than_a_delete_does_not_bring_the_row_back(how: Folding) -> None:
    """Scenario 5: the delete is remembered, also of a key that never had a row."""
    for batches in ([[delete(5, id=1)], [upsert(3, id=1, name="a")]], [[delete(5, id=1), upsert(3, id=1, name="a")]]):
        target = in_batches(how, *batches)

        assert target.shown() == []
        assert [(row["id"], row[DELETED_AT]) for row in target.remembered()] == [(1, 5)]


def test_two_upserts_of_one_sequence_that_differ_are_refused_by_key_and_sequence() -> None:
    """Scenario 7."""
    with pytest.raises(EqualSequencesError, match=r"key id=1 at sequence 5 differ in the column city") as caught:
        Target(HOW).apply(upsert(5, id=1, name="a", city="x"), upsert(5, id=1, name="a", city="y"))

    assert (caught.value.key, caught.value.sequence) == ("id=1", "5")


def test_of_two_upserts_of_one_sequence_the_last_of_the_batch_counts_where_that_is_asked_for() -> None:
    """Scenario 7."""
    target = Target(LAST)

    target.apply(upsert(5, id=1, name="a", city="x"), upsert(5, id=1, name="b", city="y"), upsert(4, id=1, name="c"))

    assert target.shown() == [{"id": 1, "name": "b", "city": "y"}]


def test_an_upsert_that_differs_from_the_row_at_its_sequence_is_refused_or_leaves_the_row_as_it_is() -> None:
    """Scenario 7."""
    for how in (HOW, IN_ROWS):
        target = in_batches(how, [upsert(5, id=1, name="a")])
        with pytest.raises(EqualSequencesError, match="key id=1 at sequence 5 differ in the column name"):
            target.apply(upsert(5, id=1, name="b"))

        target.how = replace(how, ties=Ties.LAST)
        target.apply(upsert(5, id=1, name="b"))
        assert names(target) == {1: "a"}


def test_upserts_of_one_sequence_that_decide_nothing_are_no_tie() -> None:
    target = in_batches(HOW, [upsert(5, id=1, name="a"), upsert(5, id=1, name="b"), upsert(6, id=1, name="c")])
    target.apply(upsert(5, id=1, name="d"), delete(9, id=2), upsert(8, id=2, name="e"), upsert(8, id=2, name="f"))

    assert names(target) == {1: "c"}


@pytest.mark.parametrize(("one", "other"), [(0.0, -0.0), (math.nan, 1.0), (None, 0.0)])
def test_equal_means_equal_to_the_last_bit(one: float | None, other: float | None) -> None:
    how = replace(HOW, schema=pa.schema([("id", pa.int64()), ("x", pa.float64())]))

    in_batches(how, [upsert(5, id=1, x=one), upsert(5, id=1, x=one)], [upsert(5, id=1, x=one)])
    with pytest.raises(EqualSequencesError):
        Target(how).apply(upsert(5, id=1, x=one), upsert(5, id=1, x=other))


def test_values_of_every_shape_are_compared() -> None:
    shape = pa.struct([("a", pa.list_(pa.int64())), ("b", pa.map_(pa.string(), pa.float32()))])
    how = replace(HOW, schema=pa.schema([("id", pa.int64()), ("x", shape)]))
    value: dict[str, Any] = {"a": [1, None], "b": [("k", 1.5)]}

    target = in_batches(how, [upsert(5, id=1, x=value)], [upsert(5, id=1, x=value)])
    with pytest.raises(EqualSequencesError):
        target.apply(upsert(5, id=1, x={**value, "a": [1, 2]}))


def test_a_struct_is_compared_member_by_member() -> None:
    """Scenarios 8 and 35: commits of one timestamp are told apart by their line."""
    how = replace(HOW, sequence=pa.struct([("second", pa.timestamp("s")), ("line", pa.int32())]))
    events = [
        upsert({"second": second, "line": line}, id=1, name=f"{second} {line}")
        for second, line in [(9, 1), (8, 7), (9, 10), (9, 2)]
    ]

    for batches in ([events], [[event] for event in events]):
        assert names(in_batches(how, *batches)) == {1: "9 10"}


@pytest.mark.parametrize("scd_type", [1, 2])
@pytest.mark.parametrize("kind", [pa.int64(), pa.timestamp("us")], ids=str)
def test_sequences_may_be_as_far_apart_as_their_type_allows(kind: pa.DataType, scd_type: int) -> None:
    how = replace(HOW, sequence=kind, scd_type=scd_type)
    ends = [pa.scalar(at, pa.int64()).cast(kind) for at in (2**63 - 1, -(2**63), 0)]
    batch = pa.table(
        {
            "id": [1, 1, 1],
            "name": ["newest", "oldest", "between"],
            "city": pa.nulls(3, pa.string()),
            KIND: ["upsert"] * 3,
            SEQUENCE: pa.array(ends, kind),
        }
    )

    folded = fold(batch, Known(rows=how.row_schema.empty_table(), state=how.state_schema.empty_table()), how)

    assert folded.inserts["name"].to_pylist() == (["newest"] if scd_type == 1 else ["oldest", "between", "newest"])


@pytest.mark.parametrize("how", [HOW, IN_ROWS, SPARSE], ids=["sequence in the state", "in the rows", "nulls ignored"])
@pytest.mark.parametrize("delete_first", [True, False], ids=["delete first", "upsert first"])
def test_of_a_delete_and_an_upsert_at_one_sequence_the_upsert_wins(how: Folding, *, delete_first: bool) -> None:
    """Scenario 9."""
    both = [delete(5, id=1), upsert(5, id=1, name="a")]
    one, other = both if delete_first else reversed(both)

    for target in (in_batches(how, [one], [other]), in_batches(how, [one, other])):
        assert names(target) == {1: "a"}


def test_the_last_of_an_insert_a_delete_and_an_insert_in_a_batch_is_the_row() -> None:
    """Scenario 12."""
    target = in_batches(HOW, [upsert(1, id=1, name="a"), delete(2, id=1), upsert(3, id=1, name="b")])

    assert names(target) == {1: "b"}


def test_a_snapshot_that_comes_after_a_live_event_does_not_overwrite_it() -> None:
    """Scenario 13: the events of a snapshot have the sequence at which it was read."""
    target = in_batches(
        HOW, [upsert(12, id=1, name="live")], [upsert(10, id=1, name="read"), upsert(10, id=2, name="b")]
    )

    assert names(target) == {1: "live", 2: "b"}


def test_an_update_of_any_column_leaves_one_row() -> None:
    """Scenario 15: the column of the partition is one like others."""
    target = in_batches(HOW, [upsert(1, id=1, name="a", city="x")])

    folded = target.apply(upsert(2, id=1, name="a", city="y"))

    assert target.shown() == [{"id": 1, "name": "a", "city": "y"}]
    assert (folded.removed.to_pylist(), folded.replaces.to_pylist()) == ([0], [0])


def test_a_delete_needs_no_more_than_its_key() -> None:
    """Scenario 16: what Kafka has as a null value. Scenario 14: wherever the row is."""
    target = in_batches(HOW, [upsert(1, id=1, name="a", city="x"), upsert(1, id=2, name="b")])

    folded = target.apply(delete(2, id=1))

    assert names(target) == {2: "b"}
    assert (len(folded.removed), folded.inserts.num_rows) == (1, 0)


@pytest.mark.parametrize("how", [HOW, IN_ROWS, SPARSE], ids=["sequence in the state", "in the rows", "nulls ignored"])
def test_a_truncate_ends_what_is_older_and_leaves_what_is_newer(how: Folding) -> None:
    """Scenario 17."""
    events = [upsert(5, id=1, name="a"), truncate(7), upsert(9, id=2, name="b"), upsert(7, id=3, name="c")]

    for batches in ([events], [[event] for event in events], [[event] for event in reversed(events)]):
        target = in_batches(how, *batches)
        assert names(target) == {2: "b", 3: "c"}
        assert target.truncated_at == pa.scalar(7)


def test_a_truncate_makes_older_deletes_needless() -> None:
    target = in_batches(HOW, [delete(5, id=1), delete(7, id=2), delete(8, id=3)], [truncate(7)], [delete(6, id=4)])

    assert [(row["id"], row[DELETED_AT]) for row in target.state.to_pylist()] == [(3, 8)]
    assert target.apply(truncate(6), truncate(7), truncate(7)).counts == Counts(applied=0, late=1, duplicates=2)


def test_a_null_keeps_the_value_in_the_columns_that_ignore_nulls_and_in_no_other() -> None:
    """Scenario 18."""
    first, second = upsert(1, id=1, name="a", city="x"), upsert(2, id=1, name=None, city=None)

    def after(*ignored: str) -> list[dict[str, Any]]:
        return in_batches(replace(HOW, ignore_nulls=ignored), [first], [second]).shown()

    assert after() == [{"id": 1, "name": None, "city": None}]
    assert after("city") == [{"id": 1, "name": None, "city": "x"}]
    assert after("name", "city") == [{"id": 1, "name": "a", "city": "x"}]


@pytest.mark.parametrize("sequences", [(1, 2), (2, 1), (1, 1)])
def test_two_sparse_events_of_a_key_set_both_columns(sequences: tuple[int, int]) -> None:
    """Scenario 19: also at one sequence, where they are no tie."""
    events = [upsert(sequences[0], id=1, name="a"), upsert(sequences[1], id=1, city="x")]

    for target in (in_batches(SPARSE, events), in_batches(SPARSE, *([event] for event in events))):
        assert target.shown() == [{"id": 1, "name": "a", "city": "x"}]


def test_sparse_events_of_one_sequence_that_set_a_column_differently_are_a_tie() -> None:
    events = [upsert(1, id=1, name="a"), upsert(1, id=1, name="b", city="x")]

    for batches in ([events], [[event] for event in events]):
        with pytest.raises(EqualSequencesError, match="differ in the column name"):
            in_batches(SPARSE, *batches)
    last = replace(SPARSE, ties=Ties.LAST)
    assert names(in_batches(last, events)) == {1: "b"}
    assert in_batches(last, events[:1], events[1:]).shown() == [{"id": 1, "name": "a", "city": "x"}]


def test_an_older_sparse_event_sets_what_no_newer_one_has_set() -> None:
    target = in_batches(SPARSE, [upsert(3, id=1, name="new")], [upsert(5, id=1)])

    folded = target.apply(upsert(2, id=1, name="old", city="x"))

    assert target.shown() == [{"id": 1, "name": "new", "city": "x"}]
    assert target.remembered() == [{"id": 1, SEQUENCE: 5, DELETED_AT: None, SET_AT: {"name": 3, "city": 2}}]
    assert folded.counts == Counts(applied=1, late=0, duplicates=0)


def test_an_event_whose_columns_are_all_remembered_is_a_duplicate_also_if_a_newer_one_left_them_alone() -> None:
    target = in_batches(SPARSE, [upsert(3, id=1, name="a", city="x")], [upsert(5, id=1)])

    assert target.apply(upsert(3, id=1, name="a", city="x")).counts == Counts(applied=0, late=0, duplicates=1)


def test_what_was_set_before_a_delete_is_gone_even_if_the_delete_comes_last() -> None:
    events = [upsert(1, id=1, name="a", city="x"), upsert(3, id=1, name="b"), delete(2, id=1)]

    for batches in ([events], [[event] for event in events], [events[1:], events[:1]]):
        target = in_batches(SPARSE, *batches)
        assert target.shown() == [{"id": 1, "name": "b", "city": None}]
        assert target.remembered() == [{"id": 1, SEQUENCE: 3, DELETED_AT: 2, SET_AT: {"name": 3, "city": None}}]


def test_an_absent_field_keeps_the_value_and_a_null_replaces_it_where_the_source_tells_them_apart() -> None:
    """Scenario 20."""
    how = replace(HOW, absent=("name", "city"))

    target = in_batches(how, [upsert(1, id=1, name="a", city="x")], [upsert(2, id=1, name=None)])

    assert target.shown() == [{"id": 1, "name": None, "city": "x"}]
    target.apply(upsert(1, id=1, city="x"))
    assert target.shown() == [{"id": 1, "name": None, "city": "x"}]


@pytest.mark.parametrize("scd_type", [1, 2])
def test_a_column_may_have_any_name(scd_type: int) -> None:
    schema = pa.schema([(".id", pa.int64()), (".a.b", pa.string()), ("[0]", pa.string())])
    how = Folding(schema=schema, keys=(".id",), sequence=pa.int64(), scd_type=scd_type, absent=(".a.b", "[0]"))

    target = in_batches(how, [upsert(1, **{".id": 1, ".a.b": "a"})], [upsert(2, **{".id": 1, "[0]": "x"})])

    shown = {name: values[-1] for name, values in target.rows.select(schema.names).to_pydict().items()}
    assert shown == {".id": 1, ".a.b": "a", "[0]": "x"}


def test_a_row_whose_values_stay_equal_is_not_touched() -> None:
    target = in_batches(HOW, [upsert(1, id=1, name="a"), upsert(1, id=2, name="b")])

    folded = target.apply(upsert(2, id=1, name="a"), upsert(2, id=2, name="c"))

    assert folded.inserts.to_pylist() == [{"id": 2, "name": "c", "city": None}]
    assert (folded.removed.to_pylist(), folded.replaces.to_pylist()) == ([1], [1])
    # The sequence of the first is newer all the same.
    assert [row[SEQUENCE] for row in folded.state.to_pylist()] == [2, 2]


def test_nothing_is_remembered_of_a_row_that_has_its_sequence_in_a_column() -> None:
    target = in_batches(IN_ROWS, [upsert(1, id=1, name="a"), delete(1, id=2)], [upsert(2, id=2, name="b")])

    assert target.shown() == [
        {"id": 1, "name": "a", "city": None, "at": 1},
        {"id": 2, "name": "b", "city": None, "at": 2},
    ]
    assert target.remembered() == []


def test_a_row_that_another_writer_left_without_a_sequence_is_older_than_every_event() -> None:
    for how in (HOW, SPARSE, IN_ROWS):
        target = Target(how, rows=[{"id": key, "name": "theirs", "city": "x"} for key in (1, 2, 3)])

        target.apply(upsert(-5, id=1, name="ours"), delete(-5, id=2))

        assert names(target) == {1: "ours", 3: "theirs"}
        assert target.shown()[0]["city"] == ("x" if how is SPARSE else None)


def test_a_row_that_somebody_deleted_by_hand_does_not_come_back_by_an_event_that_is_not_newer() -> None:
    target = in_batches(HOW, [upsert(5, id=1, name="a")])
    target.rows = target.rows.slice(0, 0)

    target.apply(upsert(5, id=1, name="b"), upsert(4, id=1, name="c"))
    assert target.shown() == []
    target.apply(upsert(6, id=1, name="d"))
    assert names(target) == {1: "d"}


def test_keys_of_several_columns_and_zero_with_a_sign_are_compared_as_spark_joins() -> None:
    schema = pa.schema([("a", pa.float64()), ("b", pa.string()), ("name", pa.string())])
    how = replace(HOW, schema=schema, keys=("a", "b"))

    target = in_batches(how, [upsert(1, a=0.0, b="x", name="a"), upsert(1, a=0.0, b="y", name="b")])
    target.apply(upsert(2, a=-0.0, b="y", name="c"))

    assert sorted((row["b"], row["name"]) for row in target.shown()) == [("x", "a"), ("y", "c")]


def test_a_table_with_two_rows_of_one_key_is_refused() -> None:
    target = Target(HOW, rows=[{"id": 1, "name": "a"}, {"id": 1, "name": "b"}])

    with pytest.raises(
        InvalidRowsError, match="changes of key id=1: it should have one row, and has rows that contradict"
    ):
        target.apply(upsert(1, id=1))


def test_keys_may_be_folded_in_parts_that_each_have_all_truncates() -> None:
    batch = [upsert(5, id=1, name="a"), upsert(5, id=2, name="b"), truncate(4)]
    whole = in_batches(HOW, [upsert(3, id=1, name="x"), upsert(3, id=2, name="y"), upsert(3, id=3, name="z")])

    parts = []
    for key in (1, 2, 3):
        rows, state = (table.filter(pa.compute.equal(table["id"], key)) for table in (whole.rows, whole.state))
        events = [event for event in batch if event.get("id") in (None, key)]
        parts.append(fold(table_of(events, HOW), Known(rows=rows, state=state), HOW))

    assert [part.inserts["name"].to_pylist() for part in parts] == [["a"], ["b"], []]
    assert [part.removed.to_pylist() for part in parts] == [[0], [0], [0]]
