"""`tablefeed.spark.apply_changes`: applies the change events of a DataFrame to a table, each micro-batch exactly once.

A batch is divided by key among tasks. Each task folds its events, finds the rows of its keys, and writes files; the
driver joins what the tasks report, and commits. So the driver holds bitmaps and lists of files, and no row.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from tablefeed.errors import (
    IllegalOptionError,
    MissingPathError,
    StoreError,
    TablefeedError,
    UnsupportedOptionError,
    naming,
)
from tablefeed.feed.api.append import txn_of
from tablefeed.feed.api.row_changes import change
from tablefeed.feed.arguments import location, store_options, text, whole_number
from tablefeed.feed.rows.apply import Part, applied_part, joined
from tablefeed.feed.rows.asking import Asking, Source, asking
from tablefeed.feed.rows.attempts import changeable
from tablefeed.feed.rows.envelopes import unwrapped
from tablefeed.feed.rows.folding import END_AT, Folding
from tablefeed.feed.rows.incoming import batch_of, fitted
from tablefeed.feed.rows.snapshot_events import AT, IS_GONE, in_order, is_applied, refuse_own_columns
from tablefeed.feed.snapshot.delta_log import DeltaSnapshot
from tablefeed.feed.snapshot.known_state import newest_state
from tablefeed.feed.stream.query_id import query_id
from tablefeed.feed.upkeep.after_commit import now_ms
from tablefeed.feed.upkeep.background import waited_for
from tablefeed.feed.write.orphans import delete_orphans, deleted_on_error
from tablefeed.feed.write.target_rows import TargetRows
from tablefeed.model.actions import Metadata, Protocol, Txn, Version
from tablefeed.model.outcome import Committed
from tablefeed.model.schema import Struct
from tablefeed.spark.changes.dividing import divided, own_keys, with_deletes, with_their_keys
from tablefeed.spark.char import changes_schema
from tablefeed.spark.options import STORAGE_PREFIX
from tablefeed.spark.release import RELEASE, Release
from tablefeed.spark.sink import QUERY_ID

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from tablefeed.feed.commit.transaction import Transaction
    from tablefeed.feed.snapshot.table_log import Snapshot
    from tablefeed.model.outcome import AlreadyApplied

_ORDER = "__ORDER"
"""The column that keeps the order of arrival while rows move to their tasks."""

_FAILED = "__FAILED"
"""The column with the pickled error of a batch whose envelopes cannot be opened; null in the rows of the others."""

_CONNECT_TASKS = 4
"""How many tasks a batch has by default where Spark does not say how many run at once (Spark Connect)."""


def apply_changes(
    changes: DataFrame,
    target: str,
    *,
    keys: str | Sequence[str],
    sequence_by: str | Sequence[str] | None = None,
    source: Literal["tablefeed", "changes", "debezium"] | None = None,
    apply_as_deletes: str | None = None,
    apply_as_truncates: str | None = None,
    column_list: Sequence[str] | None = None,
    except_column_list: Sequence[str] | None = None,
    ignore_null_updates: bool = False,
    ignore_null_updates_column_list: Sequence[str] | None = None,
    ignore_null_updates_except_column_list: Sequence[str] | None = None,
    stored_as_scd_type: Literal[1, 2] = 1,
    track_history_column_list: Sequence[str] | None = None,
    track_history_except_column_list: Sequence[str] | None = None,
    ties: Literal["fail", "last"] = "fail",
    merge_schema: bool = False,
    tombstone_gc_threshold_in_seconds: int | None = None,
    time_zone: str | None = None,
    checkpoint_location: str | None = None,
    trigger: Mapping[str, Any] | None = None,
    query_name: str | None = None,
    app_id: str | None = None,
    txn_version: int | None = None,
    tasks: int | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> StreamingQuery | Committed | AlreadyApplied:
    """Applies the events of `changes`, a streaming or batch DataFrame, to the table at `target`.

    A streaming DataFrame needs `checkpoint_location`. The call starts the query and returns it. Each of its
    micro-batches is one commit, made once: its txn has the query's id and the batch's number. `trigger` are the
    arguments of `DataStreamWriter.trigger`, such as {"availableNow": True}. A batch DataFrame is applied in one commit;
    with `app_id` and `txn_version`, once. `tasks` is the number of tasks of a batch; each task reads the key columns of
    the files that may have its keys. All else is as for `tablefeed.apply_changes`.
    """
    work = _work(target, asking(locals()), tasks, storage_options)
    _check_frame(changes, "changes")
    if not changes.isStreaming:
        of_streams = {"checkpoint_location": checkpoint_location, "trigger": trigger, "query_name": query_name}
        for name, given in of_streams.items():
            if given is not None:
                raise UnsupportedOptionError(option=name, remedy="It is for a streaming DataFrame only: leave it out.")
        return work.apply(changes, txn_of(app_id, txn_version))
    if app_id is not None or txn_version is not None:
        remedy = "A stream uses its query's id and the number of the batch: leave app_id and txn_version out."
        raise UnsupportedOptionError(option="app_id", remedy=remedy)
    if checkpoint_location is None:
        raise MissingPathError("A stream of changes needs a checkpoint. Give checkpoint_location.")
    work.check(changes)
    writer = changes.writeStream.foreachBatch(work.batch_function(checkpoint_location))
    writer = writer.option("checkpointLocation", checkpoint_location)
    if query_name is not None:
        writer = writer.queryName(text(query_name, argument="query_name"))
    return (writer if trigger is None else _triggered(writer, trigger)).start()


def apply_changes_from_snapshot(
    snapshots: tuple[DataFrame, Any] | Callable[[Any], tuple[DataFrame, Any] | None],
    target: str,
    *,
    keys: str | Sequence[str],
    column_list: Sequence[str] | None = None,
    except_column_list: Sequence[str] | None = None,
    stored_as_scd_type: Literal[1, 2] = 1,
    track_history_column_list: Sequence[str] | None = None,
    track_history_except_column_list: Sequence[str] | None = None,
    time_zone: str | None = None,
    tasks: int | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> Committed:
    """Makes the table at `target` equal to snapshots of its source: DataFrames with their versions, each in one commit.

    All is as for `tablefeed.apply_changes_from_snapshot`, and `tasks` as for `apply_changes`.
    """
    work = _work(target, asking({"sequence_by": AT, **locals()}), tasks, storage_options)
    with naming(work.location):
        return in_order(snapshots, lambda: _snapshot(work.location, work.storage_options, None), work.apply_snapshot)


def _check_frame(given: object, argument: str) -> None:
    from pyspark.sql import DataFrame

    if not isinstance(given, DataFrame):
        explain = "is no DataFrame of Spark; the calls without .spark take Arrow data"
        raise IllegalOptionError(option=argument, value=type(given).__name__, explain=explain)


def _triggered(writer: DataStreamWriter, trigger: Mapping[str, Any]) -> DataStreamWriter:
    from pyspark.errors import PySparkException

    try:
        return writer.trigger(**trigger)
    except (TypeError, ValueError, PySparkException) as error:
        raise IllegalOptionError(option="trigger", value=str(trigger), explain=f"is no trigger: {error}") from error


def _work(target: str, asked: Asking, tasks: int | None, storage_options: Mapping[str, str] | None) -> _Work:
    return _Work(
        location=location(target),
        storage_options=store_options(storage_options),
        asked=asked,
        tasks=None if tasks is None else whole_number(tasks, argument="tasks", least=1),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Work:
    """The arguments of a call: the table, the meaning of the changes, the number of tasks (None: the default).

    `release` is first, so that a task with another version of tablefeed refuses the value.
    """

    release: Release = field(default=RELEASE, init=False, repr=False)
    location: str
    storage_options: Mapping[str, str] = field(repr=False)
    asked: Asking
    tasks: int | None

    def apply_snapshot(self, rows: DataFrame, at: pa.Scalar) -> Committed | AlreadyApplied:
        """Applies a snapshot, with its version."""
        _check_frame(rows, "snapshots")
        refuse_own_columns(_arrow_schema(rows), AT, IS_GONE, *own_keys(self.asked.keys))
        return replace(self, asked=replace(self.asked, snapshot_at=at)).apply(rows, None)

    def check(self, changes: DataFrame) -> None:
        """Raises as `apply` does for every batch with the columns of `changes`."""
        with naming(self.location):
            target = TargetRows(_snapshot(self.location, self.storage_options, None))
            fitted(target, _arrow_schema(changes).empty_table(), self.asked)

    @waited_for()
    def apply(self, changes: DataFrame, txn: Txn | None) -> Committed | AlreadyApplied:
        """Applies one batch."""
        log, state = newest_state(self.location, self.storage_options)

        def prepared(target: TargetRows) -> Transaction | None:
            if is_applied(target.snapshot, self.asked.snapshot_at):
                return None
            target, batch = fitted(target, _arrow_schema(changes).empty_table(), self.asked)
            how = batch.how
            parts = self._parts(self._with_deletes(changes, how, target.snapshot), how, target)
            return joined(target, parts, how, txn=txn, now_ms=now_ms())

        return change(log, state, prepared, txn=txn)

    def batch_function(self, checkpoint_location: str) -> Callable[[DataFrame, int], None]:
        """Gives what `foreachBatch` calls. The id of the query is in its checkpoint by then."""

        def apply_batch(batch: DataFrame, batch_id: int) -> None:
            app_id = _query_id(batch, checkpoint_location, self.storage_options)
            self.apply(batch, Txn(app_id=app_id, txn_version=batch_id))

        return apply_batch

    def _parts(self, changes: DataFrame, how: Folding, target: TargetRows) -> list[Part]:
        """Runs the tasks; each has all events of its keys."""
        context = _context(changes)
        tasks = self.tasks or (_CONNECT_TASKS if context is None else int(context.defaultParallelism))
        changes, work = self._with_keys(changes, target.snapshot.schema)
        # Texts and no functions of pyspark.sql: a process may have a session of each kind, classic and Connect.
        rows = changes.selectExpr("*", f"monotonically_increasing_id() AS {_ORDER}")
        snapshot, version = target.snapshot, target.snapshot.version
        after = None if target.before is snapshot else (snapshot.metadata, snapshot.protocol)
        # The executors have other working directories, and the catalog may give another table for the name by then.
        work = replace(work, location=snapshot.log.location, storage_options=snapshot.log.storage_options)
        task = _Task(work=work, columns=tuple(rows.columns), version=version, after=after, now_ms=now_ms())
        found = _run(rows, how, task, tasks)
        if work.asked.apply_as_truncates is not None and len(found) > 1 and not all(map(_is_of_keys, found)):
            # A truncate removes rows of any key, and events that only another task may have found wrong.
            parts = [part for part in found if isinstance(part, Part)]
            delete_orphans(snapshot.log.store, (path for part in parts for path in part.paths))
            found = _run(rows, how, task, tasks=1)
        parts = [part for part in found if isinstance(part, Part)]
        with deleted_on_error(snapshot.log.store) as written:
            written += (path for part in parts for path in part.paths)
            for error in (part for part in found if isinstance(part, TablefeedError)):
                raise error
        return parts

    def _with_deletes(self, changes: DataFrame, how: Folding, snapshot: Snapshot) -> DataFrame:
        """Gives the rows of a snapshot with a delete of each key of the table; an upsert of the key wins over it."""
        if self.asked.snapshot_at is None:
            return changes
        storage = {f"{STORAGE_PREFIX}{name}": value for name, value in snapshot.log.storage_options.items()}
        reader = (
            changes.sparkSession.read.format("tablefeed").option("versionAsOf", snapshot.version).options(**storage)
        )
        known = reader.load(snapshot.log.location).where("true" if how.scd_type == 1 else f"{END_AT} IS NULL")
        return with_deletes(changes, known, how)

    def _with_keys(self, changes: DataFrame, schema: Struct) -> tuple[DataFrame, _Work]:
        """Gives the changes with their keys as columns, and the work for these. Spark's tasks open the envelopes."""
        if self.asked.source is not Source.DEBEZIUM:
            return changes, self
        from pyspark.sql.pandas.types import from_arrow_schema

        plain, asked = unwrapped(_arrow_schema(changes).empty_table(), self.asked, schema)
        refuse_own_columns(plain.schema, _ORDER, _FAILED)
        opened = plain.schema.append(pa.field(_FAILED, pa.binary()))
        task = partial(_unwrapped, self, schema, opened)
        return changes.mapInArrow(task, from_arrow_schema(opened)), replace(self, asked=asked)

    def part(self, batches: Iterator[pa.RecordBatch], task_of: _Task) -> Part | None:
        """Applies the events of one task; None where it has none."""
        from pyspark import TaskContext

        found = [batch.rename_columns(list(task_of.columns)) for batch in batches]
        if not sum(batch.num_rows for batch in found):
            return None
        events = pa.Table.from_batches(found).sort_by(_ORDER).drop_columns([_ORDER])
        if _FAILED in task_of.columns:
            for error in events[_FAILED].drop_null().to_pylist():
                raise pickle.loads(error)  # noqa: S301 - by `_unwrapped`, in this query
            events = events.drop_columns([_FAILED])
        before = snapshot = _snapshot(self.location, self.storage_options, task_of.version)
        if task_of.after is not None:
            snapshot = replace(before, metadata=task_of.after[0], protocol=task_of.after[1])
        context = TaskContext.get()
        task = 0 if context is None else context.partitionId()
        with naming(self.location):
            given = [
                batch_of(each, self.asked, snapshot.schema, snapshot.metadata.partition_columns)
                for each in with_their_keys(events, self.asked.keys)
            ]
            batch = replace(given[0], events=pa.concat_tables(each.events for each in given))
            target = TargetRows(snapshot, before, zone=self.asked.time_zone)
            return applied_part(target, batch, task=task, now_ms=task_of.now_ms)


def _unwrapped(
    work: _Work, target: Struct, opened: pa.Schema, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Spark's tasks call this with changes in an envelope, for a table with the columns of `target`."""
    for batch in batches:
        try:
            with naming(work.location):
                plain, _ = unwrapped(pa.Table.from_batches([batch]), work.asked, target)
        except TablefeedError as error:
            yield pa.RecordBatch.from_pylist([{_FAILED: pickle.dumps(error)}], opened)
        else:
            yield from plain.append_column(_FAILED, pa.nulls(plain.num_rows, pa.binary())).to_batches()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Task:
    """What a task of Spark calls with its events.

    `columns` are the names of their columns, `after` is the table's metadata and protocol after the commit.
    """

    work: _Work
    columns: tuple[str, ...]
    version: Version
    after: tuple[Metadata, Protocol] | None
    now_ms: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        try:
            part: Part | TablefeedError | None = self.work.part(batches, self)
        except StoreError:
            raise  # Spark runs the task again: the store may answer then
        except TablefeedError as error:
            part = error  # the driver raises it, and deletes the files of the other tasks
        if part is not None:
            yield pa.record_batch({"part": pa.array([pickle.dumps(part)], pa.binary())})


def _run(rows: DataFrame, how: Folding, task: _Task, tasks: int) -> list[Part | TablefeedError]:
    """Divides the events among the tasks, and gives what these report."""
    # PySpark's mapInArrow looks columns up by name, where a dot or a backtick in a name means something else.
    numbered = divided(rows, how, tasks).toDF(*map(str, range(len(rows.columns))))
    found = numbered.mapInArrow(task, "part binary").toArrow()
    # Our own tasks pickled these parts in this query.
    return [pickle.loads(part) for part in found["part"].to_pylist()]  # noqa: S301


def _is_of_keys(part: Part | TablefeedError) -> bool:
    """Whether a task changed rows of its own keys only."""
    return isinstance(part, Part) and part.within is not None


def _arrow_schema(changes: DataFrame) -> pa.Schema:
    """Gives the schema of `changes`.

    Raises as `changes_schema`, and SchemaMismatchError where they have a column that is added on the way.
    """
    schema = changes_schema(changes.schema)
    refuse_own_columns(schema, _ORDER, _FAILED)
    return schema


def _snapshot(location: str, storage_options: Mapping[str, str], version: Version | None) -> DeltaSnapshot:
    """Gives the table as of `version` (None: the newest), which the process usually knows from the batch before."""
    log, state = newest_state(location, storage_options)
    is_it = version is None or (state is not None and state.version == version)
    return changeable(state if is_it else log.load(version))


def _query_id(batch: DataFrame, checkpoint_location: str, storage_options: Mapping[str, str]) -> str:
    """Gives the id of the query, which stays the same when it is started again from its checkpoint."""
    context = _context(batch)
    known = None if context is None else context.getLocalProperty(QUERY_ID)
    return query_id(checkpoint_location, storage_options) if known is None else str(known)


def _context(rows: DataFrame) -> SparkContext | None:
    try:
        return rows.sparkSession.sparkContext
    except Exception:  # noqa: BLE001 - Spark Connect has no context, and says so by an error of several classes
        return None
