"""A position in a table's feed. Half-open: the first thing not yet delivered, so no sentinels.

How an offset is written for Spark is `tablefeed.feed.offset_json`'s.
"""

from __future__ import annotations

from dataclasses import dataclass

from tablefeed.model.actions import Version


@dataclass(frozen=True, slots=True, kw_only=True)
class Offset:
    """Everything before `file_index` of `version` has been delivered.

    In the initial snapshot (`in_snapshot`) `file_index` counts the snapshot's live files in delivery order;
    after it, the data-changing files of the commit of `version`. (v, 0) after the snapshot means: v and all
    that follows is still to come. Offsets of one table order by `position`.
    """

    table_id: str
    version: Version
    file_index: int = 0
    in_snapshot: bool = False

    def __post_init__(self) -> None:
        if self.version < 0 or self.file_index < 0:
            raise ValueError(f"an offset counts from 0: version={self.version}, file_index={self.file_index}")

    @property
    def position(self) -> tuple[int, bool, int]:
        """The sort key: a snapshot at v comes after the commits below v and before those above it."""
        return (self.version, not self.in_snapshot, self.file_index)
