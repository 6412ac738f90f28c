"""A running query whose table gains columns, and one whose batches are spread over the tasks that it asks for."""

from __future__ import annotations

import queue
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import write_deltalake

from spark.streams import PATIENCE_S, finish, reader, refusal
from support.logs import add, metadata, protocol
from support.recorded import log

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def put(table: Path, **columns: list[Any]) -> None:
    write_deltalake(str(table), pa.table(columns), mode="append", schema_mode="merge")


def rows_of(stream: DataFrame, checkpoint: Path) -> list[dict[str, Any]]:
    """What a query over what is there now delivers."""
    found: list[dict[str, Any]] = []

    def keep(rows: DataFrame, _batch_id: int) -> None:
        found.extend(row.asDict(recursive=True) for row in rows.collect())

    finish(stream.writeStream.foreachBatch(keep).option("checkpointLocation", str(checkpoint)))
    return found


def test_rows_come_in_the_dataframes_schema_until_a_new_one_is_started(spark: SparkSession, tmp_path: Path) -> None:
    table, checkpoint = tmp_path / "t", tmp_path / "checkpoint"
    put(table, id=[1], items=[[{"sku": "a"}]])
    stale = reader(spark, table, ignoreAddedColumns=True)
    batches: queue.Queue[list[Any]] = queue.Queue()

    def keep(rows: DataFrame, _batch_id: int) -> None:
        if found := [row.asDict(recursive=True) for row in rows.collect()]:
            batches.put(found)

    writer = stale.writeStream.foreachBatch(keep).option("checkpointLocation", str(checkpoint))
    query = writer.trigger(processingTime="0 seconds").start()
    try:
        assert batches.get(timeout=PATIENCE_S) == [{"id": 1, "items": [{"sku": "a"}]}]
        put(table, more=["x"], id=[2], items=[[{"price": 7, "sku": "b"}]])
        assert batches.get(timeout=PATIENCE_S) == [{"id": 2, "items": [{"sku": "b"}]}]
        query.processAllAvailable()  # that batch is done: it would come again
    finally:
        query.stop()
    put(table, id=[3], items=[[{"sku": "c", "price": 8}]], more=["y"])
    assert rows_of(stale, checkpoint) == [{"id": 3, "items": [{"sku": "c"}]}]

    put(table, id=[4], items=[[{"sku": "d", "price": 9}]], more=["z"])
    new = reader(spark, table, ignoreAddedColumns=True)
    assert rows_of(new, checkpoint) == [{"id": 4, "items": [{"sku": "d", "price": 9}], "more": "z"}]

    tracked = reader(spark, table, ignoreAddedColumns=True, schemaTrackingLocation=str(tmp_path / "other" / "tracked"))
    assert "cannot be combined" in refusal(lambda: rows_of(tracked, tmp_path / "other"))


def test_a_batch_has_the_partitions_that_are_asked_for(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    pq.write_table(pa.table({"id": range(1000)}), tmp_path / "t" / "a", row_group_size=100)
    size = (tmp_path / "t" / "a").stat().st_size
    table = log(tmp_path / "t", v0=[protocol(), metadata(), add("a", size=size)])
    counts: list[int] = []

    def keep(rows: DataFrame, _batch_id: int) -> None:
        counts.append(rows.rdd.getNumPartitions())
        assert sorted(row.id for row in rows.collect()) == list(range(1000))

    writer = reader(spark, table, minPartitions=7).writeStream.foreachBatch(keep)
    finish(writer.option("checkpointLocation", str(tmp_path / "checkpoint")))
    read = spark.read.format("tablefeed").option("minPartitions", 64).load(str(table))

    assert counts == [7]
    assert read.rdd.getNumPartitions() == 10
    assert read.count() == 1000
