"""The schema with which a stream that tracks its table's metadata is analysed.

Its newest entry in the log (schema_tracking.py), and where the next commits change metadata alone what the last of them
left: as nothing is read between them, the stream stops once for all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tablefeed.delta.tracked import TrackedMetadata
from tablefeed.errors import SchemaLogError
from tablefeed.feed.snapshot.open_log import open_log
from tablefeed.feed.snapshot.table_log import TableLog
from tablefeed.feed.stream.schema_log import Entry, SchemaLog
from tablefeed.feed.stream.schema_tracking import TrackingOptions, schema_log_of
from tablefeed.model.actions import Commit, Version


def tracked_schema(location: str, *, storage_options: Mapping[str, str], tracking: TrackingOptions) -> str | None:
    """Gives the text of the schema that is tracked for the table at `location`; None where none is yet.

    Writes an entry where commits that change metadata alone follow the newest. Raises SchemaLogError, and what opening
    a table raises.
    """
    log = open_log(location, storage_options)
    schema_log = schema_log_of(log, log.load().metadata, tracking)
    entry = schema_log.newest()
    if entry is None:
        return None
    merged = _merged(log, entry.metadata)
    if merged is not None:
        entry = _replaced(schema_log, entry, merged)
    return entry.metadata.schema_string


def _merged(log: TableLog, tracked: TrackedMetadata) -> TrackedMetadata | None:
    """What the last of the commits left that change metadata alone, from that of `tracked` on; None: there is no later.

    Where that commit itself has files, rows may be still to come under what it left.
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


def _replaced(log: SchemaLog, entry: Entry, merged: TrackedMetadata) -> Entry:
    try:
        return log.replace(entry, merged)
    except SchemaLogError:
        stands = log.newest()  # a DataFrame may be analysed more than once at a time
        if stands is None or stands.metadata != replace(merged, previous=entry.follows):
            raise
        return stands
