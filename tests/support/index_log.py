"""An IndexTables log held as bytes by name, and the one way to read it that its pure functions leave to a reader.

The log is a folder's, or made here. What a feed does with a store this does with a dict: list, plan, read, replay.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

import pyarrow as pa

from tablefeed.errors import CorruptLogError, LogError
from tablefeed.indextables import names
from tablefeed.indextables.log import avro_file, avro_state, columns, listing, replay, state_writer, version_file
from tablefeed.indextables.log import json_checkpoint as checkpoint
from tablefeed.indextables.log.avro_state import Manifest, State
from tablefeed.indextables.log.schema_registry import DocMappings
from tablefeed.indextables.log.version_file import Writer
from tablefeed.log.replay import fold, live_files
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
from tablefeed.model.logfile import LogFile, LogFileKind
from tablefeed.model.split import Split

URL = "mem://events"
SYNC = bytes(range(16))
FIRST_STAMP = state_writer.Stamp(version=0, added_ms=1)
PROTOCOL = Protocol(min_reader_version=4, min_writer_version=4)
METADATA = Metadata(table_id="t", schema_string='{"type":"struct","fields":[]}', format_provider="indextables")


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A version as read: what the log says of the table, and its live files by path."""

    facts: Facts
    files: Mapping[str, AddFile]


@dataclass(frozen=True, slots=True)
class IndexLog:
    """The files of a log directory by their names below it."""

    files: Mapping[str, bytes]

    @classmethod
    def of_folder(cls, folder: Path) -> IndexLog:
        """The log of the table in `folder`, Hadoop's checksums and all."""
        log = folder / names.LOG_DIR
        return cls({str(path.relative_to(log)): path.read_bytes() for path in log.rglob("*") if path.is_file()})

    @property
    def log(self) -> listing.Log:
        """What the listing shows."""
        found = (names.parse_name(name, size_bytes=len(data), modified_ms=7) for name, data in self.files.items())
        return listing.read_listing(file for file in found if file is not None)

    def snapshot(self, version: int | None = None) -> Snapshot:
        """The table at `version`, by default the newest: from another base where one cannot be read."""
        unreadable: frozenset[str] = frozenset()
        reason: CorruptLogError | None = None
        while True:
            try:
                segment = listing.segment_of(self.log, _version(version), url=URL, without=unreadable)
            except LogError as error:
                raise reason or error from error
            try:
                return self._read(segment)
            except CorruptLogError as error:
                if segment.base is None:
                    raise
                unreadable, reason = unreadable | {segment.base.name}, error

    def change(self, version: int) -> Commit:
        """What `version` changed."""
        source = listing.change_source(self.log, Version(version), url=URL)
        return self._state_change(source) if isinstance(source, listing.StateChange) else self.commit(source)

    def commit(self, file: LogFile) -> Commit:
        """The JSON commit in `file`."""
        return version_file.decode_commit(
            self.files[file.name], version=file.version, url=URL, log_file=file.name, modified_ms=file.modified_ms
        )

    def state(self, file: LogFile) -> State:
        """The state in `file`."""
        return avro_state.decode_state(self.files[file.name], version=file.version, url=URL, log_file=file.name)

    def bytes_of(self, manifests: Iterable[Manifest]) -> Iterator[tuple[Manifest, bytes]]:
        """The manifests with their bytes, each read when it is asked for."""
        return ((manifest, self.files[manifest.name]) for manifest in manifests)

    def live_in(self, state: State) -> Iterator[pa.RecordBatch]:
        """The live files of a state."""
        return avro_state.live_files(state, self.bytes_of(state.newest_first), url=URL)

    def _read(self, segment: listing.Segment) -> Snapshot:
        facts, base = self._base(segment.base)
        if segment.twin is not None:
            twin = segment.twin
            where = replay.parted(self.commit(twin.commit), self.live_in(self.state(twin.state)))
            if where is not None:
                raise replay.parted_error(twin.commit.version, where, url=URL)
        commits = [self.commit(file) for file in segment.commits]
        turns = ([columns.of_commit(commit)] for commit in reversed(commits))
        adds = [add for batch in live_files(base, turns) for add in columns.to_add_files(batch)]
        return Snapshot(facts=fold(facts, commits), files={add.path: add for add in adds})

    def _base(self, file: LogFile | None) -> tuple[Facts, Iterable[pa.RecordBatch]]:
        if file is None:
            return Facts(), ()
        if file.kind is LogFileKind.CHECKPOINT:
            read = checkpoint.decode_checkpoint(self._checkpoint_files(file), url=URL)
            return read.facts, read.files
        state = self.state(file)
        return replace(state.facts, metadata=state.metadata or self._metadata(file.version)), self.live_in(state)

    def _checkpoint_files(self, file: LogFile) -> list[tuple[str, bytes]]:
        data = self.files[file.name]
        parts = checkpoint.part_list(data, version=file.version, url=URL, log_file=file.name)
        if parts is None:
            return [(file.name, data)]
        found = parts.names_among(self.files)
        if found is None:
            raise CorruptLogError("a part of it is missing", url=URL, log_file=file.name)
        return [(name, self.files[name]) for name in found]

    def _metadata(self, version: Version) -> Metadata | None:
        for file in listing.metadata_sources(self.log, version):
            said = self.commit(file) if file.kind is LogFileKind.COMMIT else self.state(file)
            if said.metadata is not None:
                return said.metadata
        return None

    def _state_change(self, source: listing.StateChange) -> Commit:
        after, base = self.state(source.after), source.before.base
        if base is not None and base.kind is LogFileKind.STATE and not source.before.commits:
            before = self.state(base)
            read = replay.compared(before, after)
            return replay.state_commit(
                after,
                avro_state.live_among(after, self.bytes_of(read.after), url=URL),
                before=avro_state.live_among(before, self.bytes_of(read.before), url=URL),
                file_count_before=before.file_count,
                url=URL,
            )
        _, batches = self._base(base)
        turns = ([columns.of_commit(self.commit(file))] for file in reversed(source.before.commits))
        return replay.state_commit(
            after, self.live_in(after), before=live_files(batches, turns), file_count_before=None, url=URL
        )


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
    return AddFile(
        path=path,
        log_path=path,
        partition_values={},
        size_bytes=10,
        modified_ms=ms,
        data_change=data_change,
        split=Split(num_records=rows),
    )


def remove(path: str, *, data_change: bool = True) -> RemoveFile:
    """A remove of a split."""
    return RemoveFile(path=path, log_path=path, data_change=data_change, deletion_timestamp_ms=1)


def json_log(versions: Mapping[int, Iterable[FileAction]], *, writer: Writer = Writer.SCALA) -> dict[str, bytes]:
    """Commits by version; 0 tells the protocol and the metadata too."""
    return {
        names.commit_name(version): version_file.encode_commit(
            Commit(
                version=Version(version),
                files=tuple(files),
                protocol=PROTOCOL if version == 0 else None,
                metadata=METADATA if version == 0 else None,
                committed_at_ms=None,
            ),
            writer=writer,
        )
        for version, files in versions.items()
    }


def manifest(name: str, adds: Iterable[AddFile], *, writer: Writer = Writer.SCALA) -> tuple[Manifest, bytes]:
    """A manifest that states share, and its bytes."""
    files = tuple(adds)
    path = names.shared_manifest_name(name)
    return Manifest(name=path, path=path, entry_count=len(files)), manifest_bytes(files, writer=writer)


def manifest_bytes(
    adds: Sequence[AddFile],
    *,
    writer: Writer,
    stamp: state_writer.Stamp = FIRST_STAMP,
    registry: Mapping[str, str] = MappingProxyType({}),
) -> bytes:
    """The manifest of `adds`; `registry` has the doc mappings by hash that they do not bring along."""
    return state_writer.encode_entries(
        state_writer.stamped(pa.Table.from_batches([columns.of_adds(adds)]), stamp).to_batches(),
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
        states[version] = State(
            version=Version(version),
            created_ms=1000 + version,
            file_count=len(live),
            total_bytes=0,
            manifests=tuple(each for each, _ in made.values()),
            tombstones=pa.array(dead, pa.string()),
            registry={},
        )
    return {**files, **state_log(states)}


def _version(version: int | None) -> Version | None:
    return None if version is None else Version(version)
