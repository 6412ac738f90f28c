"""IndexTables tables in a schedule: splits that are made once, tables as other writers leave them, and their merges."""

from __future__ import annotations

import io
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from typing import BinaryIO

import pyarrow as pa

from simulation.plain_index import LOG_DIR
from simulation.world import Disk, World
from support.index_log import with_tombstones
from support.index_tables import put_state
from tablefeed.data.split_writer import SplitLayout, write_splits
from tablefeed.data.write import NewFile
from tablefeed.delta.schema.arrow_schema import from_arrow
from tablefeed.delta.schema.schema_string import format_schema
from tablefeed.feed.commit.index_states import form_of
from tablefeed.feed.snapshot.index_log import IndexTablesLog
from tablefeed.feed.write.orphans import new_files
from tablefeed.indextables import names
from tablefeed.indextables.log import columns, version_file
from tablefeed.indextables.log.json_checkpoint_writer import Attempt, checkpoint_files
from tablefeed.indextables.log.last_checkpoint import encode_last_checkpoint
from tablefeed.indextables.log.next_state import StateUpdate
from tablefeed.indextables.log.protocol import NEW_TABLE
from tablefeed.indextables.log.version_file import Writer
from tablefeed.indextables.split.split_name import split_name
from tablefeed.model.actions import AddFile, Commit, Metadata, RemoveFile, Txn, Version
from tablefeed.model.split import Split
from tablefeed.store import Store

ID = pa.schema([("id", pa.int64())])


@cache
def ready_split(rows: tuple[int, ...]) -> tuple[bytes, Split]:
    """A split of these rows, and its facts. Building one takes longer than a whole schedule, so it is done once."""
    buffer = io.BytesIO()

    @contextmanager
    def opened() -> Iterator[BinaryIO]:
        yield buffer

    batches = pa.table({"id": pa.array(rows, pa.int64())}).to_batches()
    (made,) = write_splits(batches, SplitLayout(schema=ID), lambda *_: NewFile(path="ready", opened=opened()))
    return buffer.getvalue(), made.split


def write_split(store: Store, rows: Sequence[int], *, task: int, txn: Txn | None, now_ms: int) -> tuple[AddFile, ...]:
    """Writes a ready split as `write_split_task` writes a new one."""
    if not rows:
        return ()
    path = split_name(task, txn, chance=uuid.uuid4())
    data, _ = ready_split(tuple(rows))
    with new_files(store, lambda *_: path) as new_file, new_file({}, 0).opened as stream:
        stream.write(data)
    return (_add(path, rows, now_ms=now_ms),)


def begin(world: World, table: str) -> None:
    """Makes the table as another writer left it, with a version 1 of one row."""
    disk = world.disk(table)
    world.now_ms += 1  # no two tables are made in one millisecond
    form, number, now_ms = disk.form, next(world.first_rows[table]), world.now_ms
    writer = Writer.NATIVE if form == "native" else Writer.SCALA
    first = _stored(world, disk, [number], data_change=True, inline=writer is Writer.NATIVE)
    split = ready_split((number,))[1]
    registry = {str(split.doc_mapping_ref): str(split.doc_mapping)}
    metadata = Metadata(
        table_id=str(uuid.uuid4()),
        schema_string=format_schema(from_arrow(ID)),
        format_provider="indextables",
        configuration={names.DOC_MAPPING_PREFIX + key: text for key, text in registry.items()},
        created_ms=now_ms,
    )
    _put_commit(disk, Commit(version=Version(0), protocol=NEW_TABLE, metadata=metadata, committed_at_ms=None), writer)
    if form != "states":
        _put_commit(disk, Commit(version=Version(1), files=(first,), committed_at_ms=now_ms), writer)
    log = IndexTablesLog(disk, location=disk.url, storage_options={})
    if form in ("states", "native"):
        update = StateUpdate(version=Version(1), created_ms=now_ms, added=[first], registry=registry, metadata=metadata)
        put_state(log, None, update, writer=writer)
    if form == "checkpoints":
        snapshot = log.load()
        attempt = Attempt(version=snapshot.version, created_ms=now_ms, checkpoint_id="0" * 12)
        live = log.files_of(snapshot.version, frozenset())
        for file in checkpoint_files(attempt, snapshot.facts, live, writer=writer, actions_per_part=None):
            disk.replace(f"{LOG_DIR}/{file.name}", file.data)
            if file.hint is not None:
                disk.replace(f"{LOG_DIR}/{names.LAST_CHECKPOINT}", encode_last_checkpoint(file.hint))


def merge(world: World, table: str) -> None:
    """What MERGE SPLITS of another writer does at once to the two oldest splits, in the flavour of the log."""
    disk = world.disk(table)
    log = IndexTablesLog(disk, location=disk.url, storage_options={})
    state = log.load()
    there = [add for batch in log.files_of(state.version, state.unreadable) for add in columns.to_add_files(batch)]
    live = sorted(there, key=lambda add: (add.modified_ms, add.path))[:2]
    if len(live) < 2:
        return
    form, version = form_of(log, state), Version(state.version + 1)
    rows = sorted(row for add in live for row in world.rows[add.path])
    merged = _stored(world, disk, rows, data_change=False, inline=form.writer is Writer.NATIVE)
    if form.has_commits:
        removes = [RemoveFile(path=add.path, log_path=add.path, data_change=False) for add in live]
        entry = Commit(version=version, files=(*removes, merged), committed_at_ms=world.now_ms)
        _put_commit(disk, entry, form.writer)
    else:
        base = log.state(state.version)
        update = StateUpdate(
            version=version, created_ms=world.now_ms, added=[merged], metadata=None if base is None else base.metadata
        )
        put_state(log, with_tombstones(base, [add.path for add in live]), update)


def _stored(world: World, disk: Disk, rows: Sequence[int], *, data_change: bool, inline: bool) -> AddFile:
    path = f"{uuid.uuid4()}.split"
    world.rows[path] = [*rows]
    disk.replace(path, ready_split(tuple(rows))[0])
    return _add(path, rows, now_ms=world.now_ms, data_change=data_change, inline=inline)


def _add(path: str, rows: Sequence[int], *, now_ms: int, data_change: bool = True, inline: bool = False) -> AddFile:
    data, split = ready_split(tuple(rows))
    if inline:
        split = replace(split, doc_mapping_ref=None)
    return AddFile(
        path=path,
        log_path=path,
        partition_values={},
        size_bytes=len(data),
        modified_ms=now_ms,
        data_change=data_change,
        split=split,
    )


def _put_commit(disk: Disk, entry: Commit, writer: Writer) -> None:
    disk.replace(f"{LOG_DIR}/{names.commit_name(entry.version)}", version_file.encode_commit(entry, writer=writer))
