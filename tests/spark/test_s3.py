"""A stream from a table on S3 into another, as Spark runs it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import tablefeed
from support.s3 import Gateway

pytestmark = pytest.mark.spark


def test_a_stream_copies_a_table_on_s3_to_another_each_row_once(
    spark: SparkSession, gateway: Gateway, tmp_path: Path
) -> None:
    source, copy = f"s3://{gateway.bucket}/orders", f"s3://{gateway.bucket}/copy"
    storage = {f"storage.{name}": value for name, value in gateway.options.items()}
    for turn in range(3):
        tablefeed.append(source, pa.table({"id": [turn]}), storage_options=gateway.options)

    for _ in range(2):
        rows = spark.readStream.format("tablefeed").options(**storage, maxFilesPerTrigger="2").load(source)
        rows.writeStream.format("tablefeed").options(**storage, checkpointLocation=str(tmp_path)).trigger(
            availableNow=True
        ).start(copy).awaitTermination()
        tablefeed.append(source, pa.table({"id": [3]}), storage_options=gateway.options)

    copied = tablefeed.open_table(copy, storage_options=gateway.options).to_arrow()
    assert sorted(copied["id"].to_pylist()) == [0, 1, 2, 3]
