"""Which metadata of a table a stream can go on with: the same table, and a schema that its query can read.

A query keeps the schema that it was analysed with for its life. The rules for a stream that does not track metadata are
those of query_schema.py, for one that does those of schema_tracking.py. The planner (source.py) asks either alike.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import replace
from typing import Protocol

from tablefeed.errors import LogError, LogGapError, OffsetError, SchemaChangedError, VersionNotFoundError
from tablefeed.feed.changes.change_rules import is_mapped
from tablefeed.feed.snapshot.in_force import metadata_at
from tablefeed.feed.snapshot.table_log import Snapshot
from tablefeed.feed.stream.query_schema import QuerySchema
from tablefeed.model.actions import Commit, Metadata, Version
from tablefeed.model.schema import Struct

logger = logging.getLogger(__name__)


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
        self._told: frozenset[str] = frozenset()
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
        try:
            self._check(held, version)
        except SchemaChangedError:
            # Of `held_at` no row is read any more where it ends before: then its nulls are none of the stream's.
            if version == begins_at or not self._query.is_stricter(held):
                raise
            self._check(metadata_at(begins_at, begun), Version(min(begins_at, begun.version)))
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
            self._check(commit.metadata, commit.version)

    def changes(self, commit: Commit) -> bool:  # noqa: ARG002 - whatever it changes, `check` let it pass
        """As of `StreamMetadata`."""
        return False

    def refuse(self, commit: Commit) -> None:
        """As of `StreamMetadata`."""

    def passed(self, commit: Commit) -> None:
        """As of `StreamMetadata`."""

    def _check(self, metadata: Metadata, version: Version) -> None:
        begun = self._query.begun
        check_table(of_query=begun.metadata.table_id, found=metadata.table_id, url=begun.log.url)
        added = self._query.check(metadata, version)
        if not self._told.issuperset(added):
            # Commits are walked by each plan that comes to them: of a column it is said once.
            self._told |= frozenset(added)
            logger.warning(
                "url=%s version=%d columns=%s were added and are not read until this query is started again",
                begun.log.url,
                version,
                ", ".join(added),
            )

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


def check_behind_hole(commit: Commit, metadata: StreamMetadata, *, expected: Version, begun: Snapshot) -> None:
    """Checks `metadata` at `commit`, the first behind lost commits from `expected` on, which may have changed it.

    Raises as `StreamMetadata.check`, and LogGapError where no state at `commit` or later is known any more, or where
    the metadata that a stream tracks changed in a lost commit: what is tracked is what commits bring.
    """
    log = begun.log
    if log.has_splits:
        return  # no version changes the schema
    try:
        newest = begun if commit.version <= begun.version else log.load()
    except LogError as error:
        raise _hole(log.url, expected, commit, "No checkpoint behind the hole tells the schema there.") from error
    try:
        held = metadata_at(commit.version, newest)
    except VersionNotFoundError:
        held = newest.metadata  # another hole follows: the next state that is known decides
    metadata.check(replace(commit, metadata=commit.metadata or held))
    if commit.metadata is None and metadata.changes(replace(commit, metadata=held, protocol=None)):
        raise _hole(log.url, expected, commit, "One of them changed the metadata that this stream tracks.")


def _hole(url: str, expected: Version, commit: Commit, why: str) -> LogGapError:
    return LogGapError(
        url=url,
        expected=expected,
        found=commit.version,
        remedy=f"They were removed. {why} So failOnDataLoss=false does not go on either: restore them, or start with a "
        "new checkpoint.",
        error_class="DELTA_MISSING_FILES_UNEXPECTED_VERSION",
    )
