"""A position in a table's feed. Half-open: the first thing not yet delivered, so no sentinels.

How an offset is written for Spark is `tablefeed.feed.offset_json`'s.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from tablefeed.model.actions import Version


class Barrier(IntEnum):
    """How a stream that tracks its table's metadata stands to the change of that in an offset's version.

    A batch ends where such a change is met, and another, without rows, where it is passed.
    """

    NONE = 0
    """Nothing of the version has been looked at, or files of it were delivered."""
    REACHED = 1
    """The change is known; what came before it is delivered."""
    PASSED = 2
    """What follows is read with the metadata of this version."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventTime:
    """How far a snapshot that is delivered in the order of the times in `column` has come.

    Delivered are its rows with a time before `before_us`, and those without one. Microseconds since 1970: UTC of an
    instant, the wall clock's own of a time without zone.
    """

    column: str
    before_us: int

    def __post_init__(self) -> None:
        if not -(1 << 63) <= self.before_us < 1 << 63:
            raise ValueError(f"no timestamp is {self.before_us} microseconds from 1970")


@dataclass(frozen=True, slots=True, kw_only=True)
class Offset:
    """Everything before `file_index` of `version` has been delivered.

    In the initial snapshot (`in_snapshot`) `file_index` counts the snapshot's live files in delivery order;
    after it, the data-changing files of the commit of `version`. (v, 0) after the snapshot means: v and all
    that follows is still to come. A `barrier` is a position before the first file of the commit of `version`, behind
    (v, 0) itself. In a snapshot that goes by `event_time`, that counts instead of files; where it begins is the same
    in both orders. Offsets of one table order by `position`.
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
            raise ValueError(f"a barrier stands before the first file of a commit, not at file {self.file_index}")
        if self.event_time is not None and (self.file_index or not self.in_snapshot):
            raise ValueError(f"an event time is a position in a snapshot, not at file {self.file_index}")

    @property
    def position(self) -> tuple[int, bool, int, int, tuple[int, ...]]:
        """The sort key: a snapshot at v comes after the commits below v and before those above it."""
        delivered = () if self.event_time is None else (self.event_time.before_us,)
        return (self.version, not self.in_snapshot, self.file_index, self.barrier, delivered)
