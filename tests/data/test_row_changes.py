"""Rows that a rewrite carried over unchanged are no changes, and equal means equal to the last bit."""

from __future__ import annotations

import math
import struct
from collections import Counter
from decimal import Decimal
from typing import Any

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import given, settings

from tablefeed.data.row_changes import split_updates, without_carryovers

NESTED = pa.struct([("a", pa.list_(pa.float64())), ("b", pa.string())])
OTHER_NAN = struct.unpack("<d", struct.pack("<Q", 0x7FF8000000000001))[0]


def table(values: list[Any], kind: pa.DataType) -> pa.Table:
    """A table of one column, in chunks of two rows: a commit's rows come from several files."""
    chunks = [pa.array(values[i : i + 2], kind) for i in range(0, len(values), 2)]
    return pa.table({"x": pa.chunked_array(chunks, type=kind)})


def left(before: list[Any], after: list[Any], kind: pa.DataType) -> tuple[list[Any], list[Any]]:
    deleted, inserted = without_carryovers(table(before, kind), table(after, kind))
    return deleted["x"].to_pylist(), inserted["x"].to_pylist()


def test_rows_that_both_have_are_left_out_and_the_others_stay_in_their_order() -> None:
    assert left([1, 2, 3, 4, 5], [9, 4, 2, 0], pa.int64()) == ([1, 3, 5], [9, 0])


def test_equal_rows_are_left_out_one_for_one() -> None:
    assert left([7, 7, 7], [7], pa.int64()) == ([7, 7], [])
    assert left([7], [7, 8, 7], pa.int64()) == ([], [8, 7])


def test_minus_zero_is_not_zero_and_every_nan_is_the_same() -> None:
    for kind in (pa.float64(), pa.float32()):
        deleted, inserted = left([0.0, math.nan, 1.5], [-0.0, OTHER_NAN, 1.5], kind)

        assert [str(x) for x in deleted] == ["0.0"]
        assert [str(x) for x in inserted] == ["-0.0"]


def test_null_is_null_and_nothing_else() -> None:
    assert left([None, "", "a"], [None, None, "null"], pa.string()) == (["", "a"], [None, "null"])
    assert left([None, 0], [0, 1], pa.int64()) == ([None], [1])


def test_a_list_is_what_it_holds_in_its_order_and_empty_is_not_null() -> None:
    kind = pa.list_(pa.int64())

    assert left([[1, 2], [], None, [None], [1]], [[2, 1], None, [1], [None]], kind) == ([[1, 2], []], [[2, 1]])


def test_a_struct_is_its_members_and_one_of_nulls_is_not_null() -> None:
    kind = pa.struct([("a", pa.int64()), ("b", pa.string())])
    nulls = {"a": None, "b": None}

    assert left([nulls, None, {"a": 1, "b": "x"}], [None, {"a": 1, "b": "y"}], kind) == (
        [nulls, {"a": 1, "b": "x"}],
        [{"a": 1, "b": "y"}],
    )


def test_a_map_is_its_entries() -> None:
    kind = pa.map_(pa.string(), pa.list_(pa.int64()))

    assert left([[("a", [1])], [("b", None)]], [[("b", None)], [("a", [2])]], kind) == ([[("a", [1])]], [[("a", [2])]])


def test_lists_of_structs_of_lists_are_compared_at_every_depth() -> None:
    kind = pa.list_(NESTED)
    same, other = [{"a": [1.0, None], "b": "x"}, None], [{"a": [1.0], "b": "x"}, None]

    assert left([same, other], [other], kind) == ([same], [])


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.bool_(), [True, False, None]),
        (pa.int8(), [1, -1, None]),
        (pa.binary(), [b"", b"\x00", None]),
        (pa.decimal128(38, 2), [Decimal("1.00"), Decimal("-1.00"), None]),
        (pa.date32(), [1, 2, None]),
        (pa.timestamp("us", tz="UTC"), [1, 2, None]),
        (pa.timestamp("us"), [1, 2, None]),
        (pa.null(), [None, None, None]),
    ],
)
def test_a_value_of_every_type_is_found_again(kind: pa.DataType, values: list[Any]) -> None:
    assert left(values, values[::-1], kind) == ([], [])
    assert len(left([values[0]], [values[1]], kind)[0]) == (0 if kind == pa.null() else 1)


floats = st.sampled_from([0.0, -0.0, 1.0, math.nan, math.inf, None])
lists = st.none() | st.lists(floats, max_size=2)
rows = st.tuples(
    st.none() | st.integers(0, 2),
    st.none() | st.fixed_dictionaries({"a": lists, "b": st.sampled_from(["", "x", None])}),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(rows, max_size=8), st.lists(rows, max_size=8))
def test_what_is_left_is_the_difference_of_the_two_multisets(before: list[Any], after: list[Any]) -> None:
    def of(some: list[Any]) -> pa.Table:
        padded = [(9, None), *some, (9, None)]  # to be cut off again: the rows of a slice begin within their buffers
        columns = {"n": pa.array([n for n, _ in padded], pa.int64()), "s": pa.array([s for _, s in padded], NESTED)}
        return pa.table(columns).slice(1, len(some))

    def counted(some: pa.Table) -> Counter[str]:
        return Counter(map(repr, some.to_pylist()))

    deleted, inserted = without_carryovers(of(before), of(after))

    assert counted(deleted) == counted(of(before)) - counted(of(after))
    assert counted(inserted) == counted(of(after)) - counted(of(before))


def test_rows_whose_id_both_sides_have_are_updates() -> None:
    deleted = pa.table({"id": [5, 6, 7], "x": ["a", "b", "c"]})
    inserted = pa.table({"id": [7, 8], "x": ["C", "d"]})

    assert [part["x"].to_pylist() for part in split_updates(deleted, inserted, row_id="id")] == [["c"], ["a", "b"]]
    assert [part["x"].to_pylist() for part in split_updates(inserted, deleted, row_id="id")] == [["C"], ["d"]]
