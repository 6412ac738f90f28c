"""A stream with `consumerId`: when it is registered, and what it reports when Spark commits its offsets. No JVM."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.streaming.datasource import ReadMaxFiles
from pyspark.sql.types import LongType, StructField, StructType

import tablefeed
from tablefeed.errors import IllegalOptionError, UnsupportedOptionError
from tablefeed.spark.at_load import analyse
from tablefeed.spark.options import parse_options
from tablefeed.spark.source import StreamReader

SCHEMA = StructType([StructField("id", LongType())])


def grown(table: Path, *numbers: int) -> None:
    for number in numbers:
        tablefeed.append(table, pa.table({"id": [number]}))


def a_reader(table: Path, **options: str) -> StreamReader:
    given = {"path": str(table), "consumerid": "copy", **options}
    return StreamReader(given, SCHEMA, analyse(given))


def read_to(table: Path) -> dict[str, int]:
    return {each.consumer_id: each.version for each in tablefeed.consumers(table).list()}


def test_a_stream_is_registered_before_it_reads_and_has_read_what_spark_commits(tmp_path: Path) -> None:
    grown(tmp_path, 0, 1, 2)
    reader = a_reader(tmp_path)
    assert read_to(tmp_path) == {}

    start = reader.initialOffset()
    assert read_to(tmp_path) == {"copy": 2}
    in_snapshot = reader.latestOffset(start, ReadMaxFiles(1))
    reader.partitions(start, in_snapshot)
    grown(tmp_path, 3, 4)
    reader.commit(in_snapshot)
    assert read_to(tmp_path) == {"copy": 2}  # the rest of the snapshot is still to be read

    snapshot_end = reader.latestOffset(in_snapshot, ReadMaxFiles(2))
    tail = reader.latestOffset(snapshot_end, ReadMaxFiles(1))
    reader.commit(snapshot_end)
    assert read_to(tmp_path) == {"copy": 2}
    reader.commit(tail)
    assert read_to(tmp_path) == {"copy": 3}


@pytest.mark.parametrize("first_call", ["latestOffset", "partitions"])
def test_a_stream_that_goes_on_is_registered_where_it_goes_on_whatever_spark_asks_first(
    tmp_path: Path, first_call: str
) -> None:
    grown(tmp_path, 0, 1, 2)
    first = a_reader(tmp_path, startingversion="1")
    start = first.initialOffset()
    assert read_to(tmp_path) == {"copy": 0}
    end = first.latestOffset(start, ReadMaxFiles(1))
    tablefeed.consumers(tmp_path).register("copy")  # by mistake, further than the stream is

    arguments: Any = ReadMaxFiles(1) if first_call == "latestOffset" else end
    getattr(a_reader(tmp_path, startingversion="1"), first_call)(start, arguments)

    assert read_to(tmp_path) == {"copy": 0}


def test_a_stream_without_the_option_is_no_consumer(tmp_path: Path) -> None:
    grown(tmp_path, 0)
    given = {"path": str(tmp_path)}
    reader = StreamReader(given, SCHEMA, analyse(given))
    reader.commit(reader.initialOffset())

    assert (read_to(tmp_path), (tmp_path / "_tablefeed").exists()) == ({}, False)


def test_an_id_that_is_none_is_refused_when_the_stream_begins(tmp_path: Path) -> None:
    grown(tmp_path, 0)

    with pytest.raises(IllegalOptionError, match="consumerId"):
        a_reader(tmp_path, consumerid="a/b").initialOffset()


@pytest.mark.parametrize("direction", ["batch read", "read of changes", "stream write", "batch write"])
def test_only_a_stream_read_takes_the_option(direction: Any) -> None:
    with pytest.raises(UnsupportedOptionError, match="consumerId"):
        parse_options({"path": "t", "consumerId": "copy"}, direction)
