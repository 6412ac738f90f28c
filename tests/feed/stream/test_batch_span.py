"""Which versions a batch reads, by its two offsets."""

from __future__ import annotations

from dataclasses import replace

import pytest

from support.logs import at
from tablefeed.errors import OffsetError
from tablefeed.feed.stream.batch_span import as_planned, held_at, last_looked_at, last_version, refuse_disorder
from tablefeed.model.offset import Barrier, EventTime, Offset

REACHED, PASSED = (replace(at(5), barrier=barrier) for barrier in (Barrier.REACHED, Barrier.PASSED))
BY_TIME = replace(at(5, in_snapshot=True), event_time=EventTime(column="ts", before_us=1))


@pytest.mark.parametrize(
    ("end", "read", "looked_at"),
    [
        (at(5), 4, 4),
        (at(0), -1, -1),
        (at(5, 1), 5, 5),
        (at(5, in_snapshot=True), 5, 5),
        (REACHED, 4, 5),  # its commit showed the barrier, and none of its files is delivered yet
        (PASSED, 4, 5),
    ],
)
def test_the_last_version_of_a_batch_is_that_of_its_last_file_and_a_barrier_was_looked_at(
    end: Offset, read: int, looked_at: int
) -> None:
    assert (last_version(end), last_looked_at(end)) == (read, looked_at)


@pytest.mark.parametrize(
    ("start", "end", "began"),
    [
        (at(3), at(5), at(3)),
        (at(7), at(5), at(5)),  # a restart found version 6, and the batch that is run again is empty
        (at(7, in_snapshot=True), at(5), at(4, in_snapshot=True)),
        (at(7, in_snapshot=True), at(5, 2), at(4, in_snapshot=True)),  # whose files come from commit 5
        (at(7, in_snapshot=True), at(5, 2, in_snapshot=True), at(5, in_snapshot=True)),
        (at(7), at(5, 2, in_snapshot=True), at(5, in_snapshot=True)),  # it had no startingVersion then
        (at(2), at(5, 2, in_snapshot=True), at(5, in_snapshot=True)),
        (at(7), BY_TIME, at(5, in_snapshot=True)),
    ],
)
def test_a_first_batch_that_is_run_again_begins_where_its_logged_end_shows(
    start: Offset, end: Offset, began: Offset
) -> None:
    assert as_planned(start, end, is_fixed=False) == began


@pytest.mark.parametrize(
    ("start", "end"),
    [(at(7, in_snapshot=True), at(0)), (at(7, in_snapshot=True), at(0, 1)), (at(7), at(5)), (at(7, 1), at(7))],
)
def test_a_first_batch_that_did_not_begin_where_the_query_begins_by_its_options_now_is_refused(
    start: Offset, end: Offset
) -> None:
    with pytest.raises(OffsetError, match="another startingVersion"):
        as_planned(start, end, is_fixed=not start.in_snapshot)


LATER_BY_TIME = replace(BY_TIME, event_time=EventTime(column="ts", before_us=2))


@pytest.mark.parametrize(
    ("start", "end"),
    [
        (at(3), at(3)),
        (at(3, 1), at(5)),
        (at(5), REACHED),
        (REACHED, PASSED),
        (at(5, 1, in_snapshot=True), at(5, 2, in_snapshot=True)),
        (at(5, 1, in_snapshot=True), at(6)),
        (BY_TIME, LATER_BY_TIME),
        (BY_TIME, at(7, 3)),
    ],
)
def test_the_batches_of_a_query_go_on_within_one_snapshot_and_then_through_the_commits(
    start: Offset, end: Offset
) -> None:
    refuse_disorder(start, end)


@pytest.mark.parametrize(
    ("start", "end"),
    [
        (at(3), at(2, 7)),
        (at(3, 2), at(3, 1)),
        (PASSED, REACHED),
        (at(3), at(5, 1, in_snapshot=True)),
        (at(5, 2, in_snapshot=True), at(5, 1, in_snapshot=True)),
        (at(5, 1, in_snapshot=True), at(6, 2, in_snapshot=True)),
        (at(5, 1, in_snapshot=True), at(5, 2)),
        (LATER_BY_TIME, BY_TIME),
    ],
)
def test_a_batch_that_goes_back_or_into_another_snapshot_is_refused(start: Offset, end: Offset) -> None:
    with pytest.raises(OffsetError, match=r"contradict each other.*`tablefeed offsets reset`"):
        refuse_disorder(start, end)


@pytest.mark.parametrize(
    ("start", "is_first", "version"),
    [
        (at(5), False, 4),  # the query that stopped here has read nothing of version 5
        (at(0), False, 0),
        (at(5), True, 5),
        (at(5, 1), False, 5),
        (at(5, in_snapshot=True), False, 5),
        (REACHED, False, 4),
        (PASSED, False, 5),
    ],
)
def test_the_metadata_where_a_batch_begins_is_that_of_the_last_version_that_was_read(
    start: Offset,
    is_first: bool,  # noqa: FBT001 (a parameter)
    version: int,
) -> None:
    assert held_at(start, is_first=is_first) == version
