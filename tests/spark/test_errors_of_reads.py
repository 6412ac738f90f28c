"""What a user reads where a table cannot be read: Delta-Spark's class, the table, and what to do now.

Spark wraps every error of a Python source in one of its own; ours is whole inside it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from spark.streams import PATIENCE_S, action, drain, grow, log_file, reader, refusal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter

pytestmark = pytest.mark.spark


def nothing(_table: Path) -> None:
    """There is nothing at the path."""


def a_file(table: Path) -> None:
    table.write_text("id,name")


def an_empty_log(table: Path) -> None:
    (table / "_delta_log").mkdir(parents=True)


def a_truncated_last_line(table: Path) -> None:
    grow(table, [1], [2])
    log = log_file(table, 1)
    log.write_bytes(log.read_bytes()[:-20])


def a_line_that_is_not_json(table: Path) -> None:
    grow(table, [1])
    log = log_file(table, 0)
    log.write_text(log.read_text() + "\nnot json\n")


def a_byte_order_mark(table: Path) -> None:
    grow(table, [1])
    log = log_file(table, 0)
    log.write_bytes(b"\xef\xbb\xbf" + log.read_bytes())


def a_gap(table: Path) -> None:
    grow(table, [1], [2], [3])
    log_file(table, 1).unlink()


def an_unsupported_protocol(table: Path) -> None:
    grow(table, [1])
    log = log_file(table, 0)
    asked = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["fancy"], "writerFeatures": ["fancy"]}
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    log.write_text("".join(json.dumps({"protocol": asked} if "protocol" in x else x) + "\n" for x in lines))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (nothing, ["[DELTA_TABLE_NOT_FOUND]", "it has no _delta_log", "Check the path"]),
        (a_file, ["[DELTA_TABLE_NOT_FOUND]", "it is a file. Give the table's folder"]),
        (an_empty_log, ["[DELTA_TABLE_NOT_FOUND]", "none with a commit", "a table is there after its first commit"]),
        (a_truncated_last_line, [f"{1:020d}.json, line 2: the last line is cut off", "Restore the file"]),
        (a_line_that_is_not_json, [f"{0:020d}.json, line 5: the line is not JSON", "Restore the file"]),
        (a_byte_order_mark, [f"{0:020d}.json, line 1", "byte order mark"]),
        (a_gap, ["[DELTA_VERSIONS_NOT_CONTIGUOUS]", "version 1 is missing"]),
        (an_unsupported_protocol, ["[DELTA_UNSUPPORTED_FEATURES_FOR_READ]", "fancy", "Upgrade tablefeed"]),
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


OPTIONS = [
    ("maxFilesPerTriger", "1", ["Unknown option 'maxfilespertriger'", "Did you mean 'maxFilesPerTrigger'?"]),
    ("maxFilesPerTrigger", "0", ["[DELTA_ILLEGAL_OPTION]", "'maxFilesPerTrigger'", "must be a positive integer"]),
    ("startingVersion", "-1", ["[DELTA_ILLEGAL_OPTION]", "must be greater than or equal to zero"]),
    ("ignoreDeletes", "yes", ["[DELTA_ILLEGAL_OPTION]", "must be 'true' or 'false'"]),
    (
        "versionAsOf",
        "0",
        ["[DELTA_UNSUPPORTED_TIME_TRAVEL_VIEWS]", "has no time travel. Set startingVersion"],
    ),
    ("withEventTimeOrder", "true", ["[DELTA_ILLEGAL_OPTION]", "it needs the option eventTimeColumn"]),
    ("allowSourceColumnDrop", "yes", ["[DELTA_ILLEGAL_OPTION]", "must be 'always' or a version of the table"]),
    ("fs.s3a.access.key", "k", ["'fs.s3a.access.key' is not supported here", "storage.aws_access_key_id"]),
]


@pytest.mark.parametrize(("option", "value", "words"), OPTIONS)
def test_an_option_that_cannot_be_obeyed_stops_the_stream_before_a_row(
    spark: SparkSession, tmp_path: Path, option: str, value: str, words: list[str]
) -> None:
    table = tmp_path / "t"
    grow(table, [1])

    text = refusal(lambda: drain(spark, table, tmp_path / "checkpoint", **{option: value}))

    assert [word for word in words if word not in text] == []


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("versionAsOff", "1", ["Unknown option 'versionasoff'", "Did you mean 'versionAsOf'?"]),
        ("versionAsOf", "x", ["[DELTA_TIME_TRAVEL_INVALID_BEGIN_VALUE]", "must be a version of the table"]),
        ("timestampAsOf", "soon", ["[DELTA_TIMESTAMP_INVALID]", "must be a timestamp such as '2024-01-31 12:00:00'"]),
        ("fs.s3a.secret.key", "k", ["'fs.s3a.secret.key' is not supported here", "storage.aws_secret_access_key"]),
    ],
)
def test_an_option_that_cannot_be_obeyed_stops_a_batch_read(
    spark: SparkSession, tmp_path: Path, option: str, value: str, words: list[str]
) -> None:
    grow(tmp_path / "t", [1])

    text = refusal(lambda: spark.read.format("tablefeed").option(option, value).load(str(tmp_path / "t")).collect())

    assert [word for word in words if word not in text] == []


def test_an_offset_of_another_table_stops_the_stream_and_names_both_ids(spark: SparkSession, tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint"
    grow(tmp_path / "one", [1])
    grow(tmp_path / "other", [1])
    drain(spark, tmp_path / "one", checkpoint)

    text = refusal(lambda: drain(spark, tmp_path / "other", checkpoint))

    ids = [action(tmp_path / name, 0, "metaData")["id"] for name in ("one", "other")]
    assert "[DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE]" in text
    assert [table_id for table_id in ids if table_id not in text] == []
    assert "Use a new checkpoint" in text


def test_a_data_file_that_is_gone_stops_a_batch_read(spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "t"
    grow(table, [1])
    for file in table.glob("*.parquet"):
        file.unlink()

    text = refusal(lambda: spark.read.format("tablefeed").load(str(table)).collect())

    assert "[DELTA_FILE_NOT_FOUND]" in text
    assert str(table) in text
    assert "VACUUM or another hand removed it" in text


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
