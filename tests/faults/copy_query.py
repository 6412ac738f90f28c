"""A program: queries that copy a table until they are done, and can wait at a failpoint each to be killed.

    python copy_query.py SOURCE FOLDER [BATCH]

There is one query for each failpoint. Its target and its checkpoint are in FOLDER. At its failpoint in that batch it
writes the file FOLDER/reached-FAILPOINT and waits for its death. Everything before and after is the shipped code: the
failpoints are in subclasses that only this program registers.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark import TaskContext
from pyspark.sql.datasource import WriterCommitMessage
from pyspark.sql.types import StructType

from faults.failpoints import run, session, wait_at
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
        if failpoint == self.failpoint:
            wait_at(failpoint, batch)


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
    spark = session(folder)
    writers = []
    for failpoint in FAILPOINTS:
        spark.dataSource.register(source_with(failpoint))
        stream = spark.readStream.format("tablefeed").option("maxFilesPerTrigger", "1").load(source)
        writer = stream.writeStream.format(failpoint).option("checkpointLocation", f"{folder}/checkpoint-{failpoint}")
        writers.append(writer.option("path", f"{folder}/{failpoint}").trigger(availableNow=True))
    run(writers)


if __name__ == "__main__":
    if len(sys.argv) == 4:
        os.environ["FAILPOINT_FOLDER"], os.environ["FAILPOINT_BATCH"] = sys.argv[2:]
    main(*sys.argv[1:3])
