"""Who does what in a schedule: appenders, a stream, changers of rows, upkeep, a reader, and an operator.

Each keeps apart what is durable, which is here, and what its process remembers, which dies with it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pyarrow as pa

from simulation import index_tables
from simulation.laws import Batch, Oracle
from simulation.world import COMMIT, Disk, Process, World
from tablefeed.delta.schema.arrow_schema import from_arrow
from tablefeed.errors import CommitUnknownError, LogError, ObjectNotFoundError, TablefeedError
from tablefeed.feed.api.table import Table
from tablefeed.feed.api.table_changes import restore_table
from tablefeed.feed.arguments import Bound
from tablefeed.feed.commit.loop import commit
from tablefeed.feed.commit.transaction import Transaction, batch_write, micro_batch
from tablefeed.feed.rows.apply import applied_part, joined
from tablefeed.feed.rows.asking import Asking
from tablefeed.feed.rows.attempts import run
from tablefeed.feed.rows.incoming import fitted
from tablefeed.feed.rows.merge import merging
from tablefeed.feed.rows.merge_clauses import Delete, Insert, Merging, Update
from tablefeed.feed.rows.update import deletion, updating
from tablefeed.feed.scan.task import read_task
from tablefeed.feed.scan.where import row_filter
from tablefeed.feed.snapshot.delta_log import DeltaLog, DeltaSnapshot
from tablefeed.feed.snapshot.index_log import IndexTablesLog
from tablefeed.feed.stream.offset_json import offset_from_json, offset_to_json
from tablefeed.feed.stream.source import StreamSource
from tablefeed.feed.stream.source_options import SourceOptions
from tablefeed.feed.upkeep import index_cleanup
from tablefeed.feed.upkeep.checkpoint import checkpointed
from tablefeed.feed.upkeep.consumers import Consumers, Reports
from tablefeed.feed.upkeep.optimize import Folding, fold
from tablefeed.feed.upkeep.vacuum import vacuumed
from tablefeed.feed.write.orphans import delete_after_abort, delete_orphans
from tablefeed.feed.write.sink import plan_write, write_task
from tablefeed.feed.write.target_rows import TargetRows
from tablefeed.feed.write.write_rules import WriteRules
from tablefeed.indextables.log.retention import Retention
from tablefeed.log.conflicts import WriteKind
from tablefeed.log.plan import Limits
from tablefeed.model.actions import AddFile, Txn, Version
from tablefeed.model.offset import Offset

QUERY = "query"
"""The application of the stream's transactions."""

ID = index_tables.ID
ROW = pa.schema([("id", pa.int64()), ("v", pa.string()), ("ts", pa.int64())])


KEPT = Retention(states_ms=86_400_000, log_ms=86_400_000, manifests_ms=72 * 3_600_000)
"""A cleanup of an IndexTables log keeps a day; manifests are there for as long as a step may be suspended."""


class Appender:
    """Appends batches of rows of its own to the source, each once, in their order.

    Without `records_txns` it appends a batch again only where the error says that nothing was committed. Then a batch
    whose outcome is unknown is there once or not at all.
    """

    def __init__(
        self,
        world: World,
        oracle: Oracle,
        name: str,
        batches: Sequence[list[int]],
        how: Mapping[str, str],
        *,
        records_txns: bool,
    ) -> None:
        self.process, self._oracle, self._batches, self._how = Process(world, name), oracle, batches, how
        self._records_txns = records_txns
        self._done = 0
        self.is_in_doubt = False

    def append(self) -> None:
        """Appends the next batch, or one again that is not known to be committed."""
        if self._done == len(self._batches):
            return
        tasks, number = [self._batches[self._done]], self._done
        if self._records_txns:
            self.is_in_doubt = True
            txn = Txn(app_id=self.process.name, txn_version=number)
            write(self.process, self._oracle, "source", tasks, txn, self._how)
            self._done += 1
            self.is_in_doubt = False
            return
        self._done += 1  # also if this process dies
        try:
            write(self.process, self._oracle, "source", tasks, None, self._how)
        except TablefeedError as error:
            if not isinstance(error, CommitUnknownError):
                self._done = number
            raise


def write(
    process: Process,
    oracle: Oracle,
    table: str,
    tasks: Sequence[list[int]],
    txn: Txn | None,
    properties: Mapping[str, str],
    kind: WriteKind = WriteKind.APPEND,
) -> None:
    """Plans, writes and commits rows as the sink does; what a failed commit leaves is given up as by Spark."""
    log = process.log(table)
    rules = WriteRules(properties=properties if isinstance(log, DeltaLog) else {})
    process.txn = txn if kind.removes else None
    rows_of_all = [row for rows in tasks for row in rows]
    recorded = oracle.acknowledges(table, txn, rows_of_all, replaces=kind.removes)
    state = process.state(table)
    plan = plan_write(log, state, ID, partition_by=(), kind=kind, rules=rules, now_ms=process.now_ms())
    is_recorded = txn is not None and plan.recorded.get(txn.app_id, -1) >= txn.txn_version
    files: list[AddFile] = []
    try:
        for number, rows in enumerate(() if is_recorded else tasks):
            now_ms = process.now_ms()
            if isinstance(log, DeltaLog):
                batches = pa.table({"id": pa.array(rows, pa.int64())}).to_batches()
                added = write_task(plan, batches, task=number, txn=txn, now_ms=now_ms, store=log.store)
            else:
                added = index_tables.write_split(log.store, rows, task=number, txn=txn, now_ms=now_ms)
            process.world.rows |= {add.path: rows for add in added}
            process.world.txns |= {add.path: txn for add in added if txn}
            files += added
    except TablefeedError:
        delete_orphans(log.store, (file.path for file in files))
        raise
    query = txn if txn is not None and txn.app_id == QUERY else None
    operation = batch_write(kind, ()) if query is None else micro_batch(kind, QUERY, query.txn_version)
    transaction = Transaction(plan=plan, files=tuple(files), kind=kind, operation=operation, txn=txn)
    try:
        outcome, process.known[table] = commit(log, state, transaction, process.around())
    except TablefeedError:
        if query is not None:
            delete_after_abort(log, files, query, plan.next_version)
        raise
    recorded(outcome)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The options of a stream: where it begins, how many files a batch has, and whether it is a consumer."""

    starts: str
    files: int | None
    is_consumer: bool


class Stream:
    """A streaming query from the source to the target, as Spark's micro-batch execution calls source and sink."""

    reads = "source"

    def __init__(self, world: World, oracle: Oracle, how: Mapping[str, str], asked: Asked) -> None:
        self.process, self._oracle, self._how, self._asked = Process(world, "stream"), oracle, how, asked
        self._options, self.limits = SourceOptions(start=STARTS[asked.starts]), Limits(files=asked.files)
        self._schema = ID
        self._ends: list[str] = []
        self._done = 0
        self.first: Offset | None = None
        """Where the query begins, as its first batch was logged."""
        self.refusal: TablefeedError | None = None
        self.is_idle = False
        self._knows: int | None = None

    def batch(self) -> None:
        """Plans the next batch, or runs one again that is not known to be done; nothing once the source is refused."""
        if self.is_refused:
            return
        self.is_idle = False
        try:
            self._batch()
        except BaseException as error:
            self.process.restart()  # the query ends; the next step starts it again
            if isinstance(error, TablefeedError):
                self.refusal = error
            raise
        self.refusal = None

    def _batch(self) -> None:
        source = self._source()
        if self._done == len(self._ends):
            start = self._offset(-1, source)
            self._reads_after(start)
            end = source.latest(start, self.limits)
            text = json.dumps(offset_to_json(end))
            if self._ends and text == self._ends[-1]:
                self.is_idle = True
                return
            self.first = self.first or start
            self._ends.append(text)
            if len(self._ends) > 1:
                if self._asked.is_consumer:
                    self.process.memory["reports"].has_read(start.read_through)
                source.delivered(start)
        number = self._done
        start = self._offset(number - 1, source) if number else source.initial()
        self._reads_after(start)
        tasks = source.tasks(start, self._offset(number, source))
        store = self.process.log(self.reads).store
        self._deliver(
            number, [pa.Table.from_batches(read_task(t, self._schema, store=store), self._schema) for t in tasks]
        )
        self._done += 1

    def _deliver(self, number: int, tasks: Sequence[pa.Table]) -> None:
        rows = [task["id"].to_pylist() for task in tasks]
        txn = Txn(app_id=QUERY, txn_version=number)
        write(self.process, self._oracle, "target", [each for each in rows if each], txn, self._how)

    def _source(self) -> StreamSource:
        memory, clock = self.process.memory, self.process.now_ms
        if "source" not in memory:
            log, schema = self.process.log(self.reads), from_arrow(self._schema)
            memory["source"] = StreamSource(
                log, read_schema=schema, options=self._options, clock=lambda: clock() / 1000
            )
        found: StreamSource = memory["source"]
        return found

    def _reads_after(self, start: Offset) -> None:
        memory, clock = self.process.memory, self.process.now_ms
        if self._asked.is_consumer:
            if "reports" not in memory:
                consumers = Consumers(self.process.log(self.reads))
                memory["reports"] = Reports(consumers, "query", clock=lambda: clock() / 1000)
            memory["reports"].reads_after(start.read_through)

    @property
    def is_refused(self) -> bool:
        """Whether the query ended because its source is another table, or lost commits."""
        return self.refusal is not None and self.refusal.error_class in REFUSALS

    def source_replaced(self, *, newest: int) -> None:
        """Remembers that commits which it has read are gone: only what a planner remembers can show that later."""
        read = offset_from_json(json.loads(self._ends[-1]), url="").read_through if self._ends else -1
        if read > newest:
            self._knows = self.process.life if "source" in self.process.memory else -1

    @property
    def may_not_know(self) -> bool:
        """Whether no planner was there when commits that it had read were lost, or that one is gone."""
        return self._knows not in (None, self.process.life)

    def _offset(self, number: int, source: StreamSource) -> Offset:
        if not self._ends:
            return source.initial()
        return offset_from_json(json.loads(self._ends[number]), url=source.url)


class ChangeStream(Stream):
    """A streaming query of the change feed of `table`, whose batches are kept by their numbers, as by foreachBatch.

    When it starts again, it does not know that its last batch was done, and delivers it again.
    """

    def __init__(self, world: World, oracle: Oracle, table: str, schema: pa.Schema, asked: Asked) -> None:
        super().__init__(world, oracle, {}, asked)
        self.reads, self._options = table, replace(self._options, change_feed=True)
        self._schema = pa.schema([*schema, *CHANGE])
        self.batches: dict[int, list[tuple[Any, ...]]] = {}
        self.changed: dict[int, list[tuple[Any, ...]]] = {}
        """The batches that had other rows when they were delivered again."""
        self._life = self.process.life

    def _batch(self) -> None:
        if self._life != self.process.life:
            self._life, self._done = self.process.life, max(self._done - 1, 0)
        super()._batch()

    def _deliver(self, number: int, tasks: Sequence[pa.Table]) -> None:
        rows = sorted(
            (tuple(row.values())[:-1] for t in tasks for row in t.to_pylist()), key=lambda row: (row[-1], row)
        )
        if self.batches.setdefault(number, rows) != rows:
            self.changed[number] = rows


REFUSALS = ("DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE", "DELTA_STREAMING_TRAILING_COMMIT_MISSING")
CHANGE = (
    pa.field("_change_type", pa.string()),
    pa.field("_commit_version", pa.int64()),
    pa.field("_commit_timestamp", pa.timestamp("us", tz="UTC")),
)
STARTS = {
    "snapshot": Bound(),
    "version 0": Bound(version=0),
    "latest": Bound(version="latest"),
}

ASKED = Asking(keys=("id",), sequence_by=("ts",), apply_as_deletes="op = 'd'", except_column_list=("op",))
MATCHED = (Delete(where="source.op = 'd'"), Update(set={"v": "source.v", "ts": "source.ts"}))
NOT_MATCHED = (Insert(values={name: f"source.{name}" for name in ROW.names}, where="source.op = 'u'"),)


class Changer:
    """Changes the rows of a table by batches of its own, each once, in their order (`Batch`)."""

    def __init__(
        self,
        world: World,
        oracle: Oracle,
        name: str,
        table: str,
        batches: Sequence[Batch],
        how: Mapping[str, str],
    ) -> None:
        self.process, self._oracle, self._table, self._batches = Process(world, name), oracle, table, batches
        self._how = how
        self.acknowledged = 0
        self.is_in_doubt = False

    def change(self) -> None:
        """Does the next batch, or one again that is not acknowledged."""
        if self.acknowledged == len(self._batches):
            return
        self.is_in_doubt = True
        txn, process, table = Txn(app_id=self.process.name, txn_version=self.acknowledged), self.process, self._table
        batch = self._batches[self.acknowledged]
        if batch.how in ("append", "overwrite"):
            write(
                process, self._oracle, table, [[key for key, *_ in batch.events]], txn, self._how, WriteKind(batch.how)
            )
        else:
            recorded = self._oracle.acknowledges(table, txn)
            log, state = process.log(table), process.state(table)
            prepared = partial(self._prepared, batch, txn)
            outcome, process.known[table], _ = run(log, state, prepared, txn=txn, around=process.around())
            recorded(outcome)
        self.acknowledged += 1
        self.is_in_doubt = False

    def _prepared(self, batch: Batch, txn: Txn, target: TargetRows) -> Transaction | None:
        now_ms, (key, value, *_) = self.process.now_ms, batch.events[0]
        if batch.how in ("delete", "update"):
            shown = f"id <= {key}"
            rows = row_filter(shown, target.snapshot.schema)
            if batch.how == "delete":
                return deletion(target, rows, shown=shown, txn=txn, now_ms=now_ms)
            return updating(target, {"v": f"'{value}'"}, rows, shown=shown, txn=txn, now_ms=now_ms)
        kinds = [*ROW.types, pa.string()]
        arrays = [pa.array(column, kind) for column, kind in zip(zip(*batch.events, strict=True), kinds, strict=True)]
        events = pa.table(arrays, names=[*ROW.names, "op"])
        if batch.how == "merge":
            asked = Merging(rows=events, on=("id",), matched=MATCHED, not_matched=NOT_MATCHED)
            return merging(target, asked, txn=txn, now_ms=now_ms())
        target, applied = fitted(target, events, ASKED)
        part = applied_part(target, applied, task=0, now_ms=now_ms())
        return joined(target, [part], applied.how, txn=txn, now_ms=now_ms())


class Keeper:
    """Does what changes no row, and reads."""

    def __init__(self, world: World, oracle: Oracle, name: str) -> None:
        self.process, self._oracle = Process(world, name), oracle

    def optimize(self, table: str) -> None:
        snapshot = self.process.log(table).load_for_files()
        if isinstance(snapshot, DeltaSnapshot):
            fold(snapshot, Folding(target_bytes=1 << 30), around=self.process.around())

    def return_to(self, table: str) -> None:
        """Restores the table to two versions before the newest one."""
        log = self.process.log(table)
        newest = log.load_for_files()
        if newest.version:
            earlier = Version(max(newest.version - 2, 0))
            around = replace(self.process.around(), on_committed=lambda *_: None)
            restore_table(newest, log.load_for_files(earlier), {"version": earlier}, around)

    def checkpoint(self, table: str) -> None:
        checkpointed(self.process.log(table), clean_up=False, now_ms=self.process.now_ms())

    def cleanup(self, table: str) -> None:
        log, now_ms = self.process.log(table), self.process.now_ms()
        checkpointed(log, clean_up=isinstance(log, DeltaLog), now_ms=now_ms)
        if isinstance(log, IndexTablesLog):
            index_cleanup.clean_up(log, KEPT, now_ms=now_ms)

    def vacuum(self, table: str) -> None:
        log, now_ms = self.process.log(table), self.process.now_ms()
        if isinstance(log, DeltaLog):
            vacuumed(log, retention_ms=None, allow_short=False, dry_run=False, now_ms=now_ms)

    def read(self, table: str) -> None:
        epoch = len(self.process.world.disk(table).past)
        found = Table(self.process.log(table).load_for_files())
        rows = found.to_arrow()
        if len(self.process.world.disk(table).past) == epoch:
            self._oracle.check_rows(table, found.version, rows)


def upkeep(process: Process) -> None:
    """Does one piece of the work that waits behind the commits of `process`."""
    if process.work:
        process.work.pop(next(iter(process.work)))()


class Operator:
    """Does what happens to tables from outside, at once: deletes, makes anew, restores, damages."""

    def __init__(self, world: World, stream: Stream, creates: Mapping[str, Callable[[], None]]) -> None:
        self._world, self._stream, self._creates = world, stream, creates
        self._copies: dict[str, Disk] = {}
        self._emptied: set[str] = set()
        self.touched: set[str] = set()

    def copy(self, table: str) -> None:
        self._copies[table] = self._world.disk(table).copy_of()
        self._emptied.discard(table)

    def restore(self, table: str) -> None:
        """Where the table was deleted since the copy, files of a commit in progress went with it.

        Only new times show that the commit before it is another one then, as they do where a copy is put into a store.
        """
        if table in self._copies and self._copies[table].history:
            if table in self._emptied:
                self._copies[table].stamp()
            self._replace(table, self._copies[table])

    def delete(self, table: str) -> None:
        self._replace(table, None)

    def recreate(self, table: str) -> None:
        if self._world.disk(table).history:
            self._replace(table, None)
            self._creates[table]()

    def tear(self, table: str) -> None:
        """Another writer leaves half of a checkpoint of the newest version, or a part of the next state."""
        disk = self._world.disk(table)
        newest = max(disk.history, default=0)
        name = f"{disk.log_dir}/{newest:020d}.checkpoint.{'parquet' if disk.form == 'delta' else 'json'}"
        if disk.form in ("new", "states", "native"):
            name = f"{disk.log_dir}/state-v{newest + 1:020d}/a-manifest.avro"
        if disk.history and disk.put_if_absent(name, b"PAR1 and no more"):
            disk.damaged.add(name)

    def compact(self, table: str) -> None:
        """Another writer puts all commits into a log compaction, the newest first, and reconciles nothing.

        The order of the actions in a compaction has no meaning ("Log Compaction Files"). Of an IndexTables table it
        merges the splits.
        """
        disk = self._world.disk(table)
        if disk.form != "delta":
            if disk.history:
                with suppress(ObjectNotFoundError, LogError):  # its newest commit is about to be deleted again
                    index_tables.merge(self._world, table)
            return
        there = [int(found[1]) for name in disk.names() if (found := COMMIT.match(name))]
        if there[:1] == [0]:
            data = b"".join(disk.read(f"_delta_log/{version:020d}.json") for version in reversed(there))
            name = f"_delta_log/{0:020d}.{there[-1]:020d}.compacted.json"
            disk.put_if_absent(name, data)
            disk.damaged.add(name)

    def _replace(self, table: str, other: Disk | None) -> None:
        disk = self._world.disk(table)
        if not disk.names(""):
            return
        self._world.late = [each for each in self._world.late if each[1] is not disk]
        disk.become(other)
        if other is None:
            self._emptied.add(table)
        if table == self._stream.reads:
            self._stream.source_replaced(newest=max(disk.history, default=-1))
        self.touched.add(table)
