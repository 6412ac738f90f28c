"""What a user reads where a table cannot be read: Delta-Spark's class, the table, and what to do now.

Spark wraps every error of a Python source in one of its own; ours is whole inside it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from spark.streams import PATIENCE_S, action, drain, grow, log_file, reader, refusal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter


def nothing(_table: Path) -> None:
    """There is nothing at the path."""


def a_truncated_last_line(table: Path) -> None:
    grow(table, [1], [2])
    log = log_file(table, 1)
    log.write_bytes(log.read_bytes()[:-20])


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (nothing, ["[DELTA_TABLE_NOT_FOUND]", "it has no _delta_log", "Check the path"]),
        (a_truncated_last_line, [f"{1:020d}.json, line 2: the last line is cut off", "Restore the file"]),
    ],
)
def test_a_table_that_cannot_be_read_says_so_where_it_is_loaded(
    spark: SparkSession, tmp_path: Path, make: Callable[[Path], None], words: list[str]
) -> None:
    table = tmp_path / "t"
    make(table)

    texts = [
        refusal(lambda: spark.read.format("tablefeed").load(str(table))),
        refusal(lambda: reader(spark, table)),
    ]

    for text in texts:
        assert str(table) in text
        assert [word for word in words if word not in text] == []


def test_an_option_that_cannot_be_obeyed_stops_a_read_before_a_row(spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "t"
    grow(table, [1])

    at_load = refusal(lambda: reader(spark, table, maxFilesPerTriger=1))
    at_start = refusal(lambda: drain(spark, table, tmp_path / "checkpoint", maxFilesPerTrigger=0))
    batch = refusal(lambda: spark.read.format("tablefeed").option("timestampAsOf", "soon").load(str(table)))

    assert "Unknown option 'maxfilespertriger'. Did you mean 'maxFilesPerTrigger'?" in at_load
    assert "[DELTA_ILLEGAL_OPTION] Invalid value '0' for option 'maxFilesPerTrigger'" in at_start
    assert "[DELTA_TIMESTAMP_INVALID]" in batch


def test_a_data_file_that_is_gone_stops_a_stream_and_a_batch_read_and_is_named(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = tmp_path / "t"
    grow(table, [1], [2])
    path = action(table, 1, "add")["path"]
    (table / path).unlink()

    for read in (
        lambda: drain(spark, table, tmp_path / "checkpoint"),
        lambda: spark.read.format("tablefeed").load(str(table)).collect(),
    ):
        text = refusal(read)
        assert "[DELTA_FILE_NOT_FOUND]" in text
        assert f"The data file {path} of {table} is gone" in text
        assert "Restart from a newer version" in text


def test_a_schema_given_by_the_user_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "t"
    grow(table, [1])

    def read() -> None:
        stream = spark.readStream.format("tablefeed").schema("id long").load(str(table))
        stream.writeStream.format("noop").trigger(availableNow=True).start().awaitTermination()

    texts = [
        refusal(read),
        refusal(lambda: spark.read.format("tablefeed").schema("id long").load(str(table)).collect()),
    ]

    for text in texts:
        assert "[DELTA_READ_SOURCE_SCHEMA_CONFLICT]" in text
        assert "Leave .schema(...) out" in text


def test_without_a_path_or_with_two_the_error_names_the_call_that_takes_one(
    session: SparkSession, tmp_path: Path
) -> None:
    grow(tmp_path / "a", [1])

    for call in (
        lambda: session.read.format("tablefeed").load().schema,
        lambda: session.readStream.format("tablefeed").load().schema,
    ):
        text = refusal(call)
        assert "No path was given" in text
        assert "load(path)" in text
    both = [str(tmp_path / "a"), str(tmp_path / "a")]
    assert "tablefeed takes one table: load(path)" in refusal(
        lambda: session.read.format("tablefeed").load(both).schema
    )


def continuous(writer: DataStreamWriter) -> DataStreamWriter:
    return writer.trigger(continuous="1 second")


def real_time(writer: DataStreamWriter) -> DataStreamWriter:
    # PySpark's overloads leave realTime out.
    writer.outputMode("update").trigger(realTime="5 seconds")  # type: ignore[call-overload]
    return writer


@pytest.mark.parametrize(
    ("trigger", "sink", "words"),
    [
        (continuous, "tablefeed", ["Data source tablefeed does not support continuous processing"]),
        (real_time, "tablefeed", ["[STREAMING_REAL_TIME_MODE.", "PythonTable is not in the sink allowlist"]),
        (real_time, "console", ["[STREAMING_REAL_TIME_MODE.INPUT_STREAM_NOT_SUPPORTED]", "python.PythonMicroBatch"]),
    ],
)
def test_a_trigger_that_is_not_of_micro_batches_is_refused_by_spark_before_a_row(
    spark: SparkSession,
    tmp_path: Path,
    trigger: Callable[[DataStreamWriter], DataStreamWriter],
    sink: str,
    words: list[str],
) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    grow(source, [1])
    stream = reader(spark, source).writeStream.format(sink).option("checkpointLocation", str(tmp_path / "checkpoint"))

    text = refusal(lambda: trigger(stream).start(str(target)).awaitTermination(PATIENCE_S))

    assert [word for word in words if word not in text] == []
    assert not target.exists()


def test_a_table_of_the_catalog_is_refused_where_spark_asks_for_it(spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "t"
    grow(table, [1])
    spark.sql("CREATE TABLE without_path (id long) USING tablefeed")

    def stream() -> None:
        rows = spark.readStream.table("without_path")
        rows.writeStream.format("noop").trigger(availableNow=True).start().awaitTermination()

    texts = [
        refusal(lambda: spark.sql(f"CREATE TABLE with_path USING tablefeed LOCATION '{table}'").collect()),
        refusal(lambda: spark.table("without_path").collect()),
        refusal(stream),
    ]

    for text in texts:
        assert "No path was given" in text
        assert "readStream.table" in text
