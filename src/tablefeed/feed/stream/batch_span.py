"""Which versions a batch reads, from the two offsets between which it was planned. It knows offsets only."""

from __future__ import annotations

from dataclasses import replace

from tablefeed.errors import TABLE, OffsetError
from tablefeed.feed.stream.offset_json import offset_to_json
from tablefeed.model.actions import Version
from tablefeed.model.offset import Barrier, Offset


def as_planned(start: Offset, end: Offset, *, is_fixed: bool) -> Offset:
    """Gives where the first batch of a query began whose logged end is `end`. After a restart it is run again.

    Where the query begins by its options now, at `start`, may be later: it may depend on the newest version, unless it
    `is_fixed`. Raises OffsetError where `end` shows that the options were others when the batch was planned: the
    snapshot would have to come before version 0, or `start` is fixed and after `end`.
    """
    if end.in_snapshot:
        return replace(end, file_index=0, event_time=None)
    if start.in_snapshot and end.version > 0:
        return replace(start, version=min(start.version, Version(end.version - 1)))
    if not start.in_snapshot and (start.position <= end.position or not is_fixed):
        return min(start, end, key=lambda offset: offset.position)
    begin = "with the whole table" if start.in_snapshot else f"at version {start.version}"
    raise OffsetError(
        f"The first batch of this query ends within version {end.version} of {TABLE}, so it did not begin {begin}: the "
        "query had another startingVersion or startingTimestamp, or none, when that batch was planned. Set it as it "
        "was until the batch is done, or start with a new checkpoint.",
        url=TABLE,
    )


def refuse_disorder(start: Offset, end: Offset) -> None:
    """Raises OffsetError where no batch but the first of a query can lead from `start` to `end`.

    A batch never goes back, and never from one snapshot or from commits into a snapshot.
    """
    in_one_snapshot = start.in_snapshot and start.version == end.version
    if start.position <= end.position and end.in_snapshot == in_one_snapshot:
        return
    raise OffsetError(
        f"The checkpoint's offsets for {TABLE} contradict each other: a batch begins at {offset_to_json(start)}, and "
        f"ends before that, or in another snapshot, at {offset_to_json(end)}. Restore the checkpoint, reset the query "
        "with `tablefeed offsets reset`, or start with a new checkpoint.",
        url=TABLE,
    )


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
