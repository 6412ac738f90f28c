"""What a user reads where rows cannot be written, and that nothing was written then."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from spark.streams import PATIENCE_S, copy, data_files, finish, grow, newest_version, reader, refusal, write_out

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.mark.parametrize(
    ("incoming", "words"),
    [
        (["id", "id + 1 AS more"], ["[DELTA_METADATA_MISMATCH]", "a column 'more'", "Drop the column"]),
        (["id > 0 AS id"], ["[DELTA_FAILED_TO_MERGE_FIELDS]", "is long", "have boolean", "Cast it"]),
        (["'x' AS id"], ["[CAST_INVALID_INPUT]", "the value 'x'", "column 'id'", "correct or filter"]),
    ],
)
def test_rows_that_do_not_fit_the_table_are_refused_and_nothing_is_written(
    spark: SparkSession, tmp_path: Path, incoming: list[str], words: list[str]
) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    grow(source, [1])
    grow(target, [0])
    files = data_files(target)

    rows = reader(spark, source).selectExpr(*incoming)
    text = refusal(lambda: write_out(rows, target, tmp_path / "checkpoint"))

    assert str(target) in text
    assert [word for word in words if word not in text] == []
    assert newest_version(target) == 0
    assert data_files(target) == files


def test_rows_without_a_column_that_must_not_be_null_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    grow(source, [1])
    schema = pa.schema([pa.field("id", pa.int64()), pa.field("sure", pa.int64(), nullable=False)])
    write_deltalake(str(target), pa.table({"id": [1], "sure": [1]}, schema=schema))

    text = refusal(lambda: copy(spark, source, target, tmp_path / "checkpoint"))

    assert "[DELTA_MISSING_NOT_NULL_COLUMN_VALUE]" in text
    assert f"'sure', which must not be null in {target}" in text
    assert newest_version(target) == 0


def test_a_null_where_the_table_allows_none_is_refused_and_nothing_is_left(spark: SparkSession, tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    grow(source, [1, 2])
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False)])
    write_deltalake(str(target), pa.table({"id": [0]}, schema=schema))
    files = data_files(target)

    rows = reader(spark, source).selectExpr("nullif(id, 2) AS id")
    text = refusal(lambda: write_out(rows, target, tmp_path / "checkpoint"))

    assert "[DELTA_NOT_NULL_CONSTRAINT_VIOLATED]" in text
    assert newest_version(target) == 0
    assert data_files(target) == files


def test_update_mode_is_refused_by_spark_and_nothing_is_written(spark: SparkSession, tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    grow(source, [1])
    counts = reader(spark, source).groupBy("id").count()
    writer = counts.writeStream.format("tablefeed").outputMode("update").option("path", str(target))

    text = refusal(lambda: finish(writer.option("checkpointLocation", str(tmp_path / "checkpoint"))))

    assert "tablefeed does not support Update mode" in text
    assert not target.exists()


def test_a_table_that_may_only_grow_refuses_complete_mode(spark: SparkSession, tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    grow(source, [1, 2, 2])
    rows = pa.table({"id": [7], "count": pa.array([70], pa.int64())})
    write_deltalake(str(target), rows, configuration={"delta.appendOnly": "true"})
    files = data_files(target)
    counts = reader(spark, source).groupBy("id").count()
    writer = counts.writeStream.format("tablefeed").outputMode("complete").option("path", str(target))

    text = refusal(lambda: finish(writer.option("checkpointLocation", str(tmp_path / "checkpoint"))))

    assert "[DELTA_CANNOT_MODIFY_APPEND_ONLY]" in text
    assert newest_version(target) == 0
    assert data_files(target) == files


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("partitionedBy", "id", ["Unknown option 'partitionedby'", "Did you mean 'partitionBy'?"]),
        ("storeAssignmentPolicy", "lenient", ["'storeAssignmentPolicy'", "must be 'ansi', 'strict' or 'legacy'"]),
        ("fs.s3a.endpoint", "x", ["'fs.s3a.endpoint' is not supported here", "storage.aws_endpoint_url"]),
    ],
)
def test_an_option_that_cannot_be_obeyed_stops_the_query_before_a_row(
    spark: SparkSession, tmp_path: Path, option: str, value: str, words: list[str]
) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    grow(source, [1])

    text = refusal(lambda: copy(spark, source, target, tmp_path / "checkpoint", **{option: value}))

    assert [word for word in words if word not in text] == []
    assert not target.exists()


def test_a_path_that_is_a_file_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    grow(source, [1])
    target.write_text("id,name")

    text = refusal(lambda: copy(spark, source, target, tmp_path / "checkpoint"))

    assert f"[DELTA_TABLE_NOT_FOUND] There is no Delta table at {target}: it is a file" in text
    assert target.read_text() == "id,name"


def test_without_a_path_the_error_names_the_call_that_takes_one(spark: SparkSession, tmp_path: Path) -> None:
    source = tmp_path / "source"
    grow(source, [1])

    def start() -> None:
        writer = reader(spark, source).writeStream.format("tablefeed")
        finish(writer.option("checkpointLocation", str(tmp_path / "checkpoint")))

    def to_table() -> None:
        writer = reader(spark, source).writeStream.format("tablefeed").trigger(availableNow=True)
        checkpoint = str(tmp_path / "other checkpoint")
        writer.option("checkpointLocation", checkpoint).toTable("copied").awaitTermination(PATIENCE_S)

    for call in (start, to_table):
        text = refusal(call)
        assert "No path was given" in text
        assert "toTable" in text
    assert "No path was given" in refusal(
        lambda: spark.createDataFrame([(1,)], "id long").write.format("tablefeed").mode("append").save()
    )
