"""A query whose rows are not of the table's types, or have more columns: what it writes, and what it may change."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from spark.streams import action, actions, grow, newest_version, reader, refusal, write_out

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def rows(table: Path) -> list[dict[str, object]]:
    return sorted(DeltaTable(str(table)).to_pyarrow_table().to_pylist(), key=str)


def test_values_are_cast_to_the_tables_types_and_missing_columns_are_null(spark: SparkSession, tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    grow(source, [7])
    write_deltalake(str(target), pa.table({"id": pa.array([1], pa.int32()), "name": ["a"], "gone": [1.5]}))

    stream = reader(spark, source).selectExpr("CAST(id AS STRING) AS NAME", "id + 0.9D AS ID")
    write_out(stream, target, tmp_path / "checkpoint")

    assert rows(target) == [{"id": 1, "name": "a", "gone": 1.5}, {"id": 7, "name": "7", "gone": None}]
    assert [kind for kind, _ in actions(target, 1)] == ["commitInfo", "txn", "add"]


def test_new_columns_are_added_with_leave_once_and_in_the_commit_of_their_rows(
    spark: SparkSession, tmp_path: Path
) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    grow(source, [1], [2])
    grow(target, [0])

    stream = reader(spark, source, maxFilesPerTrigger=1).selectExpr("*", "named_struct('x', id) AS s")
    write_out(stream, target, tmp_path / "checkpoint", mergeSchema="true")

    assert [kind for kind, _ in actions(target, 1)] == ["commitInfo", "metaData", "txn", "add"]
    assert [kind for kind, _ in actions(target, 2)] == ["commitInfo", "txn", "add"]
    assert action(target, 1, "metaData")["id"] == action(target, 0, "metaData")["id"]
    names = [field["name"] for field in json.loads(action(target, 1, "metaData")["schemaString"])["fields"]]
    assert names == ["id", "s"]
    assert rows(target) == [{"id": 0, "s": None}, {"id": 1, "s": {"x": 1}}, {"id": 2, "s": {"x": 2}}]


def test_texts_are_read_as_moments_in_the_zone_of_the_option_alone(spark: SparkSession, tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    grow(source, [1])
    write_deltalake(str(target), pa.table({"at": pa.array([0], pa.timestamp("us", "UTC"))}))
    stream = reader(spark, source).selectExpr("'2024-07-01 12:00:00' AS at")

    text = refusal(lambda: write_out(stream, target, tmp_path / "refused"))
    write_out(stream, target, tmp_path / "checkpoint", timeZone="Europe/Berlin")

    assert "[DELTA_FAILED_TO_MERGE_FIELDS]" in text
    assert "Set the option timeZone" in text
    assert str(rows(target)[1]["at"]) == "2024-07-01 10:00:00+00:00"


def test_a_strict_query_is_refused_before_a_row_is_read(spark: SparkSession, tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    grow(source, [1])
    write_deltalake(str(target), pa.table({"id": pa.array([1], pa.int32())}))

    text = refusal(
        lambda: write_out(reader(spark, source), target, tmp_path / "checkpoint", storeAssignmentPolicy="STRICT")
    )

    assert "[CANNOT_UP_CAST_DATATYPE]" in text
    assert newest_version(target) == 0


def test_a_batch_may_replace_the_schema_it_overwrites(spark: SparkSession, tmp_path: Path) -> None:
    target = tmp_path / "target"
    grow(target, [1])

    overwrite = spark.range(1).selectExpr("'x' AS name").coalesce(1).write.format("tablefeed").mode("overwrite")
    overwrite.option("overwriteSchema", "true").save(str(target))

    assert rows(target) == [{"name": "x"}]
    assert action(target, 1, "metaData")["id"] == action(target, 0, "metaData")["id"]
