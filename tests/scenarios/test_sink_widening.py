"""A stream whose types are wider than the table's, which may be widened (TypeWideningStreamingSinkSuite)."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from scenarios.sinks import Sink, rows_of, stream_into, types_of
from scenarios.tables import Column, Table

INT_MAX = 2**31 - 1


def widening(table: Path, **options: str) -> Sink:
    return stream_into(table, **{"delta.enableTypeWidening": "true", "mergeSchema": "true", **options})


def one(kind: pa.DataType, *values: Any, name: str = "value") -> pa.Table:
    return pa.table({name: pa.array(values, kind)})


@pytest.mark.parametrize(
    ("first", "second", "kind", "expected"),
    [
        (one(pa.int16(), 17), one(pa.float64(), 2.0), "double", [2.0, 17.0]),
        (one(pa.int16(), 17), one(pa.int32(), INT_MAX), "int32", [17, INT_MAX]),
        (one(pa.int32(), INT_MAX), one(pa.int16(), 17), "int32", [17, INT_MAX]),
        (one(pa.int16(), 0, 1), one(pa.int32(), 2, 3), "int32", [0, 1, 2, 3]),
    ],
    ids=["to-double", "to-int", "narrower", "batch"],
)
def test_a_type_is_widened_where_the_table_and_the_write_allow_it(
    table: Path, first: pa.Table, second: pa.Table, kind: str, expected: list[Any]
) -> None:
    query = widening(table)
    query.write(first)
    assert types_of(table) == {"value": str(first.schema.field("value").type)}

    query.write(second)

    assert types_of(table) == {"value": kind}
    assert rows_of(table) == expected


@pytest.mark.parametrize(
    "options", [{"mergeSchema": "false"}, {"delta.enableTypeWidening": "false"}], ids=["no-evolution", "no-widening"]
)
def test_a_type_is_not_widened_where_the_table_or_the_write_does_not_allow_it(
    table: Path, options: dict[str, str]
) -> None:
    query = widening(table, **options)
    query.write(one(pa.int16(), 17))

    query.write(one(pa.int32(), 53))

    assert types_of(table) == {"value": "int16"}
    assert rows_of(table) == [17, 53]


def test_a_type_is_widened_while_a_column_is_added(table: Path) -> None:
    query = widening(table)
    query.write(one(pa.int16(), 17, name="a"))

    amount = pa.array([Decimal("3456.00")], pa.decimal128(10, 2))
    query.write(pa.table({"a": pa.array([12], pa.int32()), "b": amount}))

    assert types_of(table) == {"a": "int32", "b": "decimal128(10, 2)"}
    assert rows_of(table) == [(12, Decimal("3456.00")), (17, None)]


def test_a_type_is_widened_while_a_column_is_missing(table: Path) -> None:
    query = widening(table)
    query.write(pa.table({"a": pa.array([17], pa.int16()), "b": [45]}))

    query.write(one(pa.int32(), 12, name="a"))

    assert types_of(table) == {"a": "int32", "b": "int64"}
    assert rows_of(table) == [(12, None), (17, 45)]


def test_a_type_is_widened_after_columns_were_renamed_and_dropped(table: Path) -> None:
    changed = Table(table).create(
        Column(name="a", kind="short", physical="a", number=1),
        Column(name="b", kind="decimal(10,0)", physical="b", number=2),
        mapping="name",
        enableTypeWidening="true",
    )
    features = {"readerFeatures": ["columnMapping", "typeWidening"]}
    writes = ["columnMapping", "typeWidening", "invariants", "appendOnly"]
    versions = {"minReaderVersion": 3, "minWriterVersion": 7}
    changed.configuration["delta.columnMapping.maxColumnId"] = "2"
    changed.set_protocol({"protocol": {**versions, **features, "writerFeatures": writes}})
    changed.write_metadata()
    query = widening(table)
    query.write(pa.table({"a": pa.array([17], pa.int16()), "b": pa.array([Decimal(45)], pa.decimal128(10, 0))}))
    changed.version += 1
    changed.drop("b")
    changed.rename("a", "c")
    assert types_of(table) == {"c": "int16"}

    query.write(one(pa.int32(), 12, name="c"))

    assert types_of(table) == {"c": "int32"}
    assert rows_of(table) == [12, 17]
