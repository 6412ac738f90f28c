"""What a user reads where rows cannot be written, and that nothing was written then."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from spark.streams import PATIENCE_S, copy, data_files, finish, grow, newest_version, reader, refusal, write_out

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize(
    ("incoming", "words"),
    [
        (["id", "id + 1 AS more"], ["[DELTA_METADATA_MISMATCH]", "a column 'more'", "Drop the column"]),
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


def test_update_mode_is_refused_by_spark_and_nothing_is_written(spark: SparkSession, tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    grow(source, [1])
    counts = reader(spark, source).groupBy("id").count()
    writer = counts.writeStream.format("tablefeed").outputMode("update").option("path", str(target))

    text = refusal(lambda: finish(writer.option("checkpointLocation", str(tmp_path / "checkpoint"))))

    assert "tablefeed does not support Update mode" in text
    assert not target.exists()


def test_an_option_that_cannot_be_obeyed_stops_the_query_before_a_row(spark: SparkSession, tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    grow(source, [1])

    text = refusal(lambda: copy(spark, source, target, tmp_path / "checkpoint", partitionedBy="id"))

    assert "Unknown option 'partitionedby'. Did you mean 'partitionBy'?" in text
    assert not target.exists()


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

    made = Path(str(spark.conf.get("spark.sql.warehouse.dir")).removeprefix("file:")) / "copied"
    for call in (start, to_table):
        text = refusal(call)
        assert "No path was given" in text
        assert "DROP TABLE" in text
    assert made.is_dir()  # Spark makes it before it asks for a writer
    spark.sql("DROP TABLE copied")
    assert not made.exists()
    assert "No path was given" in refusal(
        lambda: spark.createDataFrame([(1,)], "id long").write.format("tablefeed").mode("append").save()
    )
