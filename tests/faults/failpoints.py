"""What the programs share whose queries are killed: their Spark session, and how a query waits for its death."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter


def wait_at(failpoint: str, batch: int) -> None:
    """Writes the file FAILPOINT_FOLDER/reached-FAILPOINT in the batch FAILPOINT_BATCH, and waits to be killed."""
    if str(batch) != os.environ.get("FAILPOINT_BATCH"):
        return
    Path(os.environ["FAILPOINT_FOLDER"], f"reached-{failpoint}").touch()
    time.sleep(600)
    raise RuntimeError("nobody killed this process at its failpoint")


def session(folder: str) -> SparkSession:
    """The session of queries that live for a few batches."""
    builder = SparkSession.builder.master("local[4]")  # a task that waits for its death holds one
    spark = builder.config("spark.sql.warehouse.dir", f"{folder}/warehouse").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def run(writers: Iterable[DataStreamWriter]) -> None:
    """Starts the queries, and waits until all have ended.

    The first query has finished a batch before the others start. Spark (4.2, 4.3) puts four settings into a map that
    all streams of a Python data source share, each time a stream starts. The map is not thread-safe: if the first
    streams of a JVM start at the same time, its size can become wrong. Then no task that reads this source can be
    serialized.
    """
    queries: list[StreamingQuery] = []
    for writer in writers:
        queries.append(writer.start())
        while queries[0].isActive and queries[0].lastProgress is None:
            time.sleep(0.05)
    for query in queries:
        query.awaitTermination()
