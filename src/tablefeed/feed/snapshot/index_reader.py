"""The files of an IndexTables log: which of them are there, as far as it matters, and what is in them.

A state is there where its directory holds `_manifest.avro`, which is a question to the store for each of them. So the
directories are listed and taken for states, and only those are asked about that something is read from: a table of
ten thousand states opens for what its newest costs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tablefeed.errors import CorruptLogError, LogError, ObjectNotFoundError
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
"""Gives those of a state's manifests that are to be read, in their order."""


@dataclass(frozen=True, slots=True)
class IndexReader:
    """Reads the log of the table in `store`, and keeps nothing. Raises LogError and StoreError with the table's url."""

    store: Store

    @property
    def url(self) -> str:
        """The table's, for people."""
        return self.store.url

    # --- which are there ---------------------------------------------------------------------------------------------

    def listed(self) -> plans.Log:
        """Gives the log as names tell it: what is in the directories of states is not looked at."""
        entries = self.store.list(names.LOG_DIR)
        found = [names.parse_name(e.name, size_bytes=e.size_bytes, modified_ms=e.modified_ms) for e in entries]
        found += [
            names.parse_name(f"{directory}/{names.STATE_MANIFEST}", size_bytes=0, modified_ms=0)
            for directory in self.store.directories(names.LOG_DIR)
        ]
        return plans.read_listing(file for file in found if file is not None)

    def known(self, log: plans.Log, versions: Collection[Version]) -> plans.Log:
        """Gives `log` with the states of `versions` as the store has them, and without those that it has not.

        A state without its manifest is what a writer left that died, or has not finished.
        """
        return log.with_states({version: self.state_file(version) for version in versions if version in log.states})

    def segment_of(
        self, log: plans.Log, version: Version | None, *, without: frozenset[str] = frozenset()
    ) -> tuple[plans.Log, plans.Segment]:
        """Gives `listing.segment_of`, of states that are there, and `log` without those that turned out not to be."""
        while True:
            try:
                segment = plans.segment_of(log, version, url=self.url, without=without)
            except LogError:
                known = self.known(log, log.states.keys())  # what is wrong with a log is told of what is there
                if known.states.keys() == log.states.keys():
                    raise
            else:
                known = self.known(log, segment.state_versions)
                if known.states.keys() == log.states.keys():
                    return known, segment
            log = known

    def state_file(self, version: Version) -> LogFile | None:
        """Gives the file that makes the state of `version`, None where there is none."""
        name = names.state_name(version)
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
            # The version that makes a table has no files: when that was, its metadata tells.
            commit = replace(commit, committed_at_ms=commit.metadata.created_ms or commit.committed_at_ms)
        if commit.committed_at_ms is None:
            entry = self.store.stat(log_path(name))
            commit = replace(commit, committed_at_ms=None if entry is None else entry.modified_ms)
        return commit

    def state(self, file: LogFile) -> State:
        """Gives the state that `file` makes."""
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
        """Gives the JSON checkpoint in `file`, all its parts."""
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
        """Gives what `base`, a state, a checkpoint or nothing, tells of the table, and its doc mappings by hash.

        Of a checkpoint these are in its metadata.
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
        """Gives the files that are live in `base`; of a state, those in the manifests that `choose` gives back."""
        from tablefeed.indextables.log import avro_state

        if base is None:
            return ()
        if base.kind is LogFileKind.CHECKPOINT:
            return self.checkpoint(log, base).files
        state = self.state(base)
        chosen = state.newest_first if choose is None else choose(state.newest_first)
        if len(chosen) == len(state.manifests):
            return self.live_in(state)
        # A path is one partition's: it is in none of the others, so that what is told of it elsewhere is not missed.
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
