"""IndexTables tables on disk that are written to, and what other writers do to them."""

from __future__ import annotations

import os
import shutil
import uuid
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

import tablefeed
from support.faulty_store import Fault, FaultyStore
from support.index_log import with_tombstones
from tablefeed.feed.snapshot.index_log import IndexTablesLog
from tablefeed.feed.snapshot.index_reader import IndexReader
from tablefeed.indextables import names
from tablefeed.indextables.log import columns, last_checkpoint, version_file
from tablefeed.indextables.log.avro_state import State
from tablefeed.indextables.log.last_checkpoint import Hint
from tablefeed.indextables.log.next_state import StateShape, StateUpdate, next_state
from tablefeed.indextables.log.version_file import Writer
from tablefeed.indextables.split.split_file import read_index
from tablefeed.model.actions import AddFile, Commit, RemoveFile, Version
from tablefeed.store import LocalStore

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "name": ["a", "b", None]})


def log_of(table: Path, *faults: Fault) -> IndexTablesLog:
    store = FaultyStore(LocalStore(str(table)), faults=faults) if faults else LocalStore(str(table))
    return IndexTablesLog(store, location=str(table), storage_options={})


def log_files(table: Path) -> set[str]:
    """The names of the log's files, Hadoop's checksums and our own notes left out."""
    log = table / names.LOG_DIR
    found = (str(path.relative_to(log)) for path in log.rglob("*") if path.is_file())
    return {name for name in found if not name.endswith(".crc") and not name.startswith("_tablefeed")}


def rows_of(table: Path, version: int | None = None) -> list[str]:
    return sorted(map(repr, tablefeed.open_table(table, version=version).to_arrow().to_pylist()))


def live(table: Path) -> list[AddFile]:
    log = log_of(table)
    files = log.files_of(log.load().version, frozenset())
    return sorted((add for batch in files for add in columns.to_add_files(batch)), key=lambda add: add.path)


def hint_in(table: Path) -> Hint:
    """What `_last_checkpoint` says."""
    hint = last_checkpoint.parse_last_checkpoint((table / names.LOG_DIR / names.LAST_CHECKPOINT).read_bytes())
    assert hint is not None
    return hint


def manifests_of(table: Path, version: int) -> list[str]:
    """The manifests that the state of a version names, the oldest first."""
    reader = IndexReader(LocalStore(str(table)))
    file = reader.state_file(Version(version))
    assert file is not None
    return [manifest.name for manifest in reader.state(file).manifests]


def index_fields(table: Path, add: AddFile) -> list[str]:
    """The columns in the index of a split."""
    return [field["name"] for field in _index(table, add)]


def field_types(table: Path, add: AddFile) -> dict[str, tuple[str, str | None]]:
    """The type of each column in the index of a split, and the tokenizer of texts."""
    return {
        field["name"]: (field["type"], field["options"].get("indexing", {}).get("tokenizer"))
        if isinstance(field["options"].get("indexing"), dict)
        else (field["type"], None)
        for field in _index(table, add)
    }


def _index(table: Path, add: AddFile) -> list[dict[str, Any]]:
    data = (table / add.path).read_bytes()
    return read_index(lambda at, length: data[at : at + length], size_bytes=len(data), footer=None)


def merge_all(table: Path, *, as_state: bool) -> None:
    """What MERGE SPLITS does, to all splits at once: a version that changes no data. Here each split is copied."""
    files = live(table)
    merged = [_copied(table, add) for add in files]
    log = log_of(table)
    version = Version(log.load().version + 1)
    if as_state:
        base = log.state(Version(version - 1))
        assert base is not None
        update = StateUpdate(
            version=version,
            created_ms=1,
            added=merged,
            replaces_all=False,
            registry={},
            protocol_version=4,
            metadata=base.metadata,
        )
        # More tombstones than a tenth of the files: it is compacted at once.
        put_state(log, with_tombstones(base, [add.path for add in files]), update)
        return
    removes = [
        RemoveFile(path=add.path, log_path=add.path, data_change=False, deletion_timestamp_ms=1) for add in files
    ]
    commit = Commit(version=version, files=(*removes, *merged), committed_at_ms=1)
    data = version_file.encode_commit(commit, writer=Writer.SCALA)
    (table / names.LOG_DIR / names.commit_name(version)).write_bytes(data)


def put_state(log: IndexTablesLog, base: State | None, update: StateUpdate, *, writer: Writer = Writer.SCALA) -> None:
    """A state as a writer of IndexTables puts it, on top of `base`."""
    new = next_state(
        base,
        update,
        writer=writer,
        shape=StateShape(),
        live=lambda: () if base is None else log.live_in(base),
        new_id=lambda: uuid.uuid4().hex,
        sync=lambda: os.urandom(16),
        url=log.url,
    )
    for name, data in (*new.manifests, (names.state_name(update.version), new.state_file)):
        log.store.replace(f"{names.LOG_DIR}/{name}", data)


def _copied(table: Path, add: AddFile) -> AddFile:
    path = f"{uuid.uuid4()}.split"
    shutil.copy(table / add.path, table / path)
    return replace(add, path=path, log_path=path, data_change=False)
