"""A program: one query that copies a table until it is done, and can stand still at a named failpoint to be killed.

    python copy_query.py SOURCE TARGET CHECKPOINT [FAILPOINT BATCH MARKER]

At the failpoint of that batch it writes MARKER and waits for its death. Everything before and after is the shipped
code: the failpoints are in subclasses that only this program registers.
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
from tablefeed.spark.sink import BATCH_ID, StreamWriter, Written

if TYPE_CHECKING:
    import pyarrow as pa

BEFORE_FIRST_FILE = "before-first-file"
BETWEEN_WRITE_AND_COMMIT = "between-data-write-and-log-commit"
BETWEEN_COMMIT_AND_SPARK = "between-log-commit-and-sparks-commit-log"


class FailpointWriter(StreamWriter):
    """The shipped writer, which waits for its death where it is told to."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        context = TaskContext.get()
        batch = context.getLocalProperty(BATCH_ID) if context is not None else None
        stand_still_at(BEFORE_FIRST_FILE, int(batch or -1))
        return super().write(iterator)

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        stand_still_at(BETWEEN_WRITE_AND_COMMIT, batchId)
        super().commit(messages, batchId)
        stand_still_at(BETWEEN_COMMIT_AND_SPARK, batchId)


class FailpointSource(DefaultSource):
    """`format("tablefeed_failpoint")`."""

    @classmethod
    def name(cls) -> str:
        return "tablefeed_failpoint"

    def streamWriter(self, schema: StructType, overwrite: bool) -> FailpointWriter:  # noqa: N802, FBT001
        return FailpointWriter(self.options, schema, overwrite=overwrite)


def stand_still_at(failpoint: str, batch: int) -> None:
    if os.environ.get("FAILPOINT") == failpoint and os.environ.get("FAILPOINT_BATCH") == str(batch):
        marker = Path(os.environ["FAILPOINT_MARKER"])
        unfinished = marker.with_suffix(".unfinished")
        unfinished.write_text(failpoint)
        unfinished.rename(marker)  # whoever sees the marker can read it
        time.sleep(600)
        raise RuntimeError("nobody killed this process at its failpoint")


def main(source: str, target: str, checkpoint: str) -> None:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "1g")
        # It lives for a few batches: better code is not worth compiling.
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        .config("spark.sql.warehouse.dir", f"{checkpoint}-warehouse")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    spark.dataSource.register(FailpointSource)
    stream = spark.readStream.format("tablefeed").option("maxFilesPerTrigger", "1").load(source)
    writer = stream.writeStream.format("tablefeed_failpoint").option("checkpointLocation", checkpoint)
    writer.trigger(availableNow=True).start(target).awaitTermination()


if __name__ == "__main__":
    if len(sys.argv) == 7:
        os.environ["FAILPOINT"], os.environ["FAILPOINT_BATCH"], os.environ["FAILPOINT_MARKER"] = sys.argv[4:]
    main(*sys.argv[1:4])
