"""A Delta table's log as the feed reads it: which object is read when, and what is tried next if it is bad.

The bytes are `tablefeed.delta`'s, what follows from them `tablefeed.log`'s. Nothing is cached here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from tablefeed.delta import codec, features, names
from tablefeed.delta.last_checkpoint import parse_last_checkpoint
from tablefeed.delta.schema import parse_schema, to_arrow
from tablefeed.errors import (
    CorruptLogError,
    LogError,
    ObjectNotFoundError,
    StoreError,
    TablefeedError,
    TableNotFoundError,
)
from tablefeed.log.replay import fold
from tablefeed.log.segment import LogSegment, build_segment
from tablefeed.model.actions import Commit, Facts, Metadata, Protocol, Version
from tablefeed.model.logfile import LogFile
from tablefeed.model.schema import Struct
from tablefeed.store import Entry, Store, open_store

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """A table as of one version: its facts are loaded, its files are read when asked for.

    Guaranteed: the table has a protocol that this version of tablefeed can read, and metadata.
    """

    log: TableLog
    version: Version
    facts: Facts
    protocol: Protocol
    metadata: Metadata
    head: Entry | None
    """The newest commit's file as the store lists it: how a table made anew at the same place is told apart.
    None where there is none (a checkpoint stands for it) or the store did not say."""
    unreadable: frozenset[str] = frozenset()
    """Checkpoint files that could not be read when the facts were loaded."""

    @cached_property
    def schema(self) -> Struct:
        """The table's schema, partition columns included, in its order."""
        return parse_schema(self.metadata.schema_string, url=self.log.url)

    @cached_property
    def arrow_schema(self) -> pa.Schema:
        """The same in Arrow."""
        return to_arrow(self.schema)

    def live_files(self, *, with_stats: bool = False) -> Iterator[pa.RecordBatch]:
        """Gives the live files in columns (`tablefeed.delta.columns.FILE_COLUMNS`), in no stated order."""
        from tablefeed.log.replay import each_once, live_files

        segment = self.log.segment(self.version, without=self.unreadable)
        checkpoint = self.log.checkpoint_columns(segment, with_stats=with_stats)
        return live_files(each_once(checkpoint, url=self.log.url), self.log.commit_columns(segment))


def open_log(location: str, storage_options: Mapping[str, str] | None = None) -> TableLog:
    """Gives the log at `location`, a path or URL as users write them. Nothing is read yet."""
    options = dict(storage_options or {})
    return TableLog(open_store(location, options), location=location, storage_options=options)


class TableLog:
    """The log at a store's root. Raises LogError, TableError and StoreError with the table's url.

    `location` and `storage_options` are what the store was opened with, for tasks that open it elsewhere; `url` is
    for people and holds no credentials.
    """

    def __init__(self, store: Store, *, location: str, storage_options: Mapping[str, str]) -> None:
        self.store = store
        self.url = store.url
        self.location = location
        self.storage_options = storage_options

    def listing(self, start: int = 0) -> list[LogFile]:
        """Gives the log files of versions from `start` on, by name."""
        entries = self.store.list(names.LOG_DIR, start=f"{start:020d}")
        found = (names.parse_name(e.name, size_bytes=e.size_bytes, modified_ms=e.modified_ms) for e in entries)
        return [log_file for log_file in found if log_file is not None]

    def load(self, version: Version | None = None) -> Snapshot:
        """Gives the table as of `version`, the newest by default.

        A checkpoint that cannot be read is passed over for an earlier one or the commits; the error stands only
        where neither reaches. Raises TableNotFoundError, VersionNotFoundError, LogGapError, UnsupportedFeatureError.
        """
        without: frozenset[str] = frozenset()
        first: CorruptLogError | ObjectNotFoundError | None = None
        while True:
            try:
                segment = self.segment(version, without=without)
            except TablefeedError as error:
                if first is None:
                    raise
                raise first from error
            try:
                facts = self._facts(segment)
            except (CorruptLogError, ObjectNotFoundError) as error:
                first = first or error
                if not segment.checkpoint:
                    raise first from None
                without |= {f.name for f in segment.checkpoint}
                continue
            return self.snapshot(segment.version, facts, unreadable=without)

    def segment(self, version: Version | None = None, *, without: frozenset[str] = frozenset()) -> LogSegment:
        """Gives the files that `version`, or the newest version, is read from; `without` leaves checkpoints out."""
        hint = self._hinted_version()
        if hint is not None and not without and (version is None or hint <= version):
            try:
                return build_segment(self.listing(hint), version=version, url=self.url, without=without)
            except (LogError, TableNotFoundError):
                pass  # the hint was stale or wrong: the whole listing decides
        files = self.listing()
        if not files:
            raise self._no_table()
        return build_segment(files, version=version, url=self.url, without=without)

    def commit(self, version: Version, *, timed: bool = False) -> Commit | None:
        """Gives the commit of `version`, None where there is no such log file; one request.

        `timed` asks the store for the file's time too, so that `committed_at_ms` is known.
        """
        name = names.commit_name(version)
        path = f"{names.LOG_DIR}/{name}"
        try:
            data = self.store.read(path)
        except ObjectNotFoundError:
            return None
        entry = self.store.stat(path) if timed else None
        modified_ms = entry.modified_ms if entry else None
        return codec.decode_commit(data, version=version, url=self.url, log_file=name, modified_ms=modified_ms)

    def required_commit(self, log_file: LogFile) -> Commit:
        """Gives the commit in a listed `log_file`; ObjectNotFoundError where it is gone by now."""
        data = self.store.read(f"{names.LOG_DIR}/{log_file.name}")
        return codec.decode_commit(
            data, version=log_file.version, url=self.url, log_file=log_file.name, modified_ms=log_file.modified_ms
        )

    def checkpoint_columns(self, segment: LogSegment, *, with_stats: bool) -> Iterator[pa.RecordBatch]:
        """Gives the files of the segment's checkpoint in columns."""
        from tablefeed.delta import checkpoint

        for part in segment.checkpoint:
            with self.store.open_input(f"{names.LOG_DIR}/{part.name}") as source:
                yield from checkpoint.read_files(source, with_stats=with_stats, url=self.url, log_file=part.name)

    def commit_columns(self, segment: LogSegment) -> Iterator[pa.RecordBatch]:
        """Gives the file actions of the segment's commits in columns, in log order."""
        from tablefeed.delta.columns import decode_commit_columns

        for log_file in segment.commits:
            data = self.store.read(f"{names.LOG_DIR}/{log_file.name}")
            batches, _ = decode_commit_columns(
                data,
                version=log_file.version,
                url=self.url,
                log_file=log_file.name,
                modified_ms=log_file.modified_ms,
            )
            yield from batches

    def head(self, version: Version) -> Entry | None:
        """Gives the file of the commit of `version` as the store lists it, None where there is none."""
        return self.store.stat(f"{names.LOG_DIR}/{names.commit_name(version)}")

    def advance(self, snapshot: Snapshot) -> Snapshot:
        """Gives the newest state, reading only the commits after `snapshot`, each once, by name.

        A table that was deleted and made anew at the same place is noticed by its last commit's file and loaded afresh.
        """
        if self.head(snapshot.version) != snapshot.head:
            return self.load()
        newer: list[Commit] = []
        while (commit := self.commit(Version(snapshot.version + len(newer) + 1))) is not None:
            newer.append(commit)
        if not newer:
            return snapshot
        return self.snapshot(newer[-1].version, fold(snapshot.facts, newer), unreadable=snapshot.unreadable)

    def _facts(self, segment: LogSegment) -> Facts:
        facts = Facts()
        if segment.checkpoint:
            from tablefeed.delta import checkpoint

            for part in segment.checkpoint:
                with self.store.open_input(f"{names.LOG_DIR}/{part.name}") as source:
                    facts = _merged(facts, checkpoint.read_facts(source, url=self.url, log_file=part.name))
        return fold(facts, (self.required_commit(f) for f in segment.commits))

    def snapshot(self, version: Version, facts: Facts, *, unreadable: frozenset[str] = frozenset()) -> Snapshot:
        """Gives the state with `facts` at `version`; refuses what cannot be read, by name.

        `unreadable` are the checkpoint files that were passed over on the way.
        """
        if facts.protocol is None or facts.metadata is None:
            missing = "protocol" if facts.protocol is None else "metadata"
            raise LogError(
                f"The log of {self.url} holds no {missing} action up to version {version}: it is damaged. "
                "Restore the missing log files.",
                url=self.url,
                error_class="DELTA_STATE_RECOVER_ERROR",
            )
        features.check_readable(facts.protocol, facts.metadata, url=self.url)
        try:
            head = self.head(version)
        except StoreError:
            head = None  # unknown, so that the next `advance` loads afresh
        return Snapshot(
            log=self,
            version=version,
            facts=facts,
            protocol=facts.protocol,
            metadata=facts.metadata,
            head=head,
            unreadable=unreadable,
        )

    def _hinted_version(self) -> Version | None:
        try:
            data = self.store.read(f"{names.LOG_DIR}/{names.LAST_CHECKPOINT}")
        except ObjectNotFoundError:
            return None
        hint = parse_last_checkpoint(data)
        return hint.version if hint else None

    def _no_table(self) -> TableNotFoundError:
        if self.store.is_file_at_root():
            why = "it is a file. Give the table's folder"
        elif next(iter(self.store.list("_transaction_log")), None) is not None:
            why = "it holds an IndexTables log, which this version of tablefeed does not read"
        else:
            why = (
                f"it has no {names.LOG_DIR}, or none with a commit or a checkpoint. Check the path; a table is there "
                "after its first commit"
            )
        return TableNotFoundError(f"There is no Delta table at {self.url}: {why}.", url=self.url)


def _merged(facts: Facts, part: Facts) -> Facts:
    # The parts of one checkpoint each hold some of its rows, so that no two say the same thing.
    return Facts(
        protocol=part.protocol or facts.protocol,
        metadata=part.metadata or facts.metadata,
        txns={**facts.txns, **part.txns},
        domains={**facts.domains, **part.domains},
    )
