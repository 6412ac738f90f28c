"""SCD type 2: every version of a row with the interval in which it held, whatever comes first and in whatever batch.

A docstring names the scenarios of change data capture that its test shows.
"""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import permutations
from typing import Any

import pyarrow as pa
import pytest

from support.change_events import Event, Target, delete, in_batches, truncate, upsert
from tablefeed.errors import EqualSequencesError, InvalidEventsError, InvalidRowsError
from tablefeed.feed.rows.folding import END_AT, IS_DELETE, SEQUENCE, SET, START_AT, Counts, Folding, Ties

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string()), ("seen", pa.int64())])
HOW = Folding(schema=SCHEMA, keys=("id",), sequence=pa.int64(), scd_type=2)
BY_NAME = replace(HOW, tracked=("name",))
SPARSE = replace(HOW, ignore_nulls=("name", "seen"))

Versions = list[tuple[str | None, int, int | None]]


def versions(target: Target) -> Versions:
    """The name, the start and the end of each version."""
    found = [(row["name"], row[START_AT], row[END_AT]) for row in target.shown()]
    return sorted(found, key=lambda version: version[1])


def seen(target: Target) -> list[tuple[int, int | None]]:
    return sorted((row[START_AT], row["seen"]) for row in target.shown())


def in_every_order(how: Folding, *events: Event) -> list[Target]:
    """In one batch, and each event in a batch of its own in every order."""
    return [
        in_batches(how, events),
        *(in_batches(how, *([event] for event in order)) for order in permutations(events)),
    ]


def test_an_upsert_closes_the_version_before_it_and_a_delete_opens_none() -> None:
    for target in in_every_order(HOW, upsert(10, id=1, name="a"), upsert(20, id=1, name="b"), delete(30, id=1)):
        assert versions(target) == [("a", 10, 20), ("b", 20, 30)]
        assert target.remembered() == []


def test_a_late_upsert_splits_the_interval_that_it_falls_into() -> None:
    """Scenario 21."""
    target = in_batches(HOW, [upsert(10, id=1, name="a"), upsert(30, id=1, name="c")])

    folded = target.apply(upsert(20, id=1, name="b"))

    assert versions(target) == [("a", 10, 20), ("b", 20, 30), ("c", 30, None)]
    assert len(folded.removed) == 1
    assert [
        (row["name"], of) for row, of in zip(folded.inserts.to_pylist(), folded.replaces.to_pylist(), strict=True)
    ] == [
        ("a", folded.removed[0].as_py()),
        ("b", None),
    ]


def test_a_late_delete_ends_the_version_that_it_falls_into_before_the_next_begins() -> None:
    """Scenario 21."""
    for target in in_every_order(HOW, upsert(10, id=1, name="a"), upsert(30, id=1, name="c"), delete(20, id=1)):
        assert versions(target) == [("a", 10, 20), ("c", 30, None)]


def test_a_version_that_a_late_event_splits_has_on_either_side_what_its_events_said() -> None:
    """Scenario 21: two upserts with the same tracked columns were one version; both are remembered."""
    events = [
        upsert(10, id=1, name="a", seen=1),
        upsert(30, id=1, name="a", seen=3),
        upsert(20, id=1, name="b", seen=2),
    ]

    for target in in_every_order(BY_NAME, *events):
        assert versions(target) == [("a", 10, 20), ("b", 20, 30), ("a", 30, None)]
        assert seen(target) == [(10, 1), (20, 2), (30, 3)]
        assert target.remembered() == []


def test_no_row_comes_back_to_life_between_a_delete_and_the_next_upsert() -> None:
    """Scenario 22."""
    events = [upsert(10, id=1, name="a"), upsert(11, id=1, name="a"), delete(12, id=1), upsert(20, id=1, name="b")]

    for target in in_every_order(HOW, *events):
        assert versions(target) == [("a", 10, 12), ("b", 20, None)]
        assert [(row[SEQUENCE], row[IS_DELETE]) for row in target.remembered()] == [(10, False), (11, False)]


def test_fifty_changes_of_a_column_that_is_not_tracked_are_one_row() -> None:
    """Scenario 23."""
    events = [upsert(at, id=1, name="a", seen=at) for at in range(50)]
    random.Random(23).shuffle(events)  # noqa: S311 (no secret)

    for batches in ([events], [[event] for event in events]):
        target = in_batches(BY_NAME, *batches)
        assert target.shown() == [{"id": 1, "name": "a", "seen": 49, START_AT: 0, END_AT: None}]
        assert sorted((row[SEQUENCE], row["seen"]) for row in target.remembered()) == [(at, at) for at in range(50)]


def test_only_what_is_new_is_added_to_what_is_remembered() -> None:
    target = in_batches(BY_NAME, [upsert(at, id=1, name="a", seen=at) for at in (1, 2, 3)])

    folded = target.apply(upsert(4, id=1, name="a", seen=4))

    assert [(row[SEQUENCE], row["seen"]) for row in folded.state.to_pylist()] == [(4, 4)]
    assert folded.state_removed.to_pylist() == []
    assert [row["seen"] for row in folded.inserts.to_pylist()] == [4]
    assert folded.replaces.to_pylist() == folded.removed.to_pylist() == [0]


def test_an_upsert_that_comes_after_a_newer_delete_ends_at_it() -> None:
    """Scenario 24: a delete that closed nothing is remembered until it closes something."""
    target = in_batches(HOW, [delete(10, id=1), delete(12, id=1), delete(30, id=2)])
    assert [(row["id"], row[SEQUENCE]) for row in target.remembered()] == [(1, 10), (1, 12), (2, 30)]

    target.apply(upsert(5, id=1, name="a"))
    assert versions(target) == [("a", 5, 10)]
    assert [(row["id"], row[SEQUENCE]) for row in target.remembered()] == [(1, 12), (2, 30)]

    target.apply(upsert(11, id=1, name="b"))
    assert versions(target) == [("a", 5, 10), ("b", 11, 12)]
    assert [(row["id"], row[SEQUENCE]) for row in target.remembered()] == [(2, 30)]


def test_a_delete_before_the_end_of_a_version_leaves_its_end_to_be_remembered() -> None:
    """Scenario 24."""
    events = [upsert(10, id=1, name="a"), delete(20, id=1), delete(15, id=1), upsert(17, id=1, name="b")]

    for target in in_every_order(HOW, *events[:3]):
        assert versions(target) == [("a", 10, 15)]
        assert [(row[SEQUENCE], row[IS_DELETE]) for row in target.remembered()] == [(20, True)]
    for target in in_every_order(HOW, *events):
        assert versions(target) == [("a", 10, 15), ("b", 17, 20)]


def test_of_a_delete_and_an_upsert_at_one_sequence_the_upsert_wins() -> None:
    """Scenario 9."""
    events = [upsert(10, id=1, name="a"), upsert(20, id=1, name="b"), delete(20, id=1)]

    for target in in_every_order(HOW, *events):
        assert versions(target) == [("a", 10, 20), ("b", 20, None)]
        assert target.remembered() == []


def test_a_batch_that_is_applied_again_changes_neither_a_version_nor_the_state() -> None:
    """Scenario 1."""
    batch = [upsert(10, id=1, name="a", seen=1), upsert(20, id=1, name="a", seen=2), delete(30, id=1), delete(5, id=1)]
    target = in_batches(BY_NAME, batch)

    folded = target.apply(*batch, batch[0])

    assert (folded.inserts.num_rows, folded.removed.to_pylist()) == (0, [])
    assert (folded.state.num_rows, folded.state_removed.to_pylist()) == (0, [])
    assert folded.counts == Counts(applied=0, late=0, duplicates=5)


def test_a_delete_at_the_sequence_of_an_upsert_is_counted_as_late() -> None:
    target = in_batches(HOW, [upsert(10, id=1, name="a")])

    assert target.apply(delete(10, id=1), delete(9, id=1)).counts == Counts(applied=1, late=1, duplicates=0)


def test_upserts_of_one_sequence_that_differ_are_a_tie_wherever_they_fall() -> None:
    """Scenario 7: in one batch, against a version, and against an upsert that was merged into one."""
    events = [
        upsert(10, id=1, name="a", seen=1),
        upsert(20, id=1, name="a", seen=2),
        upsert(30, id=1, name="b", seen=3),
    ]

    for at, other in [(10, "x"), (20, "x"), (30, "x")]:
        with pytest.raises(EqualSequencesError, match=f"key id=1 at sequence {at} differ in the column name"):
            in_batches(BY_NAME, events, [upsert(at, id=1, name=other, seen=at // 10)])
    with pytest.raises(EqualSequencesError, match="key id=1 at sequence 10 differ in the column seen"):
        in_batches(BY_NAME, events, [upsert(10, id=1, name="a", seen=9)])

    last = replace(BY_NAME, ties=Ties.LAST)
    assert versions(in_batches(last, events, [upsert(30, id=1, name="x", seen=3)])) == [("a", 10, 30), ("b", 30, None)]
    assert versions(in_batches(last, [*events, upsert(30, id=1, name="x", seen=3)])) == [("a", 10, 30), ("x", 30, None)]


def test_a_null_keeps_the_value_of_the_upsert_before_it_also_if_that_one_comes_late() -> None:
    """Scenarios 18 and 19."""
    events = [upsert(10, id=1, name="a", seen=1), upsert(20, id=1, name="b"), upsert(30, id=1, seen=3)]

    for target in in_every_order(SPARSE, *events):
        assert versions(target) == [("a", 10, 20), ("b", 20, 30), ("b", 30, None)]
        assert seen(target) == [(10, 1), (20, 1), (30, 3)]
        assert [(row[SEQUENCE], row[SET]) for row in target.remembered()] == [
            (20, {"name": True, "seen": False}),
            (30, {"name": False, "seen": True}),
        ]


def test_a_null_keeps_no_value_from_before_a_delete() -> None:
    for target in in_every_order(
        SPARSE, upsert(10, id=1, name="a", seen=1), delete(20, id=1), upsert(30, id=1, seen=3)
    ):
        assert versions(target) == [("a", 10, 20), (None, 30, None)]


def test_sparse_events_of_one_sequence_are_one_upsert() -> None:
    """Scenario 19."""
    events = [upsert(5, id=1, name="z", seen=0), upsert(10, id=1, name="a"), upsert(10, id=1, seen=1)]

    for target in in_every_order(SPARSE, *events):
        assert versions(target) == [("z", 5, 10), ("a", 10, None)]
        assert seen(target) == [(5, 0), (10, 1)]
        assert target.remembered() == []
    with pytest.raises(EqualSequencesError, match="differ in the column seen"):
        in_batches(SPARSE, events, [upsert(10, id=1, seen=2)])


def test_an_absent_field_keeps_the_value_and_a_null_replaces_it_where_the_source_tells_them_apart() -> None:
    """Scenario 20."""
    how = replace(HOW, absent=("name", "seen"))

    for target in in_every_order(how, upsert(10, id=1, name="a", seen=1), upsert(20, id=1, name=None)):
        assert versions(target) == [("a", 10, 20), (None, 20, None)]
        assert seen(target) == [(10, 1), (20, 1)]


def test_a_struct_is_compared_member_by_member() -> None:
    """Scenarios 8 and 35."""
    how = replace(HOW, sequence=pa.struct([("second", pa.int32()), ("line", pa.int32())]))
    events = [upsert({"second": 9, "line": line}, id=1, name=str(line)) for line in (2, 10, 1)]

    for target in in_every_order(how, *events):
        ends = {row["name"]: row[END_AT] for row in target.shown()}
        assert ends == {"1": {"second": 9, "line": 2}, "2": {"second": 9, "line": 10}, "10": None}


def test_a_truncate_is_refused() -> None:
    """Scenario 17."""
    target = Target(HOW)

    with pytest.raises(
        InvalidEventsError, match="the event at sequence 7 truncates the table, which keeps the history"
    ):
        target.apply(upsert(5, id=1, name="a"), truncate(7))
    assert target.shown() == []


def test_the_upserts_of_a_version_that_somebody_deleted_by_hand_are_forgotten_with_it() -> None:
    target = in_batches(BY_NAME, [upsert(at, id=1, name="a", seen=at) for at in (10, 20)])
    target.rows = target.rows.slice(0, 0)

    target.apply(upsert(15, id=1, name="b", seen=15))

    assert versions(target) == [("b", 15, None)]
    assert target.remembered() == []


@pytest.mark.parametrize(
    "intervals",
    [[(1, 5), (1, 7)], [(1, 5), (4, None)], [(1, None), (4, None)], [(5, 5)], [(5, 3)], [(None, 3)]],
    ids=str,
)
def test_versions_that_exclude_each_other_are_refused(intervals: list[tuple[int | None, int | None]]) -> None:
    rows: list[dict[str, Any]] = [{"id": 1, "name": str(at), START_AT: at, END_AT: end} for at, end in intervals]

    with pytest.raises(
        InvalidRowsError, match="changes of key id=1: it should have one row at a time, from __START_AT"
    ):
        Target(HOW, rows=rows).apply(upsert(9, id=1, name="x"))


def test_other_keys_that_are_known_stay_as_they_are() -> None:
    target = in_batches(BY_NAME, [upsert(at, id=key, name="a", seen=at) for at in (10, 20) for key in (1, 2)])
    before = [row for row in (*target.shown(), *target.remembered()) if row["id"] == 2]

    target.apply(upsert(15, id=1, name="b", seen=15))

    assert [row for row in (*target.shown(), *target.remembered()) if row["id"] == 2] == before
