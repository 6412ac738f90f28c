"""The schema with which Spark analyses a stream that tracks its table's metadata.

It is that of the newest entry in the log (schema_tracking.py). Where the commits from the entry's version on change
only metadata, it is the schema after the last of them: no rows are between them, so the stream stops once for all.
Rows of the version where a stream begins, such as those of its initial snapshot, may still have to be read. So the
entry for that version is only merged with changes that keep all its columns. Delta-Spark merges it with any, and asks
for no word of the user.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tablefeed.delta.tracked import TrackedMetadata
from tablefeed.errors import SchemaLogError, naming
from tablefeed.feed.snapshot.open_log import open_log
from tablefeed.feed.snapshot.table_log import TableLog
from tablefeed.feed.stream.schema_log import SchemaLog, TrackedEntry
from tablefeed.feed.stream.schema_tracking import can_read, schema_log_of
from tablefeed.feed.stream.source_options import TrackingOptions
from tablefeed.model.actions import Commit, Version


def tracked_schema(location: str, *, storage_options: Mapping[str, str], tracking: TrackingOptions) -> str | None:
    """Gives the text of the schema that is tracked for the table at `location`; None where the log is empty.

    Writes an entry where commits that change only metadata follow the newest entry. Raises SchemaLogError and the
    errors of opening a table.
    """
    log = open_log(location, storage_options)
    metadata = log.load().metadata
    schema_log = schema_log_of(log, metadata, tracking)
    entry = schema_log.newest()
    if entry is None:
        return None
    merged = _merged(log, entry.metadata)
    if merged is not None and (entry.is_of_barrier or can_read(merged.over(metadata), entry.metadata.over(metadata))):
        with naming(log.url):
            entry = _replaced(schema_log, entry, merged)
    return entry.metadata.schema_string


def _merged(log: TableLog, tracked: TrackedMetadata) -> TrackedMetadata | None:
    """The metadata after the run of commits that change only metadata, from that of `tracked` on; None: no later one.

    None, too, where the commit of `tracked` itself has files: they may still have to be read under its metadata.
    """
    merged, version = tracked, tracked.version
    while (commit := log.commit(version)) is not None and _is_metadata_alone(commit):
        if version > tracked.version:
            merged = _onto(merged, commit)
        version = Version(version + 1)
    return None if merged is tracked else merged


def _is_metadata_alone(commit: Commit) -> bool:
    return not commit.files and (commit.metadata is not None or commit.protocol is not None)


def _onto(tracked: TrackedMetadata, commit: Commit) -> TrackedMetadata:
    merged = replace(tracked, version=commit.version, protocol=commit.protocol or tracked.protocol)
    if commit.metadata is None:
        return merged
    return replace(
        merged,
        schema_string=commit.metadata.schema_string,
        partition_columns=commit.metadata.partition_columns,
        configuration=commit.metadata.configuration,
    )


def _replaced(log: SchemaLog, entry: TrackedEntry, merged: TrackedMetadata) -> TrackedEntry:
    try:
        return log.replace(entry, merged)
    except SchemaLogError:
        newest = log.newest()  # a DataFrame may be analysed more than once at a time
        if newest is None or newest.metadata != replace(merged, previous=entry.follows):
            raise
        return newest
