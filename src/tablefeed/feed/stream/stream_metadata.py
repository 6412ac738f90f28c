"""Which metadata of a table a stream can go on with: the same table, and a schema that its query can read.

A query keeps the schema that it was analysed with for its life. query_schema.py has the rules for a stream that does
not track metadata, schema_tracking.py for one that does. The planner (source.py) uses both through `StreamMetadata`.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import replace

from tablefeed.errors import LogError, LogGapError, SchemaChangedError, VersionNotFoundError
from tablefeed.feed.changes.change_rules import is_mapped
from tablefeed.feed.snapshot.in_force import metadata_at
from tablefeed.feed.snapshot.same_table import refuse_other
from tablefeed.feed.snapshot.table_log import Snapshot
from tablefeed.feed.stream.query_schema import QuerySchema
from tablefeed.model.actions import Commit, Metadata, Version
from tablefeed.model.schema import Struct

logger = logging.getLogger(__name__)

REMEDY = "Use a new checkpoint."
"""What to do where the path has another table than the stream began with."""


class StreamMetadata(ABC):
    """The metadata that a stream reads with. By default no commit changes it.

    `StreamSource` calls `begin` before it plans a batch and `begin_batch` before it reads one. Then it calls `check`
    for each commit, and `changes` (planning) or `refuse` (reading). `passed` comes last, once the batch is done.
    """

    read: Snapshot
    """The table with the metadata that its files are read with; final once `begin` or `begin_batch` returned."""
    schema: Struct
    """The schema in which the files are read."""

    @abstractmethod
    def begin(self, held_at: Version, begins_at: Version, *, is_first: bool) -> None:
        """Checks that the metadata of `held_at` suits a stream at `begins_at`; the commits it reads do not repeat it.

        `is_first`: the stream is at its start or in its initial snapshot, so it has delivered no older version.
        """

    def begin_batch(
        self,
        held_at: Version,
        begins_at: Version,
        last: Version,  # noqa: ARG002 - by default, each commit is checked where it is read
        commits: Iterable[Commit],  # noqa: ARG002
        *,
        is_first: bool,
    ) -> None:
        """Checks the same for a batch that an earlier run of the query may have planned.

        `commits` are the commits after `held_at`, up to `last`, the last version of the batch.
        """
        self.begin(held_at, begins_at, is_first=is_first)

    @abstractmethod
    def check(self, commit: Commit) -> None:
        """Checks that the stream can go on to `commit`."""

    def changes(self, commit: Commit) -> bool:  # noqa: ARG002
        """Says whether the stream must stop before the files of `commit`."""
        return False

    def refuse(self, commit: Commit) -> None:  # noqa: B027
        """Raises where `commit`, whose files are about to be read, `changes`."""

    def passed(self, commit: Commit) -> None:  # noqa: B027
        """Records a commit that `changes`. Called once everything before it is delivered."""


class FixedMetadata(StreamMetadata):
    """The metadata of a stream that does not track it: `check` accepts or refuses each change.

    Raises OffsetError, SchemaChangedError.
    """

    def __init__(self, query: QuerySchema) -> None:
        self._query = query
        self._began = False
        self._warned: frozenset[str] = frozenset()
        self.read, self.schema = query.begun, query.schema

    def begin(self, held_at: Version, begins_at: Version, *, is_first: bool) -> None:  # noqa: ARG002 - not needed
        """See `StreamMetadata`. Checks once.

        Raises LogError where the columns' names in files are not known now, and SchemaChangedError where the schema is
        not, because a later version changed the metadata.
        """
        if self._began:
            return
        begun = self._query.begun
        for version in (Version(min(v, begun.version)) for v in (held_at, begins_at)):
            try:
                held = metadata_at(version, begun)
            except VersionNotFoundError as error:
                changed_at = Version(error.earliest)
                continue
            break
        else:
            # A missing commit is a hole: an error, or else the first commit after it is checked (`check_behind_hole`).
            if begun.log.head(begins_at) is not None:
                self._check_known(begins_at, changed_at)
            held = begun.metadata
        try:
            self._check(held, version)
        except SchemaChangedError:
            # The stream reads no row of `held_at` where it begins after that version, so nulls there do no harm.
            if version == begins_at or not self._query.is_stricter(held):
                raise
            self._check(metadata_at(begins_at, begun), Version(min(begins_at, begun.version)))
        self._began = True

    def check(self, commit: Commit) -> None:
        """See `StreamMetadata`."""
        if commit.metadata is not None:
            self._check(commit.metadata, commit.version)

    def _check(self, metadata: Metadata, version: Version) -> None:
        begun = self._query.begun
        refuse_other(begun.url, expected=begun.metadata.table_id, found=metadata.table_id, remedy=REMEDY, at=version)
        added = self._query.check(metadata, version)
        if not self._warned.issuperset(added):
            # A commit may be checked more than once. The warning for a column is logged once.
            self._warned |= frozenset(added)
            logger.warning(
                "url=%s version=%d columns=%s were added and are not read until this query is started again",
                begun.log.url,
                version,
                ", ".join(added),
            )

    def _check_known(self, version: Version, changed_at: Version) -> None:
        """Raises where the schema of `version`, which was cleaned up, may not be that of the table now."""
        begun = self._query.begun
        if is_mapped(begun.metadata):
            raise LogError(
                f"The log of {begun.url} does not go back far enough to give the names that the columns of version "
                f"{version} have in files. Start with a later version and a new checkpoint.",
                url=begun.url,
                error_class="DELTA_STREAMING_CHECK_COLUMN_MAPPING_NO_SNAPSHOT",
            )
        changed = begun.log.commit(changed_at)
        if changed is not None and changed.metadata is not None:
            raise SchemaChangedError(
                f"Version {changed_at} of {begun.url} changes its metadata, and the log does not go back far enough to "
                f"give the schema of version {version}. Values of a column that was dropped would be lost. Start with "
                f"a new checkpoint, from the whole table. With startingVersion={changed_at} earlier rows are left out.",
                url=begun.url,
                version=changed_at,
                error_class="DELTA_SCHEMA_CHANGED_WITH_VERSION",
            )


def check_behind_hole(commit: Commit, metadata: StreamMetadata, *, expected: Version, begun: Snapshot) -> None:
    """Checks the table's metadata at `commit`, the first commit after a hole that begins at `expected`.

    A lost commit may have changed it. Raises as `StreamMetadata.check`. Raises LogGapError where no state at `commit`
    or later can be loaded, or where a lost commit changed the metadata and the stream tracks it. Raises LogError where
    a commit after the hole cannot be read.
    """
    url = begun.log.url
    held = begun.metadata_behind_hole(commit.version)
    if held is None:
        raise _hole(url, expected, commit, "No checkpoint after the gap gives the schema.")
    metadata.check(replace(commit, metadata=commit.metadata or held))
    if commit.metadata is None and metadata.changes(replace(commit, metadata=held, protocol=None)):
        raise _hole(url, expected, commit, "One of them changed the metadata that this stream tracks.")


def _hole(url: str, expected: Version, commit: Commit, why: str) -> LogGapError:
    return LogGapError(
        url=url,
        expected=expected,
        found=commit.version,
        remedy=f"They were removed. {why} So the stream cannot continue with failOnDataLoss=false either. Restore "
        "them, or start with a new checkpoint.",
        error_class="DELTA_MISSING_FILES_UNEXPECTED_VERSION",
    )
