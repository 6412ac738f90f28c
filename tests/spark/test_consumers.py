"""A stream of Spark as a consumer: what it has still to read survives cleanup and vacuum while it is stopped."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from deltalake import DeltaTable

import tablefeed
from spark.streams import drain, grow

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.usefixtures("few_rows")


def test_what_a_stopped_stream_has_still_to_read_survives_vacuum(spark: SparkSession, tmp_path: Path) -> None:
    table, checkpoint = tmp_path / "t", tmp_path / "checkpoint"
    options = {"consumerId": "copy", "maxFilesPerTrigger": 1, "skipChangeCommits": "true"}
    grow(table, [1], [2])

    assert drain(spark, table, checkpoint, **options) == [[1], [2]]
    (consumer,) = tablefeed.consumers(table).list()
    assert (consumer.consumer_id, consumer.version) == ("copy", 1)

    grow(table, [3], [4])
    DeltaTable(str(table)).delete("id >= 3")  # the files of versions 2 and 3 are no longer live
    for path in table.glob("*.parquet"):
        os.utime(path, (time.time() - 3600,) * 2)
    found = tablefeed.vacuum(table, retention_hours=0, allow_short_retention=True)
    assert (found.file_count, found.waits_for) == (0, ("copy",))

    assert drain(spark, table, checkpoint, **options) == [[3], [4]]
    (consumer,) = tablefeed.consumers(table).list()
    assert consumer.version == 2  # Spark commits the end of a batch when the next one begins
    tablefeed.consumers(table).progress("copy", 4)
    assert tablefeed.vacuum(table, retention_hours=0, allow_short_retention=True).file_count == 2
