"""Statistics count every null and bound every value, or say nothing."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablefeed.data.statistics import RunningStatistics, all_leaves
from tablefeed.model.statistics import ColumnStatistics, FileStatistics


def of(*tables: pa.Table) -> FileStatistics:
    running = RunningStatistics(tables[0].schema, all_leaves(tables[0].schema))
    for table in tables:
        running.add(table)
    return running.result()


def column(values: list[Any], kind: pa.DataType) -> ColumnStatistics:
    return of(pa.table({"c": pa.array(values, kind)})).columns[("c",)]


def test_leaves_are_in_schema_order_with_lists_and_maps_as_one() -> None:
    schema = pa.schema(
        [
            ("a", pa.int64()),
            ("s", pa.struct([("x", pa.string()), ("t", pa.struct([("y", pa.date32())]))])),
            ("l", pa.list_(pa.struct([("z", pa.int64())]))),
            ("m", pa.map_(pa.string(), pa.string())),
            ("void", pa.null()),
        ]
    )
    assert all_leaves(schema) == (("a",), ("s", "x"), ("s", "t", "y"), ("l",), ("m",))


def test_a_leaf_that_files_do_not_have_is_null_in_all_rows() -> None:
    rows = pa.table({"a": [1, 2]})
    running = RunningStatistics(rows.schema, (("a",), ("void",)))
    running.add(rows)
    running.add(rows)
    assert running.result().columns == {
        ("a",): ColumnStatistics(null_count=0, minimum=1, maximum=2),
        ("void",): ColumnStatistics(null_count=4),
    }


@pytest.mark.parametrize(
    ("kind", "values", "low", "high"),
    [
        (pa.int8(), [3, -5], -5, 3),
        (pa.int64(), [2**63 - 1, -(2**63)], -(2**63), 2**63 - 1),
        (pa.float32(), [1.5, -2.5], -2.5, 1.5),
        (pa.decimal128(38, 2), [Decimal("1.50"), Decimal("-0.01")], Decimal("-0.01"), Decimal("1.50")),
        (pa.date32(), [date(1, 1, 1), date(9999, 12, 31)], date(1, 1, 1), date(9999, 12, 31)),
        (pa.timestamp("us", "UTC"), [0, 1], datetime(1970, 1, 1, tzinfo=UTC), datetime(1970, 1, 1, 0, 0, 0, 1, UTC)),
        (pa.timestamp("us"), [-1], *[datetime(1969, 12, 31, 23, 59, 59, 999999)] * 2),  # noqa: DTZ001
        (pa.string(), ["\uffff", "\U00010000", "a"], "a", "\U00010000"),
        (pa.bool_(), [True], None, None),
        (pa.binary(), [b"a"], None, None),
        (pa.list_(pa.int64()), [[1, 2]], None, None),
    ],
    ids=str,
)
def test_types_with_an_order_for_readers_have_bounds(kind: pa.DataType, values: list[Any], low: Any, high: Any) -> None:
    array = pa.array(values, pa.int64()).cast(kind) if pa.types.is_timestamp(kind) else pa.array(values, kind)
    table = pa.table({"c": pa.concat_arrays([array, pa.nulls(2, kind)])})
    assert of(table).columns[("c",)] == ColumnStatistics(null_count=2, minimum=low, maximum=high)


def test_a_column_of_nulls_has_no_bounds() -> None:
    assert column([None, None], pa.int64()) == ColumnStatistics(null_count=2)
    assert column([None], pa.float64()) == ColumnStatistics(null_count=1)
    assert column([], pa.string()) == ColumnStatistics(null_count=0)


def test_nan_is_the_largest_number_and_the_smallest_only_when_alone() -> None:
    mixed = column([1.0, math.nan, -math.inf, None], pa.float64())
    assert (mixed.minimum, repr(mixed.maximum), mixed.null_count) == (-math.inf, "nan", 1)
    alone = column([math.nan, None], pa.float32())
    assert (repr(alone.minimum), repr(alone.maximum)) == ("nan", "nan")


def test_nan_in_one_row_group_is_not_forgotten_by_the_next() -> None:
    tables = [pa.table({"c": [x]}) for x in (5.0, math.nan, 1.0)]
    result = of(*tables).columns[("c",)]
    assert (result.minimum, repr(result.maximum)) == (1.0, "nan")


@pytest.mark.parametrize("kind", [pa.float64(), pa.float32()])
@pytest.mark.parametrize("values", [[0.0, -0.0], [-0.0, 0.0], [-0.0, None, 0.0]])
def test_zeros_bound_each_other_under_either_order(kind: pa.DataType, values: list[float | None]) -> None:
    together = column(values, kind)
    apart = of(*(pa.table({"c": pa.array([x], kind)}) for x in values)).columns[("c",)]
    for result in (together, apart):
        assert (repr(result.minimum), repr(result.maximum)) == ("-0.0", "0.0")


def test_positive_zeros_alone_stay_positive() -> None:
    assert repr(column([0.0, 1.0], pa.float64()).minimum) == "0.0"


def test_years_that_readers_spell_differently_have_no_bound() -> None:
    beyond = pa.array([0, 2**62]).cast(pa.timestamp("us", "UTC"))
    result = of(pa.table({"c": beyond})).columns[("c",)]
    assert result == ColumnStatistics(null_count=0, minimum=datetime(1970, 1, 1, tzinfo=UTC), maximum=None)


def test_bytes_that_are_no_text_have_no_bound() -> None:
    broken = pa.Array.from_buffers(pa.string(), 1, pa.array([b"\xff"]).buffers())
    assert of(pa.table({"c": broken}), pa.table({"c": ["a"]})).columns[("c",)] == ColumnStatistics(null_count=0)


def test_a_member_of_a_null_struct_is_null() -> None:
    kind = pa.struct([("x", pa.int64()), ("t", pa.struct([("l", pa.list_(pa.int64()))]))])
    table = pa.table({"s": pa.array([None, {"x": 1, "t": None}, {"x": None, "t": {"l": []}}], kind)})
    for rows in (table, pa.concat_tables([table.slice(0, 1), table.slice(1)])):
        assert of(rows) == FileStatistics(
            num_records=3,
            columns={
                ("s", "x"): ColumnStatistics(null_count=2, minimum=1, maximum=1),
                ("s", "t", "l"): ColumnStatistics(null_count=2),
            },
        )


@given(st.lists(st.lists(st.none() | st.floats(width=32), max_size=5), min_size=1, max_size=4))
def test_bounds_of_floats_hold_however_the_rows_are_grouped(groups: list[list[float | None]]) -> None:
    result = of(*(pa.table({"c": pa.array(group, pa.float32())}) for group in groups)).columns[("c",)]
    values = [x for group in groups for x in group if x is not None]
    numbers = [x for x in values if not math.isnan(x)]
    assert result.null_count == sum(x is None for group in groups for x in group)
    if numbers:
        assert result.minimum == min(numbers)
    assert (result.minimum is None) == (result.maximum is None) == (not values)
    if values:
        assert math.isnan(float(str(result.maximum))) == (len(numbers) < len(values))
    if values and len(numbers) == len(values):
        assert result.maximum == max(numbers)


@given(st.lists(st.lists(st.none() | st.text(st.characters(codec="utf-8")), max_size=5), min_size=1, max_size=4))
def test_bounds_of_texts_are_by_code_point(groups: list[list[str | None]]) -> None:
    result = of(*(pa.table({"c": pa.array(group, pa.string())}) for group in groups)).columns[("c",)]
    values = [x for group in groups for x in group if x is not None]
    assert (result.minimum, result.maximum) == ((min(values), max(values)) if values else (None, None))
