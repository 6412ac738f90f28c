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
class Offset:
    """Everything before `file_index` of `version` has been delivered.

    In the initial snapshot (`in_snapshot`) `file_index` counts the snapshot's live files in delivery order;
    after it, the data-changing files of the commit of `version`. (v, 0) after the snapshot means: v and all
    that follows is still to come. A `barrier` is a position before the first file of the commit of `version`, behind
    (v, 0) itself. Offsets of one table order by `position`.
    """

    table_id: str
    version: Version
    file_index: int = 0
    in_snapshot: bool = False
    barrier: Barrier = Barrier.NONE

    def __post_init__(self) -> None:
        if self.version < 0 or self.file_index < 0:
            raise ValueError(f"an offset counts from 0: version={self.version}, file_index={self.file_index}")
        if self.barrier and (self.file_index or self.in_snapshot):
            raise ValueError(f"a barrier stands before the first file of a commit, not at file {self.file_index}")

    @property
    def position(self) -> tuple[int, bool, int, int]:
        """The sort key: a snapshot at v comes after the commits below v and before those above it."""
        return (self.version, not self.in_snapshot, self.file_index, self.barrier)
