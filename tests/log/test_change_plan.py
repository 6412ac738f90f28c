"""How far a batch of changes goes: Delta-Spark's rule, by its recorded offsets and by its source."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from support.logs import at
from tablefeed.log.change_plan import ChangeStep, furthest_changes
from tablefeed.log.plan import Limits
from tablefeed.model.actions import Version
from tablefeed.model.offset import Offset


def plain(version: int, *sizes: int, excluded: Sequence[int] = ()) -> ChangeStep:
    """A commit told by its adds and removes."""
    return ChangeStep(version=Version(version), sizes=sizes, excluded=excluded)


def recorded(version: int, *sizes: int, excluded: Sequence[int] = ()) -> ChangeStep:
    """A commit with files of changes."""
    return ChangeStep(version=Version(version), sizes=sizes, excluded=excluded, recorded=True)


def vectors(version: int, *sizes: int) -> ChangeStep:
    """A commit with deletion vectors."""
    return ChangeStep(version=Version(version), sizes=sizes, whole=True)


def batches(feed: Sequence[ChangeStep], start: Offset, limits: Limits) -> list[Offset]:
    """The ends of one batch after another, until nothing is left."""
    ends: list[Offset] = []
    while True:
        end = furthest_changes(start, [step for step in feed if step.version >= start.version], limits)
        if end == start:
            return ends
        ends.append(end)
        start = end


def test_a_commit_told_by_its_adds_and_removes_is_cut_by_file() -> None:
    feed = [plain(0, 1, 1, 1), plain(1, 1)]

    assert batches(feed, at(0), Limits(files=2)) == [at(0, 2), at(2)]


def test_a_commit_with_files_of_changes_is_taken_whole_or_not_at_all() -> None:
    feed = [plain(0, 1), recorded(1, 1, 1, 1), plain(2, 1)]

    assert batches(feed, at(0), Limits(files=3)) == [at(1), at(1, 3), at(3)]


def test_the_first_commit_of_a_batch_is_taken_however_large() -> None:
    assert batches([recorded(0, 10**9, 10**9)], at(0), Limits(files=1, size_bytes=1)) == [at(0, 2)]
    assert batches([vectors(0, 10**9, 10**9)], at(0), Limits(files=1, size_bytes=1)) == [at(1)]


def test_a_commit_without_a_file_is_a_first_one_too() -> None:
    assert furthest_changes(at(0), [plain(0), recorded(1, 1, 1)], Limits(files=1)) == at(1)


def test_behind_files_of_changes_a_batch_ends_in_their_commit_but_where_nothing_is_limited() -> None:
    assert furthest_changes(at(0), [recorded(0, 1, 1)], Limits(files=1000)) == at(0, 2)
    assert furthest_changes(at(0), [recorded(0, 1, 1)], Limits()) == at(1)
    assert furthest_changes(at(0, 2), [recorded(0, 1, 1)], Limits(files=1000)) == at(0, 2)
    assert furthest_changes(at(0, 2), [recorded(0, 1, 1), plain(1, 1)], Limits(files=1000)) == at(2)


def test_the_marks_of_a_commit_with_deletion_vectors_count_as_files() -> None:
    assert furthest_changes(at(0), [plain(0, 1), vectors(1, 1, 1)], Limits(files=4)) == at(1)
    assert furthest_changes(at(0), [plain(0, 1), vectors(1, 1, 1)], Limits(files=5)) == at(2)


def test_the_first_commit_of_a_batch_has_one_mark_and_each_further_one_has_two() -> None:
    feed = [vectors(0, 1), vectors(1, 1)]

    assert furthest_changes(at(0), feed, Limits(files=4)) == at(1)
    assert furthest_changes(at(0), feed, Limits(files=5)) == at(2)


def test_the_bytes_of_a_commit_that_is_cut_by_file_count_for_those_after_it() -> None:
    feed = [plain(0, 4, 4), recorded(1, 2), plain(2, 1)]

    assert furthest_changes(at(0), feed, Limits(size_bytes=4)) == at(0, 1)
    assert furthest_changes(at(0), feed, Limits(size_bytes=9)) == at(1)


def test_a_commit_that_uses_up_the_bytes_exactly_is_taken_and_ends_the_batch() -> None:
    feed = [plain(0, 4, 4), recorded(1, 2), plain(2, 1)]

    assert furthest_changes(at(0), feed, Limits(size_bytes=10)) == at(1, 1)
    assert furthest_changes(at(0), feed, Limits(size_bytes=11)) == at(3)


def test_the_files_of_a_commit_with_deletion_vectors_are_not_parted() -> None:
    assert batches([vectors(0, 9, 9), vectors(1, 9, 9)], at(0), Limits(size_bytes=20)) == [at(1), at(2)]


def test_a_spent_limit_looks_at_no_further_commit() -> None:
    def feed() -> Iterator[ChangeStep]:
        yield plain(0, 1)
        raise AssertionError("the commit after the batch was read")

    assert furthest_changes(at(0), feed(), Limits(files=1)) == at(1)
    assert furthest_changes(at(0), feed(), Limits(size_bytes=1)) == at(1)


def test_nothing_at_or_beyond_the_end_of_the_query_is_looked_at() -> None:
    def feed() -> Iterator[ChangeStep]:
        yield recorded(0, 1)
        raise AssertionError("the commit at the end was read")

    assert furthest_changes(at(0), feed(), Limits(files=9), stop_at=at(1)) == at(0, 1)
    assert furthest_changes(at(5), feed(), Limits(), stop_at=at(1)) == at(5)
    assert furthest_changes(at(0), [plain(0, 1), plain(1, 1)], Limits(), stop_at=at(2)) == at(2)


def test_files_that_are_left_out_do_not_count_and_keep_their_numbers() -> None:
    assert furthest_changes(at(0), [plain(0, 1, 1, 1, 1, excluded=(0, 1))], Limits(files=1)) == at(0, 3)
    assert furthest_changes(at(0), [plain(0, 1), recorded(1, 1, 1, excluded=(1,))], Limits(files=9)) == at(1, 1)


def test_a_commit_of_changes_of_which_all_is_left_out_is_passed_over() -> None:
    feed = [plain(0, 1), recorded(1, 1, excluded=(0,)), plain(2, 1)]

    assert furthest_changes(at(0), feed[:2], Limits(files=9)) == at(1)
    assert furthest_changes(at(0), feed, Limits(files=9)) == at(3)


def test_the_snapshot_is_cut_by_file_and_a_batch_runs_on_from_it() -> None:
    snapshot = ChangeStep(version=Version(5), sizes=(1, 1, 1), in_snapshot=True)
    feed = [snapshot, recorded(6, 1, 1)]

    assert furthest_changes(at(5, in_snapshot=True), feed, Limits(files=2)) == at(5, 2, in_snapshot=True)
    assert furthest_changes(at(5, 2, in_snapshot=True), feed, Limits(files=1)) == at(6)
    assert furthest_changes(at(5, 2, in_snapshot=True), feed, Limits(files=3)) == at(6, 2)


def test_commits_that_are_not_split_are_whole_whatever_is_in_them() -> None:
    limits = Limits(files=4, split_commits=False)

    assert batches([plain(0, 1, 1, 1), plain(1, 1)], at(0), limits) == [at(1), at(2)]
