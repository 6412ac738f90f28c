"""A stream whose rows have other types than its table, as TypeWideningStreamingSinkSuite has it."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

import tablefeed
from feed.logs import metadata, protocol, put
from scenarios.made_tables import Row, Writes, a_struct, actions, rows
from tablefeed.store import LocalStore

LET = {"mergeSchema": "true", "delta.enableTypeWidening": "true"}


def a_query(path: Path, **other: str) -> Writes:
    """A query that may widen, and makes a table that may be."""
    return Writes(path / "table", {**LET, **other})


def schema(query: Writes) -> pa.Schema:
    return tablefeed.open_table(query.path).schema


def ints(*values: int) -> pa.Array:
    return pa.array(values, pa.int32())


def values(query: Writes) -> list[float]:
    return sorted(row["value"] for row in rows(query.path))


@pytest.mark.parametrize(
    ("first", "second", "options", "expected"),
    [
        (pa.array([17], pa.int16()), ints(2**31 - 1), {}, (pa.int32(), [17, 2**31 - 1])),
        (pa.array([17], pa.int16()), ints(53), {"mergeSchema": "false"}, (pa.int16(), [17, 53])),
        (pa.array([17], pa.int16()), ints(53), {"delta.enableTypeWidening": "false"}, (pa.int16(), [17, 53])),
        (ints(2**31 - 1), pa.array([17], pa.int16()), {}, (pa.int32(), [17, 2**31 - 1])),
        (pa.array([17], pa.int16()), pa.array([2.0], pa.float64()), {}, (pa.float64(), [2.0, 17.0])),
    ],
    ids=["wider", "no schema evolution", "no type widening", "narrower", "of another family"],
)
def test_a_column_is_widened_where_the_write_and_its_table_let_it_and_values_are_cast_else(
    tmp_path: Path,
    first: pa.Array,
    second: pa.Array,
    options: dict[str, str],
    expected: tuple[pa.DataType, list[float]],
) -> None:
    query = a_query(tmp_path, **options)

    query(pa.table({"value": first}))
    assert schema(query) == pa.schema({"value": first.type})
    query(pa.table({"value": second}))

    assert (schema(query).field("value").type, values(query)) == expected


def test_a_column_is_widened_and_another_added_in_the_commit_of_their_rows(tmp_path: Path) -> None:
    query = a_query(tmp_path)

    query(pa.table({"a": pa.array([17], pa.int16())}))
    query(pa.table({"a": ints(12), "b": pa.array([Decimal(3456)], pa.decimal128(10, 2))}))

    assert schema(query) == pa.schema({"a": pa.int32(), "b": pa.decimal128(10, 2)})
    assert rows(query.path) == [{"a": 12, "b": Decimal("3456.00")}, {"a": 17, "b": None}]
    assert {"metaData", "add", "txn"} <= actions(query.path, 1).keys()


def test_a_column_is_widened_by_rows_that_lack_another(tmp_path: Path) -> None:
    query = a_query(tmp_path)

    query(pa.table({"a": pa.array([17], pa.int16()), "b": pa.array([45], pa.int64())}))
    query(pa.table({"a": ints(12)}))

    assert schema(query) == pa.schema({"a": pa.int32(), "b": pa.int64()})
    assert rows(query.path) == [{"a": 12, "b": None}, {"a": 17, "b": 45}]


def test_a_column_that_was_renamed_beside_one_that_was_dropped_is_widened(tmp_path: Path) -> None:
    query = a_query(tmp_path)
    query(pa.table({"a": pa.array([17], pa.int16()), "b": pa.array([Decimal(45)], pa.decimal128(10, 0))}))
    renamed = a_struct(("c", "short", {"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": "a"}))
    mapped = {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "2"}
    told: Row = metadata(json.dumps(renamed), configuration={"delta.enableTypeWidening": "true", **mapped})
    told["metaData"]["id"] = tablefeed.open_table(query.path).table_id
    features = ["columnMapping", "typeWidening"]
    both = protocol(3, 7, readerFeatures=features, writerFeatures=[*features, "appendOnly", "invariants"])
    put(LocalStore(str(query.path)), 1, [both, told])

    query(pa.table({"c": ints(12)}))

    assert schema(query) == pa.schema({"c": pa.int32()})
    assert rows(query.path) == [{"c": 12}, {"c": 17}]
