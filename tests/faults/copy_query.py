"""A program: queries that copy a table until they are done, and can wait at a failpoint each to be killed.

    python copy_query.py SOURCE FOLDER [BATCH]

There is one query for each failpoint. Its target and its checkpoint are in FOLDER. At its failpoint in that batch it
writes the file FOLDER/reached-FAILPOINT and waits for its death. Everything before and after is the shipped code: the
failpoints are in subclasses that only this program registers.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark import TaskContext
from pyspark.sql import SparkSession
from pyspark.sql.datasource import WriterCommitMessage
from pyspark.sql.types import StructType

from pyspark_tablefeed import DefaultSource
from tablefeed.spark.sink import BATCH_ID, StreamWriter
from tablefeed.spark.written import Written

if TYPE_CHECKING:
    import pyarrow as pa

BEFORE_FIRST_FILE = "before-first-file"
BETWEEN_WRITE_AND_COMMIT = "between-data-write-and-log-commit"
BETWEEN_COMMIT_AND_SPARK = "between-log-commit-and-sparks-commit-log"
FAILPOINTS = (BEFORE_FIRST_FILE, BETWEEN_WRITE_AND_COMMIT, BETWEEN_COMMIT_AND_SPARK)


class FailpointWriter(StreamWriter):
    """The shipped writer, which waits for its death at its failpoint."""

    failpoint: str

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        context = TaskContext.get()
        batch = context.getLocalProperty(BATCH_ID) if context is not None else None
        self.wait_at(BEFORE_FIRST_FILE, int(batch or -1))
        return super().write(iterator)

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        self.wait_at(BETWEEN_WRITE_AND_COMMIT, batchId)
        super().commit(messages, batchId)
        self.wait_at(BETWEEN_COMMIT_AND_SPARK, batchId)

    def wait_at(self, failpoint: str, batch: int) -> None:
        if failpoint != self.failpoint or str(batch) != os.environ.get("FAILPOINT_BATCH"):
            return
        Path(os.environ["FAILPOINT_FOLDER"], f"reached-{failpoint}").touch()
        time.sleep(600)
        raise RuntimeError("nobody killed this process at its failpoint")


def source_with(failpoint: str) -> type[DefaultSource]:
    """A source whose format is named after its failpoint."""

    class FailpointSource(DefaultSource):
        @classmethod
        def name(cls) -> str:
            return failpoint

        def streamWriter(self, schema: StructType, overwrite: bool) -> FailpointWriter:  # noqa: N802, FBT001
            writer = FailpointWriter(self.options, schema, overwrite=overwrite)
            writer.failpoint = failpoint
            return writer

    return FailpointSource


def main(source: str, folder: str) -> None:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    spark = (
        SparkSession.builder.master("local[4]")  # a task that waits for its death holds one
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "1g")
        # It lives for a few batches: better code is not worth compiling.
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        .config("spark.sql.warehouse.dir", f"{folder}/warehouse")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    queries = []
    for failpoint in FAILPOINTS:
        spark.dataSource.register(source_with(failpoint))
        stream = spark.readStream.format("tablefeed").option("maxFilesPerTrigger", "1").load(source)
        writer = stream.writeStream.format(failpoint).option("checkpointLocation", f"{folder}/checkpoint-{failpoint}")
        queries.append(writer.trigger(availableNow=True).start(f"{folder}/{failpoint}"))
    for query in queries:
        query.awaitTermination()


if __name__ == "__main__":
    if len(sys.argv) == 4:
        os.environ["FAILPOINT_FOLDER"], os.environ["FAILPOINT_BATCH"] = sys.argv[2:]
    main(*sys.argv[1:3])
