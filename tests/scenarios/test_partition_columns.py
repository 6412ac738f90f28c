"""Columns of partitions among the others, and what their values may be (DeltaSourceSuite)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from scenarios.streams import commit, mapped, stream
from support.logs import Action, add, metadata, protocol
from support.recorded import data_file, schema


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return tmp_path / "table"


def rows_by_part(table: Path, first: int, names: tuple[str, str] = ("id", "col3")) -> Action:
    """A file of one row, `first` and ten times and a hundred times of that, the second its partition."""
    file = data_file(table, f"{first}.parquet", **{names[0]: [first], names[1]: pa.array([first * 100], pa.int32())})
    return add(file, partitionValues={"part": str(first * 10)})


def partitioned_in_the_middle(table: Path) -> None:
    columns = schema(("id", "long"), ("part", "long"), ("col3", "integer"))
    commit(table, 0, protocol(), metadata(columns, partition_columns=["part"]))
    commit(table, 1, *(rows_by_part(table, first) for first in (1, 2, 3)))


def test_streaming_read_returns_correct_data_from_a_table_with_a_partition_column_in_the_middle(table: Path) -> None:
    partitioned_in_the_middle(table)
    query = stream(table)

    query.run()

    assert query.frame().schema.names == ["id", "part", "col3"]
    assert query.rows == [(1, 10, 100), (2, 20, 200), (3, 30, 300)]


def test_streaming_read_with_column_pruning_and_a_partition_column_in_the_middle(table: Path) -> None:
    partitioned_in_the_middle(table)
    query = stream(table, columns="part,id")

    query.run()

    assert query.rows == [(10, 1), (20, 2), (30, 3)]


def test_reading_from_a_partitioned_table_succeeds_during_restart(table: Path) -> None:
    partitioned_in_the_middle(table)
    query = stream(table)
    query.run()
    commit(table, 2, rows_by_part(table, 4), rows_by_part(table, 5))

    query.run()

    assert query.rows == [(n, n * 10, n * 100) for n in (1, 2, 3, 4, 5)]


def test_reading_from_a_table_with_multiple_partition_columns_succeeds_during_restart(table: Path) -> None:
    def write(a: int, p1: str, b: int, p2: str, c: float) -> None:
        row: dict[str, Any] = {"a": [a], "p1": [p1], "b": [b], "p2": [p2], "c": [c]}
        write_deltalake(str(table), pa.table(row), mode="append", partition_by=["p2", "p1"])

    write(1, "x", 10, "y", 1.5)
    write(2, "x", 20, "z", 2.5)
    write(3, "w", 30, "y", 3.5)
    query = stream(table)
    query.run()
    write(4, "w", 40, "z", 4.5)

    query.run()

    assert query.rows == [
        (1, "x", 10, "y", 1.5),
        (2, "x", 20, "z", 2.5),
        (3, "w", 30, "y", 3.5),
        (4, "w", 40, "z", 4.5),
    ]


def test_streaming_read_with_column_mapping_id_and_a_partition_column_in_the_middle(table: Path) -> None:
    kinds = {"id": (1, "long"), "part": (2, "long"), "col3": (3, "integer")}
    action = mapped({"delta.columnMapping.mode": "id", "delta.columnMapping.maxColumnId": "3"}, **kinds)
    action["metaData"]["partitionColumns"] = ["part"]
    fields = [
        pa.field("any", pa.int64(), metadata={"PARQUET:field_id": "1"}),
        pa.field("other", pa.int32(), metadata={"PARQUET:field_id": "3"}),
    ]
    rows = pa.table([[1, 2, 3], pa.array([100, 200, 300], pa.int32())], schema=pa.schema(fields))
    commit(table, 0, protocol(2, 5), action)
    for n in range(3):
        row = rows.slice(n, 1)
        (table / f"{n}.parquet").parent.mkdir(exist_ok=True)
        pq.write_table(row, table / f"{n}.parquet")
    files = [add(f"{n}.parquet", partitionValues={"col-2": str(10 * n + 10)}) for n in range(3)]
    commit(table, 1, *files)
    query = stream(table)

    query.run()

    assert query.frame().schema.names == ["id", "part", "col3"]
    assert query.rows == [(1, 10, 100), (2, 20, 200), (3, 30, 300)]


def test_streaming_read_after_column_rename_with_a_partition_column_in_the_middle(table: Path) -> None:
    def names(part: str, last: str) -> Action:
        action = mapped(
            {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "3"},
            **{"id": (1, "long"), part: (2, "long"), last: (3, "integer")},
        )
        action["metaData"]["partitionColumns"] = [part]
        return action

    def row(n: int) -> Action:
        file = data_file(table, f"{n}.parquet", **{"col-1": [n], "col-3": pa.array([n * 100], pa.int32())})
        return add(file, partitionValues={"col-2": str(n * 10)})

    commit(table, 0, protocol(2, 5), names("part", "original_col"))
    commit(table, 1, row(1))
    commit(table, 2, names("part", "renamed_col"))
    commit(table, 3, row(2))
    commit(table, 4, names("renamed_part", "renamed_col"))
    commit(table, 5, row(3))
    query = stream(table)

    query.run()

    assert query.frame().schema.names == ["id", "renamed_part", "renamed_col"]
    assert query.rows == [(1, 10, 100), (2, 20, 200), (3, 30, 300)]


def test_streaming_read_preserves_a_percent_literal_string_partition_value(table: Path) -> None:
    rows = pa.table({"id": [1, 2, 3], "p": ["%20", "%25", "a%2Fb"]})
    write_deltalake(str(table), rows, partition_by=["p"])
    query = stream(table)

    query.run()

    assert query.rows == [(1, "%20"), (2, "%25"), (3, "a%2Fb")]
