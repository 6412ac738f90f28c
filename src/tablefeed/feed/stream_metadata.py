"""Which metadata of a table a stream can go on with: the same table, and a schema that its query can read.

A query keeps the schema that it was analysed with for its life. The rules here are Delta-Spark's for a stream that does
not track metadata; those for one that does are in schema_tracking.py. The planner (source.py) asks either alike.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from tablefeed.delta.column_mapping import MappedSchema, has_mapping_change, mapped_schema, mapping_mode
from tablefeed.errors import LogError, OffsetError, SchemaChangedError, VersionNotFoundError
from tablefeed.feed.change_rules import is_mapped
from tablefeed.feed.in_force import metadata_at
from tablefeed.feed.table_log import Snapshot
from tablefeed.log.compatibility import can_read, can_read_older
from tablefeed.model.actions import Commit, Metadata, Version
from tablefeed.model.schema import Struct
from tablefeed.store import Entry


class StreamMetadata(Protocol):
    """The metadata that a stream reads with."""

    @property
    def read(self) -> Snapshot:
        """The table as its files are read, known once a beginning was checked."""

    @property
    def schema(self) -> Struct:
        """The schema in which they are read."""

    def begin(self, held_at: Version, begins_at: Version, *, in_snapshot: bool) -> None:
        """Checks that a stream can begin at a version with what held at another, which no commit that it reads tells.

        `in_snapshot`: it begins with the table as it was then.
        """

    def begin_batch(
        self, held_at: Version, begins_at: Version, last: Version, commits: Iterable[Commit], *, in_snapshot: bool
    ) -> None:
        """Checks the same of a batch that may have been planned by an earlier query.

        Of it are `commits`, those after `held_at`, up to `last`.
        """

    def check(self, commit: Commit) -> None:
        """Checks that the stream can come to `commit`."""

    def changes(self, commit: Commit) -> bool:
        """Says whether the stream has to stop before the files of `commit`."""

    def refuse(self, commit: Commit) -> None:
        """Raises for a commit whose files are to be read, though it `changes`."""

    def passed(self, commit: Commit) -> None:
        """Takes note of a commit that `changes`, once all before it is delivered."""


class FixedMetadata:
    """The metadata of a stream that does not track it. Raises OffsetError, SchemaChangedError."""

    def __init__(self, query: QuerySchema) -> None:
        self._query = query
        self._began = False
        self.read, self.schema = query.begun, query.schema

    def begin(self, held_at: Version, begins_at: Version, *, in_snapshot: bool) -> None:  # noqa: ARG002 - all the same
        """As of `StreamMetadata`; once. Raises LogError where it is not known any more what columns are in files."""
        if self._began:
            return
        begun = self._query.begun
        for version in (Version(min(v, begun.version)) for v in (held_at, begins_at)):
            try:
                held = metadata_at(version, begun)
            except VersionNotFoundError:
                continue
            break
        else:
            if is_mapped(begun.metadata, url=begun.log.url):
                raise self._unknown_names(begins_at)
            held = begun.metadata  # cleaned up: whatever changed since is in the commits that are read
        self._query.check(held, version)
        self._began = True

    def begin_batch(
        self,
        held_at: Version,
        begins_at: Version,
        last: Version,  # noqa: ARG002 - each commit is checked where it is read
        commits: Iterable[Commit],  # noqa: ARG002
        *,
        in_snapshot: bool,
    ) -> None:
        """As of `StreamMetadata`; raises as `begin` does."""
        self.begin(held_at, begins_at, in_snapshot=in_snapshot)

    def check(self, commit: Commit) -> None:
        """As of `StreamMetadata`."""
        if commit.metadata is not None:
            self._query.check(commit.metadata, commit.version)

    def changes(self, commit: Commit) -> bool:  # noqa: ARG002 - whatever it changes, `check` let it pass
        """As of `StreamMetadata`."""
        return False

    def refuse(self, commit: Commit) -> None:
        """As of `StreamMetadata`."""

    def passed(self, commit: Commit) -> None:
        """As of `StreamMetadata`."""

    def _unknown_names(self, version: Version) -> LogError:
        url = self._query.begun.log.url
        return LogError(
            f"The log of {url} does not go back far enough to tell what the columns of version {version} are "
            "called in its files; begin with a later version, and with a new checkpoint.",
            url=url,
            error_class="DELTA_STREAMING_CHECK_COLUMN_MAPPING_NO_SNAPSHOT",
        )


def check_table(*, of_query: str, found: str, url: str) -> None:
    """Raises OffsetError where the table `found` at `url` is not the one `of_query`."""
    if of_query != found:
        raise OffsetError(
            f"The checkpoint of this query is of the table with id {of_query}, but {url} is now the "
            f"table with id {found}: it was deleted and made anew, or the path is another's. Use a new checkpoint.",
            url=url,
            error_class="DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE",
        )


class SameTable:
    """That the table at a log is still the one that it was when a query began, `begun`."""

    def __init__(self, begun: Snapshot) -> None:
        self._begun = begun
        self._seen: tuple[Version, Entry | None] = (begun.version, begun.head)

    def check(self, read_to: Version) -> None:
        """Raises OffsetError where what was read up to `read_to` is of a table made anew, whose versions are alike."""
        version, head = self._seen
        if read_to == version:
            return
        log = self._begun.log
        if log.head(version) != head:
            check_table(of_query=self._begun.metadata.table_id, found=log.load().metadata.table_id, url=log.url)
        elif read_to < version:
            return  # still behind what was there at the start, which stands
        self._seen = (read_to, log.head(read_to))


@dataclass(frozen=True, slots=True, kw_only=True)
class QuerySchema:
    """The schema that a query reads with, the table's of version `analysed_at`, and what the table was when it began.

    `has_start` says whether the user named a start: the error of a schema that changed then has a class of its own.
    """

    schema: Struct
    analysed_at: Version
    begun: Snapshot
    has_start: bool

    def check(self, metadata: Metadata, version: Version) -> None:
        """Raises OffsetError or SchemaChangedError where rows of `version` cannot be delivered with this schema."""
        url, begun = self.begun.log.url, self.begun
        check_table(of_query=begun.metadata.table_id, found=metadata.table_id, url=url)
        theirs = mapped_schema(metadata, url=url)
        schema = theirs.schema
        self._check_mapping(theirs, version)
        fits = can_read_older if version <= self.analysed_at else can_read
        if fits(self.schema, schema) and metadata.partition_columns == begun.metadata.partition_columns:
            return
        raise SchemaChangedError(
            f"The schema of {url} at version {version} cannot be read with the schema that this query "
            f"started with. Start the query again with a new DataFrame; where that does not help, begin anew with a "
            f"new checkpoint. Started with: {', '.join(self.schema.names)}. At that version: "
            f"{', '.join(schema.names)}.",
            url=url,
            version=version,
            error_class="DELTA_SCHEMA_CHANGED_WITH_STARTING_OPTIONS"
            if self.has_start
            else "DELTA_SCHEMA_CHANGED_WITH_VERSION",
        )

    def _check_mapping(self, theirs: MappedSchema, version: Version) -> None:
        url, begun = self.begun.log.url, self.begun
        ours = MappedSchema(schema=self.schema, mode=mapping_mode(begun.metadata, url=url))
        older, newer = (theirs, ours) if version <= self.analysed_at else (ours, theirs)
        if has_mapping_change(older=older, newer=newer):
            raise SchemaChangedError(
                f"A column of {url} was renamed or dropped: version {version} has "
                f"{', '.join(theirs.schema.names)}, and this query reads {', '.join(self.schema.names)}. Give it a "
                "schemaTrackingLocation to go on over that change, or start with a new checkpoint on one side of it.",
                url=url,
                version=version,
                error_class="DELTA_STREAMING_INCOMPATIBLE_SCHEMA_CHANGE_USE_SCHEMA_LOG",
            )
