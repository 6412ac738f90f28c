"""The stream and batch writers that Spark pickles: they plan by `sink_plan`, write in tasks, commit by `sink_commit`.

Spark creates a new writer to plan each batch, pickles it to the tasks, and creates another one to commit. So whatever
the commit needs is in the tasks' messages. Each process imports only its step when it is first needed.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from tablefeed.errors import CommitError
from tablefeed.log.conflicts import WriteKind
from tablefeed.model.actions import AddFile, Txn
from tablefeed.spark.worker import Begins, BeginsInTask, settle
from tablefeed.spark.written import Written

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from tablefeed.feed.write.write_plan import WritePlan

_Report = TypeVar("_Report", bound=WriterCommitMessage)

QUERY_ID = "sql.streaming.queryId"
BATCH_ID = "streaming.sql.batchId"
"""Local properties that Spark's micro-batch execution sets and that every task can read."""


class StreamWriter(BeginsInTask, DataSourceStreamArrowWriter):
    """Writes each micro-batch as one commit, exactly once: the txn has the query's id and the batch id as version."""

    def __init__(self, options: Mapping[str, str], schema: StructType, *, overwrite: bool) -> None:
        from tablefeed.spark.options import parse_options, table_path
        from tablefeed.spark.sink_plan import planned, planned_for_bad_rows

        self._path = table_path(options, call="start")
        self._options = parse_options(options, "stream write")
        # Spark sets `overwrite` in complete mode: each batch replaces all rows of the table.
        self._kind = WriteKind.OVERWRITE if overwrite else WriteKind.APPEND
        # The query is not known before a task runs, and all applications of the table may be too many to send there.
        self._plan = planned(self._path, schema, self._options, self._kind).about_newest()
        self._bad_plan = planned_for_bad_rows(self._plan, self._options, self._kind)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        """Writes one task's rows, or nothing where the table already records this batch."""
        txn = batch_txn(self._path)
        written = Written(plan=self._plan.about(txn.app_id), files=(), txn=txn, bad_plan=self._bad_plan)
        if self._bad_plan is None or _is_recorded(self._plan, txn):
            return replace(written, files=_write(self._plan, iterator, txn))
        from tablefeed.feed.write.bad_rows import write_good_rows

        now_ms = time.time_ns() // 1_000_000
        files, bad = write_good_rows(self._plan, self._bad_plan, iterator, task=task_number(), txn=txn, now_ms=now_ms)
        settle()
        return replace(written, files=files, bad_files=bad)

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        """Commits what the tasks wrote, unless the table has this batch or recordEmptyBatches=false leaves it out."""
        written = reported(messages, Written, self._path)
        txn = written[0].txn
        if txn is None:
            raise CommitError(
                f"Spark reported no query id for batch {batchId} of {self._path}, so it cannot be written exactly "
                "once. Use PySpark 4.2 or newer.",
                url=self._path,
            )
        from tablefeed.spark.sink_commit import commit_batch

        commit_batch(written, self._options, self._kind, query_id=txn.app_id, batch_id=batchId)

    def abort(
        self,
        messages: Sequence[WriterCommitMessage | None],
        batchId: int,  # noqa: ARG002, N803 - Spark's signature; the messages have it
    ) -> None:
        """Deletes the tasks' files if no commit was tried, or if the log has this batch without them; else nothing."""
        from tablefeed.spark.sink_commit import abort

        abort(messages)


class BatchWriter(Begins, DataSourceArrowWriter):
    """Writes a batch append or overwrite as one commit; exactly once if txnAppId and txnVersion are set."""

    def __init__(self, options: Mapping[str, str], schema: StructType, *, overwrite: bool) -> None:
        from tablefeed.spark.options import check_txn_pair, parse_options, table_path
        from tablefeed.spark.sink_plan import planned

        self._path = table_path(options, call="save")
        self._options = parse_options(options, "batch write")
        check_txn_pair(self._options["txnAppId"], self._options["txnVersion"])
        self._kind = WriteKind.OVERWRITE if overwrite else WriteKind.APPEND
        self._plan = planned(self._path, schema, self._options, self._kind).about(self._options["txnAppId"])

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        """Writes one task's rows, or nothing where the table already records this write."""
        app_id, txn_version = self._options["txnAppId"], self._options["txnVersion"]
        txn = None if app_id is None else Txn(app_id=app_id, txn_version=txn_version)
        return Written(plan=self._plan, files=_write(self._plan, iterator, txn), txn=txn)

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Commits what the tasks wrote."""
        written = reported(messages, Written, self._path)
        from tablefeed.spark.sink_commit import commit_write

        commit_write(written, self._options, self._kind)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Deletes the tasks' files if no commit was tried, or if the log has this write without them; else nothing."""
        from tablefeed.spark.sink_commit import abort

        abort(messages)


def _write(plan: WritePlan, batches: Iterator[pa.RecordBatch], txn: Txn | None) -> tuple[AddFile, ...]:
    """Writes one task's rows; nothing where the table already records `txn`."""
    if txn is not None and _is_recorded(plan, txn):
        return ()
    from tablefeed.feed.write.sink import write_task

    now_ms = time.time_ns() // 1_000_000
    files = write_task(plan, batches, task=task_number(), txn=txn, now_ms=now_ms)
    settle()
    return files


def _is_recorded(plan: WritePlan, txn: Txn) -> bool:
    return plan.recorded.get(txn.app_id, -1) >= txn.txn_version


def reported(messages: Sequence[WriterCommitMessage | None], kind: type[_Report], path: str) -> list[_Report]:
    """Gives the reports of all tasks. Raises CommitError where one is missing."""
    written = [m for m in messages if isinstance(m, kind)]
    if not written or len(written) != len(messages):
        raise CommitError(
            f"{len(messages) - len(written)} of {len(messages)} tasks did not report what they wrote to {path}. "
            "Nothing was committed. Run the batch again. If the query has a continuous trigger, use another trigger.",
            url=path,
        )
    return written


def batch_txn(path: str) -> Txn:
    """Gives the transaction of this task's micro-batch. Raises CommitError where Spark does not report which it is."""
    context = _context()
    query_id, batch = context.getLocalProperty(QUERY_ID), context.getLocalProperty(BATCH_ID)
    if query_id is None or batch is None:
        raise CommitError(
            f"Spark did not report the query and the batch of this task's rows for {path}, so they cannot be "
            "written exactly once. Use PySpark 4.2 or newer.",
            url=path,
        )
    return Txn(app_id=query_id, txn_version=int(batch))


def task_number() -> int:
    """Gives the number of this task in its batch, from 0."""
    return int(_context().partitionId())


def _context() -> TaskContext:
    context = TaskContext.get()
    if context is None:
        raise RuntimeError("a writer's write runs in a task")
    return context
