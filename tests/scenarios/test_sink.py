"""A stream into a table in its plain course (DeltaSinkSuite), with column mapping and without."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable
from pyspark.sql.types import IntegerType, LongType, NullType, StringType, StructType, UserDefinedType

import tablefeed
from scenarios.sinks import Sink, rows_of, save, stream_into, told_by, types_of
from scenarios.tables import Column, Table
from support.logs import metadata, protocol
from support.recorded import log, schema
from tablefeed.errors import SchemaMismatchError

MAPPINGS = pytest.mark.parametrize("mapping", ["none", "id", "name"])


def mapped_by(mapping: str) -> dict[str, str]:
    """What a table's first write says for it to be mapped so."""
    return {} if mapping == "none" else {"delta.columnMapping.mode": mapping}


def values(*numbers: int) -> pa.Table:
    return pa.table({"value": pa.array(numbers, pa.int32())})


def thousands(*numbers: int) -> pa.Table:
    return pa.table({"id": pa.array(numbers, pa.int32()), "value": pa.array([n * 1000 for n in numbers], pa.int32())})


def recorded(table: Path) -> int | None:
    return tablefeed.open_table(table).txn_version("query")


@MAPPINGS
def test_append_mode(table: Path, mapping: str) -> None:
    query = stream_into(table, **mapped_by(mapping))
    for number in (1, 2, 3):
        query.write(values(number))
        assert (rows_of(table), recorded(table)) == (list(range(1, number + 1)), number - 1)

    restarted = Sink(table, mapped_by(mapping))
    for number in (1, 2, 3):  # whatever of its checkpoint it has lost
        restarted.write(values(number))
    assert (rows_of(table), recorded(table), tablefeed.open_table(table).version) == ([1, 2, 3], 2, 2)
    restarted.write(values(4))

    assert (rows_of(table), recorded(table)) == ([1, 2, 3, 4], 3)
    assert ("columnMapping.mode" in str(tablefeed.open_table(table).metadata)) == (mapping != "none")


@MAPPINGS
def test_complete_mode(table: Path, mapping: str) -> None:
    query = stream_into(table, **mapped_by(mapping))

    for count in (1, 2, 3):
        query.write(pa.table({"count": [count]}), complete=True)
        assert (rows_of(table), recorded(table)) == ([count], count - 1)


def test_a_path_is_encoded_and_decoded_correctly(table: Path) -> None:
    stream_into(table, partitionBy="value").write(pa.table({"value": ["hello world"], "len": [11]}))

    assert rows_of(table) == [("hello world", 11)]
    assert [path.parent.name for path in table.rglob("*.parquet")] == ["value=hello world"]
    assert DeltaTable(str(table)).to_pyarrow_table().to_pylist() == [{"value": "hello world", "len": 11}]


@MAPPINGS
def test_partitioned_writing_and_batch_reading(table: Path, mapping: str) -> None:
    query = stream_into(table, partitionBy="id", **mapped_by(mapping))
    query.write(thousands(1, 2, 3))

    opened = tablefeed.open_table(table)
    assert types_of(table) == {"id": "int32", "value": "int32"}
    assert opened.partition_columns == ("id",)
    assert rows_of(table) == [(1, 1000), (2, 2000), (3, 3000)]
    files = {value: path for batch in opened.files() for path, value in _files_by_id(batch)}
    assert sorted(files) == ["1", "2", "3"]
    query.run(0, thousands(1, 2, 3))
    query.write(thousands(4))
    assert rows_of(table) == [(1, 1000), (2, 2000), (3, 3000), (4, 4000)]

    (table / files["3"]).unlink()  # what is not looked for is not opened
    assert opened.to_arrow(filter=pc.field("id") == 1)["value"].to_pylist() == [1000]
    assert sorted(opened.to_arrow(filter=pc.field("id").isin([1, 2]))["value"].to_pylist()) == [1000, 2000]


def _files_by_id(batch: pa.RecordBatch) -> list[tuple[str, str]]:
    partitions = [dict(each)["id"] for each in batch["partition_values"].to_pylist()]
    return list(zip(batch["path"].to_pylist(), partitions, strict=True))


def test_a_batch_write_with_another_partitioning_is_refused(table: Path) -> None:
    stream_into(table, partitionBy="id").write(thousands(1, 2, 3))
    rows = thousands(5).append_column("by4", pa.array([1]))

    with pytest.raises(SchemaMismatchError, match="is partitioned by id, and the write asks for id, by4"):
        save(table, rows, partitionBy="id,by4")

    assert rows_of(table) == [(1, 1000), (2, 2000), (3, 3000)]


def test_a_batch_write_is_cast_as_a_stream_is(table: Path) -> None:
    stream_into(table, partitionBy="id").write(thousands(1))

    save(table, pa.table({"id": pa.array([2], pa.int64()), "value": ["6"]}), partitionBy="id")

    assert rows_of(table) == [(1, 1000), (2, 6)]
    assert types_of(table) == {"id": "int32", "value": "int32"}


def test_not_all_columns_can_be_partition_columns(table: Path) -> None:
    with pytest.raises(SchemaMismatchError) as caught:
        stream_into(table, partitionBy="id,value").write(thousands(1))

    assert caught.value.error_class == "DELTA_CANNOT_USE_ALL_COLUMNS_FOR_PARTITION"
    assert not table.exists()


def test_a_simple_streaming_write_is_a_blind_append(table: Path) -> None:
    stream_into(table).write(values(0))

    assert told_by(table)["isBlindAppend"] is True


def test_the_nullability_that_users_claim_is_not_trusted(table: Path) -> None:
    members = StructType().add("s", StringType()).add("i", IntegerType(), nullable=False)
    claimed = StructType().add("s", StringType()).add("b", members).add("c", IntegerType(), nullable=False)
    kind = pa.struct([("s", pa.string()), ("i", pa.int32())])
    row = pa.table({"s": ["ss"], "b": pa.array([{"s": "ss", "i": None}], kind), "c": pa.nulls(1, pa.int32())})

    stream_into(table).write(row, schema=claimed)

    assert rows_of(table) == [("ss", {"s": "ss", "i": None}, None)]
    row_by_delta_rs = {"s": "ss", "b": {"s": "ss", "i": None}, "c": None}
    assert DeltaTable(str(table)).to_pyarrow_table().to_pylist() == [row_by_delta_rs]


def test_history_includes_user_defined_metadata(table: Path) -> None:
    stream_into(table, userMetadata="testMeta!").write(values(1))

    assert told_by(table)["userMetadata"] == "testMeta!"


def test_a_stream_writes_to_a_table_with_a_void_column(table: Path) -> None:
    log(table, v0=[protocol(), metadata(schema(("id", "integer"), ("v", "void")))])

    stream_into(table).write(pa.table({"id": pa.array([1], pa.int32())}))

    assert rows_of(table) == [(1, None)]


def test_a_generated_void_column_is_null(table: Path) -> None:
    generated = {"name": "v", "type": "void", "nullable": True, "metadata": {"delta.generationExpression": "null"}}
    fields = [{"name": "id", "type": "integer", "nullable": True, "metadata": {}}, generated]
    log(table, v0=[protocol(1, 4), metadata(json.dumps({"type": "struct", "fields": fields}))])

    stream_into(table).write(pa.table({"id": pa.array([1], pa.int32())}))

    assert rows_of(table) == [(1, None)]


def test_a_void_column_of_the_rows_is_refused(table: Path) -> None:
    log(table, v0=[protocol(), metadata(schema(("id", "integer"), ("value", "integer")))])

    with pytest.raises(SchemaMismatchError) as caught:
        stream_into(table).write(pa.table({"id": pa.array([1], pa.int32()), "value": pa.nulls(1)}))

    assert caught.value.error_class == "DELTA_NULL_SCHEMA_IN_STREAMING_WRITE"
    assert rows_of(table) == []


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_a_void_column_of_a_batch_write_is_null(table: Path, mode: str) -> None:
    save(table, pa.table({"id": [1], "value": ["a"]}))

    save(table, pa.table({"id": [2], "value": pa.nulls(1)}), mode=mode)

    assert rows_of(table)[-1] == (2, None)


def test_rows_without_columns_are_refused_also_where_the_table_exists(table: Path) -> None:
    """Spark does not send the number of such rows."""
    save(table, values(1))

    for write in (save, lambda path, rows: stream_into(path).write(rows)):
        with pytest.raises(SchemaMismatchError, match="have no columns") as caught:
            write(table, pa.table({}))
        assert caught.value.error_class == "DELTA_EMPTY_DATA"
    assert rows_of(table) == [1]


class NullData(UserDefinedType):
    @classmethod
    def module(cls) -> str:
        return __name__

    @classmethod
    def sqlType(cls) -> Any:  # noqa: N802 - Spark's name
        return StructType().add("nothing", NullType())


def test_a_users_type_is_refused_also_where_it_holds_a_void(table: Path) -> None:
    claimed = StructType().add("id", LongType()).add("value", NullData())

    with pytest.raises(SchemaMismatchError) as caught:
        stream_into(table).write(pa.table({"id": [42]}), schema=claimed)

    assert caught.value.error_class == "DELTA_UNSUPPORTED_DATA_TYPES"
    assert not table.exists()


# --- columns that another name or none has since the query began -----------------------------------------------------


def mapped_table(path: Path, mapping: str, *names: str) -> Table:
    columns = [
        Column(name=name, kind="integer", physical=f"col-{number}", number=number)
        for number, name in enumerate(names, 1)
    ]
    table = Table(path).create(*columns, mapping=mapping)
    table.configuration["delta.columnMapping.maxColumnId"] = str(len(names))
    table.write_metadata()
    return table


def renamed(path: Path, mapping: str) -> Sink:
    """A query into a table whose column `value` has another name since its first batch; its next batch is 1."""
    table = mapped_table(path, mapping, "value")
    table.append((100,))
    query = stream_into(path)
    query.write(values(1))
    table.version += 1
    table.rename("value", "new_value")
    return query


def dropped(path: Path, mapping: str) -> Sink:
    """The same of a column `value` that is dropped beside an `id`."""
    table = mapped_table(path, mapping, "id", "value")
    table.append((1, 100))
    query = stream_into(path)
    query.write(pairs((2, 200)))
    table.version += 1
    table.drop("value")
    return query


def pairs(*rows: tuple[int, int]) -> pa.Table:
    columns = {"id": [row[0] for row in rows], "value": [row[1] for row in rows]}
    return pa.table({name: pa.array(numbers, pa.int32()) for name, numbers in columns.items()})


@pytest.mark.parametrize("mapping", ["id", "name"])
def test_without_schema_evolution_a_query_writes_a_renamed_column_under_its_new_name_only(
    table: Path, mapping: str
) -> None:
    query = renamed(table, mapping)
    for _ in ("the query", "the same one restarted"):
        with pytest.raises(SchemaMismatchError) as caught:
            query.write(values(2))
        assert caught.value.error_class == "DELTA_METADATA_MISMATCH"

    query.write(pa.table({"new_value": pa.array([2, 2], pa.int32())}))

    assert rows_of(table) == [1, 2, 2, 100]
    assert types_of(table) == {"new_value": "int32"}


@pytest.mark.parametrize("mapping", ["id", "name"])
def test_with_schema_evolution_the_name_that_a_column_had_is_a_new_columns(table: Path, mapping: str) -> None:
    query = renamed(table, mapping)

    query.write(values(2), mergeSchema="true")

    assert rows_of(table) == [(None, 2), (1, None), (100, None)]
    assert types_of(table) == {"new_value": "int32", "value": "int32"}


@pytest.mark.parametrize("mapping", ["id", "name"])
def test_without_schema_evolution_a_query_writes_no_dropped_column(table: Path, mapping: str) -> None:
    query = dropped(table, mapping)
    for _ in ("the query", "the same one restarted"):
        with pytest.raises(SchemaMismatchError) as caught:
            query.write(pairs((3, 300)))
        assert caught.value.error_class == "DELTA_METADATA_MISMATCH"

    query.write(pairs((3, 300), (3, 300)).select(["id"]))

    assert rows_of(table) == [1, 2, 3, 3]
    assert types_of(table) == {"id": "int32"}


@pytest.mark.parametrize("mapping", ["id", "name"])
def test_with_schema_evolution_a_dropped_column_comes_again_without_its_values(table: Path, mapping: str) -> None:
    query = dropped(table, mapping)

    query.write(pairs((3, 300)), mergeSchema="true")

    assert rows_of(table) == [(1, None), (2, None), (3, 300)]
    assert types_of(table) == {"id": "int32", "value": "int32"}
