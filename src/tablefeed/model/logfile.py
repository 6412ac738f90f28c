"""A file of a table's log, as described by its name. The codecs read the contents."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from tablefeed.model.actions import Version


class LogFileKind(StrEnum):
    """What a log file is, by the shape of its name."""

    COMMIT = "commit"
    CHECKPOINT = "checkpoint"
    CHECKPOINT_PART = "checkpoint part"
    CHECKPOINT_V2 = "v2 checkpoint"
    COMPACTION = "log compaction"
    CHECKSUM = "version checksum"
    STATE = "state"


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFile:
    """One listed log file. `part` counts from 1 and, with `part_count`, is set for checkpoint parts only.

    A compaction covers the commits from `version` to `last_version`, both included; None for all other kinds. A
    checkpoint part whose name has an id and no count has `checkpoint_id` in place of `part_count`.
    """

    name: str
    kind: LogFileKind
    version: Version
    size_bytes: int
    modified_ms: int
    part: int | None = None
    part_count: int | None = None
    last_version: Version | None = None
    checkpoint_id: str | None = None
