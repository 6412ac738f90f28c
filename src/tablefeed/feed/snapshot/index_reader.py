"""Lists and reads the files of an IndexTables log.

A state exists if its directory holds `_manifest.avro`; checking that costs one request per state. So every listed state
directory counts as a state at first, and only the states that are read from are checked. A table with ten thousand
states then opens as fast as one with a single state.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tablefeed.errors import CorruptLogError, LogError, ObjectNotFoundError
from tablefeed.feed.snapshot.table_log import MADE_MEANWHILE
from tablefeed.indextables import names
from tablefeed.indextables.log import listing as plans
from tablefeed.indextables.log import version_file
from tablefeed.model.actions import Commit, Facts, Metadata, Version
from tablefeed.model.logfile import LogFile, LogFileKind
from tablefeed.store import Store

if TYPE_CHECKING:
    import pyarrow as pa

    from tablefeed.indextables.log.avro_state import Manifest, State
    from tablefeed.indextables.log.json_checkpoint import Checkpoint


Choice = Callable[[Sequence["Manifest"]], Sequence["Manifest"]]
"""Takes a state's manifests and gives those of them that are to be read, in the same order."""


@dataclass(frozen=True, slots=True)
class IndexReader:
    """Reads the log of the table in `store`, and keeps nothing. Raises LogError and StoreError with the table's url."""

    store: Store

    @property
    def url(self) -> str:
        """The table's url, for people."""
        return self.store.url

    # --- which are there ---------------------------------------------------------------------------------------------

    def listed(self) -> plans.Log:
        """Gives the log by its file names. Each state directory counts as a state; its contents are not looked at.

        It has every version that was made before another one that it has.
        """
        entries = self.store.list(names.LOG_DIR)
        found = [names.parse_name(e.name, size_bytes=e.size_bytes, modified_ms=e.modified_ms) for e in entries]
        found += [
            names.parse_name(f"{directory}/{names.STATE_MANIFEST}", size_bytes=0, modified_ms=0)
            for directory in self.store.directories(names.LOG_DIR)
        ]
        listed = [file for file in found if file is not None]
        return plans.read_listing([*listed, *self._made_meanwhile(plans.read_listing(listed))])

    def _made_meanwhile(self, log: plans.Log) -> Iterator[LogFile]:
        """Gives the files of versions that `log` lacks though it has later ones, and that exist.

        A disk lists a folder in an order of its own. If two versions are made meanwhile, a listing may have only the
        later one. The first version that does not exist ends the search: before it the log was truncated.
        """
        versions = {*log.commits, *log.states}
        newest, earliest = max(versions, default=0), min(versions, default=0)
        for number in range(newest - 1, max(earliest, newest - MADE_MEANWHILE) - 1, -1):
            version = Version(number)
            if version in versions:
                continue
            file = self._file(names.commit_name(version)) or self.state_file(version)
            if file is None:
                return
            yield file

    def known(self, log: plans.Log, versions: Collection[Version]) -> plans.Log:
        """Gives `log` with the states of `versions` checked in the store; those without a manifest are left out.

        A writer that died or has not finished leaves a state directory without its manifest.
        """
        return log.with_states({version: self.state_file(version) for version in versions if version in log.states})

    def segment_of(
        self, log: plans.Log, version: Version | None, *, without: frozenset[str] = frozenset()
    ) -> tuple[plans.Log, plans.Segment]:
        """Gives `listing.segment_of` from states that exist, and `log` without those found not to exist."""
        while True:
            try:
                segment = plans.segment_of(log, version, url=self.url, without=without)
            except LogError:
                known = self.known(log, log.states.keys())  # the error must be about the states that exist
                if known.states.keys() == log.states.keys():
                    raise
            else:
                known = self.known(log, segment.state_versions)
                if known.states.keys() == log.states.keys():
                    return known, segment
            log = known

    def state_file(self, version: Version) -> LogFile | None:
        """Gives the `_manifest.avro` of the state of `version`, None where there is none."""
        return self._file(names.state_name(version))

    def _file(self, name: str) -> LogFile | None:
        entry = self.store.stat(log_path(name))
        if entry is None:
            return None
        return names.parse_name(name, size_bytes=entry.size_bytes, modified_ms=entry.modified_ms)

    # --- what is in them ---------------------------------------------------------------------------------------------

    def commit(self, file: LogFile) -> Commit:
        """Gives the JSON commit in `file`."""
        data = self.store.read(log_path(file.name))
        return self.decoded_commit(data, file.version, file.name, modified_ms=file.modified_ms)

    def decoded_commit(self, data: bytes, version: Version, name: str, *, modified_ms: int | None = None) -> Commit:
        """Gives the JSON commit that the file `name` holds as `data`, with the time at which it was made."""
        commit = version_file.decode_commit(data, version=version, url=self.url, log_file=name, modified_ms=modified_ms)
        if commit.metadata is not None and not commit.files and commit.info is None:
            # The version that creates a table has no files; its metadata has the time.
            commit = replace(commit, committed_at_ms=commit.metadata.created_ms or commit.committed_at_ms)
        if commit.committed_at_ms is None:
            entry = self.store.stat(log_path(name))
            commit = replace(commit, committed_at_ms=None if entry is None else entry.modified_ms)
        return commit

    def state(self, file: LogFile) -> State:
        """Gives the state whose `_manifest.avro` is `file`."""
        from tablefeed.indextables.log import avro_state

        data = self.store.read(log_path(file.name))
        return avro_state.decode_state(data, version=file.version, url=self.url, log_file=file.name)

    def bytes_of(self, manifests: Iterable[Manifest]) -> Iterator[tuple[Manifest, bytes]]:
        """Gives the manifests with their bytes, each read when it is asked for."""
        return ((manifest, self.store.read(log_path(manifest.name))) for manifest in manifests)

    def live_in(self, state: State) -> Iterator[pa.RecordBatch]:
        """Gives the live files of `state`."""
        from tablefeed.indextables.log import avro_state

        return avro_state.live_files(state, self.bytes_of(state.newest_first), url=self.url)

    def checkpoint(self, log: plans.Log, file: LogFile) -> Checkpoint:
        """Gives the JSON checkpoint in `file`, with all its parts. Raises CorruptLogError where a part is missing."""
        from tablefeed.indextables.log import json_checkpoint as checkpoint

        data = self.store.read(log_path(file.name))
        parts = checkpoint.part_list(data, version=file.version, url=self.url, log_file=file.name)
        if parts is None:
            return checkpoint.decode_checkpoint([(file.name, data)], url=self.url)
        found = parts.names_among(part.name for part in log.parts)
        if found is None:
            raise CorruptLogError("a part of it is missing", url=self.url, log_file=file.name)
        return checkpoint.decode_checkpoint([(name, self.store.read(log_path(name))) for name in found], url=self.url)

    def base_facts(self, log: plans.Log, base: LogFile | None) -> tuple[Facts, Mapping[str, str]]:
        """Gives the facts in `base` (a state, a checkpoint or None) and its doc mappings by hash.

        A checkpoint gives no doc mappings here: they are in its metadata.
        """
        if base is None:
            return Facts(), {}
        if base.kind is LogFileKind.CHECKPOINT:
            return self.checkpoint(log, base).facts, {}
        state = self.state(base)
        facts = replace(state.facts, metadata=state.metadata or self._metadata(log, base.version))
        return facts, state.registry

    def base_files(
        self, log: plans.Log, base: LogFile | None, *, choose: Choice | None = None
    ) -> Iterable[pa.RecordBatch]:
        """Gives the live files in `base`; of a state, those in the manifests that `choose` returns."""
        from tablefeed.indextables.log import avro_state

        if base is None:
            return ()
        if base.kind is LogFileKind.CHECKPOINT:
            return self.checkpoint(log, base).files
        state = self.state(base)
        chosen = state.newest_first if choose is None else choose(state.newest_first)
        if len(chosen) == len(state.manifests):
            return self.live_in(state)
        # A path belongs to one partition, so a manifest that is not read cannot add or remove a file of those read.
        return avro_state.live_among(state, self.bytes_of(chosen), url=self.url)

    def _metadata(self, log: plans.Log, version: Version) -> Metadata | None:
        for file in plans.metadata_sources(log, version):
            try:
                said = self.commit(file) if file.kind is LogFileKind.COMMIT else self.state(file)
            except ObjectNotFoundError:
                if file.kind is LogFileKind.COMMIT:
                    raise
                continue  # a directory without a state
            if said.metadata is not None:
                return said.metadata
        return None


def log_path(name: str) -> str:
    """Gives the path of the log file `name` below the table."""
    return f"{names.LOG_DIR}/{name}"
