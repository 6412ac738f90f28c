"""Which changes of a tracked schema go on by themselves, and which wait for the user's word.

The rule is Delta-Spark's. A column that is renamed, dropped or widened may need a hand at whatever the stream writes
to, so each of these waits for an option of its own; any other change of a type is for no stream to go on over.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tablefeed.delta.column_mapping import dropped_columns, physical_schema, renamed_columns
from tablefeed.delta.schema import parse_schema
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
    _check_types(older, newer, current.version, url)
    changes = (
        ("allowSourceColumnRename", allowed.rename, _renamed(older, newer)),
        ("allowSourceColumnDrop", allowed.drop, dropped_columns(older=older, newer=newer)),
        ("allowSourceColumnTypeChange", allowed.type_change, _widened(older, newer)),
    )
    waiting = [(option, found) for option, word, found in changes if found and word not in ("always", current.version)]
    if not waiting:
        return
    words = " and ".join(option for option, _ in waiting)
    columns = "; ".join(column for _, found in waiting for column in found)
    raise SchemaChangedError(
        f"Columns of {url} were renamed, dropped or given a wider type between versions {previous.version} and "
        f"{current.version}: {columns}. See to it that what the stream writes to can take that. Then start the stream "
        f"with the source option {words} set to {current.version}, for this change, or to 'always'.",
        url=url,
        version=current.version,
        error_class="DELTA_STREAMING_CANNOT_CONTINUE_PROCESSING_POST_SCHEMA_EVOLUTION",
    )


def _check_types(older: Struct, newer: Struct, version: Version, url: str) -> None:
    # By the names of files: a column that was dropped and made anew is no change of a type.
    if not can_read_shared(physical_schema(newer), physical_schema(older)):
        raise SchemaChangedError(
            f"The schema of {url} at version {version} has a column whose values of before cannot be read with it: "
            f"{', '.join(_widened(older, newer)) or 'one that may not be null any more'}. Begin anew with a new "
            "checkpoint and a new schemaTrackingLocation.",
            url=url,
            version=version,
            error_class="DELTA_SCHEMA_CHANGED_WITH_VERSION",
        )


def _renamed(older: Struct, newer: Struct) -> list[str]:
    return [f"{then} is now {now}" for then, now in renamed_columns(older=older, newer=newer)]


def _widened(older: Struct, newer: Struct) -> list[str]:
    return list(type_changes(physical_schema(older), physical_schema(newer)))
