"""An IndexTables table's log as the feed reads it, translated to Delta's model: facts, files and changes.

`tablefeed.indextables` decides which log files give a version; index_reader.py lists and reads them. The feed gets what
it gets from a Delta log: files in Delta's columns, extremes as statistics, commits with adds and removes. A version
that is only a state lists files, not changes. Its commit is computed as the difference from the version before.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tablefeed.delta.schema.partitioning import check_partition_columns
from tablefeed.errors import LogError, LogGapError, ObjectNotFoundError, naming_its_table
from tablefeed.feed.snapshot.index_reader import Choice, IndexReader, log_path
from tablefeed.feed.snapshot.next_best import DAMAGE, Damage, NextBest
from tablefeed.feed.snapshot.split_facts import Vocabulary, described_commit, described_files, described_metadata
from tablefeed.feed.snapshot.table_log import OwnTimes, Snapshot, TablePlace, TimeOf, required_commit, required_facts
from tablefeed.indextables import names
from tablefeed.indextables.log import listing as plans
from tablefeed.indextables.log import protocol as index_protocol
from tablefeed.indextables.log.schema_registry import registry_of_configuration
from tablefeed.indextables.log.version_file import Writer, writer_of
from tablefeed.log.facts import fold
from tablefeed.model.actions import Commit, Facts, Metadata, Protocol, Txn, Version
from tablefeed.model.cached import cached_property
from tablefeed.model.logfile import LogFile, LogFileKind
from tablefeed.store import Entry

if TYPE_CHECKING:
    import pyarrow as pa

    from tablefeed.data.predicate import Predicate
    from tablefeed.indextables.log.avro_state import State

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class IndexSnapshot(Snapshot):
    """An IndexTables table as of one version."""

    log: IndexTablesLog
    doc_mappings: Mapping[str, str]
    """By their hashes."""

    @property
    def vocabulary(self) -> Vocabulary:
        """The schema and the doc mappings, which are needed to interpret the statistics of its files."""
        return Vocabulary(schema=self.schema, doc_mappings=self.doc_mappings)

    def live_files(self, *, with_stats: bool = False, asked: Predicate | None = None) -> Iterator[pa.RecordBatch]:
        """See `Snapshot`. Memory is not bounded: all live files are held, in columns.

        `numRecords` is given even without `with_stats`, because readers compare it with the rows that they find. A
        manifest whose partitions `asked` rules out is not read.
        """
        vocabulary = self.vocabulary if with_stats else None
        files = self.log.files_of(self.version, self.unreadable, choose=None if asked is None else self._choice(asked))
        return (described_files(batch, vocabulary) for batch in files)

    def metadata_behind_hole(self, version: Version) -> Metadata:  # noqa: ARG002 - whichever it is
        """See `Snapshot`: no version changes the schema."""
        return self.metadata

    def own_times(self) -> OwnTimes:
        """See `Snapshot`: all commits have a time in their contents. Each of them is read."""
        return OwnTimes(since=0, since_ms=-math.inf, read=self._times)

    def _times(self, commits: Sequence[LogFile]) -> TimeOf:
        from tablefeed.feed.snapshot.timeline import growing

        own = (required_commit(self.log, log_file).committed_at_ms for log_file in commits)
        return growing(f if at is None else replace(f, modified_ms=at) for f, at in zip(commits, own, strict=True))

    def _choice(self, asked: Predicate) -> Choice:
        from tablefeed.feed.snapshot.manifest_pruning import asked_manifests

        types = {field.name: field.type for field in self.schema if field.name in self.metadata.partition_columns}
        return lambda manifests: asked_manifests(manifests, asked, types=types)


class IndexTablesLog(TablePlace):
    """The log at a store's root."""

    directory = names.LOG_DIR
    _has_states: bool | None = None
    """Whether the log has states beside its commits; None: not looked up yet."""
    _agreed: Version | None = None
    """A version whose state exists and agrees with its commit; None: no such version is known."""
    whole: tuple[Version, Entry | None, frozenset[str]] = (Version(0), None, frozenset())
    """The newest state that was seen with all of its manifests: its version, its file and their names."""
    in_doubt: tuple[Txn | None, Version] | None = None
    """The last write through this object, and the version after which it was first tried.

    None where its outcome is known. Else it may have been committed without our knowing it.
    """

    def listing(self, start: int = 0, *, over_holes: bool = False) -> list[LogFile]:
        """Gives the commits and checkpoints of versions from `start` on, as log files.

        A state counts as a checkpoint, and also as a commit where its changes can be computed. The store is asked only
        about the states from `start - 1` on.
        """
        log = self._reader.listed()
        log = self._reader.known(log, [version for version in log.states if version >= start - 1])
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

    def load(self, version: Version | None = None) -> IndexSnapshot:
        """See `TableLog`."""
        log = self._reader.listed()
        self._agreed = None  # another table may be there now
        best = NextBest(lambda without: self._segment(log, version, without=without), _base_name)
        (_, segment), facts, doc_mappings = best.read(lambda found: (found, *self._facts(*found)))
        return self._snapshot(segment.version, facts, doc_mappings, unreadable=best.without)

    def _facts(self, log: plans.Log, segment: plans.Segment) -> tuple[Facts, Mapping[str, str]]:
        commits = [self._reader.commit(file) for file in segment.commits]
        of_base, doc_mappings = self._reader.base_facts(log, segment.base)
        return fold(of_base, commits), doc_mappings

    def load_for_files(self, version: Version | None = None) -> IndexSnapshot:
        """See `TableLog`; nothing is kept of the log."""
        return self.load(version)

    def advance(self, snapshot: Snapshot) -> Snapshot:
        """See `TableLog`; a table that changed is loaded afresh."""
        newer = self.head(Version(snapshot.version + 1)) is not None or snapshot.head is None
        return self.load() if newer or self.head(snapshot.version) != snapshot.head else snapshot

    def commit(self, version: Version, *, over_holes: bool = False) -> Commit | None:
        """See `TableLog`; `committed_at_ms` is always looked up. A version without a valid commit uses its state."""
        name = names.commit_name(version)
        try:
            data = self.store.read(log_path(name))
        except ObjectNotFoundError:
            return self._commit_of_state(version, over_holes=over_holes)
        found = self._reader.decoded_commit(data, version, name)
        if version and found.files and self._is_lost(found, data):
            return self._commit_of_state(version, over_holes=over_holes)
        return described_commit(found, self._vocabulary)

    def head(self, version: Version) -> Entry | None:
        """See `TableLog`: the commit's file, or the state's."""
        commit = self.store.stat(log_path(names.commit_name(version)))
        return commit or (self.store.stat(log_path(names.state_name(version))) if version else None)

    def check_readable(self, protocol: Protocol, metadata: Metadata) -> None:
        """See `TableLog`."""
        index_protocol.refuse_reading(protocol, url=self.url)
        index_protocol.refuse_companion(metadata, url=self.url)

    def records_changes(self, metadata: Metadata) -> bool:  # noqa: ARG002 - whatever they are
        """See `TableLog`: a commit adds and removes only whole files, so the files show its changes."""
        return True

    def keeps_states(self, version: Version) -> bool:
        """Says whether the log has states beside its commits, of which `version` is the newest."""
        if not self._has_states and self._reader.state_file(version) is not None:
            self._has_states = True
        if self._has_states is None:
            log = self._reader.listed()
            self._has_states = bool(self._reader.known(log, log.states.keys()).states)
        return self._has_states

    def state(self, version: Version) -> State | None:
        """Gives the state of `version`, None where there is none."""
        file = self._reader.state_file(version) if version else None
        return None if file is None else self._reader.state(file)

    def agreed_state(self, version: Version) -> State | None:
        """Gives the state beside the commit of `version`, None where there is none.

        Raises LogError (INDEXTABLES_MIXED_LOG) where the two disagree: a next state would lose the commit's files.
        """
        name = names.commit_name(version)
        if version and self._agreed != version:
            data = self.store.read(log_path(name))
            self._is_lost(self._reader.decoded_commit(data, version, name), data)
        return self.state(version)

    def made_state(self, version: Version) -> None:
        """Records that the state of `version` exists and agrees with its commit, so that it is not compared again."""
        self._agreed = version

    def live_in(self, state: State) -> Iterator[pa.RecordBatch]:
        """Gives the live files of a state, in IndexTables' columns."""
        return self._reader.live_in(state)

    def files_of(
        self, version: Version, unreadable: frozenset[str], *, choose: Choice | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Gives the live files of `version` in IndexTables' columns, without using the log files in `unreadable`.

        If the version is read from a state, only the manifests that `choose` returns are read.
        """
        from tablefeed.indextables.log import columns
        from tablefeed.log.replay import live_files

        reader, log = self._reader, self._reader.listed()

        def files(found: tuple[plans.Log, plans.Segment]) -> list[pa.RecordBatch]:
            known, segment = found
            base = list(reader.base_files(known, segment.base, choose=choose))
            turns = ([columns.of_commit(reader.commit(file))] for file in reversed(segment.commits))
            return list(live_files(base, turns))

        best = NextBest(lambda without: reader.segment_of(log, version, without=without), _base_name, unreadable)
        return iter(best.read(files))

    @cached_property
    def _vocabulary(self) -> Vocabulary:
        """Of the newest version: the schema never changes, and a commit brings the doc mappings that its files need."""
        return self.load().vocabulary

    @property
    def _reader(self) -> IndexReader:
        return IndexReader(self.store)

    def after(self, before: Snapshot, entry: Commit, doc_mappings: Mapping[str, str], head: Entry) -> Snapshot:
        """Gives the snapshot after `entry`, which this process committed right after `before` with `doc_mappings`.

        `head` is the commit's file. It is not read back: the commit has succeeded even if the store fails now.
        """
        facts = fold(before.facts, [entry])
        mappings = {**doc_mappings_of(before), **doc_mappings}
        return self._snapshot(entry.version, facts, mappings, unreadable=before.unreadable, head=head)

    @naming_its_table
    def _snapshot(
        self,
        version: Version,
        facts: Facts,
        doc_mappings: Mapping[str, str],
        *,
        unreadable: frozenset[str],
        head: Entry | None = None,
    ) -> IndexSnapshot:
        protocol, plain = required_facts(facts, version, url=self.url, error_class="INDEXTABLES_STATE_INCONSISTENT")
        metadata = described_metadata(plain)
        self.check_readable(protocol, metadata)
        snapshot = IndexSnapshot(
            log=self,
            version=version,
            facts=replace(facts, metadata=metadata),
            protocol=protocol,
            metadata=metadata,
            head=head or self.head(version),
            unreadable=unreadable,
            doc_mappings={**doc_mappings, **registry_of_configuration(metadata.configuration)},
        )
        check_partition_columns(snapshot.schema, metadata.partition_columns)
        return snapshot

    def _commit_of_state(self, version: Version, *, over_holes: bool) -> Commit | None:
        reader = self._reader
        after = None if version == 0 else reader.state_file(version)
        if after is None:
            return None
        before = reader.state_file(Version(version - 1)) if version > 1 else None
        if before is None:
            source = self._listed_source(version, over_holes=over_holes)
        else:  # the plan that a listed log would give; listing it for each version would be slow
            source = plans.StateChange(
                version=version,
                before=plans.Segment(version=before.version, base=before, commits=()),
                after=after,
            )
        changed = self._state_change(source) if isinstance(source, plans.StateChange) else reader.commit(source)
        return described_commit(changed, self._vocabulary)

    def _listed_source(self, version: Version, *, over_holes: bool) -> plans.ChangeSource:
        log = self._reader.listed()
        log = self._reader.known(log, [each for each in log.states if each <= version]).without_commit(version)
        try:
            source = plans.change_source(log, version, url=self.url)
        except LogGapError:
            if not over_holes or version not in log.states:
                raise
            known = {*log.commits, *log.states, *log.checkpoints}
            for earlier in sorted((each for each in known if each < version - 1), reverse=True):
                try:
                    _, before = self._segment(log, earlier)
                except LogError:
                    continue
                return plans.StateChange(version=version, before=before, after=log.states[version])
            raise  # no earlier version is known: every live file would be reported as added
        if isinstance(source, plans.StateChange):
            _, before = self._segment(log, source.before.version)
            return replace(source, before=before)
        return source

    # --- commits that no state knows of ------------------------------------------------------------------------------

    def _segment(
        self, log: plans.Log, version: Version | None, *, without: frozenset[str] = frozenset()
    ) -> tuple[plans.Log, plans.Segment]:
        """Gives `IndexReader.segment_of` for a log whose commits and states agree, and `log` without orphan commits.

        Raises LogError (INDEXTABLES_MIXED_LOG) where a commit and a state disagree and neither is known to be right.
        """
        while True:
            log, segment = self._reader.segment_of(log, version, without=without)
            twin = segment.twin
            if twin is None:
                return log, segment
            data = self.store.read(log_path(twin.commit.name))
            if not self._is_lost(self._reader.decoded_commit(data, twin.commit.version, twin.commit.name), data):
                return log, segment
            log = log.without_commit(twin.commit.version)

    def _is_lost(self, commit: Commit, data: bytes) -> bool:
        """Whether `commit`, decoded from `data`, is an orphan: it disagrees with its state and no reader ever saw it.

        Raises LogError (INDEXTABLES_MIXED_LOG) where the two disagree and the commit is not surely an orphan. False
        where there is no state or it cannot be read: whoever needs that state raises the error.
        """
        from tablefeed.indextables.log import replay

        reader, file = self._reader, self._reader.state_file(commit.version)
        if file is None:
            return False
        try:
            state = reader.state(file)
            where = replay.parted(commit, reader.live_in(state))
            if where is None:
                self._agreed = commit.version
                return False
            is_orphan = replay.is_orphan(
                commit,
                state,
                reader.live_in(state),
                writer=writer_of(data),
                table_writer=self._form_of_table(),
            )
        except DAMAGE:
            return False
        if not is_orphan:
            raise replay.parted_error(commit.version, where, url=self.url)
        name = names.commit_name(commit.version)
        if name not in self._passed_over:
            self._passed_over.add(name)
            logger.warning("passed over orphan commit table=%s file=%s files=%d", self.url, name, len(commit.files))
        return True

    def _form_of_table(self) -> Writer | None:
        try:
            return writer_of(self.store.read(log_path(names.commit_name(0))))
        except ObjectNotFoundError:
            return None

    @cached_property
    def _passed_over(self) -> set[str]:
        return set()

    def _state_change(self, source: plans.StateChange) -> Commit:
        from tablefeed.indextables.log import avro_state, columns, replay
        from tablefeed.log.replay import live_files

        reader = self._reader
        after, base = reader.state(source.after), source.before.base
        if base is not None and base.kind is LogFileKind.STATE and not source.before.commits:
            before = reader.state(base)
            of_before, of_after = replay.compared(before, after)
            return replay.state_commit(
                after,
                avro_state.live_among(after, reader.bytes_of(of_after), url=self.url),
                before=avro_state.live_among(before, reader.bytes_of(of_before), url=self.url),
                file_count_before=before.file_count,
                url=self.url,
            )
        turns = ([columns.of_commit(reader.commit(file))] for file in reversed(source.before.commits))
        there = live_files(reader.base_files(reader.listed(), base), turns)
        return replay.state_commit(after, reader.live_in(after), before=there, file_count_before=None, url=self.url)


def doc_mappings_of(snapshot: Snapshot) -> Mapping[str, str]:
    """Gives the doc mappings of an IndexTables table by their hashes."""
    return snapshot.doc_mappings if isinstance(snapshot, IndexSnapshot) else {}


def _base_name(found: tuple[plans.Log, plans.Segment], error: Damage) -> frozenset[str]:  # noqa: ARG001 - as NextBest
    """The state or checkpoint that a version was read from: whatever failed, only another one may help."""
    base = found[1].base
    return frozenset() if base is None else frozenset({base.name})
