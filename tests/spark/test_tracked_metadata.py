"""A stream that tracks its table's metadata, on Spark: it stops at a change, and is started again over it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from deltalake import write_deltalake

from scenarios.tables import Table
from spark.streams import PATIENCE_S, reader, refusal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


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


def test_two_sources_of_one_query_go_on_over_a_change_one_after_the_other(spark: SparkSession, tmp_path: Path) -> None:
    table = Table(tmp_path / "table").create("a", "b", mapping="name")
    table.append(*range(5))
    table.rename("b", "c")
    table.append(*range(5, 10))
    checkpoint = tmp_path / "checkpoint"
    rows: list[tuple[object, ...]] = []

    def collect(batch: DataFrame, _batch_id: int) -> None:
        rows.extend(tuple(row) for row in batch.collect())

    def run_both() -> None:
        one, two = (
            reader(
                spark,
                table.path,
                schemaTrackingLocation=checkpoint / f"tracked_{number}",
                startingVersion=5,
                allowSourceColumnRename="always",
            )
            for number in range(2)
        )
        writer = one.unionByName(two, allowMissingColumns=True).writeStream.foreachBatch(collect)
        query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
        assert query.awaitTermination(PATIENCE_S)

    for _ in range(2):
        assert "[DELTA_STREAMING_METADATA_EVOLUTION]" in refusal(run_both)
    assert rows == []
    for _ in range(2):
        assert "[DELTA_STREAMING_METADATA_EVOLUTION]" in refusal(run_both)
        assert rows == [("4", "4"), ("4", "4")]
    rows.clear()
    run_both()
    assert sorted(rows) == sorted([(str(number), str(number)) for number in range(5, 10)] * 2)
