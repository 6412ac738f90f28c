"""Documents become slices of columns: whose value is where, whatever each document holds and in which order."""

from __future__ import annotations

from array import array
from itertools import accumulate
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.split_bytes import U64, Document, Raw, document, vint
from tablefeed.indextables.split.damage import DamagedSplitError, UnsupportedSplitError
from tablefeed.indextables.split.doc_store import Documents
from tablefeed.indextables.split.nested import MOST_LEVELS, Code, Instant
from tablefeed.indextables.split.shapes import Key, Wanted
from tablefeed.indextables.split.walk import read_pieces


def run_of(encoded: list[bytes]) -> Documents:
    return Documents(data=b"".join(encoded), ends=array("q", accumulate(map(len, encoded))))


AS_IT_IS = pa.int64()
"""A type for which no object and no array is read in columns."""


def pieces(
    documents: list[Document], wanted: set[int] | None = None
) -> dict[Key, list[tuple[Code | None, list[int], Any]]]:
    """By field: the code of each slice, its documents and its values; those that hold others as they are."""
    columns = {field: Wanted("c", AS_IT_IS) for field in wanted or range(10)}
    found = read_pieces(run_of([document(values) for values in documents]), field_count=10, wanted=columns)
    return {
        field: [
            (p.code, p.rows.to_pylist(), p.values if isinstance(p.values, list) else p.values.to_pylist()) for p in of
        ]
        for field, of in found.items()
    }


def test_documents_of_one_shape_are_one_slice_a_field() -> None:
    assert pieces([[(0, i), (1, f"{i}" * i)] for i in range(3)]) == {
        0: [(Code.I64, [0, 1, 2], [0, 1, 2])],
        1: [(Code.STR, [0, 1, 2], [b"", b"1", b"22"])],
    }


def test_documents_of_other_shapes_are_a_slice_for_each_place_and_code() -> None:
    found = pieces([[(1, "a"), (0, 1)], [], [(0, U64(2)), (1, "b")], [(0, None)]])

    assert found == {
        0: [(Code.U64, [2], [2]), (Code.NULL, [3], [None]), (Code.I64, [0], [1])],
        1: [(Code.STR, [0], [b"a"]), (Code.STR, [2], [b"b"])],
    }


def test_a_field_that_a_document_has_twice_is_two_slices() -> None:
    assert pieces([[(0, 1), (0, 2)], [(0, 3)]]) == {0: [(Code.I64, [0, 1], [1, 3]), (Code.I64, [0], [2])]}


def test_fields_that_are_not_wanted_are_stepped_over_whatever_they_hold() -> None:
    values: Document = [(2, "x" * 200), (3, [1, {"a": b"b"}]), (4, Instant(1)), (0, 7)]

    assert pieces([values], wanted={0}) == {0: [(Code.I64, [0], [7])]}


def test_lengths_take_as_many_bytes_as_they_need() -> None:
    texts = ["", "a" * 127, "b" * 128, "c" * 20_000, "d" * 3_000_000, "e"]

    ((_, rows, values),) = pieces([[(0, text)] for text in texts])[0]

    assert rows == list(range(6))
    assert values == [text.encode() for text in texts]


def test_a_document_of_many_values_counts_them_in_more_than_one_byte() -> None:
    found = pieces([[(i % 3, i) for i in range(300)], [(0, -1)]])

    assert [len(found[field]) for field in range(3)] == [100, 100, 100]
    assert found[0][0] == (Code.I64, [0, 1], [0, -1])


def test_no_documents_are_no_slices() -> None:
    assert pieces([]) == {}


LEAVES = (
    st.none() | st.booleans() | st.integers(-(1 << 63), (1 << 63) - 1) | st.text(max_size=5) | st.binary(max_size=5)
)
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
)


@given(st.lists(st.lists(st.tuples(st.integers(0, 9), VALUES), max_size=5), max_size=8))
def test_every_value_is_found_once_with_its_document(documents: list[list[tuple[int, Any]]]) -> None:
    told = [(row, field, value) for row, values in enumerate(documents) for field, value in values]

    found = [
        (row, field, plain(code, value))
        for field, slices in pieces(list(documents)).items()
        for code, rows, values in slices
        for row, value in zip(rows, values, strict=True)
    ]

    assert sorted(map(repr, found)) == sorted(map(repr, told))


def plain(code: Code | None, value: Any) -> object:
    match code:
        case Code.STR:
            return value.decode()
        case Code.BOOL:
            return bool(value)
        case _:
            return value


@pytest.mark.parametrize(
    ("encoded", "reason"),
    [
        (b"", "is cut, or longer"),
        (b"\x01", "is cut, or longer"),
        (b"\x00" * 6, "more than 35 bits"),
        (vint(0) + b"more", "ends before its place"),
        (document([(0, 1)]) + b"more", "ends before its place"),
        (document([(0, 1)])[:-1], "is cut, or longer"),
        (document([(0, "abc")])[:-1], "is cut, or longer"),
        (vint(2) + document([(0, 1)])[1:], "is cut, or longer"),
        (document([(10, 1)]), "field 10, of 10"),
        (document([(0, ["abc"])])[:-1], "a document that is cut"),
        (document([(0, {"abc": 1})])[:-1], "a document that is cut"),
        (document([(0, Raw(b"\x0d\x81\x00\x81a"))]), "a name and no value"),
        (document([(0, Raw(b"\x0d\x82\x02" + bytes(8) + b"\x0b"))]), "no name"),
        (document([(0, [Raw(b"\x00\x81\xff")])]), "not UTF-8"),
        (document([(0, [Raw(b"\x09\x02")])]), "a boolean of 2"),
    ],
)
def test_bytes_that_are_no_document_are_refused(encoded: bytes, reason: str) -> None:
    with pytest.raises(DamagedSplitError, match=reason):
        read_pieces(run_of([encoded]), field_count=10, wanted={0: Wanted("c", AS_IT_IS)})


def test_a_value_that_runs_into_the_next_document_is_refused() -> None:
    for cut in (document([(0, "abc")])[:-1], document([(0, ["abc"])])[:-1], document([(0, 1)])[:-1]):
        with pytest.raises(DamagedSplitError):
            read_pieces(run_of([cut, document([(0, "x" * 99)])]), field_count=10, wanted={0: Wanted("c", AS_IT_IS)})


@pytest.mark.parametrize("count", [1, 100])
def test_values_that_are_not_wanted_are_stepped_over_as_deep_as_types_are_and_no_deeper(count: int) -> None:
    def nested(levels: int) -> list[Document]:
        return [[(1, Raw(b"\x0c\x81" * levels + b"\x0b")), (0, 7)]] * count

    assert pieces(nested(MOST_LEVELS - 1), wanted={0})[0][0][2] == [7] * count
    with pytest.raises(UnsupportedSplitError, match="nested more than 100 deep"):
        pieces(nested(MOST_LEVELS + 1), wanted={0})


def test_values_are_nested_as_deep_as_types_are_and_no_deeper() -> None:
    def nested(levels: int) -> Raw:
        return Raw(b"\x0c\x81" * levels + b"\x0b")

    ((_, _, (deepest,)),) = pieces([[(0, nested(MOST_LEVELS - 1))]])[0]

    assert str(deepest).count("[") == MOST_LEVELS - 1
    with pytest.raises(UnsupportedSplitError, match="nested more than 100 deep"):
        pieces([[(0, nested(100_000))]])
