"""An IndexTables log held as bytes by name, a folder's or made here, read as the feed reads it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType

import hypothesis.strategies as st
import pyarrow as pa

from support import actions
from support.faulty_store import FaultyStore
from tablefeed.feed.snapshot.index_log import IndexTablesLog
from tablefeed.feed.snapshot.index_reader import IndexReader, log_path
from tablefeed.indextables import names
from tablefeed.indextables.log import avro_file, columns, listing, state_writer, version_file
from tablefeed.indextables.log.avro_state import Manifest, State
from tablefeed.indextables.log.schema_registry import DocMappings
from tablefeed.indextables.log.version_file import Writer
from tablefeed.model.actions import (
    AddFile,
    Commit,
    Facts,
    FileAction,
    Metadata,
    Protocol,
    RemoveFile,
    Version,
)
from tablefeed.model.logfile import LogFile
from tablefeed.model.split import Split
from tablefeed.store.memory import MemoryStore

URL = "memory:events"
SYNC = bytes(range(16))
PROTOCOL = Protocol(min_reader_version=4, min_writer_version=4)
METADATA = Metadata(table_id="t", schema_string='{"type":"struct","fields":[]}', format_provider="indextables")


TEXTS = st.text(max_size=8)
LONGS = st.integers(min_value=-(2**63), max_value=2**63 - 1)
TEXT_MAPS = st.dictionaries(TEXTS, TEXTS, max_size=3)
_LISTS = st.none() | st.lists(TEXTS, max_size=2).map(tuple)
EVERYWHERE: Mapping[str, st.SearchStrategy[object]] = {
    **dict.fromkeys(("num_records", "footer_start", "footer_end", "uncompressed_size_bytes"), st.none() | LONGS),
    **dict.fromkeys(("min_values", "max_values"), st.none() | TEXT_MAPS),
    **dict.fromkeys(("tags", "companion_source_files"), _LISTS),
    "doc_mapping_ref": st.none() | TEXTS,
    "companion_delta_version": st.none() | LONGS,
    "companion_fast_field_mode": st.none() | TEXTS,
}
"""The fields of a split that every file of either log keeps."""
IN_LINES = {**EVERYWHERE, "doc_mapping": st.none() | TEXTS}
IN_SCALA_LINES = {
    **IN_LINES,
    **dict.fromkeys(("delete_opstamp", "hotcache_start"), st.none() | LONGS),
    "merge_count": st.none() | st.integers(0, 2**31 - 1),
    "time_range_start": st.none() | TEXTS,
}


def any_add(split: Mapping[str, st.SearchStrategy[object]]) -> st.SearchStrategy[AddFile]:
    """Any add with these fields of its split."""
    return st.builds(
        lambda path, **more: AddFile(path=path, log_path=path, **more),
        TEXTS,
        partition_values=TEXT_MAPS,
        size_bytes=LONGS,
        modified_ms=LONGS,
        data_change=st.booleans(),
        stats=st.none() | TEXTS,
        split=st.builds(Split, **split),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A version as read: what the log says of the table, and its live files by path."""

    facts: Facts
    files: Mapping[str, AddFile]


@dataclass(frozen=True)
class IndexLog:
    """The files of a log directory by their names below it."""

    files: Mapping[str, bytes]

    @classmethod
    def of_folder(cls, folder: Path) -> IndexLog:
        """The log of the table in `folder`, Hadoop's checksums and all."""
        log = folder / names.LOG_DIR
        return cls({str(path.relative_to(log)): path.read_bytes() for path in log.rglob("*") if path.is_file()})

    @cached_property
    def table(self) -> IndexTablesLog:
        """The table whose log these files are, in memory."""
        store = MemoryStore("events", now_ms=lambda: 7)
        for name, data in self.files.items():
            store.replace(log_path(name), data)
        return IndexTablesLog(store, location=store.url, storage_options={})

    @property
    def reader(self) -> IndexReader:
        """Reads the files of the log one by one."""
        return IndexReader(self.table.store)

    @property
    def log(self) -> listing.Log:
        """What the listing shows."""
        found = (names.parse_name(name, size_bytes=len(data), modified_ms=7) for name, data in self.files.items())
        return listing.read_listing(file for file in found if file is not None)

    def snapshot(self, version: int | None = None) -> Snapshot:
        """The table at `version`, by default the newest."""
        found = self.table.load(None if version is None else Version(version))
        batches = self.table.files_of(found.version, found.unreadable)
        return Snapshot(
            facts=found.facts, files={add.path: add for batch in batches for add in columns.to_add_files(batch)}
        )

    def change(self, version: int) -> Commit:
        """What `version` changed."""
        found = self.table.commit(Version(version))
        assert found is not None
        return found

    def commit(self, file: LogFile) -> Commit:
        """The JSON commit in `file`."""
        return self.reader.commit(file)

    def state(self, file: LogFile) -> State:
        """The state in `file`."""
        return self.reader.state(file)

    def live_in(self, state: State) -> Iterator[pa.RecordBatch]:
        """The live files of a state."""
        return self.reader.live_in(state)


def rows_by_version(log: IndexLog, versions: Iterable[int]) -> list[tuple[int, int, int]]:
    """Of each version: rows in the files added as data changes, such files, and files removed as data changes."""
    feed = []
    for version in versions:
        commit = log.change(version)
        added = [file for file in commit.added if file.data_change]
        rows = sum((file.split.num_records or 0) if file.split else 0 for file in added)
        feed.append((rows, len(added), sum(file.data_change for file in commit.removed)))
    return feed


def add(path: str, *, rows: int | None = 1, data_change: bool = True, ms: int = 1) -> AddFile:
    """An add of a split of `rows` rows."""
    return actions.add(path, modified_ms=ms, data_change=data_change, split=Split(num_records=rows))


def remove(path: str, *, data_change: bool = True) -> RemoveFile:
    """A remove of a split."""
    return actions.remove(path, data_change=data_change, deletion_timestamp_ms=1)


def json_log(versions: Mapping[int, Iterable[FileAction]], *, writer: Writer = Writer.SCALA) -> dict[str, bytes]:
    """Commits by version; 0 tells the protocol and the metadata too."""
    commits = {version: actions.commit(version, *files) for version, files in versions.items()}
    if 0 in commits:
        commits[0] = replace(commits[0], protocol=PROTOCOL, metadata=METADATA)
    return {names.commit_name(v): version_file.encode_commit(commit, writer=writer) for v, commit in commits.items()}


def manifest(name: str, adds: Iterable[AddFile], *, writer: Writer = Writer.SCALA) -> tuple[Manifest, bytes]:
    """A manifest that states share, and its bytes."""
    files = tuple(adds)
    path = names.shared_manifest_name(name)
    return Manifest(name=path, path=path, entry_count=len(files)), manifest_bytes(files, writer=writer)


def manifest_bytes(
    adds: Sequence[AddFile], *, writer: Writer, version: int = 0, registry: Mapping[str, str] = MappingProxyType({})
) -> bytes:
    """The manifest of `adds`; `registry` has the doc mappings by hash that they do not bring along."""
    return state_writer.encode_entries(
        state_writer.stamped(pa.Table.from_batches([columns.of_adds(adds)]), version=version, added_ms=1).to_batches(),
        writer=writer,
        mappings=DocMappings(registry),
        codec=avro_file.NULL if writer is Writer.NATIVE else avro_file.ZSTANDARD,
        sync=SYNC,
        url=URL,
    )


def state_log(states: Mapping[int, State]) -> dict[str, bytes]:
    """The `_manifest.avro` of each state."""
    return {
        names.state_name(version): state_writer.encode_state(state, writer=Writer.SCALA, sync=SYNC, url=URL)
        for version, state in states.items()
    }


def a_state(version: int, manifests: Iterable[Manifest], *, file_count: int, dead: Sequence[str] = ()) -> State:
    """The state of a version, made at the time 1000 and a millisecond a version."""
    return State(
        version=Version(version),
        created_ms=1000 + version,
        file_count=file_count,
        total_bytes=0,
        manifests=tuple(manifests),
        tombstones=pa.array(dead, pa.string()),
        registry={},
    )


def with_tombstones(state: State | None, paths: Iterable[str]) -> State | None:
    """`state` after IndexTables has removed the files `paths`, as its merges do."""
    gone = list(paths)
    if state is None or not gone:
        return state
    dead = pa.array([*state.tombstones.to_pylist(), *gone], pa.string())
    return replace(state, tombstones=dead, file_count=state.file_count - len(gone))


def log_in(files: Mapping[str, bytes]) -> tuple[IndexTablesLog, FaultyStore]:
    """The table of a log of these files, and its store, which counts its calls."""
    memory = MemoryStore("t")
    for name, data in files.items():
        memory.put_if_absent(log_path(name), data)
    store = FaultyStore(memory)
    return IndexTablesLog(store, location=store.url, storage_options={}), store


def states_of(
    versions: Mapping[int, Mapping[str, Iterable[AddFile]]], tombstones: Mapping[int, tuple[str, ...]] | None = None
) -> dict[str, bytes]:
    """States by version: of each its manifests by name with their adds, and its tombstones."""
    files: dict[str, bytes] = {}
    states: dict[int, State] = {}
    for version, wanted in versions.items():
        made = {name: manifest(name, adds) for name, adds in wanted.items()}
        files |= {each.name: data for each, data in made.values()}
        dead = (tombstones or {}).get(version, ())
        live = {file.path for adds in wanted.values() for file in adds} - set(dead)
        states[version] = a_state(version, (each for each, _ in made.values()), file_count=len(live), dead=dead)
    return {**files, **state_log(states)}
