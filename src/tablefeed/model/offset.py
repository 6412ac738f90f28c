"""A position in a table's feed: that of the first file not yet delivered. There are no sentinel values.

How an offset is written for Spark is `tablefeed.feed.stream.offset_json`'s.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from tablefeed.model.actions import Version


class Barrier(IntEnum):
    """Where a stream that tracks its table's metadata is, relative to the metadata change in an offset's version.

    A batch ends where it reaches such a change. The next batch has no rows and ends where the change is passed.
    """

    NONE = 0
    """The version has not been looked at yet, or files of it were delivered."""
    REACHED = 1
    """The change is known, and everything before it is delivered."""
    PASSED = 2
    """Files from here on are read with the metadata of this version."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventTime:
    """The progress of a snapshot that is delivered in the order of the times in `column`.

    Its rows with a time before `before_us` and its rows without a time have been delivered. `before_us` is in
    microseconds since 1970: UTC for a timestamp, local wall clock for a timestamp_ntz.
    """

    column: str
    before_us: int

    def __post_init__(self) -> None:
        if not -(1 << 63) <= self.before_us < 1 << 63:
            raise ValueError(f"{self.before_us} microseconds since 1970 is outside the range of a timestamp")


@dataclass(frozen=True, slots=True, kw_only=True)
class Offset:
    """Everything before `file_index` of `version` has been delivered.

    In the initial snapshot (`in_snapshot`) `file_index` counts the snapshot's live files in delivery order; after it,
    the files of the commit of `version` that change data. After the snapshot, (v, 0) means that v and all later
    versions are still to come. A `barrier` is a position after (v, 0) and before the first file of the commit. In a
    snapshot delivered by event time, `event_time` is the position and `file_index` stays 0; the snapshot's begin is the
    same offset in both orders. Offsets of one table are sorted by `position`.
    """

    table_id: str
    version: Version
    file_index: int = 0
    in_snapshot: bool = False
    barrier: Barrier = Barrier.NONE
    event_time: EventTime | None = None

    def __post_init__(self) -> None:
        if self.version < 0 or self.file_index < 0:
            raise ValueError(f"an offset counts from 0: version={self.version}, file_index={self.file_index}")
        if self.barrier and (self.file_index or self.in_snapshot):
            raise ValueError(f"a barrier is before the first file of a commit, not at file {self.file_index}")
        if self.event_time is not None and (self.file_index or not self.in_snapshot):
            raise ValueError(f"an event time is a position in a snapshot, not at file {self.file_index}")

    @property
    def read_through(self) -> Version:
        """The version up to which everything is read, -1 for none. While a snapshot is read, it is the snapshot's."""
        return self.version if self.in_snapshot else Version(self.version - 1)

    @property
    def position(self) -> tuple[int, bool, int, int, tuple[int, ...]]:
        """The sort key: a snapshot at v comes after the commits below v and before those above it."""
        delivered = () if self.event_time is None else (self.event_time.before_us,)
        return (self.version, not self.in_snapshot, self.file_index, self.barrier, delivered)
