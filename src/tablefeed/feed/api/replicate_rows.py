"""Copies a table by its rows, if the copy cannot have the same files. Each commit of the source becomes one write.

A commit that only adds rows is appended. For a commit that changes rows or columns in any other way, the target gets
the whole version of the source. Each write is one call of `append` with a txn. The user metadata of its commit names
the copied version.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

import orjson

from tablefeed.delta.names import COLUMN_MAPPING_MODE, COPIED_FROM
from tablefeed.delta.schema.column_mapping import has_mapping_change, mapped_schema
from tablefeed.errors import ConflictError, DataFileError, LogError
from tablefeed.feed.api.append import append
from tablefeed.feed.api.appends import appends
from tablefeed.feed.api.table import Table
from tablefeed.feed.replication.comparison import shape_of
from tablefeed.feed.replication.origin import (
    Origin,
    check_same_source,
    check_unchanged,
    digest_of_commit,
    origin_of,
    required,
)
from tablefeed.feed.replication.replica import newest_of
from tablefeed.feed.snapshot.delta_log import DeltaLog, DeltaSnapshot
from tablefeed.feed.snapshot.in_force import metadata_before
from tablefeed.feed.snapshot.table_log import Snapshot, TableLog
from tablefeed.feed.write.align import needs_mapping
from tablefeed.model.actions import Commit, RemoveFile, Version
from tablefeed.model.outcome import Committed, Replicated
from tablefeed.model.schema import fields_at

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class RowReplication:
    """A run that copies `source` to `target` as the application `app_id`; `reads_after`: see `Replication`."""

    source: TableLog
    target: DeltaLog
    app_id: str
    reads_after: Callable[[Version], None]

    def run(self, newest: Snapshot, *, first: Version, until: Version, resync: bool) -> Replicated:
        """Does what `Replication.run` does. Another run may make some of the commits."""
        commits = 0
        while True:
            state = newest_of(self.target)
            if state is None:
                commits += self._put(first, newest, None)
                continue
            try:
                origin = origin_of(state, self.app_id, by_rows=True)
                check_same_source(newest if origin.version <= newest.version else self.source.load(), origin)
                self.reads_after(origin.version)
                if origin.version >= until:
                    return Replicated(version=state.version, source_version=origin.version, commits=commits, files=0)
                version = Version(origin.version + 1)
                commit = required(self.source.commit(version), version, self.source)
                commits += self._put(version, newest, state, commit)
            except (ConflictError, DataFileError, LogError) as error:
                recorded = state.facts.txns.get(self.app_id)
                if not resync or recorded is None:
                    raise
                if recorded.txn_version >= until:  # the txn of a version that was copied before would skip the write
                    raise _copied_before(state, until) from error
                logger.warning("copied anew table=%s: %s", self.target.url, error)
                commits += self._put(until, newest, state)

    def _put(
        self, version: Version, newest: Snapshot, state: DeltaSnapshot | None, commit: Commit | None = None
    ) -> bool:
        """Writes `commit`, or the whole `version` if it is None, to the target at `state`. Says if this run did it."""
        self.reads_after(Version(version if commit is None else version - 1))
        whole = self._whole(version, state, commit)
        if whole is not None:
            rows = Table(whole).to_batches()
        else:
            options = dict(self.source.storage_options)
            rows = appends(self.source.location, start_version=version, end_version=version, storage_options=options)
        digest = digest_of_commit(self.source, version)
        check_unchanged(newest)
        origin = Origin(table_id=newest.metadata.table_id, version=version, digest=digest)
        # A whole version does not depend on the rows before it, even if another run has made the target meanwhile.
        replaces, info = whole is not None, origin.as_info()
        if whole is None and state is not None:
            info["after"] = state.version
        done = append(
            self.target.location,
            rows,
            mode="overwrite" if replaces else "append",
            partition_by=() if whole is None else whole.metadata.partition_columns,
            properties=_properties(whole) if state is None and whole is not None else None,
            merge_schema=not replaces,
            overwrite_schema=replaces,
            app_id=self.app_id,
            txn_version=version,
            user_metadata=orjson.dumps({COPIED_FROM: info}).decode(),
            storage_options=self.target.storage_options,
        )
        return isinstance(done, Committed)

    def _whole(self, version: Version, state: DeltaSnapshot | None, commit: Commit | None) -> Snapshot | None:
        """Gives the whole `version` of the source if its rows must replace those of the target; None for an append."""
        if commit is not None and not any(isinstance(f, RemoveFile) and f.data_change for f in commit.files):
            if commit.metadata is None:
                return None
            whole = self.source.load(version)
            if state is not None and shape_of(whole) == shape_of(state) and not _has_other_columns(whole):
                return None
        return self.source.load_for_files(version)


def _has_other_columns(whole: Snapshot) -> bool:
    """Says if a column of `whole` may be another one than before: it has the name, but the values of other columns."""
    before = metadata_before(whole.version, whole.metadata, whole.log)
    return before is None or has_mapping_change(older=mapped_schema(before), newer=mapped_schema(whole.metadata))


def _properties(whole: Snapshot) -> dict[str, str]:
    """Gives the properties of a new copy: with column mapping if its columns need that."""
    return {COLUMN_MAPPING_MODE: "name"} if any(needs_mapping(field) for _, field in fields_at(whole.schema)) else {}


def _copied_before(target: DeltaSnapshot, version: Version) -> ConflictError:
    return ConflictError(
        f"Nothing was copied to {target.url}: version {version} of the source was copied before, and a copy by rows is "
        "made anew only from a later one. Call again with resync=True after the next commit of the source, or copy to "
        "another path.",
        url=target.url,
        winner=target.version,
        error_class="TABLEFEED_REPLICA_CHANGED",
    )
