"""Which changes of a tracked schema go on by themselves, and which wait for the user's word.

The rule is Delta-Spark's. A column that is renamed, dropped or widened may need a hand at whatever the stream writes
to, so each of these waits for an option of its own; any other change of a type is for no stream to go on over.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tablefeed.delta.schema.column_mapping import dropped_columns, physical_schema, renamed_columns
from tablefeed.delta.schema.schema_string import parse_schema
from tablefeed.delta.tracked import TrackedMetadata
from tablefeed.errors import SchemaChangedError
from tablefeed.log.compatibility import can_read_shared, type_changes
from tablefeed.model.actions import Version
from tablefeed.model.schema import Struct

Word = int | Literal["always"] | None
"""The user's word on one kind of change: for the change of one version, for all, or none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowed:
    """The changes that the user lets pass."""

    rename: Word = None
    drop: Word = None
    type_change: Word = None


def check_allowed(*, previous: TrackedMetadata, current: TrackedMetadata, allowed: Allowed, url: str) -> None:
    """Raises SchemaChangedError where a stream of `url` may not go on from `previous` to `current` by itself."""
    older, newer = parse_schema(previous.schema_string, url=url), parse_schema(current.schema_string, url=url)
    needed = needed_words(older, newer)
    if needed is None:
        raise _never(older, newer, current.version, url)
    words = {
        "allowSourceColumnRename": allowed.rename,
        "allowSourceColumnDrop": allowed.drop,
        "allowSourceColumnTypeChange": allowed.type_change,
    }
    waiting = {option: found for option, found in needed.items() if words[option] not in ("always", current.version)}
    if not waiting:
        return
    columns = "; ".join(column for found in waiting.values() for column in found)
    raise SchemaChangedError(
        f"Columns of {url} were renamed, dropped or given a wider type between versions {previous.version} and "
        f"{current.version}: {columns}. See to it that what the stream writes to can take that. Then start the stream "
        f"with the source option {' and '.join(waiting)} set to {current.version}, for this change, or to 'always'.",
        url=url,
        version=current.version,
        error_class="DELTA_STREAMING_CANNOT_CONTINUE_PROCESSING_POST_SCHEMA_EVOLUTION",
    )


def needed_words(older: Struct, newer: Struct) -> dict[str, list[str]] | None:
    """Gives the options that a change from `older` to `newer` waits for, each with the columns that it is for.

    None where no stream goes on over it: values of before cannot be read with `newer`.
    """
    # By the names of files: a column that was dropped and made anew is no change of a type.
    if not can_read_shared(physical_schema(newer), physical_schema(older)):
        return None
    found = {
        "allowSourceColumnRename": _renamed(older, newer),
        "allowSourceColumnDrop": dropped_columns(older=older, newer=newer),
        "allowSourceColumnTypeChange": _widened(older, newer),
    }
    return {option: columns for option, columns in found.items() if columns}


def _never(older: Struct, newer: Struct, version: Version, url: str) -> SchemaChangedError:
    return SchemaChangedError(
        f"The schema of {url} at version {version} has a column whose values of before cannot be read with it: "
        f"{', '.join(_widened(older, newer)) or 'one that may not be null any more'}. Begin anew with a new "
        f"checkpoint and a new schemaTrackingLocation, with the table as it is then or with "
        f"startingVersion={version}.",
        url=url,
        version=version,
        error_class="DELTA_SCHEMA_CHANGED_WITH_VERSION",
    )


def _renamed(older: Struct, newer: Struct) -> list[str]:
    return [f"{then} is now {now}" for then, now in renamed_columns(older=older, newer=newer)]


def _widened(older: Struct, newer: Struct) -> list[str]:
    return list(type_changes(physical_schema(older), physical_schema(newer)))
