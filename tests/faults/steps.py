"""The steps of scenarios. Each is what a user's program does again after a crash: the same call, with the same txn."""

from __future__ import annotations

import os
import pickle
import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.types import LongType, StringType, StructType

import tablefeed
from pyspark_tablefeed import DefaultSource
from scenarios.sinks import Sink
from support.commits import still, written
from support.faulty_store import Fault, FaultyStore
from support.micro_batches import Batch, SparkModel
from tablefeed import Delete, Insert, Update
from tablefeed.errors import TablefeedError
from tablefeed.feed.api.query_checkpoint import QueryCheckpoint
from tablefeed.feed.commit.loop import commit
from tablefeed.feed.rows.divided import Sizes
from tablefeed.feed.snapshot.index_log import IndexTablesLog
from tablefeed.feed.snapshot.known_state import current_snapshot
from tablefeed.feed.snapshot.open_log import open_log
from tablefeed.feed.stream.query_id import query_id
from tablefeed.feed.upkeep.background import wait_until_done
from tablefeed.feed.upkeep.index_checkpoint import checkpoint_if_due, write_json_checkpoint
from tablefeed.feed.write import kept_lines
from tablefeed.indextables.log.version_file import Writer
from tablefeed.log.conflicts import WriteKind
from tablefeed.model.actions import Txn
from tablefeed.spark.changes.keyed_sink import StreamOfChangesWriter
from tablefeed.spark.replicating import _Task

Step = Callable[[Path], object]
"""Does something to the tables below a folder, and does no harm where it is done again."""

FED = {"delta.enableChangeDataFeed": "true"}
VECTORS = {"delta.enableDeletionVectors": "true"}
DOMAINS = {"delta.feature.domainMetadata": "supported"}
OFTEN = {"delta.checkpointInterval": "2"}
V2 = {"delta.checkpointPolicy": "v2", "delta.feature.v2Checkpoint": "supported"}


def table(root: Path) -> Path:
    return root / "table"


def source(root: Path) -> Path:
    return root / "source"


def numbers(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "p": pa.array([f"p{each % 2}" for each in ids], pa.string())})


def append(txn_version: int, *ids: int, to: Step = table, **more: Any) -> Step:  # Any: the arguments of `append`
    def step(root: Path) -> object:
        return tablefeed.append(str(to(root)), numbers(*ids), app_id="job", txn_version=txn_version, **more)

    return step


def all_of(*steps: Step) -> Step:
    def made(root: Path) -> None:
        for step in steps:
            step(root)
            wait_until_done()

    return made


def makes(version: int, step: Step) -> Step:
    """A step without a txn: after a crash a program looks whether the table has the version that the step makes."""

    def tried(root: Path) -> None:
        if not (table(root) / "_delta_log" / f"{version:020d}.json").exists():
            step(root)

    return tried


def aged(root: Path) -> None:
    """Makes all files a year old."""
    then = time.time() - 366 * 86_400
    for path in root.rglob("*"):
        os.utime(path, (then, then))


def put_in_pieces_twice(txn_version: int, *ids: int) -> Step:
    """An overwrite as of a table of so many files that its commit is put in pieces; the put is sent a second time."""

    def step(root: Path) -> None:
        log = open_log(str(table(root)))
        again = Fault(operation="put_if_absent", name="0", when="again")
        log = type(log)(FaultyStore(log.store, faults=[again]), location=log.location, storage_options={})
        known, kind = current_snapshot(log), WriteKind.OVERWRITE
        held_bytes, kept_lines.HELD_BYTES = kept_lines.HELD_BYTES, 0
        try:
            ours = written(log, numbers(*ids), txn=("job", txn_version), known=known, kind=kind)
            commit(log, known, ours, still())
        finally:
            kept_lines.HELD_BYTES = held_bytes

    return step


def lost_to_a_rival(txn_version: int, *ids: int, rival: int) -> Step:
    """A write that looks at the newest version, and finds the next one taken when it puts it."""

    def step(root: Path) -> None:
        def wins() -> None:
            tablefeed.append(table(root), numbers(rival), app_id="rival", txn_version=txn_version)

        log = open_log(str(table(root)))
        comes = Fault(operation="put_if_absent", name="0", hook=wins)
        log = type(log)(FaultyStore(log.store, faults=[comes]), location=log.location, storage_options={})
        known = current_snapshot(log)
        commit(log, known, written(log, numbers(*ids), txn=("job", txn_version), known=known), still())

    return step


def stream(root: Path, **options: str) -> None:
    """A query from `source` to `table` that ends when it has all; it starts again where the schema ended it."""
    sink = Sink(table(root), {"mergeSchema": "true"}, query_id=query_id(str(root / "checkpoint"), {}))

    def deliver(batch: Batch, number: int) -> None:
        sink.run(number, batch.toArrow())

    while True:
        frame = SparkModel().readStream.format("tablefeed").options(maxFilesPerTrigger="1", **options)
        writer = frame.load(str(source(root))).writeStream.foreachBatch(deliver)
        try:
            writer.option("checkpointLocation", str(root / "checkpoint")).trigger(availableNow=True).start()
        except TablefeedError as error:
            if error.error_class != "DELTA_STREAMING_METADATA_EVOLUTION":
                raise
        else:
            return


def a_checkpoint(root: Path) -> None:
    """What Spark writes before a query first runs."""
    (root / "checkpoint").mkdir()
    (root / "checkpoint" / "metadata").write_text('{"id":"query"}')


def reset_to(version: int) -> Step:
    """The query is reset to a version of `source`, and goes on. Whoever resets it notes that it is done."""

    def step(root: Path) -> None:
        noted = root / "checkpoint" / "commits" / ".reset"  # which is durable, as all there
        if not noted.exists():
            QueryCheckpoint(str(root / "checkpoint")).reset(str(source(root)), version=version, write=True)
            noted.touch()
        stream(root)

    return step


def tracked(root: Path) -> None:
    stream(root, schemaTrackingLocation=str(root / "checkpoint" / "_schema"), allowSourceColumnRename="always")


EVENTS = StructType().add("id", LongType()).add("v", StringType()).add("ts", LongType()).add("op", StringType())
KEYED = {"keys": "id", "sequenceBy": "ts", "applyAsDeletes": "op = 'd'", "exceptColumnList": "op"}
Event = tuple[int, str | None, int, str]


def events(*given: Event) -> pa.Table:
    kinds = {"id": pa.int64(), "v": pa.string(), "ts": pa.int64(), "op": pa.string()}
    columns = zip(*given, strict=True)
    return pa.table({name: pa.array(column, kinds[name]) for name, column in zip(kinds, columns, strict=True)})


def keyed_batch(batch_id: int, *tasks: tuple[Event, ...]) -> Step:
    """A batch of a stream with `keys`; its tasks write their events to files."""

    def writer_for(root: Path) -> StreamOfChangesWriter:
        made = DefaultSource({"path": str(table(root)), **KEYED}).streamWriter(EVENTS, overwrite=False)
        assert isinstance(made, StreamOfChangesWriter)
        made._changes = replace(made._changes, sizes=Sizes(report=0, task=1_000, group=4_000))
        return made

    def step(root: Path) -> None:
        in_tasks: StreamOfChangesWriter = pickle.loads(pickle.dumps(writer_for(root)))  # noqa: S301 - our own
        txn = Txn(app_id="query", txn_version=batch_id)
        messages = [
            in_tasks._changes.set_aside(iter(events(*given).to_batches()), txn, task=number)
            for number, given in enumerate(tasks)
        ]
        writer_for(root).commit(messages, batch_id)

    return step


def sifted_batch(batch_id: int, *ids: int) -> Step:
    """A batch of a stream with `badRecords`, in one task for the even and one for the odd numbers."""

    def step(root: Path) -> None:
        sink = Sink(table(root), {"badRecords": str(root / "bad")})
        sink.run(batch_id, numbers(*(each for each in ids if each % 2)), numbers(*(e for e in ids if not e % 2)))

    return step


def applied(txn_version: int, *given: Event, **more: Any) -> Step:  # Any: the arguments of `apply_changes`
    asked = {"keys": "id", "sequence_by": "ts", "apply_as_deletes": "op = 'd'", "except_column_list": ["op"], **more}
    return lambda root: tablefeed.apply_changes(
        table(root), events(*given), app_id="job", txn_version=txn_version, **asked
    )


def a_target(**properties: str) -> Step:
    schema = pa.schema([("id", pa.int64()), ("v", pa.string()), ("ts", pa.int64())])
    return lambda root: tablefeed.create(table(root), schema, properties={**DOMAINS, **properties})


def deleted(txn_version: int, where: str, *, of: Step = table) -> Step:
    return lambda root: tablefeed.delete(str(of(root)), where, app_id="job", txn_version=txn_version)


def updated(txn_version: int, where: str) -> Step:
    return lambda root: tablefeed.update(
        table(root), {"p": "concat(p, '!')"}, where, app_id="job", txn_version=txn_version
    )


def merged(txn_version: int) -> Step:
    rows = pa.table({"id": [1, 7, 9], "p": ["new", "d", "new"]})
    matched = (Delete(where="source.p = 'd'"), Update())
    return lambda root: tablefeed.merge(
        table(root),
        rows,
        on="target.id = source.id",
        matched=matched,
        not_matched=(Insert(),),
        app_id="job",
        txn_version=txn_version,
    )


def vacuum(root: Path) -> None:
    tablefeed.vacuum(table(root), retention_hours=0, allow_short_retention=True)


def cleaned_up(root: Path) -> None:
    tablefeed.checkpoint(table(root), clean_up=True)


def replicated(**more: Any) -> Step:  # Any: the arguments of `replicate`
    return lambda root: tablefeed.replicate(source(root), table(root), starting_version=0, **more)


def replicated_by_tasks(root: Path) -> None:
    """As Spark's tasks copy files."""
    task = _Task(source=(str(source(root)), {}), target=(str(table(root)), {}))
    tablefeed.replicate(source(root), table(root), starting_version=0, copy_files=task.copy)


def replicated_from_elsewhere(root: Path) -> None:
    """From a store that is not the local disk's, so that files are read and written."""
    tablefeed.replicate(f"local://{source(root)}", table(root), starting_version=0)


def registered(root: Path) -> None:
    consumers = tablefeed.consumers(table(root))
    consumers.register("reader", version=0)
    consumers.progress("reader", 1)


def unregistered(root: Path) -> None:
    tablefeed.consumers(table(root)).remove("reader")


def index(txn_version: int, *ids: int, **more: Any) -> Step:  # Any: the arguments of `append`
    return append(txn_version, *ids, table_format="indextables", **more)


def only_commits(root: Path) -> None:
    """Leaves the JSON commits of an IndexTables log alone, as its writer with `state.format=json` does."""
    log = table(root) / "_transaction_log"
    for path in (*log.glob("state-*"), log / "manifests"):
        shutil.rmtree(path, ignore_errors=True)
    (log / "_last_checkpoint").unlink(missing_ok=True)


def only_states(root: Path) -> None:
    """Leaves the states of an IndexTables log alone, as its writer does by default."""
    for path in (table(root) / "_transaction_log").glob("*.json"):
        path.unlink()


def json_checkpoint(interval: int) -> Step:
    """The checkpoint that an IndexTables log of commits alone gets, in parts."""

    def step(root: Path) -> None:
        log = open_log(str(table(root)))
        assert isinstance(log, IndexTablesLog)
        snapshot = log.load()
        if interval:
            checkpoint_if_due(snapshot, interval, part_actions=1, now_ms=1)
        else:
            write_json_checkpoint(log, snapshot, writer=Writer.SCALA, part_actions=1, now_ms=1)

    return step


def read_all(root: Path) -> None:
    """Reads the rows and all changes, and waits for a commit that does not come."""
    now = tablefeed.open_table(table(root))
    now.to_arrow()
    tablefeed.changes(table(root), start_version=now.version - 1).read_all()
    log = open_log(str(table(root)))
    log.store.wait(log.directory, timeout_s=0)


def left_by_killed_puts(root: Path) -> None:
    """Temporary files of puts that died long ago."""
    for folder in ("", "_delta_log", "_tablefeed/consumers"):
        (table(root) / folder).mkdir(parents=True, exist_ok=True)
        (table(root) / folder / f".x.{'0' * 32}.tmp").touch()


def copied_before(root: Path) -> None:
    """What a run that was killed before its first commit leaves."""
    table(root).mkdir()
    for path in source(root).glob("*.parquet"):
        shutil.copy2(path, table(root))


def sidecar_of_nobody(root: Path) -> None:
    folder = table(root) / "_delta_log" / "_sidecars"
    shutil.copy(next(iter(sorted(folder.iterdir()))), folder / "nobody.parquet")
