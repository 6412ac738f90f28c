"""Rows are grouped by their partition values, each row exactly once, with its own value."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablefeed.data.partition import by_partition, empty_is_null


def grouped(table: pa.Table, *partition_by: str) -> dict[tuple[str, ...], list[int]]:
    return {
        tuple(repr(scalar.as_py()) for scalar in values.values()): part.column("row").to_pylist()
        for values, part in by_partition(table, partition_by)
    }


def test_zeros_differ_and_every_nan_is_the_same() -> None:
    table = pa.table({"p": [0.0, -0.0, math.nan, -math.nan, None, 0.0], "row": range(6)})
    assert grouped(table, "p") == {("0.0",): [0, 5], ("-0.0",): [1], ("nan",): [2, 3], ("None",): [4]}


@pytest.mark.parametrize(
    "values",
    [
        [Decimal("1.50"), Decimal("-1.50")],
        [datetime(2024, 1, 1, 0, 0, 0, 1, UTC), datetime(2024, 1, 1, 0, 0, 0, 2, UTC)],
        [date(1, 1, 1), date(9999, 12, 31)],
        [b"\x00", b"\x00\x00"],
        [True, False],
        ["a", "a "],
        [-(2**63), 2**63 - 1],
    ],
    ids=lambda values: type(values[0]).__name__,
)
def test_every_type_groups_by_value(values: list[Any]) -> None:
    first, second = values
    table = pa.table({"p": [first, second, None, first], "row": range(4)})
    assert [part.column("row").to_pylist() for _, part in by_partition(table, ["p"])] in (
        [[0, 3], [1], [2]],
        [[1], [0, 3], [2]],
    )


def test_an_empty_text_is_null_in_a_partition_column_only() -> None:
    table = pa.table({"p": ["", None, "a"], "b": [b"", b"x", None], "other": ["", "", ""], "row": [0, 1, 2]})
    assert empty_is_null(table, ["p", "b"]).to_pydict() == {
        "p": [None, None, "a"],
        "b": [None, b"x", None],
        "other": ["", "", ""],
        "row": [0, 1, 2],
    }


def test_a_partition_does_not_keep_the_memory_of_the_others() -> None:
    table = pa.table({"p": [0, *[1] * 9999], "s": ["x" * 100] * 10_000})
    small = next(part for _, part in by_partition(table, ["p"]) if part.num_rows == 1)
    del table
    assert small.get_total_buffer_size() < 2000


VALUES = st.none() | st.sampled_from([0.0, -0.0, 1.5, math.inf, -math.inf, math.nan])
TEXTS = st.none() | st.sampled_from(["a", "b", "c"])


@given(st.lists(st.tuples(VALUES, TEXTS, st.none() | st.booleans()), max_size=40), st.integers(1, 10))
def test_partitions_are_disjoint_whole_and_each_of_one_key(values: list[tuple[Any, Any, Any]], chunk: int) -> None:
    schema = pa.schema([("x", pa.float64()), ("s", pa.string()), ("b", pa.bool_()), ("row", pa.int64())])
    records = [dict(zip("xsb", value, strict=True), row=row) for row, value in enumerate(values)]
    table = pa.Table.from_batches(
        [pa.RecordBatch.from_pylist(records[i : i + chunk], schema=schema) for i in range(0, len(records), chunk)],
        schema=schema,
    )
    expected: dict[tuple[str, ...], list[int]] = {}
    for row, value in enumerate(values):
        expected.setdefault(tuple(map(repr, value)), []).append(row)
    assert grouped(table, "x", "s", "b") == expected
