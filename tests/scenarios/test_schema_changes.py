"""A table whose schema changes before, under or after a DataFrame (DeltaSourceSuite)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.sql.types import LongType

from feed.logs import Action, add, metadata, protocol
from feed.recorded import data_file, schema
from scenarios.streams import append, commit, stream
from tablefeed.errors import SchemaChangedError, TablefeedError

ID, MORE = ("id", "string"), ("newcol", "string")
CHANGED = "DELTA_SCHEMA_CHANGED_WITH_VERSION"
INCOMPATIBLE = "DELTA_STREAMING_INCOMPATIBLE_SCHEMA_CHANGE_USE_SCHEMA_LOG"
BY_NAME = {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "2"}
BY_ID = BY_NAME | {"delta.columnMapping.mode": "id"}
WIDENING = protocol(3, 7, readerFeatures=["typeWidening"], writerFeatures=["typeWidening"])


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return tmp_path / "table"


def mapped(mapping: Mapping[str, str] = BY_NAME, **columns: tuple[int, str]) -> Action:
    """The metadata of a table whose columns have an id, by which their name in files is made, and a type."""
    fields = [
        {
            "name": name,
            "type": kind,
            "nullable": True,
            "metadata": {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": f"col-{number}"},
        }
        for name, (number, kind) in columns.items()
    ]
    return metadata(json.dumps({"type": "struct", "fields": fields}), configuration=mapping)


def test_the_schema_may_change_before_a_streaming_query_starts(table: Path) -> None:
    append(table, id=["0"])
    append(table, id=["1"])
    append(table, id=["2"], value=["2"])
    query = stream(table)

    query.run()

    assert query.rows == [("0", None), ("1", None), ("2", "2")]


def test_the_schema_may_not_change_after_a_streaming_query_started(table: Path) -> None:
    two_strings(table)
    query = stream(table)
    live = query.start()
    live.processAllAvailable()
    commit(table, 3, metadata(schema(("id", "integer"), ("value", "integer"))))

    with pytest.raises(SchemaChangedError) as caught:
        live.processAllAvailable()
    assert caught.value.error_class == CHANGED


# --- a restart, with a new DataFrame or the one from before ----------------------------------------------------------


def two_strings(table: Path, *, nullable: bool = True) -> None:
    commit(table, 0, protocol(), metadata(schema(ID, nullable=nullable)))
    for version in (1, 2):
        commit(table, version, add(data_file(table, f"{version}.parquet", id=[str(version)])))


def test_add_column_restarting_with_a_new_data_frame_recovers(table: Path) -> None:
    two_strings(table)
    query = stream(table)
    live = query.start()
    live.processAllAvailable()
    commit(table, 3, metadata(schema(ID, MORE)))
    commit(table, 4, add(data_file(table, "4.parquet", id=["10"], newcol=["a"])))

    with pytest.raises(SchemaChangedError) as caught:
        live.processAllAvailable()
    assert caught.value.error_class == CHANGED
    assert query.run() == [[("10", "a")]]


def test_add_column_restarting_with_a_stale_data_frame_fails(table: Path) -> None:
    two_strings(table)
    query = stream(table)
    stale = query.frame()
    query.run(stale)
    commit(table, 3, metadata(schema(ID, MORE)))
    commit(table, 4, add(data_file(table, "4.parquet", id=["10"], newcol=["a"])))

    for _ in range(2):
        with pytest.raises(SchemaChangedError) as caught:
            query.run(stale)
        assert caught.value.error_class == CHANGED
    assert query.rows == ["1", "2"]


def test_relax_nullability_restarting_with_a_new_data_frame_recovers(table: Path) -> None:
    two_strings(table, nullable=False)
    query = stream(table)
    live = query.start()
    live.processAllAvailable()
    commit(table, 3, metadata(schema(ID)))
    commit(table, 4, add(data_file(table, "4.parquet", id=pa.array([None], pa.string()))))

    with pytest.raises(SchemaChangedError) as caught:
        live.processAllAvailable()
    assert caught.value.error_class == CHANGED
    query.run()
    assert query.rows == [None, "1", "2"]


def test_handling_nullability_schema_changes(table: Path) -> None:
    """What may be null is read over the change by a new DataFrame, and not where the newest schema forbids nulls."""
    two_strings(table, nullable=False)
    query = stream(table)
    query.run()
    live = query.start()
    commit(table, 3, add(data_file(table, "3.parquet", id=["3"])))
    commit(table, 4, metadata(schema(ID)))
    commit(table, 5, add(data_file(table, "5.parquet", id=["5"])))
    with pytest.raises(SchemaChangedError):
        live.processAllAvailable()
    query.run()
    assert query.rows == ["1", "2", "3", "5"]
    commit(table, 6, metadata(schema(ID, nullable=False)))
    commit(table, 7, add(data_file(table, "7.parquet", id=["7"])))

    with pytest.raises(SchemaChangedError) as caught:
        stream(table, startingVersion="5").run()
    assert caught.value.error_class == "DELTA_SCHEMA_CHANGED_WITH_STARTING_OPTIONS"


def widened(table: Path) -> None:
    commit(table, 3, metadata(schema(("id", "long")), configuration={"delta.enableTypeWidening": "true"}))
    commit(table, 4, add(data_file(table, "4.parquet", id=pa.array([2**31], pa.int64()))))


def two_integers(table: Path) -> None:
    commit(table, 0, WIDENING, metadata(schema(("id", "integer")), configuration={"delta.enableTypeWidening": "true"}))
    for version in (1, 2):
        commit(table, version, add(data_file(table, f"{version}.parquet", id=pa.array([version], pa.int32()))))


def test_type_widening_restarting_with_a_new_data_frame_recovers(table: Path) -> None:
    two_integers(table)
    query = stream(table)
    live = query.start()
    live.processAllAvailable()
    widened(table)

    with pytest.raises(SchemaChangedError) as caught:
        live.processAllAvailable()
    assert caught.value.error_class == CHANGED
    assert query.frame().schema["id"].dataType == LongType()
    query.run()
    assert query.rows == [1, 2, 2**31]


def test_a_stale_data_frame_does_not_go_on_over_a_change_that_its_rows_would_not_keep_to(tmp_path: Path) -> None:
    """Nulls in a column that it says has none, or numbers beyond its type."""
    two_strings(tmp_path / "relaxed", nullable=False)
    two_integers(tmp_path / "widened")
    queries = [stream(tmp_path / name) for name in ("relaxed", "widened")]
    stale = [query.frame() for query in queries]
    for query, frame in zip(queries, stale, strict=True):
        query.run(frame)
    commit(queries[0].table, 3, metadata(schema(ID)))
    widened(queries[1].table)

    for query, frame in zip(queries, stale, strict=True):
        for _ in range(2):
            with pytest.raises(SchemaChangedError) as caught:
                query.run(frame)
            assert caught.value.error_class == CHANGED


# --- columns that go or get another name -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "then", [mapped(id=(1, "string")), mapped(id=(1, "string"), renamed_value=(2, "string"))], ids=["drop", "rename"]
)
def test_drop_or_rename_column_fails_with_the_non_additive_schema_change_error(table: Path, then: Action) -> None:
    commit(table, 0, protocol(2, 5), mapped(id=(1, "string"), value=(2, "string")))
    commit(table, 1, add(data_file(table, "1.parquet", **{"col-1": ["1"], "col-2": ["a"]})))
    query = stream(table)
    live = query.start()
    live.processAllAvailable()
    commit(table, 2, then)

    with pytest.raises(SchemaChangedError) as caught:
        live.processAllAvailable()
    assert caught.value.error_class == INCOMPATIBLE


# --- columns of partitions, and their place --------------------------------------------------------------------------


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
    action = mapped(BY_ID | {"delta.columnMapping.maxColumnId": "3"}, **kinds)
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
        pa.parquet.write_table(row, table / f"{n}.parquet")
    files = [add(f"{n}.parquet", partitionValues={"col-2": str(10 * n + 10)}) for n in range(3)]
    commit(table, 1, *files)
    query = stream(table)

    query.run()

    assert query.frame().schema.names == ["id", "part", "col3"]
    assert query.rows == [(1, 10, 100), (2, 20, 200), (3, 30, 300)]


def test_streaming_read_after_column_rename_with_a_partition_column_in_the_middle(table: Path) -> None:
    def names(part: str, last: str) -> Action:
        action = mapped(
            BY_NAME | {"delta.columnMapping.maxColumnId": "3"},
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


def test_no_schema_throws_an_exception(table: Path) -> None:
    (table / "_delta_log").mkdir(parents=True)

    with pytest.raises(TablefeedError) as caught:
        stream(table).frame()
    assert caught.value.error_class == "DELTA_SCHEMA_NOT_SET"
