"""The text of an offset as PySpark's own runner sends it to the JVM, which compares offsets as texts. No JVM."""

from __future__ import annotations

import io
import json
import struct
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql.streaming.python_streaming_source_runner import (
    initial_offset_func,
    latest_offset_admission_control_func,
)
from pyspark.sql.types import LongType, StructField, StructType

import tablefeed
from tablefeed.spark.at_load import analyse
from tablefeed.spark.source import StreamReader


def a_reader(table: Path) -> StreamReader:
    given = {"path": str(table), "startingversion": "1"}
    return StreamReader(given, StructType([StructField("id", LongType())]), analyse(given))


def message(text: str) -> bytes:
    """`text` as the JVM and PySpark exchange it: its length, then its bytes."""
    return struct.pack(">i", len(text)) + text.encode()


def initial_text(reader: StreamReader) -> str:
    outfile = io.BytesIO()
    initial_offset_func(reader, outfile)
    return outfile.getvalue()[4:].decode()


def latest_text(reader: StreamReader, start: str) -> str:
    limit = json.dumps({"_type": "ReadMaxFiles", "max_files": 1})
    infile, outfile = io.BytesIO(message(start) + message(limit)), io.BytesIO()
    latest_offset_admission_control_func(reader, infile, outfile)
    return outfile.getvalue()[4:].decode()


def in_delta_sparks_text(table_id: str, version: int) -> str:
    return (
        f'{{"sourceVersion":1,"reservoirId":"{table_id}","reservoirVersion":{version},'
        '"index":-1,"isStartingVersion":false}'
    )


@pytest.mark.parametrize("begins", [True, False], ids=["the first batch", "a restart"])
def test_an_offset_reaches_spark_in_the_very_text_of_delta_spark(
    tmp_path: Path,
    begins: bool,  # noqa: FBT001 (a parameter)
) -> None:
    for number in range(3):
        tablefeed.append(tmp_path, pa.table({"id": [number]}))
    table_id = tablefeed.open_table(tmp_path).table_id
    reader = a_reader(tmp_path)

    if begins:
        assert initial_text(reader) == in_delta_sparks_text(table_id, 1)
    assert latest_text(reader, in_delta_sparks_text(table_id, 1)) == in_delta_sparks_text(table_id, 2)
    assert latest_text(reader, in_delta_sparks_text(table_id, 3)) == in_delta_sparks_text(table_id, 3)
