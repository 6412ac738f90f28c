"""Offsets in Spark's checkpoints: Delta-Spark's JSON, so that a stream can move between tablefeed and the Delta JAR.

In this JSON an offset is end-inclusive: `index` is the last file delivered, -1 before the first
(docs/reference/offsets.md). Version 1 of the format is written, except for a barrier, which needs version 3, and for a
position by event time, for which Delta-Spark has no format.
"""

from __future__ import annotations

from collections.abc import Mapping

from tablefeed.errors import OffsetError
from tablefeed.model.actions import Version
from tablefeed.model.offset import Barrier, EventTime, Offset
from tablefeed.model.shown import shown

SOURCE_VERSION = 1
"""The version written by default. This version of the format has no barriers."""

EVENT_TIME_SOURCE_VERSION = 1001
"""For a position by event time within the initial snapshot, which only tablefeed has. Delta-Spark's versions count up
from 1, and it refuses larger ones. It must refuse this one: it would read the offset as the begin of the snapshot."""

_NEWEST_SOURCE_VERSION = 3
_BEFORE_FIRST = {1: -1, 3: -100, EVENT_TIME_SOURCE_VERSION: -1}
"""The `index` that means "before the first file", by version of the format. Only these versions are read."""

_BARRIERS = {Barrier.REACHED: -20, Barrier.PASSED: -19}
"""The `index` at a change of the tracked metadata. It is no index of a file, so it needs the newest version."""

_COLUMN, _BEFORE_US = "eventTimeColumn", "eventTimeMicros"
"""The fields that a position by event time has beside Delta-Spark's."""

_LARGEST_VERSION = (1 << 63) - 1
_FORMAT = "DELTA_INVALID_SOURCE_OFFSET_FORMAT"
_END = _LARGEST_VERSION - 100
"""Delta-Spark's index for "after the last file". It is used in memory only, so an offset with it is refused."""


def offset_to_json(offset: Offset) -> dict[str, object]:
    """Gives the JSON object of `offset`, keys in Delta-Spark's order."""
    written: dict[str, object] = {
        "sourceVersion": _NEWEST_SOURCE_VERSION if offset.barrier else SOURCE_VERSION,
        "reservoirId": offset.table_id,
        "reservoirVersion": offset.version,
        "index": _BARRIERS[offset.barrier] if offset.barrier else offset.file_index - 1,
        "isStartingVersion": offset.in_snapshot,
    }
    if offset.event_time is not None:
        written["sourceVersion"] = EVENT_TIME_SOURCE_VERSION
        written |= {_COLUMN: offset.event_time.column, _BEFORE_US: offset.event_time.before_us}
    return written


def offset_from_json(value: Mapping[str, object], *, url: str) -> Offset:
    """Gives the offset in `value`. Raises OffsetError, with Delta-Spark's error class, where `value` is no offset."""
    source_version = _source_version(value, url)
    match value:
        case {
            "reservoirId": str(table_id),
            "reservoirVersion": int(version),
            "index": int(index),
            "isStartingVersion": bool(in_snapshot),
        } if 0 <= version <= _LARGEST_VERSION and not isinstance(version, bool) and not isinstance(index, bool):
            pass
        case _:
            raise _malformed(url, value, "a field is missing or of another type", _FORMAT)
    event_time = _event_time(value, source_version, url)
    if event_time is not None and not (index == -1 and in_snapshot):
        raise _malformed(url, value, "an offset with an event time must be in a snapshot and count no files", _FORMAT)
    barrier = Barrier.NONE
    if index == _BEFORE_FIRST[source_version]:
        index = -1
    elif source_version == _NEWEST_SOURCE_VERSION and not in_snapshot and index in _BARRIERS.values():
        barrier = next(barrier for barrier, on_wire in _BARRIERS.items() if on_wire == index)
        index = -1
    elif not 0 <= index < _END:
        raise _malformed(url, value, f"{index} is not the index of a file", _FORMAT)
    return Offset(
        table_id=table_id,
        version=Version(version),
        file_index=index + 1,
        in_snapshot=in_snapshot,
        barrier=barrier,
        event_time=event_time,
    )


def _event_time(value: Mapping[str, object], source_version: int, url: str) -> EventTime | None:
    if source_version != EVENT_TIME_SOURCE_VERSION:
        if _COLUMN in value or _BEFORE_US in value:
            raise _malformed(url, value, f"an offset of sourceVersion {source_version} has no event time", _FORMAT)
        return None
    match value.get(_COLUMN), value.get(_BEFORE_US):
        case (str(column), int(before_us)) if column and not isinstance(before_us, bool):
            if -_LARGEST_VERSION - 1 <= before_us <= _LARGEST_VERSION:
                return EventTime(column=column, before_us=before_us)
    raise _malformed(url, value, f"{_COLUMN} is not a name, or {_BEFORE_US} is not a time", _FORMAT)


def _source_version(value: Mapping[str, object], url: str) -> int:
    match value:  # which need not be an object
        case {"sourceVersion": int(found)} if not isinstance(found, bool):
            pass
        case {"sourceVersion": other} if other is not None:
            raise _malformed(url, value, "its sourceVersion is not a number", _FORMAT)
        case _:
            raise _malformed(url, value, "its sourceVersion is missing", "DELTA_INVALID_SOURCE_VERSION")
    if found in _BEFORE_FIRST:
        return found
    if found > _NEWEST_SOURCE_VERSION:
        why = f"its sourceVersion {found} is newer than {_NEWEST_SOURCE_VERSION}. Upgrade tablefeed"
        raise _malformed(url, value, why, "DELTA_INVALID_FORMAT_FROM_SOURCE_VERSION")
    raise _malformed(url, value, f"its sourceVersion {found} is not valid", "DELTA_INVALID_SOURCE_VERSION")


def _malformed(url: str, value: Mapping[str, object], why: str, error_class: str) -> OffsetError:
    return OffsetError(
        f"The checkpoint's offset {shown(value, most=1000)} for {url} cannot be used: {why}.",
        url=url,
        error_class=error_class,
    )
