"""The stream and batch writers: they translate between Spark's write API and the plan and commit of `tablefeed.feed`.

Spark creates a new writer to plan each batch, pickles it to the tasks, and creates another one to commit. So whatever
the commit needs is in the tasks' messages.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from tablefeed.data.assignment import Assignment
from tablefeed.errors import CommitError
from tablefeed.feed.commit.loop import changes_nothing, commit
from tablefeed.feed.commit.transaction import Operation, Transaction, batch_write, micro_batch
from tablefeed.feed.snapshot.known_state import last_known, newest_state, remember
from tablefeed.feed.snapshot.open_log import open_log
from tablefeed.feed.upkeep.after_commit import UpkeepOptions, look_after, now_ms, surroundings, waited_for
from tablefeed.feed.upkeep.auto_compact import compact_if_wanted
from tablefeed.feed.write.gathering import gathered
from tablefeed.feed.write.orphans import delete_after_abort, delete_orphans
from tablefeed.feed.write.sink import plan_write, write_task
from tablefeed.feed.write.write_plan import WritePlan
from tablefeed.feed.write.write_rules import Scope, WriteRules
from tablefeed.log.conflicts import WriteKind
from tablefeed.model.actions import AddFile, Txn
from tablefeed.model.outcome import AlreadyApplied
from tablefeed.spark import foreign_settings
from tablefeed.spark.options import ParsedOptions, check_txn_pair, parse_options, table_path
from tablefeed.spark.worker import acknowledge_at_once, settle

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from tablefeed.feed.snapshot.table_log import Snapshot

DELTA_UPKEEP = ("compactEvery", "logCompactionEvery", "checkpointPartSize")
"""Options that have a meaning only for a Delta table."""

QUERY_ID = "sql.streaming.queryId"
BATCH_ID = "streaming.sql.batchId"
"""Local properties that Spark's micro-batch execution sets and that every task can read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Written(WriterCommitMessage):
    """The files that one task wrote, the plan that it followed, and the transaction to record, if any."""

    plan: WritePlan
    files: tuple[AddFile, ...]
    txn: Txn | None = None


class StreamWriter(DataSourceStreamArrowWriter):
    """Writes each micro-batch as one commit, exactly once: the txn has the query's id and the batch id as version."""

    def __init__(self, options: Mapping[str, str], schema: StructType, *, overwrite: bool) -> None:
        self._path = table_path(options, call="start")
        self._options = parse_options(options, "stream write")
        # Spark sets `overwrite` in complete mode: each batch replaces all rows of the table.
        self._kind = WriteKind.OVERWRITE if overwrite else WriteKind.APPEND
        self._plan = _plan(self._path, schema, self._options, self._kind).about_newest()

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restores the writer in a worker, as the first code of tablefeed in a task."""
        acknowledge_at_once()
        self.__dict__.update(state)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        """Writes one task's rows, or nothing where the table already records this batch."""
        context = _context()
        query_id, batch = context.getLocalProperty(QUERY_ID), context.getLocalProperty(BATCH_ID)
        if query_id is None or batch is None:
            raise CommitError(
                f"Spark did not report the query and the batch of this task's rows for {self._path}, so they cannot be "
                "written exactly once. Use PySpark 4.2 or newer.",
                url=self._path,
            )
        txn = Txn(app_id=query_id, txn_version=int(batch))
        return Written(plan=self._plan.about(query_id), files=_write(self._plan, iterator, txn), txn=txn)

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        """Commits what the tasks wrote, unless the table has this batch or recordEmptyBatches=false leaves it out."""
        written = _written(messages, self._path)
        txn = written[0].txn
        if txn is None:
            raise CommitError(
                f"Spark reported no query id for batch {batchId} of {self._path}, so it cannot be written exactly "
                "once. Use PySpark 4.2 or newer.",
                url=self._path,
            )
        transaction = _transaction(written, self._options, self._kind, micro_batch(self._kind, txn.app_id, batchId))
        if not self._options["recordEmptyBatches"] and changes_nothing(transaction, lambda: _now(transaction)):
            return
        after = _commit(transaction, self._options)
        every = self._options["compactEvery"]
        # After an overwrite there is nothing to fold, and a fold would conflict with the next batch.
        folds = self._kind is WriteKind.APPEND and every is not None and (batchId + 1) % every == 0
        if folds:
            from tablefeed.feed.upkeep.optimize import fold_behind

            fold_behind(after, _upkeep(self._options))
        elif self._kind is WriteKind.APPEND:
            compact_if_wanted(after, len(transaction.files), _upkeep(self._options))

    def abort(
        self,
        messages: Sequence[WriterCommitMessage | None],
        batchId: int,  # noqa: ARG002, N803 - Spark's signature; the messages have it
    ) -> None:
        """Deletes the tasks' files if no commit was tried, or if the log has this batch without them; else nothing."""
        _abort(messages)


class BatchWriter(DataSourceArrowWriter):
    """Writes a batch append or overwrite as one commit; exactly once if txnAppId and txnVersion are set."""

    def __init__(self, options: Mapping[str, str], schema: StructType, *, overwrite: bool) -> None:
        self._path = table_path(options, call="save")
        self._options = parse_options(options, "batch write")
        check_txn_pair(self._options["txnAppId"], self._options["txnVersion"])
        self._kind = WriteKind.OVERWRITE if overwrite else WriteKind.APPEND
        self._plan = _plan(self._path, schema, self._options, self._kind).about(self._options["txnAppId"])

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        """Writes one task's rows, or nothing where the table already records this write."""
        app_id, txn_version = self._options["txnAppId"], self._options["txnVersion"]
        txn = None if app_id is None else Txn(app_id=app_id, txn_version=txn_version)
        return Written(plan=self._plan, files=_write(self._plan, iterator, txn), txn=txn)

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Commits what the tasks wrote."""
        written = _written(messages, self._path)
        operation = batch_write(self._kind, self._plan.partition_columns, self._plan.rules)
        transaction = _transaction(written, self._options, self._kind, operation)
        after = _commit(transaction, self._options)
        compact_if_wanted(after, len(transaction.files), _upkeep(self._options))

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Deletes the tasks' files if no commit was tried, or if the log has this write without them; else nothing."""
        _abort(messages)


@waited_for()
def _plan(path: str, schema: StructType, options: ParsedOptions, kind: WriteKind) -> WritePlan:
    rules = WriteRules(
        merges_schema=options["mergeSchema"],
        overwrites_schema=options["overwriteSchema"],
        assignment=Assignment(policy=options["storeAssignmentPolicy"], zone=options["timeZone"]),
        properties=options.properties,
        # Only batch writes have these options.
        scope=options.values.get("partitionOverwriteMode", Scope.TABLE),
        replace_where=options.values.get("replaceWhere"),
        codec=options["compression"],
        most_rows_of_a_file=options["maxRecordsPerFile"],
        gathers_files=options["optimizeWrite"],
        cluster_by=options["clusterBy"] or (),
        index_as=options.index_as,
        delta_upkeep={name: options.values.get(name) for name in DELTA_UPKEEP},
    )
    log, state = newest_state(path, dict(options.storage), table_format=options["tableFormat"])
    # The schema in Spark's JSON: in the Arrow schema of the rows a variant would be a struct.
    rows = schema.json()
    plan = plan_write(log, state, rows, partition_by=options["partitionBy"] or (), kind=kind, rules=rules)
    settle()
    return plan


def _write(plan: WritePlan, batches: Iterator[pa.RecordBatch], txn: Txn | None) -> tuple[AddFile, ...]:
    """Writes one task's rows; nothing where the table already records `txn`."""
    if txn is not None and plan.recorded.get(txn.app_id, -1) >= txn.txn_version:
        return ()
    files = write_task(plan, batches, task=_context().partitionId(), txn=txn, now_ms=now_ms())
    settle()
    return files


def _transaction(
    written: Sequence[Written], options: ParsedOptions, kind: WriteKind, operation: Operation
) -> Transaction:
    return Transaction(
        plan=written[0].plan,
        files=tuple(file for message in written for file in message.files),
        kind=kind,
        operation=operation,
        txn=written[0].txn,
        user_metadata=options["userMetadata"],
        on_collision=options["txnVersionCollision"],
    )


def _upkeep(options: ParsedOptions) -> UpkeepOptions:
    prefix = f"{foreign_settings.PREFIX}checkpoint."
    interval = options[f"{prefix}interval"] if options[f"{prefix}enabled"] else 0
    return UpkeepOptions(
        part_actions=options["checkpointPartSize"],
        compact_every=options["logCompactionEvery"],
        index_interval=interval or None,
        index_part_actions=options[f"{prefix}actionsPerPart"] if options[f"{prefix}multiPart.enabled"] else None,
    )


def _now(transaction: Transaction) -> Snapshot | None:
    plan = transaction.plan
    return newest_state(plan.location, dict(plan.storage_options), table_format=plan.table_format)[1]


@waited_for()
def _commit(transaction: Transaction, options: ParsedOptions) -> Snapshot:
    plan = transaction.plan
    upkeep = _upkeep(options)
    log, known = last_known(plan.location, dict(plan.storage_options), table_format=plan.table_format)
    with gathered(plan, transaction.files, now_ms=now_ms()) as files:
        outcome, after = commit(log, known, replace(transaction, files=files), surroundings(upkeep))
    if isinstance(outcome, AlreadyApplied):
        look_after(after, upkeep)  # the process that committed it may have died before it wrote the checkpoint
    remember(log, after)
    settle()
    return after


def _abort(messages: Sequence[WriterCommitMessage | None]) -> None:
    for message in messages:
        if not isinstance(message, Written) or not message.files:
            continue
        plan, files = message.plan, message.files
        log = open_log(plan.location, plan.storage_options, table_format=plan.table_format)
        if None in messages:  # a task failed, so that Spark never asked for a commit
            delete_orphans(log.store, (file.path for file in files))
        elif message.txn is not None:
            delete_after_abort(log, files, message.txn, plan.next_version)


def _written(messages: Sequence[WriterCommitMessage | None], path: str) -> list[Written]:
    written = [m for m in messages if isinstance(m, Written)]
    if not written or len(written) != len(messages):
        raise CommitError(
            f"{len(messages) - len(written)} of {len(messages)} tasks did not report what they wrote to {path}. "
            "Nothing was committed. Run the batch again. If the query has a continuous trigger, use another trigger.",
            url=path,
        )
    return written


def _context() -> TaskContext:
    context = TaskContext.get()
    if context is None:
        raise RuntimeError("a writer's write runs in a task")
    return context
