"""A stream whose types are not the table's (DeltaSinkImplicitCastSuite)."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tablefeed
from scenarios.sinks import Sink, operations, rows_of, stream_into, types_of
from scenarios.tables import Column, Table
from support.logs import metadata, protocol
from support.recorded import log, schema
from tablefeed.errors import InvalidRowsError, SchemaMismatchError, TablefeedError

LONG_MIN, LONG_MAX = -(2**63), 2**63 - 1


@pytest.fixture
def query(table: Path) -> Sink:
    return stream_into(table)


def one(kind: pa.DataType, *values: Any, name: str = "value") -> pa.Table:
    return pa.table({name: pa.array(values, kind)})


@pytest.mark.parametrize(
    ("first", "second", "kind", "expected"),
    [
        (one(pa.int32(), 17), one(pa.int64(), 23), "int32", [17, 23]),
        (
            one(pa.decimal128(6, 2), Decimal("1234.56")),
            one(pa.decimal128(10, 4), Decimal("98.7654")),
            "decimal128(6, 2)",
            [Decimal("98.77"), Decimal("1234.56")],
        ),
        (one(pa.int64(), LONG_MIN), one(pa.int32(), 23), "int64", [LONG_MIN, 23]),
        (one(pa.string(), "abc"), one(pa.date32(), date(2024, 7, 25)), "string", ["2024-07-25", "abc"]),
    ],
    ids=["wider", "wider-decimal", "narrower", "date-as-string"],
)
def test_values_of_another_type_are_stored_as_the_tables(
    table: Path, query: Sink, first: pa.Table, second: pa.Table, kind: str, expected: list[Any]
) -> None:
    query.write(first)
    query.write(second)

    assert types_of(table) == {"value": kind}
    assert rows_of(table) == expected
    assert operations(table) == ["STREAMING UPDATE", "STREAMING UPDATE"]


@pytest.mark.parametrize(
    ("policy", "error", "error_class"),
    [
        ("STRICT", SchemaMismatchError, "CANNOT_UP_CAST_DATATYPE"),
        ("ANSI", InvalidRowsError, "CAST_OVERFLOW_IN_TABLE_INSERT"),
    ],
)
def test_a_value_that_overflows_fails_the_write(
    table: Path, query: Sink, policy: str, error: type[TablefeedError], error_class: str
) -> None:
    query.write(one(pa.int32(), 17))

    with pytest.raises(error) as caught:
        query.write(one(pa.int64(), LONG_MAX), storeAssignmentPolicy=policy)

    assert caught.value.error_class == error_class
    assert rows_of(table) == [17]


def test_a_value_that_overflows_is_wrapped_by_the_policy_legacy(table: Path, query: Sink) -> None:
    query.write(one(pa.int32(), 17))

    query.write(one(pa.int64(), LONG_MAX), storeAssignmentPolicy="LEGACY")

    assert rows_of(table) == [-1, 17]
    assert types_of(table) == {"value": "int32"}


STRUCT, STRUCT_OF_LONG = (pa.struct([("a", kind)]) for kind in (pa.int32(), pa.int64()))
MAP, MAP_OF_OTHERS = pa.map_(pa.int32(), pa.int32()), pa.map_(pa.int64(), pa.string())
LIST, LIST_OF_LONG = pa.list_(pa.int32()), pa.list_(pa.int64())


@pytest.mark.parametrize(
    ("kind", "first", "other", "second", "expected"),
    [
        (STRUCT, {"a": 17}, STRUCT_OF_LONG, {"a": -12}, [{"a": 17}, {"a": -12}]),
        (MAP, [(17, 57)], MAP_OF_OTHERS, [(-12, "3")], [[(17, 57)], [(-12, 3)]]),
        (LIST, [17, 57], LIST_OF_LONG, [-12, 3], [[17, 57], [-12, 3]]),
    ],
    ids=["struct", "map", "array"],
)
def test_values_in_structs_arrays_and_maps_are_cast(
    table: Path, query: Sink, kind: pa.DataType, first: Any, other: pa.DataType, second: Any, expected: list[Any]
) -> None:
    query.write(one(kind, first))
    before = types_of(table)
    query.write(one(other, second))

    assert types_of(table) == before
    found = tablefeed.open_table(table).to_arrow()["value"].to_pylist()
    assert sorted(found, key=str) == sorted(expected, key=str)


def test_an_array_is_no_struct(table: Path, query: Sink) -> None:
    query.write(one(STRUCT, {"a": 17}))

    with pytest.raises(SchemaMismatchError) as caught:
        query.write(one(LIST, [-12]))

    assert caught.value.error_class == "DELTA_FAILED_TO_MERGE_FIELDS"
    assert rows_of(table) == [{"a": 17}]


def test_partition_values_are_cast(table: Path, query: Sink) -> None:
    fields = schema(("day", "date"), ("value", "integer"))
    log(table, v0=[protocol(), metadata(fields, partition_columns=["day"])])
    types = {"day": "date32[day]", "value": "int32"}

    query.write(pa.table({"day": [date(2024, 7, 26)], "value": pa.array([1], pa.int32())}))
    assert (types_of(table), rows_of(table)) == (types, [(date(2024, 7, 26), 1)])
    moment = pa.array([datetime(2024, 7, 27, tzinfo=UTC)], pa.timestamp("us", "UTC"))
    amount = pa.array([Decimal("2.0")], pa.decimal128(4, 1))
    query.write(pa.table({"day": moment, "value": amount}), timeZone="UTC")

    assert (types_of(table), rows_of(table)) == (types, [(date(2024, 7, 26), 1), (date(2024, 7, 27), 2)])


def test_values_are_cast_while_columns_are_added(table: Path, query: Sink) -> None:
    query.write(one(pa.decimal128(6, 3), Decimal("123.000"), name="a"))

    query.write(pa.table({"a": [678], "b": ["abc"]}), mergeSchema="true")

    assert types_of(table) == {"a": "decimal128(6, 3)", "b": "string"}
    assert rows_of(table) == [(Decimal("123.000"), None), (Decimal("678.000"), "abc")]


def test_an_overwrite_of_the_schema_takes_the_rows_types(table: Path, query: Sink) -> None:
    def counts(*amounts: str, b: pa.DataType, **last: str) -> pa.Table:
        size = len(amounts)
        columns = {
            "a": pa.array([Decimal(amount) for amount in amounts], pa.decimal128(6, 3)),
            "count": pa.array([1] * size, pa.int64()),
            "b": pa.array([1] * size, b),
        }
        return pa.table(columns | {name: [text] * size for name, text in last.items()})

    query.write(counts("10.000", b=pa.int32(), c="11"), complete=True, overwriteSchema="true")
    assert types_of(table) == {"a": "decimal128(6, 3)", "count": "int64", "b": "int32", "c": "string"}
    assert rows_of(table) == [(Decimal("10.000"), 1, 1, "11")]

    query.write(counts("10.000", "20.000", b=pa.int64(), d="21"), complete=True, overwriteSchema="true")
    assert types_of(table) == {"a": "decimal128(6, 3)", "count": "int64", "b": "int64", "d": "string"}
    assert rows_of(table) == [(Decimal("10.000"), 1, 1, "21"), (Decimal("20.000"), 1, 1, "21")]


def test_columns_to_cast_meet_in_any_case(table: Path, query: Sink) -> None:
    query.write(one(pa.int64(), 17))

    query.write(one(pa.int32(), 23, name="VALUE"))

    assert types_of(table) == {"value": "int64"}
    assert rows_of(table) == [17, 23]


def test_a_missing_column_is_null_while_others_are_cast(table: Path, query: Sink) -> None:
    moment = pa.array([datetime(2024, 7, 28, 12, tzinfo=UTC)], pa.timestamp("us", "UTC"))
    query.write(pa.table({"a": moment, "b": ["abc"]}))

    query.write(one(pa.date32(), date(2024, 7, 29), name="a"), timeZone="UTC")

    assert types_of(table) == {"a": "timestamp[us, tz=UTC]", "b": "string"}
    assert rows_of(table) == [
        (datetime(2024, 7, 28, 12, tzinfo=UTC), "abc"),
        (datetime(2024, 7, 29, tzinfo=UTC), None),
    ]
    assert operations(table) == ["STREAMING UPDATE", "STREAMING UPDATE"]


def test_values_are_cast_to_the_type_of_the_column_that_has_their_name_now(table: Path, query: Sink) -> None:
    columns = (Column(name="a", kind="integer"), Column(name="b", kind="long"))
    changed = Table(table).create(*columns)
    query.write(pa.table({"a": pa.array([1], pa.int32()), "b": pa.array([100], pa.int64())}))
    changed.version += 1
    changed.upgrade()
    changed.drop("a")
    changed.rename("b", "a")

    query.write(pa.table({"a": ["17"]}))

    assert types_of(table) == {"a": "int64"}
    assert rows_of(table) == [17, 100]


def test_a_column_in_another_case_is_the_same_one_while_another_is_added(table: Path, query: Sink) -> None:
    query.write(one(pa.int32(), 17, name="a"))

    query.write(pa.table({"A": pa.array([21], pa.int32()), "b": [22]}), mergeSchema="true")

    assert types_of(table) == {"a": "int32", "b": "int64"}
    assert rows_of(table) == [(17, None), (21, 22)]


def test_a_batch_of_another_type_is_one_commit_as_any(table: Path, query: Sink) -> None:
    query.write(one(pa.int32(), 0, 1))
    query.write(one(pa.int64(), 2, 3))

    assert types_of(table) == {"value": "int32"}
    assert rows_of(table) == [0, 1, 2, 3]
    assert (query.batch_id, operations(table)) == (2, ["STREAMING UPDATE", "STREAMING UPDATE"])
