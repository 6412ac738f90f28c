"""What a stream's reader reports to Spark beside a planned batch: the lag where it is known, never an error. No JVM."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
from pyspark.sql.streaming.datasource import ReadMaxFiles
from pyspark.sql.types import LongType, StructField, StructType

import tablefeed
from support.faulty_store import Fault, FaultyStore
from tablefeed.feed.arguments import Bound
from tablefeed.feed.snapshot.delta_log import DeltaLog
from tablefeed.feed.snapshot.open_log import open_log
from tablefeed.feed.stream.source import StreamSource
from tablefeed.feed.stream.source_options import SourceOptions
from tablefeed.spark.at_load import analyse
from tablefeed.spark.source import StreamReader

SCHEMA = StructType([StructField("id", LongType())])


def a_reader(table: Path, *, versions: int, options: Mapping[str, str]) -> StreamReader:
    for number in range(versions):
        tablefeed.append(table, pa.table({"id": [number]}))
    given = {"path": str(table), **options}
    return StreamReader(given, SCHEMA, analyse(given))


def test_the_lag_is_of_the_batch_that_was_just_planned_and_nothing_is_reported_before_one(tmp_path: Path) -> None:
    reader = a_reader(tmp_path, versions=3, options={"startingversion": "0"})
    assert reader.reportLatestOffset() is None

    end = reader.latestOffset(reader.initialOffset(), ReadMaxFiles(1))
    report = reader.reportLatestOffset()

    assert report is not None
    assert (end["reservoirVersion"], report["reservoirVersion"], report["table"]) == (1, 3, str(tmp_path))
    lag = report["lag"]
    assert isinstance(lag, dict)
    assert (lag["versionsBehind"], lag["numFilesOutstanding"]) == (2, 2)
    assert 0 <= lag["secondsBehind"] < 300


def test_a_store_that_fails_while_the_lag_is_asked_for_fails_no_query(tmp_path: Path) -> None:
    reader = a_reader(tmp_path, versions=3, options={})
    log = open_log(str(tmp_path))
    name = "_delta_log/00000000000000000003.json"
    failing = DeltaLog(
        FaultyStore(log.store, faults=[Fault(operation="stat", name=name)]), location=log.location, storage_options={}
    )
    options = SourceOptions(start=Bound(version=0))
    reader._planner._source = StreamSource(failing, read_schema=log.load().schema, options=options, clock=lambda: 0.0)
    start = reader.initialOffset()

    first = reader.latestOffset(start, ReadMaxFiles(1))
    assert reader.reportLatestOffset() is None
    reader.latestOffset(first, ReadMaxFiles(1))
    assert reader.reportLatestOffset() is not None
