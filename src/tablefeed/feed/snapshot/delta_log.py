"""A Delta table's log as the feed reads it: which file is read when, and what is tried next if it cannot be read.

`tablefeed.delta` decodes the bytes; `tablefeed.log` derives the table's state from them. Only the names of the
last segment's files are kept here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tablefeed.delta import codec, features, names
from tablefeed.delta.checkpoint.last_checkpoint import Hint, parse_last_checkpoint
from tablefeed.delta.properties import TableProperties
from tablefeed.delta.schema.partitioning import check_partition_columns
from tablefeed.errors import (
    LogError,
    ObjectNotFoundError,
    StoreError,
    TableNotFoundError,
    VersionNotFoundError,
    naming,
    naming_its_table,
)
from tablefeed.feed.snapshot.next_best import NextBest
from tablefeed.feed.snapshot.segment_reader import Reading, SegmentReader, is_as_listed, passed_over
from tablefeed.feed.snapshot.table_log import MADE_MEANWHILE, OwnTimes, Snapshot, TablePlace, required_facts
from tablefeed.log.facts import fold
from tablefeed.log.segment import LogSegment, build_segment, whole_checkpoints
from tablefeed.model.actions import Commit, Facts, Metadata, Protocol, Version
from tablefeed.model.logfile import LogFile, LogFileKind
from tablefeed.store import Entry

if TYPE_CHECKING:
    import pyarrow as pa

    from tablefeed.data.predicate import Predicate

FOUND_BY_NAME = 3
"""The most commits that are looked up by name. For more, one listing is cheaper."""


@dataclass(frozen=True, kw_only=True)
class DeltaSnapshot(Snapshot):
    """A Delta table as of one version."""

    log: DeltaLog
    reading: Reading | None = None
    """What is kept of the log for reading the files next. None: nothing is kept, so the log is listed again."""

    def live_files(
        self,
        *,
        with_stats: bool = False,
        asked: Predicate | None = None,  # noqa: ARG002 - checkpoints are read whole
    ) -> Iterator[pa.RecordBatch]:
        """See `Snapshot`. Streamed in bounded memory, also where damage is found after some files were given."""
        from tablefeed.feed.snapshot.live_files import held_against_checksum, stream_live_files

        reader, segments = SegmentReader(self.log.store), self.segments()
        reading = self.reading or Reading(segment=segments.next())
        files = stream_live_files(reader, reading, segments, with_stats=with_stats)
        return held_against_checksum(files, reader, reading.segment, self.facts, url=self.log.url)

    def loaded_files(self) -> Iterator[pa.RecordBatch] | None:
        """See `Snapshot`: those of a short log without a checkpoint."""
        from tablefeed.log.replay import live_files

        kept = self.reading
        return None if kept is None or kept.tail is None or kept.segment.checkpoint else live_files((), kept.tail)

    def segments(self) -> NextBest[LogSegment]:
        """Gives the log files that the version is read from, without those that are known to be unreadable."""
        return self.log.segments(self.version, self.unreadable)

    def metadata_behind_hole(self, version: Version) -> Metadata | None:
        """See `Snapshot`: a lost commit may have changed it."""
        from tablefeed.feed.snapshot.in_force import metadata_at

        try:
            newest = self if version <= self.version else self.log.load()
        except LogError:
            return None
        try:
            return metadata_at(version, newest)
        except VersionNotFoundError:
            return newest.metadata  # another hole follows, so the newest state decides

    def own_times(self) -> OwnTimes | None:
        """See `Snapshot`: in-commit timestamps."""
        from tablefeed.feed.snapshot.timeline import in_commit_times

        return in_commit_times(self)


class DeltaLog(TablePlace):
    """The log at a store's root."""

    directory = names.LOG_DIR
    _listed: LogSegment | None = None
    """The last segment: the names of its files, without their contents."""
    hint_at_opening: bytes | None = None
    """`_last_checkpoint` as it was read to find out the table's format, empty where there was none. Only the first load
    uses it. An older hint costs a longer listing, and the listing shows every newer checkpoint."""
    last_hint: Hint | None = None
    """What `_last_checkpoint` said when it was last read, None where that was nothing. It may be outdated."""
    knows_ratified = False
    """Whether `store` has the commits that the catalog of the table has ratified, and no other (catalog_log.py)."""

    def listing(self, start: int = 0, *, over_holes: bool = False) -> list[LogFile]:  # noqa: ARG002 - as of `commit`
        """See `TableLog`. It has every commit that was made before another one that it has."""
        listed = _log_files(self.store.list(names.LOG_DIR, start=f"{start:020d}"))
        return sorted([*listed, *self._made_meanwhile(listed)], key=lambda log_file: log_file.name)

    def _made_meanwhile(self, listed: Sequence[LogFile]) -> list[LogFile]:
        """Gives the commits that `listed` lacks though it has later ones, and that exist.

        A disk lists a folder in an order of its own. If two commits are made meanwhile, a listing may have only the
        later one.
        """
        commits = {log_file.version for log_file in listed if log_file.kind is LogFileKind.COMMIT}
        newest = max(commits, default=0)
        versions = range(max(min(commits, default=0), newest - MADE_MEANWHILE), newest)
        heads = (self.head(Version(version)) for version in versions if version not in commits)
        return _log_files(head for head in heads if head is not None)

    def load(self, version: Version | None = None) -> DeltaSnapshot:
        """See `TableLog`. Instead of a checkpoint or compaction, an earlier one or the commits may be read."""
        reader = SegmentReader(self.store)
        return self._load(version, lambda segment: (reader.facts(segment), None))

    def load_for_files(self, version: Version | None = None) -> DeltaSnapshot:
        """See `TableLog`. A short tail is decoded only once.

        The snapshot keeps the decoded tail, up to `segment_reader.KEPT_TAIL_BYTES` of log, for as long as it lives.
        """
        return self._load(version, SegmentReader(self.store).facts_and_files)

    def _load(
        self,
        version: Version | None,
        read: Callable[[LogSegment], tuple[Facts, Reading | None]],
        *,
        is_first_try: bool = True,
    ) -> DeltaSnapshot:
        kept, segments = self._listed, self.segments(version)
        try:
            segment, (facts, reading) = segments.read(lambda segment: (segment, read(segment)))
        except ObjectNotFoundError:
            if kept is None:
                raise
            self._listed = None  # a file of it is gone: the listing says what the log has now
            return self._load(version, read)
        snapshot = self.snapshot(segment.version, facts, unreadable=segments.without, reading=reading)
        if is_first_try and not _is_listed(snapshot.head, segment, is_newest=version is None):
            self._listed = None  # the table was replaced since the listing: these facts may be those of another one
            return self._load(version, read, is_first_try=False)
        if self.knows_ratified and version is None:  # an earlier version may be from before the catalog managed them
            with naming(self.url):
                features.check_managed(snapshot.protocol)
        return snapshot

    def segments(self, version: Version | None = None, without: frozenset[str] = frozenset()) -> NextBest[LogSegment]:
        """Gives what `segment` gives, and others where log files turn out to be unreadable."""
        return NextBest(lambda left_out: self.segment(version, without=left_out), passed_over, without)

    @naming_its_table
    def segment(self, version: Version | None = None, *, without: frozenset[str] = frozenset()) -> LogSegment:
        """Gives the log files that `version`, or the newest version, is read from; none is named in `without`."""
        hint = self._hinted_version()
        if hint is not None and version is not None and hint > version:
            hint = None
        if hint is not None and not without:
            try:
                segment = build_segment(self._files_from(hint, version), version=version, without=without)
            except (LogError, TableNotFoundError):
                pass  # the hint was stale or wrong: the whole listing decides
            else:
                self._listed = segment  # written, not read back: another thread may ask for another version meanwhile
                return segment
        files = self.listing()
        if not files:
            raise self._no_table()
        try:
            return build_segment(files, version=version, without=without)
        except VersionNotFoundError:
            raise
        except LogError as hole:
            newest = max(whole_checkpoints(files), default=None)
            if hint is None or (newest is not None and newest >= hint):
                raise
            raise LogError(
                f"The last checkpoint of {self.url}, of version {hint}, is gone or lacks a part, and so are commits "
                "that it replaces. Restore the checkpoint or the commits.",
                url=self.url,
                error_class="DELTA_MISSING_PART_FILES",
            ) from hole

    def _files_from(self, hint: Version, version: Version | None) -> list[LogFile]:
        """Gives the log files from the checkpoint of `hint` on: those of the last segment, and the newer ones.

        Newer files are looked up by name, because a local store reads the whole folder to list a part of it. If there
        may be many of them, or the last segment has another checkpoint, the log is listed.
        """
        known = self._listed
        if known is None or version is None or version - known.version > FOUND_BY_NAME:
            return self.listing(hint)
        if {log_file.version for log_file in known.checkpoint} != {hint}:
            return self.listing(hint)
        later = [*map(names.commit_name, range(known.version + 1, version + 1)), names.checksum_name(version)]
        found = (self.store.stat(f"{names.LOG_DIR}/{name}") for name in later)
        return [*known.checkpoint, *known.commits, *_log_files(entry for entry in found if entry is not None)]

    def commit(self, version: Version, *, over_holes: bool = False) -> Commit | None:  # noqa: ARG002 - never computed
        """See `TableLog`; one request."""
        return self._read(version, codec.decode_commit)

    def commit_facts(self, version: Version) -> Commit | None:
        """Gives the facts in the commit of `version`, without its files; None where it does not exist; one request."""
        return self._read(version, codec.decode_facts)

    def _read(self, version: Version, decode: Callable[..., Commit]) -> Commit | None:
        name = names.commit_name(version)
        try:
            data = self.store.read(f"{names.LOG_DIR}/{name}")
        except ObjectNotFoundError:
            return None
        with naming(self.url):
            return decode(data, version=version, log_file=name, modified_ms=None)

    def head(self, version: Version) -> Entry | None:
        """See `TableLog`."""
        return self.store.stat(f"{names.LOG_DIR}/{names.commit_name(version)}")

    def advance(self, snapshot: Snapshot) -> Snapshot:
        """See `TableLog`. Reads only the commits after `snapshot`, by name."""
        newer, first = list[Commit](), Version(snapshot.version + 1)
        head = self.head(first)  # before it is read: later it may be another commit's
        while head is not None and (commit := self.commit_facts(Version(first + len(newer)))) is not None:
            newer.append(commit)
        if len(newer) > 1:
            head = self.head(newer[-1].version)
            if self.commit_facts(newer[-1].version) != newer[-1]:
                return self.load()
        # Checked last: what was asked before is of this table. A file that is not known may be of any.
        if snapshot.head is None or self.head(snapshot.version) != snapshot.head:
            return self.load()
        if not newer:
            return snapshot
        facts = fold(snapshot.facts, newer)
        return self.snapshot(newer[-1].version, facts, unreadable=snapshot.unreadable, head=head)

    @naming_its_table
    def snapshot(
        self,
        version: Version,
        facts: Facts,
        *,
        unreadable: frozenset[str] = frozenset(),
        reading: Reading | None = None,
        head: Entry | None = None,
    ) -> DeltaSnapshot:
        """Gives the state with `facts` at `version`; refuses, by name, a table feature that cannot be read.

        `unreadable` are the log files that could not be read on the way. `reading` is what is kept for reading the
        files. `head` is the commit's file where the store was asked for it already.
        """
        protocol, metadata = required_facts(facts, version, url=self.url, error_class="DELTA_STATE_RECOVER_ERROR")
        self.check_readable(protocol, metadata)
        try:
            head = head or self.head(version)
        except StoreError:
            head = None  # unknown, so the next `advance` loads afresh
        snapshot = DeltaSnapshot(
            log=self,
            version=version,
            facts=facts,
            protocol=protocol,
            metadata=metadata,
            head=head,
            unreadable=unreadable,
            reading=reading,
        )
        if metadata.partition_columns:
            check_partition_columns(snapshot.schema, metadata.partition_columns)
        return snapshot

    @naming_its_table
    def check_readable(self, protocol: Protocol, metadata: Metadata) -> None:
        """See `TableLog`."""
        features.check_readable(protocol, metadata, knows_ratified=self.knows_ratified)

    def records_changes(self, metadata: Metadata) -> bool:
        """See `TableLog`."""
        return TableProperties.of(metadata).records_changes

    def _hinted_version(self) -> Version | None:
        data, self.hint_at_opening = self.hint_at_opening, None
        try:
            data = self.store.read(f"{names.LOG_DIR}/{names.LAST_CHECKPOINT}") if data is None else data
        except StoreError:
            return None  # the hint only saves time: the listing has the checkpoints too
        self.last_hint = hint = parse_last_checkpoint(data)
        return hint.version if hint else None

    def _no_table(self) -> TableNotFoundError:
        if self.store.is_file_at_root():
            why = "it is a file. Give the table's folder"
        else:
            why = (
                f"it has no {names.LOG_DIR}, or none with a commit or a checkpoint. Check the path; a table is there "
                "after its first commit"
            )
        return TableNotFoundError(f"There is no Delta table at {self.url}: {why}.", url=self.url)


def _is_listed(head: Entry | None, segment: LogSegment, *, is_newest: bool) -> bool:
    """Whether `head` is the file that was listed as the segment's newest commit; also where none was listed.

    It may be gone: a cleanup deletes old commits. But it keeps the newest one (`is_newest`). If that is gone, an older
    copy of the table was restored.
    """
    newest = next((file for file in segment.commits[-1:] if file.version == segment.version), None)
    if newest is None:
        return True
    return not is_newest if head is None else is_as_listed(head, newest)


def _log_files(entries: Iterable[Entry]) -> list[LogFile]:
    found = (
        names.parse_name(entry.name.rpartition("/")[2], size_bytes=entry.size_bytes, modified_ms=entry.modified_ms)
        for entry in entries
    )
    return [log_file for log_file in found if log_file is not None]
