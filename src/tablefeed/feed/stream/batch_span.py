"""Which versions a batch reads, from the two offsets between which it was planned. It knows offsets only."""

from __future__ import annotations

from dataclasses import replace

from tablefeed.errors import TABLE, OffsetError
from tablefeed.model.actions import Version
from tablefeed.model.offset import Barrier, Offset


def as_planned(start: Offset, end: Offset) -> Offset:
    """Gives where the batch began whose logged end is `end`: at `start`, or earlier where `start` is after `end`.

    `start` is after `end` for a first batch that runs again after a restart that found a newer version. Raises
    OffsetError where `start` is in a snapshot, and `end` in version 0: no snapshot comes before that version.
    """
    if not start.in_snapshot:
        return min(start, end, key=lambda offset: offset.position)
    if start.file_index or start.event_time is not None:
        return start
    newest = end.version if end.in_snapshot else Version(end.version - 1)
    if newest < 0:
        raise OffsetError(
            f"The first batch of this query ends within version 0 of {TABLE}, so it did not begin with the whole "
            "table: the query had a startingVersion or a startingTimestamp when that batch was planned. Set it again "
            "until the batch is done, or start with a new checkpoint.",
            url=TABLE,
        )
    return replace(start, version=min(start.version, newest))


def snapshot_version(start: Offset, end: Offset) -> Version | None:
    """Gives the version of the initial snapshot of which a batch reads files; None: the batch reads only commits."""
    if end.in_snapshot:
        return end.version
    return min(start.version, Version(end.version - 1)) if start.in_snapshot else None


def last_version(end: Offset) -> Version:
    """Gives the last version of which a batch that ends at `end` reads files; -1 where the batch reads none."""
    return end.version if end.file_index or end.in_snapshot else Version(end.version - 1)


def last_looked_at(end: Offset) -> Version:
    """Gives the last version that was read to plan a batch that ends at `end`: also the commit at a barrier."""
    return end.version if end.barrier else last_version(end)


def held_at(start: Offset, *, is_first: bool) -> Version:
    """Gives the version whose metadata holds at `start`; the commits after `start` do not repeat it.

    Unless `start` `is_first` of the query, a batch ended there. Where it ended between two commits, the earlier version
    counts: a query that stopped before a column was renamed must not go on under the new name just because it was
    started again.
    """
    is_between = not start.in_snapshot and start.file_index == 0 and start.barrier is not Barrier.PASSED
    return Version(max(start.version - 1, 0)) if is_between and not is_first else start.version
