"""A query that counts by windows of time and writes each window once, when its watermark is past it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from deltalake import write_deltalake

import tablefeed
from spark.streams import reader

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize("mapping", ["none", "id", "name"])
def test_counts_by_windows_are_written_when_the_watermark_is_past_them(
    spark: SparkSession, tmp_path: Path, mapping: str
) -> None:
    from pyspark.sql import functions as f

    source, target = tmp_path / "source", tmp_path / "target"

    def arrive(*seconds: int) -> None:
        write_deltalake(str(source), pa.table({"time": list(seconds)}), mode="append")

    arrive(100)
    times = reader(spark, source).select(f.col("time").cast("timestamp").alias("timestamp"))
    windows = times.withWatermark("timestamp", "10 seconds").groupBy(f.window("timestamp", "5 seconds")).count()
    counts = windows.select(*(f.col(f"window.{end}").cast("bigint").alias(end) for end in ("start", "end")), "count")
    writer = counts.writeStream.format("tablefeed").option("checkpointLocation", str(tmp_path / "checkpoint"))
    if mapping != "none":
        writer = writer.option("delta.columnMapping.mode", mapping)
    query = writer.start(str(target))
    try:
        query.processAllAvailable()
        for seconds in ((104, 123), (140,)):
            arrive(*seconds)
            query.processAllAvailable()
    finally:
        query.stop()

    found = tablefeed.open_table(target).to_arrow().to_pylist()
    assert sorted(tuple(row.values()) for row in found) == [(100, 105, 2), (120, 125, 1)]
