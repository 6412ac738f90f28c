"""A watermark over a table that was not written in the order of its times: what Spark drops, and what it need not."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from deltalake import write_deltalake

from spark.streams import drained, reader

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BY_TIME = {"withEventTimeOrder": True, "eventTimeColumn": "AT"}


def backfilled(table: Path, *hours: int) -> None:
    """Commits a file for each of `hours` of a day: of two rows, half an hour apart."""
    for hour in hours:
        times = [datetime(2024, 1, 1, hour, minute, tzinfo=UTC) for minute in (0, 30)]
        rows = {"id": [2 * hour, 2 * hour + 1], "at": pa.array(times, pa.timestamp("us", "UTC"))}
        write_deltalake(str(table), pa.table(rows), mode="append")


def distinct(spark: SparkSession, table: Path, **options: object) -> DataFrame:
    """The rows of a table that a file a batch brings, each once within an hour."""
    stream = reader(spark, table, maxFilesPerTrigger=1, **options)
    return stream.withWatermark("at", "10 minutes").dropDuplicatesWithinWatermark(["id"])


def test_in_the_order_of_event_time_a_watermark_drops_no_row_of_the_table(spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "t"
    backfilled(table, 12, 10, 8, 6)

    by_files = drained(distinct(spark, table), tmp_path / "by-files")
    by_time = drained(distinct(spark, table, **BY_TIME), tmp_path / "by-time")

    assert by_time == [[12, 13], [16, 17], [20, 21], [24, 25]]
    # Spark drops by the watermark that was known before the batch before.
    assert by_files == [[24, 25], [20, 21]]
