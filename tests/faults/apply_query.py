"""A program: queries that apply change events to tables until they are done, and can wait at a failpoint to be killed.

    python apply_query.py SOURCE FOLDER [BATCH]

There is one query for each failpoint; its target is FOLDER/FAILPOINT, and its checkpoint is beside it. Two tasks apply
each batch.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark import TaskContext

from faults.failpoints import run, session, wait_at
from tablefeed.feed.rows.apply import Part
from tablefeed.feed.rows.asking import Asking
from tablefeed.feed.rows.folding import Folding
from tablefeed.feed.write.target_rows import TargetRows
from tablefeed.model.actions import Txn
from tablefeed.spark.changes.applying import _Task, _Work
from tablefeed.spark.sink import BATCH_ID

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from tablefeed.model.outcome import AlreadyApplied, Committed

BEFORE_TASKS_WRITE = "before-a-task-writes"
IN_A_TASK = "between-a-tasks-write-and-its-end"
BETWEEN_WRITE_AND_COMMIT = "between-the-tasks-and-the-log-commit"
BETWEEN_COMMIT_AND_SPARK = "between-log-commit-and-sparks-commit-log"
FAILPOINTS = (BEFORE_TASKS_WRITE, IN_A_TASK, BETWEEN_WRITE_AND_COMMIT, BETWEEN_COMMIT_AND_SPARK)


@dataclass(frozen=True, slots=True, kw_only=True)
class FailpointWork(_Work):
    """The shipped work, which waits for its death at its failpoint."""

    failpoint: str

    def apply(self, changes: DataFrame, txn: Txn | None) -> Committed | AlreadyApplied:
        outcome = _Work.apply(self, changes, txn)
        assert txn is not None
        self.wait_at(BETWEEN_COMMIT_AND_SPARK, txn.txn_version)
        return outcome

    def _parts(self, changes: DataFrame, how: Folding, target: TargetRows) -> list[Part]:
        parts = _Work._parts(self, changes, how, target)
        self.wait_at(BETWEEN_WRITE_AND_COMMIT, target.snapshot.version)  # batch 0 made version 1, which batch 1 reads
        return parts

    def part(self, batches: Iterator[pa.RecordBatch], task_of: _Task) -> Part | None:
        context = TaskContext.get()
        assert context is not None
        batch = int(context.getLocalProperty(BATCH_ID) or -1) if context.partitionId() == 1 else -1
        self.wait_at(BEFORE_TASKS_WRITE, batch)
        part = _Work.part(self, batches, task_of)
        self.wait_at(IN_A_TASK, batch)
        return part

    def wait_at(self, failpoint: str, batch: int) -> None:
        if failpoint == self.failpoint:
            wait_at(failpoint, batch)


def main(source: str, folder: str) -> None:
    spark = session(folder)
    writers = []
    for failpoint in FAILPOINTS:
        work = FailpointWork(
            location=f"{folder}/{failpoint}",
            storage_options={},
            asked=Asking(keys=("id",), sequence_by=("ts",), apply_as_deletes="op = 'd'", except_column_list=("op",)),
            tasks=2,
            failpoint=failpoint,
        )
        checkpoint = f"{folder}/checkpoint-{failpoint}"
        stream = spark.readStream.format("tablefeed").option("maxFilesPerTrigger", "1").load(source)
        writer = stream.writeStream.foreachBatch(work.batch_function(checkpoint))
        writers.append(writer.option("checkpointLocation", checkpoint).trigger(availableNow=True))
    run(writers)


if __name__ == "__main__":
    if len(sys.argv) == 4:
        os.environ["FAILPOINT_FOLDER"], os.environ["FAILPOINT_BATCH"] = sys.argv[2:]
    main(*sys.argv[1:3])
