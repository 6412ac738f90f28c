"""What a reader makes of the options before Spark asks it anything. No JVM."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows
from pyspark.sql.types import StructType

import tablefeed
from support.logs import a_log, col, meta, protocol
from tablefeed.errors import ConflictingOptionsError, IllegalOptionError, OptionError, TableNotFoundError
from tablefeed.feed.arguments import Bound
from tablefeed.feed.stream.source_options import SourceOptions
from tablefeed.log.plan import Limits
from tablefeed.spark.analysis import spark_schema
from tablefeed.spark.at_load import analyse
from tablefeed.spark.batch import BatchReader, change_bounds
from tablefeed.spark.options import parse_options
from tablefeed.spark.source import StreamReader
from tablefeed.spark.stream_planner import source_options
from tablefeed.store import LocalStore


def options(**given: str) -> SourceOptions:
    return source_options(parse_options(given, "stream read"))


def test_a_start_by_version_and_by_time_is_refused() -> None:
    with pytest.raises(ConflictingOptionsError, match=r"^\[DELTA_STARTING_VERSION_AND_TIMESTAMP_BOTH_SET\]"):
        options(startingVersion="0", startingTimestamp="2024-01-01")


@pytest.mark.parametrize(
    ("given", "error_class"),
    [
        ({"startingVersion": "0", "startingTimestamp": "2024"}, "DELTA_STARTING_VERSION_AND_TIMESTAMP_BOTH_SET"),
        ({"startingVersion": "0", "endingVersion": "1", "endingTimestamp": "2024"}, "DELTA_MULTIPLE_CDC_BOUNDARY"),
    ],
)
def test_a_batch_read_of_changes_takes_a_version_or_a_time_for_each_end(
    given: dict[str, str], error_class: str
) -> None:
    with pytest.raises(ConflictingOptionsError, match=rf"^\[{error_class}\]"):
        change_bounds(parse_options({"readChangeFeed": "true", **given}, "read of changes"))


@pytest.mark.parametrize(
    ("given", "option"),
    [
        ({"startingVersion": "1", "endingVersion": "0"}, "endingVersion"),
        ({"startingTimestamp": "soon"}, "startingTimestamp"),
        ({"startingVersion": "0", "endingTimestamp": "soon"}, "endingTimestamp"),
    ],
)
def test_a_batch_read_of_changes_names_the_option_that_is_wrong(
    tmp_path: Path, given: dict[str, str], option: str
) -> None:
    for row in (1, 2):
        tablefeed.append(tmp_path, pa.table({"id": [row]}), properties={"delta.enableChangeDataFeed": "true"})
    read = {"path": str(tmp_path), "readChangeFeed": "true", **given}
    analysis = analyse(read)

    with pytest.raises(IllegalOptionError, match=f"for option '{option}'") as caught:
        BatchReader(read, spark_schema(analysis), analysis).partitions()

    assert caught.value.option == option


def test_an_end_by_version_and_by_time_is_refused() -> None:
    with pytest.raises(ConflictingOptionsError, match=r"^\[DELTA_MULTIPLE_CDC_BOUNDARY\]"):
        options(endingVersion="0", endingTimestamp="2024-01-01")


def test_bounds_reach_the_feed_as_they_were_given() -> None:
    version = options(startingVersion="1", startingBoundInclusive="false", endingVersion="3")
    time = options(startingTimestamp="2024-01-01", endingTimestamp="2024-01-02", endingBoundInclusive="false")

    assert (version.start, version.end) == (Bound(version=1, inclusive=False), Bound(version=3))
    assert (time.start, time.end) == (Bound(timestamp="2024-01-01"), Bound(timestamp="2024-01-02", inclusive=False))


def test_an_order_by_event_time_names_its_column() -> None:
    assert options(withEventTimeOrder="true", eventTimeColumn="at").event_time_column == "at"
    assert options(withEventTimeOrder="false").event_time_column is None
    with pytest.raises(IllegalOptionError, match="Set it to the column of withWatermark"):
        options(withEventTimeOrder="true")
    for half in ({}, {"withEventTimeOrder": "false"}):
        with pytest.raises(IllegalOptionError, match="needs the option withEventTimeOrder=true"):
            options(eventTimeColumn="at", **half)
    with pytest.raises(IllegalOptionError, match="must be a column's name"):
        options(withEventTimeOrder="true", eventTimeColumn="")


def test_a_thousand_files_are_the_limit_where_none_is_set() -> None:
    assert options().limits == Limits(files=1000)
    assert options(maxBytesPerTrigger="1k").limits == Limits(size_bytes=1024)
    assert options(maxRowsPerTrigger="5").limits == Limits(rows=5)
    assert options(splitCommits="false").limits == Limits(files=1000, split_commits=False)


def test_spark_is_told_one_limit_and_all_hold(tmp_path: Path) -> None:
    for rows in (1, 2, 3):
        tablefeed.append(tmp_path, pa.table({"id": range(rows)}))

    def end(limit: ReadLimit | None = None, **given: str) -> tuple[str, object]:
        reader = StreamReader({"path": str(tmp_path), "startingVersion": "0", **given}, StructType(), found)
        default = reader.getDefaultReadLimit()
        return type(default).__name__, reader.latestOffset(reader.initialOffset(), limit or default)["reservoirVersion"]

    found = analyse({"path": str(tmp_path)})
    assert end() == ("ReadMaxFiles", 3)
    assert end(maxRowsPerTrigger="1") == ("ReadMaxRows", 1)
    assert end(maxRowsPerTrigger="2", maxFilesPerTrigger="3") == ("ReadMaxFiles", 2)
    assert end(maxRowsPerTrigger="9", maxBytesPerTrigger="1") == ("ReadMaxBytes", 1)
    assert end(ReadAllAvailable(), maxRowsPerTrigger="1") == ("ReadMaxRows", 3)
    with pytest.raises(OptionError, match=r"^\[DELTA_UNKNOWN_READ_LIMIT\]"):
        end(ReadMaxRows(1))


def test_a_column_or_a_predicate_that_cannot_be_is_refused_at_load(tmp_path: Path) -> None:
    tablefeed.append(tmp_path, pa.table({"id": [1]}))

    for option, value, said in (
        ("columns", "id,x", "Invalid value 'x' for option 'columns': it must be one of id."),
        ("columns", "id,ID", "must be in the list only once"),
        ("where", "x = 1", "Invalid value 'x = 1' for option 'where': it names 'x', but the table has id"),
    ):
        with pytest.raises(IllegalOptionError, match=re.escape(said)):
            analyse({"path": str(tmp_path), option: value})


def test_types_have_the_names_that_pyspark_reads(tmp_path: Path) -> None:
    """Spark reads more names in a schema than PySpark, and old Spark wrote some of these."""
    kinds = {
        "none": "null",
        "at": "timestamp_ltz",
        "list": {"type": "array", "elementType": "null", "containsNull": True},
    }
    log = a_log(LocalStore(str(tmp_path)), v0=[protocol(), meta(*(col(name, kind) for name, kind in kinds.items()))])

    assert spark_schema(analyse({"path": log.url})).simpleString() == "struct<none:void,at:timestamp,list:array<void>>"


def test_a_time_zone_is_that_of_a_start_and_of_a_version_that_is_read(tmp_path: Path) -> None:
    tablefeed.append(tmp_path, pa.table({"id": [1]}))
    tablefeed.append(tmp_path, pa.table({"id": [2]}))
    for version, at_s in enumerate((1_704_063_600, 1_704_067_200)):  # midnight in Berlin, and in Greenwich
        os.utime(tmp_path / "_delta_log" / f"{version:020d}.json", (at_s, at_s))
    midnight = {"path": str(tmp_path), "timestampAsOf": "2024-01-01"}

    assert analyse(midnight).version == 1
    assert analyse({**midnight, "timezone": "Europe/Berlin"}).version == 0
    assert str(options(startingTimestamp="2024-01-01", timeZone="Europe/Berlin").start.time_zone) == "Europe/Berlin"
    with pytest.raises(IllegalOptionError, match="time zone"):
        analyse({**midnight, "timezone": "Berlin"})


def test_the_path_of_a_partition_is_answered_with_the_table() -> None:
    with pytest.raises(
        TableNotFoundError, match=r"If it is a partition \(a=1, b=2\), load the table, /lake/t, and filt"
    ):
        analyse({"path": "/lake/t/a=1/b=2/"})
    with pytest.raises(TableNotFoundError, match=r"after its first commit\.$"):
        analyse({"path": "/lake/a=1/t"})
