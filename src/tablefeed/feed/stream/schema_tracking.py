"""How a stream goes on over changes of its table's schema, properties and protocol: it tracks them in a log.

The rules are Delta-Spark's. Rows are read with the newest entry of the log. A commit that changes that metadata is a
barrier: a batch ends before it, and a batch without rows follows. When the first of the two is done, the change is
written to the log and the stream stops on purpose, so that Spark analyses its restart with the new schema
(schema_analysis.py). The first entry is the metadata that holds where the stream begins.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import replace

from tablefeed.delta import names
from tablefeed.delta.schema.column_mapping import has_mapping_change, mapped_schema
from tablefeed.delta.schema.schema_string import format_schema, schema_of
from tablefeed.delta.tracked import TrackedMetadata
from tablefeed.errors import LogError, MetadataEvolvedError, SchemaChangedError, SchemaLogError
from tablefeed.feed.snapshot.same_table import refuse_other
from tablefeed.feed.snapshot.table_files import for_store
from tablefeed.feed.snapshot.table_log import Snapshot, TableLog
from tablefeed.feed.stream.schema_log import SchemaLog, TrackedEntry, source_path
from tablefeed.feed.stream.schema_unblock import check_allowed
from tablefeed.feed.stream.source_options import TrackingOptions
from tablefeed.feed.stream.stream_metadata import REMEDY, StreamMetadata
from tablefeed.log import compatibility
from tablefeed.model.actions import Commit, Metadata, Protocol, Version
from tablefeed.model.cached import cached_property
from tablefeed.model.schema import Field, Struct, rebuilt
from tablefeed.store import open_store

logger = logging.getLogger(__name__)


class SchemaTracking(StreamMetadata):
    """The metadata that one stream reads with. Raises SchemaLogError, StoreError.

    When made, also raises SchemaChangedError, and UnsupportedFeatureError for a tracked protocol that is not handled.
    `begun` is the table as it was when the query began, `analysed` the schema in which its rows are delivered.
    """

    def __init__(self, begun: Snapshot, *, analysed: Struct, options: TrackingOptions) -> None:
        self._begun, self._analysed, self._options = begun, analysed, options
        self._url = begun.log.url
        self._log = schema_log_of(begun.log, begun.metadata, options)
        self._entry = self._log.newest()
        self._has_begun = False
        if self._entry is not None:
            self._check_goes_on(self._entry)

    @property
    def metadata(self) -> Metadata:
        """The metadata that files are read with."""
        if self._entry is not None:
            return self._entry.metadata.over(self._begun.metadata)
        return replace(self._begun.metadata, schema_string=format_schema(self._analysed))

    @cached_property
    def schema(self) -> Struct:  # the entry is known only after `begin`
        """See `StreamMetadata`."""
        return self.read.schema

    @cached_property
    def read(self) -> Snapshot:  # the entry is known only after `begin`
        """See `StreamMetadata`."""
        return replace(self._begun, metadata=self.metadata)

    def begin(self, held_at: Version, begins_at: Version, *, is_first: bool) -> None:
        """See `StreamMetadata`. Writes the first entry, the metadata at `held_at`, where the log is empty.

        Raises MetadataEvolvedError where that entry, or the metadata with which the stream begins, is not what the
        query reads with: the log may be that of an earlier query, or older than what this query has read.
        """
        if self._entry is None:
            at = self._at(held_at)
            self._note(at.version, at.metadata, at.protocol)
        elif not self._has_begun:
            self._has_begun = True  # from here on, each change is met as a commit
            if is_first:
                self._begin_anew(self._entry, held_at)
            else:
                self._catch_up(self._entry, Version(begins_at - 1))

    def begin_batch(
        self, held_at: Version, begins_at: Version, last: Version, commits: Iterable[Commit], *, is_first: bool
    ) -> None:
        """See `StreamMetadata`. Where the log is empty, its first entry is the metadata after the batch's last commit.

        Raises SchemaLogError (DELTA_STREAMING_SCHEMA_LOG_INIT_FAILED_INCOMPATIBLE_METADATA) where not all rows of the
        batch can be read with that, and as `begin`.
        """
        if self._entry is not None:
            self.begin(held_at, begins_at, is_first=is_first)
            return
        at = self._at(held_at)
        metadata, protocol = at.metadata, at.protocol
        seen = [metadata]
        for commit in commits:
            if commit.protocol is not None and not _features(protocol) <= _features(commit.protocol):
                raise self._not_one(held_at, last)
            protocol = commit.protocol or protocol
            if commit.metadata is not None:
                metadata = commit.metadata
                seen.append(metadata)
        if not all(can_read(metadata, older) for older in seen):
            raise self._not_one(held_at, last)
        self._note(last, metadata, protocol)

    def check(self, commit: Commit) -> None:
        """See `StreamMetadata`. Raises OffsetError where `commit` gives the table another id after the query began.

        Commits before that may have another id: `CREATE OR REPLACE TABLE` gives a table a new one.
        """
        if commit.metadata is not None and commit.version > self._begun.version:
            ours, theirs = self._begun.metadata.table_id, commit.metadata.table_id
            refuse_other(self._url, expected=ours, found=theirs, remedy=REMEDY, at=commit.version)

    def changes(self, commit: Commit) -> bool:
        """See `StreamMetadata`. True where `commit` changes the metadata and the newest entry is older than it."""
        return not self._covers(commit.version) and self._differs(commit.metadata, commit.protocol)

    def refuse(self, commit: Commit) -> None:
        """See `StreamMetadata`. Raises SchemaLogError where it `changes`: the log lacks a change that was passed."""
        if self.changes(commit):
            raise SchemaLogError(
                f"This stream has begun to read version {commit.version} of {self._url}, which changes the table's "
                f"metadata, but the log of tracked metadata at {self._log.url} lacks that change: it belongs to "
                "another stream, or is an older copy. Restore it, or start with a new checkpoint.",
                url=self._log.url,
                error_class="DELTA_STREAMING_SCHEMA_LOCATION_CONFLICT",
            )

    def passed(self, commit: Commit) -> None:
        """See `StreamMetadata`. Raises MetadataEvolvedError where it wrote an entry: the query must start again."""
        if self.changes(commit):
            entry = self._successor(commit.version, commit.metadata, commit.protocol)
            raise self._evolved(self._log.add(entry, after=self._entry))

    def _begin_anew(self, tracked: TrackedEntry, version: Version) -> None:
        at = None if self._covers(version) else self._at(version)
        if at is not None and self._differs(at.metadata, at.protocol):
            # This query has delivered no row under the entry that this one replaces.
            raise self._evolved(self._log.replace(tracked, self._successor(at.version, at.metadata, at.protocol)))

    def _catch_up(self, tracked: TrackedEntry, version: Version) -> None:
        """Tracks the metadata of `version`, the last that is read in full, where it changed while nothing tracked it.

        The query may have run without the option for a while. It may also have been set back: see `_check_set_back`.
        """
        try:
            at = self._at(version) if version >= 0 and version != tracked.metadata.version else None
        except LogError:
            return  # it was cleaned up
        if at is None:
            return
        if version < tracked.metadata.version:
            self._check_set_back(tracked, at)
        elif self._differs(at.metadata, at.protocol):
            raise self._evolved(self._log.add(self._successor(at.version, at.metadata, at.protocol), after=tracked))

    def _check_set_back(self, tracked: TrackedEntry, at: Snapshot) -> None:
        """Raises SchemaLogError where rows after `at`, from before `tracked`, would be read without their columns."""
        if can_read(self.metadata, at.metadata, widened=True):
            return
        until = tracked.metadata.version
        commits = map(self._begun.log.commit, map(Version, range(at.version + 1, until)))
        if any(commit is not None and commit.files for commit in commits):
            raise SchemaLogError(
                f"This stream goes on after version {at.version} of {self._url}, but the log of tracked metadata at "
                f"{self._log.url} has that of version {until}, in which columns of the rows in between are missing or "
                "have other names: the checkpoint was reset, or is an older copy. Give the stream a new "
                "schemaTrackingLocation or streamingSourceTrackingId. It then begins with the older metadata.",
                url=self._log.url,
                error_class="DELTA_STREAMING_SCHEMA_LOCATION_CONFLICT",
            )

    def _check_goes_on(self, entry: TrackedEntry) -> None:
        # Another reader may have tracked a feature that it handles, and that the table has dropped since.
        self._begun.log.check_readable(self._protocol, self.metadata)
        previous = self._log.before(entry)
        if previous is not None:
            check_allowed(
                previous=previous.metadata, current=entry.metadata, allowed=self._options.allowed, url=self._url
            )
        tracked = entry.metadata.schema
        if _without_metadata(tracked) != _without_metadata(self._analysed):
            raise SchemaChangedError(
                f"The schema of {self._url} that is tracked at {self._log.url} changed after this query's DataFrame "
                f"was made. Make a new DataFrame. It has: {', '.join(self._analysed.names)}. Tracked: "
                f"{', '.join(tracked.names)}.",
                url=self._url,
                version=entry.metadata.version,
                error_class="DELTA_STREAMING_SCHEMA_MISMATCH_ON_RESTART",
            )

    def _covers(self, version: Version) -> bool:
        return self._entry is not None and self._entry.metadata.version >= version

    def _differs(self, metadata: Metadata | None, protocol: Protocol | None) -> bool:
        if protocol is not None and protocol != self._protocol:
            return True
        if metadata is None:
            return False
        ours = self.metadata
        schema = self._analysed if self._entry is None else self._entry.metadata.schema
        return (
            _without_writers_own(schema_of(metadata)) != _without_writers_own(schema)
            or metadata.partition_columns != ours.partition_columns
            or _properties(metadata) != _properties(ours)
        )

    @property
    def _protocol(self) -> Protocol:
        tracked = None if self._entry is None else self._entry.metadata.protocol
        return self._begun.protocol if tracked is None else tracked

    def _at(self, version: Version) -> Snapshot:
        return self._begun if version >= self._begun.version else self._begun.log.load(version)

    def _note(self, version: Version, metadata: Metadata, protocol: Protocol) -> None:
        """Writes the first entry."""
        differs = self._differs(metadata, protocol)
        path = source_path(self._options.location, self._begun.log.storage_options)
        if not path:
            logger.warning(
                "url=%s is not below a checkpoint: keep this folder exactly as long as the query's checkpoint",
                self._log.url,
            )
        entry = self._log.add(self._tracked(version, metadata, protocol, path), after=None)
        if differs:
            raise self._evolved(entry)
        self._entry = entry

    def _successor(self, version: Version, metadata: Metadata | None, protocol: Protocol | None) -> TrackedMetadata:
        path = "" if self._entry is None else self._entry.metadata.source_path
        return self._tracked(version, metadata or self.metadata, protocol or self._protocol, path)

    def _tracked(self, version: Version, metadata: Metadata, protocol: Protocol, path: str) -> TrackedMetadata:
        table_id = self._begun.metadata.table_id
        return TrackedMetadata.of(version, metadata, protocol, table_id=table_id, source_path=path)

    def _evolved(self, entry: TrackedEntry) -> MetadataEvolvedError:
        version, schema = entry.metadata.version, entry.metadata.schema
        return MetadataEvolvedError(
            f"Version {version} of {self._url} changes its schema, properties or protocol. This stream tracks them "
            f"(schemaTrackingLocation), so it stopped on purpose. Start it again with a new DataFrame and the same "
            f"checkpoint. The columns are now: {', '.join(schema.names)}.",
            url=self._url,
            version=version,
        )

    def _not_one(self, first: Version, last: Version) -> SchemaLogError:
        return SchemaLogError(
            f"A batch of this stream was planned before its metadata was tracked. {self._url} changed within that "
            f"batch, between versions {first} and {last}, so no single schema can read it. Finish it without "
            "schemaTrackingLocation, or start with a new checkpoint.",
            url=self._log.url,
            error_class="DELTA_STREAMING_SCHEMA_LOG_INIT_FAILED_INCOMPATIBLE_METADATA",
        )


def can_read(newest: Metadata, older: Metadata, *, widened: bool = False) -> bool:
    """Says whether all rows written under `older`, with all their columns, can be read with `newest`.

    `widened`: also where the type of a column was widened since.
    """
    ours, theirs = mapped_schema(newest), mapped_schema(older)
    holds = compatibility.can_read_older if widened else compatibility.can_read
    fits = holds(ours.schema, theirs.schema) and newest.partition_columns == older.partition_columns
    return fits and not has_mapping_change(older=theirs, newer=ours)


def schema_log_of(log: TableLog, metadata: Metadata, options: TrackingOptions) -> SchemaLog:
    """Gives the log that tracks metadata for a stream of the table at `log`, which has `metadata`."""
    suffix = "" if options.tracking_id is None else f"_{options.tracking_id}"
    store = open_store(options.location, for_store(log.storage_options))
    return SchemaLog(store, f"_schema_log_{metadata.table_id}{suffix}", table_id=metadata.table_id)


def _properties(metadata: Metadata) -> dict[str, str]:
    return {key: value for key, value in metadata.configuration.items() if key.startswith("delta.")}


def _features(protocol: Protocol) -> frozenset[str]:
    return (protocol.reader_features or frozenset()) | (protocol.writer_features or frozenset())


def _without_writers_own(schema: Struct) -> Struct:
    """`schema` without its columns' generation expressions and identity values: only writers use them."""

    def kept(key: str) -> bool:
        return key != names.GENERATION_EXPRESSION and not key.startswith(names.IDENTITY_PREFIX)

    return Struct(
        tuple(replace(f, metadata={key: value for key, value in f.metadata.items() if kept(key)}) for f in schema)
    )


def _without_metadata(schema: Struct) -> Struct:
    return rebuilt(schema, lambda _, field: Field(field.name, field.type, field.nullable))
