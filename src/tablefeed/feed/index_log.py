"""An IndexTables table's log as the feed reads it, in the words of the Delta log: facts, files and changes.

Which files give what is `tablefeed.indextables`' to say; here they are listed and read. What the feed meets from here
on is what it knows: files in Delta's columns, extremes as statistics, commits with adds and removes. A state alone says
what there is and not what was done: its commit is its difference to the version before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from tablefeed.delta.partitioning import check_partition_columns
from tablefeed.errors import CorruptLogError, LogError, LogGapError, ObjectNotFoundError, UnsupportedFeatureError
from tablefeed.feed.dialect import check_readable
from tablefeed.feed.split_facts import described_commit, described_metadata
from tablefeed.feed.table_log import Snapshot, TableLog
from tablefeed.indextables import listing as plans
from tablefeed.indextables import names, version_file
from tablefeed.log.replay import fold
from tablefeed.log.segment import LogSegment
from tablefeed.model.actions import Commit, Facts, Metadata, Version
from tablefeed.model.logfile import LogFile, LogFileKind
from tablefeed.model.schema import Struct
from tablefeed.store import Entry

if TYPE_CHECKING:
    import pyarrow as pa

    from tablefeed.feed.segment_reader import Reading
    from tablefeed.indextables.avro_state import Manifest, State
    from tablefeed.indextables.checkpoint import Checkpoint


@dataclass(frozen=True, kw_only=True)
class IndexSnapshot(Snapshot):
    """An IndexTables table as of one version."""

    log: IndexTablesLog

    def live_files(self, *, with_stats: bool = False) -> Iterator[pa.RecordBatch]:  # noqa: ARG002 - they count its rows
        """As of `Snapshot`, but for memory: what a state says of all files is held, in columns."""
        from tablefeed.feed.split_facts import described_files

        files = self.log.files_of(self.version, self.unreadable)
        return (described_files(batch, self.schema) for batch in files)


class IndexTablesLog(TableLog):
    """The log at a store's root. Raises as `TableLog`; what only Delta's log has is refused by name."""

    directory = names.LOG_DIR
    has_splits = True
    _has_states: bool | None = None
    """Whether there are states beside commits; None: not looked yet."""

    def listing(self, start: int = 0, *, over_holes: bool = False) -> list[LogFile]:
        """Gives what stands for log files of versions from `start` on: commits, and checkpoints that tell a version.

        A state is both where what it changed can be told.
        """
        log = self._listed()
        first = Version(0) if over_holes else log.earliest_change
        commits = [
            replace(log.commits.get(version) or log.states[version], kind=LogFileKind.COMMIT)
            for version in sorted({*log.commits, *log.states})
            if first is not None and version >= first
        ]
        bases = [
            replace(file, kind=LogFileKind.CHECKPOINT) for file in (*log.states.values(), *log.checkpoints.values())
        ]
        return [file for file in (*commits, *bases) if file.version >= start]

    def load(self, version: Version | None = None) -> Snapshot:
        """As of `TableLog`."""
        log = self._listed()
        without: frozenset[str] = frozenset()
        first: CorruptLogError | ObjectNotFoundError | None = None
        while True:
            try:
                segment = plans.segment_of(log, version, url=self.url, without=without)
            except LogError as error:
                if first is None:
                    raise
                raise first from error
            try:
                if segment.twin is not None:
                    self._refuse_parted(segment.twin)
                commits = [self._json_commit(file) for file in segment.commits]
                facts = fold(self._base_facts(log, segment.base), commits)
            except (CorruptLogError, ObjectNotFoundError) as error:
                if segment.base is None:
                    raise
                first, without = first or error, without | {segment.base.name}
                continue
            return self.snapshot(segment.version, facts, unreadable=without)

    def load_for_files(self, version: Version | None = None) -> Snapshot:
        """As of `TableLog`; nothing is kept of the log."""
        return self.load(version)

    def advance(self, snapshot: Snapshot) -> Snapshot:
        """As of `TableLog`; read anew where there is anything new."""
        newer = self.head(Version(snapshot.version + 1)) is not None or self.head(snapshot.version) != snapshot.head
        return self.load() if newer else snapshot

    def segment(self, version: Version | None = None, *, without: frozenset[str] = frozenset()) -> LogSegment:
        """Refuses: only what writes to a Delta table asks for one."""
        del version, without
        raise self._refusal()

    def check_maintained(self) -> None:
        """As of `TableLog`: IndexTables has its own MERGE SPLITS and PURGE."""
        raise self._refusal()

    def _refusal(self) -> UnsupportedFeatureError:
        return UnsupportedFeatureError(
            f"{self.url} is an IndexTables table: its files are not folded or deleted here. Nothing was done. Use "
            "MERGE SPLITS and PURGE INDEXTABLE of IndexTables.",
            url=self.url,
            features=("indextables maintenance",),
            error_class="INDEXTABLES_MAINTENANCE_UNSUPPORTED",
        )

    def commit(
        self,
        version: Version,
        *,
        timed: bool = False,  # noqa: ARG002 - it always is
        over_holes: bool = False,
    ) -> Commit | None:
        """As of `TableLog`; when a commit was made is told by its files, or by its state."""
        name = names.commit_name(version)
        try:
            data = self.store.read(_path(name))
        except ObjectNotFoundError:
            return self._commit_of_state(version, over_holes=over_holes)
        return described_commit(self._decoded(data, version, name), self._schema)

    def required_commit(self, log_file: LogFile) -> Commit:
        """As of `TableLog`."""
        commit = self.commit(log_file.version)
        if commit is None:
            raise ObjectNotFoundError(url=self.url, name=log_file.name)
        return commit

    def head(self, version: Version) -> Entry | None:
        """As of `TableLog`: the commit's file, or the state's."""
        commit = self.store.stat(_path(names.commit_name(version)))
        return commit or (self.store.stat(_path(names.state_name(version))) if version else None)

    def keeps_states(self, version: Version) -> bool:
        """Says whether the log has states beside its commits, of which `version` is the newest."""
        if not self._has_states and self.store.exists(_path(names.state_name(version))):
            self._has_states = True
        if self._has_states is None:
            self._has_states = bool(self._listed().states)
        return self._has_states

    def state(self, version: Version) -> State:
        """Gives the state of `version`. Raises ObjectNotFoundError where there is none."""
        return self._state_in(names.state_name(version), version)

    def live_in(self, state: State) -> Iterator[pa.RecordBatch]:
        """Gives the live files of a state, in IndexTables' columns."""
        from tablefeed.indextables import avro_state

        return avro_state.live_files(state, self._bytes_of(state.newest_first), url=self.url)

    def files_of(self, version: Version, unreadable: frozenset[str]) -> Iterator[pa.RecordBatch]:
        """Gives the live files of `version` in IndexTables' columns, read from what can be read."""
        from tablefeed.indextables import columns
        from tablefeed.log.replay import live_files

        log = self._listed()
        while True:
            segment = plans.segment_of(log, version, url=self.url, without=unreadable)
            try:
                base = list(self._base_files(log, segment.base))
                turns = ([columns.of_commit(self._json_commit(file))] for file in reversed(segment.commits))
                found = list(live_files(base, turns))
            except (CorruptLogError, ObjectNotFoundError):
                if segment.base is None:
                    raise
                unreadable |= {segment.base.name}
                continue
            return iter(found)

    @cached_property
    def _schema(self) -> Struct:
        """The table's, which no version changes: by it the extremes of columns are read."""
        return self.load().schema

    def _listed(self) -> plans.Log:
        entries = self.store.list(names.LOG_DIR)
        found = [names.parse_name(e.name, size_bytes=e.size_bytes, modified_ms=e.modified_ms) for e in entries]
        files = [file for file in found if file is not None]
        for directory in self.store.directories(names.LOG_DIR):
            named = names.parse_name(f"{directory}/{names.STATE_MANIFEST}", size_bytes=0, modified_ms=0)
            # A state without its manifest is what a writer left that died, or has not finished.
            state = None if named is None else self._state_file(named.version)
            files += [] if state is None else [state]
        return plans.read_listing(files)

    def snapshot(
        self,
        version: Version,
        facts: Facts,
        *,
        unreadable: frozenset[str] = frozenset(),
        reading: Reading | None = None,
    ) -> Snapshot:
        """As of `TableLog`; nothing is kept for reading."""
        del reading
        if facts.protocol is None or facts.metadata is None:
            missing = "protocol" if facts.protocol is None else "metadata"
            raise LogError(
                f"The log of {self.url} holds no {missing} up to version {version}: it is damaged. Restore the missing "
                "log files.",
                url=self.url,
                error_class="INDEXTABLES_STATE_INCONSISTENT",
            )
        metadata = described_metadata(facts.metadata)
        check_readable(facts.protocol, metadata, url=self.url)
        snapshot = IndexSnapshot(
            log=self,
            version=version,
            facts=replace(facts, metadata=metadata),
            protocol=facts.protocol,
            metadata=metadata,
            head=self.head(version),
            unreadable=unreadable,
        )
        check_partition_columns(snapshot.schema, metadata.partition_columns, url=self.url)
        return snapshot

    def _json_commit(self, file: LogFile) -> Commit:
        return self._decoded(self.store.read(_path(file.name)), file.version, file.name, modified_ms=file.modified_ms)

    def _decoded(self, data: bytes, version: Version, name: str, *, modified_ms: int | None = None) -> Commit:
        commit = version_file.decode_commit(data, version=version, url=self.url, log_file=name, modified_ms=modified_ms)
        if commit.metadata is not None and not commit.files and commit.info is None:
            # The version that makes a table has no files: when that was, its metadata tells.
            commit = replace(commit, committed_at_ms=commit.metadata.created_ms or commit.committed_at_ms)
        if commit.committed_at_ms is None:
            entry = self.store.stat(_path(name))
            commit = replace(commit, committed_at_ms=None if entry is None else entry.modified_ms)
        return commit

    def _commit_of_state(self, version: Version, *, over_holes: bool) -> Commit | None:
        after = None if version == 0 else self._state_file(version)
        if after is None:
            return None
        before = self._state_file(Version(version - 1)) if version > 1 else None
        if before is None:
            source = self._listed_source(version, over_holes=over_holes)
        else:  # as the log would say, which is not listed for each version that is gone through
            source = plans.StateChange(
                version=version,
                before=plans.Segment(version=before.version, base=before, commits=()),
                after=after,
            )
        changed = self._state_change(source) if isinstance(source, plans.StateChange) else self._json_commit(source)
        return described_commit(changed, self._schema)

    def _listed_source(self, version: Version, *, over_holes: bool) -> plans.ChangeSource:
        log = self._listed()
        try:
            return plans.change_source(log, version, url=self.url)
        except LogGapError:
            if not over_holes or version not in log.states:
                raise
            for earlier in range(version - 2, -1, -1):
                try:
                    before = plans.segment_of(log, Version(earlier), url=self.url)
                except LogError:
                    continue
                return plans.StateChange(version=version, before=before, after=log.states[version])
            raise  # of all that came before nothing is known: what there is would be told as new

    def _state_file(self, version: Version) -> LogFile | None:
        name = names.state_name(version)
        entry = self.store.stat(_path(name))
        if entry is None:
            return None
        return names.parse_name(name, size_bytes=entry.size_bytes, modified_ms=entry.modified_ms)

    # --- states and checkpoints --------------------------------------------------------------------------------------

    def _state(self, file: LogFile) -> State:
        return self._state_in(file.name, file.version)

    def _state_in(self, name: str, version: Version) -> State:
        from tablefeed.indextables import avro_state

        data = self.store.read(_path(name))
        return avro_state.decode_state(data, version=version, url=self.url, log_file=name)

    def _bytes_of(self, manifests: Iterable[Manifest]) -> Iterator[tuple[Manifest, bytes]]:
        return ((manifest, self.store.read(_path(manifest.name))) for manifest in manifests)

    def _checkpoint(self, log: plans.Log, file: LogFile) -> Checkpoint:
        from tablefeed.indextables import checkpoint

        data = self.store.read(_path(file.name))
        parts = checkpoint.part_list(data, version=file.version, url=self.url, log_file=file.name)
        if parts is None:
            return checkpoint.decode_checkpoint([(file.name, data)], url=self.url)
        found = parts.names_among(part.name for part in log.parts)
        if found is None:
            raise CorruptLogError("a part of it is missing", url=self.url, log_file=file.name)
        return checkpoint.decode_checkpoint([(name, self.store.read(_path(name))) for name in found], url=self.url)

    def _base_facts(self, log: plans.Log, file: LogFile | None) -> Facts:
        if file is None:
            return Facts()
        if file.kind is LogFileKind.CHECKPOINT:
            return self._checkpoint(log, file).facts
        state = self._state(file)
        return replace(state.facts, metadata=state.metadata or self._metadata(log, file.version))

    def _base_files(self, log: plans.Log, file: LogFile | None) -> Iterable[pa.RecordBatch]:
        if file is None:
            return ()
        if file.kind is LogFileKind.CHECKPOINT:
            return self._checkpoint(log, file).files
        return self.live_in(self._state(file))

    def _metadata(self, log: plans.Log, version: Version) -> Metadata | None:
        for file in plans.metadata_sources(log, version):
            said = self._json_commit(file) if file.kind is LogFileKind.COMMIT else self._state(file)
            if said.metadata is not None:
                return said.metadata
        return None

    def _refuse_parted(self, twin: plans.Twin) -> None:
        from tablefeed.indextables import replay

        replay.refuse_parted(self._json_commit(twin.commit), self.live_in(self._state(twin.state)), url=self.url)

    def _state_change(self, source: plans.StateChange) -> Commit:
        from tablefeed.indextables import avro_state, columns, replay
        from tablefeed.log.replay import live_files

        after, base = self._state(source.after), source.before.base
        if base is not None and base.kind is LogFileKind.STATE and not source.before.commits:
            before = self._state(base)
            read = replay.compared(before, after)
            return replay.state_commit(
                after,
                avro_state.live_among(after, self._bytes_of(read.after), url=self.url),
                before=avro_state.live_among(before, self._bytes_of(read.before), url=self.url),
                file_count_before=before.file_count,
                url=self.url,
            )
        turns = ([columns.of_commit(self._json_commit(file))] for file in reversed(source.before.commits))
        there = live_files(self._base_files(self._listed(), base), turns)
        return replay.state_commit(after, self.live_in(after), before=there, file_count_before=None, url=self.url)


def _path(name: str) -> str:
    return f"{names.LOG_DIR}/{name}"
