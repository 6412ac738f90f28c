"""A stream that tracks its table's metadata, on Spark: it stops at a change, and is started again over it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from spark.streams import PATIENCE_S, reader, refusal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark


def run(spark: SparkSession, table: Path, checkpoint: Path, rows: list[tuple[object, ...]], **options: object) -> None:
    def collect(batch: DataFrame, _batch_id: int) -> None:
        rows.extend(tuple(row) for row in batch.collect())

    stream = reader(spark, table, schemaTrackingLocation=checkpoint / "tracked", **options)
    writer = stream.writeStream.foreachBatch(collect).option("checkpointLocation", str(checkpoint))
    assert writer.trigger(availableNow=True).start().awaitTermination(PATIENCE_S)


def test_what_a_commit_of_the_source_raises_ends_the_query_and_its_restart_has_the_new_column(
    spark: SparkSession, tmp_path: Path
) -> None:
    table, checkpoint = tmp_path / "table", tmp_path / "checkpoint"
    rows: list[tuple[object, ...]] = []
    write_deltalake(str(table), pa.table({"id": [1]}))
    run(spark, table, checkpoint, rows)
    write_deltalake(str(table), pa.table({"id": [2]}), mode="append")
    write_deltalake(str(table), pa.table({"id": [3], "more": ["x"]}), mode="append", schema_mode="merge")

    text = refusal(lambda: run(spark, table, checkpoint, rows))

    assert "[DELTA_STREAMING_METADATA_EVOLUTION]" in text
    assert rows == [(1,), (2,)]
    run(spark, table, checkpoint, rows)
    assert rows == [(1,), (2,), (3, "x")]
