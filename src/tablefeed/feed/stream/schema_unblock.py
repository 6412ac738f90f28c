"""Over which changes of a tracked schema a stream goes on by itself, and which the user must allow.

The rule is Delta-Spark's. Where a column is renamed, dropped or widened, the table that the stream writes to may need
a change by hand. So each of the three needs an option of its own. No stream goes on over any other change of a type.
"""

from __future__ import annotations

from tablefeed.delta.schema.column_mapping import dropped_columns, physical_schema, renamed_columns
from tablefeed.delta.tracked import TrackedMetadata
from tablefeed.errors import SchemaChangedError
from tablefeed.feed.stream.source_options import DROP, RENAME, TYPE_CHANGE, Allowed
from tablefeed.log.compatibility import can_read_shared, type_changes
from tablefeed.model.actions import Version
from tablefeed.model.schema import Struct


def check_allowed(*, previous: TrackedMetadata, current: TrackedMetadata, allowed: Allowed, url: str) -> None:
    """Raises SchemaChangedError where a stream of `url` may not go on from `previous` to `current` by itself."""
    older, newer = previous.schema, current.schema
    needed = needed_words(older, newer)
    if needed is None:
        raise _never(older, newer, current.version, url)
    is_allowed = {option for option in needed if allowed.get(option) in ("always", current.version)}
    waiting = {option: found for option, found in needed.items() if option not in is_allowed}
    if not waiting:
        return
    columns = "; ".join(column for found in waiting.values() for column in found)
    raise SchemaChangedError(
        f"Columns of {url} were renamed, dropped or given a wider type between versions {previous.version} and "
        f"{current.version}: {columns}. Make sure that the sink of the stream accepts this change. Then start the "
        f"stream with the source option {' and '.join(waiting)} set to {current.version}, for this change, or to "
        "'always'.",
        url=url,
        version=current.version,
        error_class="DELTA_STREAMING_CANNOT_CONTINUE_PROCESSING_POST_SCHEMA_EVOLUTION",
    )


def needed_words(older: Struct, newer: Struct) -> dict[str, list[str]] | None:
    """Gives the options that a change from `older` to `newer` needs, each with the columns that need it.

    None where no stream goes on over the change, because values under `older` cannot be read with `newer`.
    """
    # Physical names are compared: a column that was dropped and added again is not a change of its type.
    if not can_read_shared(physical_schema(newer), physical_schema(older)):
        return None
    found = {
        RENAME: [f"{then} is now {now}" for then, now in renamed_columns(older=older, newer=newer)],
        DROP: dropped_columns(older=older, newer=newer),
        TYPE_CHANGE: _widened(older, newer),
    }
    return {option: columns for option, columns in found.items() if columns}


FROM_WHOLE_TABLE = (
    "With readChangeFeed, begin with the whole table if that version removes older rows: they cannot be read."
)
"""Added to the advice to begin at the version of a change after which older values cannot be read."""


def _never(older: Struct, newer: Struct, version: Version, url: str) -> SchemaChangedError:
    return SchemaChangedError(
        f"The schema of {url} at version {version} has a column in which older values cannot be read: "
        f"{', '.join(_widened(older, newer)) or 'one that no longer allows null'}. Start with a new checkpoint and a "
        f"new schemaTrackingLocation, from the whole table or with startingVersion={version}. "
        f"{FROM_WHOLE_TABLE}",
        url=url,
        version=version,
        error_class="DELTA_SCHEMA_CHANGED_WITH_VERSION",
    )


def _widened(older: Struct, newer: Struct) -> list[str]:
    return list(type_changes(physical_schema(older), physical_schema(newer)))
