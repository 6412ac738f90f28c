"""How far a batch goes, and how its files are spread: the rules by example, then the laws by hypothesis."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.logs import at
from tablefeed.feed.stream.offset_json import offset_to_json
from tablefeed.log.plan import Limits, Step, furthest, pack
from tablefeed.model.actions import Version
from tablefeed.model.offset import Offset


def commits(*sizes: Sequence[int], first: int = 0) -> list[Step]:
    return [Step(version=Version(first + i), sizes=s) for i, s in enumerate(sizes)]


def counted(*rows: Sequence[int | None], first: int = 0) -> list[Step]:
    """Commits by the rows of their files, each of one byte."""
    return [Step(version=Version(first + i), sizes=[1] * len(r), rows=r) for i, r in enumerate(rows)]


def snapshot(version: int, *sizes: int) -> Step:
    return Step(version=Version(version), sizes=sizes, in_snapshot=True)


def from_position(feed: Sequence[Step], start: Offset) -> list[Step]:
    """What a source yields for `start`: the stretch it lies in and those after it."""
    return [step for step in feed if (step.version, not step.in_snapshot) >= (start.version, not start.in_snapshot)]


def batches(feed: Sequence[Step], start: Offset, limits: Limits, *, stop_at: Offset | None = None) -> list[Offset]:
    """The ends of all batches until one has nothing to take."""
    ends = [start]
    while (end := furthest(ends[-1], from_position(feed, ends[-1]), limits, stop_at=stop_at)) != ends[-1]:
        ends.append(end)
    return ends[1:]


def files_between(feed: Sequence[Step], start: Offset, end: Offset) -> list[tuple[Offset, int]]:
    files = [
        (at(step.version, index, in_snapshot=step.in_snapshot), size)
        for step in feed
        for index, size in enumerate(step.sizes)
    ]
    return [(file, size) for file, size in files if start.position <= file.position < end.position]


def test_one_file_a_batch_gives_the_offsets_of_delta_spark() -> None:
    ends = batches(commits([10, 10], first=1), at(1), Limits(files=1))

    wire = [offset_to_json(end) for end in ends]
    assert [(w["reservoirVersion"], w["index"], w["isStartingVersion"]) for w in wire] == [
        (1, 0, False),
        (2, -1, False),
    ]


@pytest.mark.parametrize(
    ("start", "feed", "limits", "end"),
    [
        # The offset after the last file of a version is the start of the next.
        (at(3), commits([1, 1], first=3), Limits(), at(4)),
        (at(2, 2), commits([1, 1], [1], first=2), Limits(), at(4)),
        # An idle feed stays where it is.
        (at(9), [], Limits(), at(9)),
        # A batch stops before the first file that it does not take.
        (at(0), commits([1, 1, 1, 1]), Limits(files=3), at(0, 3)),
        # A file is taken while a byte and a row are left before it.
        (at(0), commits([60, 39, 10**9, 1]), Limits(size_bytes=100), at(0, 3)),
        (at(0), commits([60, 40, 10**9, 1]), Limits(size_bytes=100), at(0, 2)),
        (at(0), counted([60, 39, 500, 1]), Limits(rows=100), at(0, 3)),
        (at(0), counted([60, 40, 500, 1]), Limits(rows=100), at(0, 2)),
        (at(0), counted([500, 1]), Limits(rows=100), at(0, 1)),
        (at(0), counted([0, 0, 100], [0]), Limits(rows=100), at(1)),
        # A file whose rows are not known takes all that is left of them.
        (at(0), counted([1, None, 1]), Limits(rows=100), at(0, 2)),
        (at(0), counted([None, None]), Limits(rows=100), at(0, 1)),
        (at(0), counted([None, None]), Limits(files=9), at(1)),
        # The first file is taken however large.
        (at(0), commits([10**12, 1]), Limits(size_bytes=1), at(0, 1)),
        # Commits without files cost nothing even when the limit is spent.
        (at(0), commits([1], [], [], [1]), Limits(files=1), at(3)),
        # An empty file costs a file and no byte.
        (at(0), commits([0, 0, 5, 1]), Limits(size_bytes=5), at(0, 3)),
        (at(0), commits([0, 0, 5]), Limits(files=2), at(0, 2)),
        # A commit that was split before is taken to its end.
        (at(0, 3), commits([1] * 9, [1]), Limits(files=2, split_commits=False), at(1)),
        # A batch runs on from the snapshot into the commits after it, or stays in it.
        (at(5, in_snapshot=True), [snapshot(5, 1, 1), *commits([1, 1], first=6)], Limits(files=3), at(6, 1)),
        (at(5, in_snapshot=True), [snapshot(5, 1, 1)], Limits(files=1), at(5, 1, in_snapshot=True)),
        # The first commit behind a lost one is taken from its first file.
        (at(2, 1), commits([1, 1], first=5), Limits(files=1), at(5, 1)),
    ],
)
def test_a_batch_takes_files_while_something_is_left_of_each_limit(
    start: Offset, feed: list[Step], limits: Limits, end: Offset
) -> None:
    assert furthest(start, feed, limits) == end


def test_of_three_limits_the_first_that_is_met_ends_the_batch() -> None:
    feed = [Step(version=Version(0), sizes=[10] * 9, rows=[100] * 9)]

    assert furthest(at(0), feed, Limits(files=2, size_bytes=90, rows=900)) == at(0, 2)
    assert furthest(at(0), feed, Limits(files=9, size_bytes=30, rows=900)) == at(0, 3)
    assert furthest(at(0), feed, Limits(files=9, size_bytes=90, rows=400)) == at(0, 4)


@pytest.mark.parametrize(
    "limits",
    [
        Limits(files=3, split_commits=False),
        Limits(size_bytes=30, split_commits=False),
        Limits(rows=300, split_commits=False),
    ],
)
def test_of_commits_that_are_not_split_a_batch_takes_those_that_fit_whole(limits: Limits) -> None:
    feed = [Step(version=Version(v), sizes=[10] * n, rows=[100] * n) for v, n in enumerate((2, 1, 1, 3, 0, 2, 2))]

    assert batches(feed, at(0), limits) == [at(2), at(3), at(5), at(6), at(7)]


def test_a_commit_that_does_not_fit_is_a_batch_of_its_own_where_commits_are_not_split() -> None:
    large, unknown = Limits(files=2, split_commits=False), Limits(rows=100, split_commits=False)

    assert batches(commits([1], [1] * 9, [1]), at(0), large) == [at(1), at(2), at(3)]
    assert batches(counted([1], [1, None], [1]), at(0), unknown) == [at(1), at(2), at(3)]


def test_the_snapshot_is_split_all_the_same_and_a_commit_after_it_has_to_fit() -> None:
    feed = [snapshot(5, 1, 1, 1), *commits([1, 1], [1], first=6)]

    assert batches(feed, at(5, in_snapshot=True), Limits(files=2, split_commits=False)) == [
        at(5, 2, in_snapshot=True),
        at(6),
        at(7),
        at(8),
    ]


def test_what_comes_after_the_end_of_the_query_is_not_looked_at() -> None:
    def feed() -> Iterator[Step]:
        yield from commits([1, 1])
        raise AssertionError("the commit at the end was read")

    assert furthest(at(0), feed(), Limits(), stop_at=at(1)) == at(1)
    assert furthest(at(1), feed(), Limits(), stop_at=at(1)) == at(1)


def test_a_commit_beyond_the_limits_is_not_looked_at() -> None:
    def feed() -> Iterator[Step]:
        yield from commits([1, 1])
        raise AssertionError("the commit after the batch was read")

    assert furthest(at(0), feed(), Limits(files=1)) == at(0, 1)


@pytest.mark.parametrize(
    ("start", "feed", "limits", "stop_at", "end"),
    [
        pytest.param(at(0), commits([1, 1, 1], [1]), Limits(), at(0, 2), at(0, 2), id="within a version"),
        pytest.param(at(0), commits([1, 1, 1], [1]), Limits(files=1), at(0, 2), at(0, 1), id="limited before it"),
        pytest.param(at(2), commits([1], first=6), Limits(), at(4), at(4), id="commits before it lost"),
        pytest.param(at(5, 1), commits([1, 1, 1], first=5), Limits(), at(3), at(5, 1), id="already behind it"),
    ],
)
def test_the_end_of_the_query_is_kept_and_takes_no_query_back(
    start: Offset, feed: list[Step], limits: Limits, stop_at: Offset, end: Offset
) -> None:
    assert furthest(start, feed, limits, stop_at=stop_at) == end


@pytest.mark.parametrize("limit", [{"files": 0}, {"size_bytes": -1}, {"rows": 0}])
def test_a_limit_below_one_is_no_limit_and_cannot_be_made(limit: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        Limits(**limit)  # type: ignore[arg-type]  # none of these is `split_commits`


SIZES = st.lists(st.integers(0, 100), max_size=5)
LIMITS = st.builds(Limits, files=st.none() | st.integers(1, 7), size_bytes=st.none() | st.integers(1, 250))
ANY_LIMITS = st.builds(
    Limits,
    files=st.none() | st.integers(1, 7),
    size_bytes=st.none() | st.integers(1, 250),
    rows=st.none() | st.integers(1, 9),
    split_commits=st.booleans(),
)


@st.composite
def feeds(draw: st.DrawFn) -> list[Step]:
    first = draw(st.integers(0, 3))
    head = [snapshot(first, *draw(SIZES))] if draw(st.booleans()) else []
    tail = draw(st.lists(SIZES, max_size=6))
    return [with_rows(draw, step) for step in [*head, *commits(*tail, first=first + len(head))]]


def with_rows(draw: st.DrawFn, step: Step) -> Step:
    count = len(step.sizes)
    return replace(step, rows=draw(st.lists(st.none() | st.integers(0, 5), min_size=count, max_size=count)))


def beginning(feed: Sequence[Step]) -> Offset:
    return at(feed[0].version, in_snapshot=feed[0].in_snapshot) if feed else at(0)


def end_of(feed: Sequence[Step]) -> Offset:
    return at(feed[-1].version + 1) if feed else at(0)


@given(feeds(), ANY_LIMITS)
def test_any_limits_cut_the_feed_into_batches_that_deliver_every_file_once_and_in_order(
    feed: list[Step], limits: Limits
) -> None:
    start = beginning(feed)
    ends = batches(feed, start, limits)

    delivered = [
        file for begin, end in zip([start, *ends], ends, strict=False) for file in files_between(feed, begin, end)
    ]
    everything = [size for step in feed for size in step.sizes]
    assert [size for _, size in delivered] == everything
    assert len({file.position for file, _ in delivered}) == len(everything)
    assert (ends[-1] if ends else start) == end_of(feed)


@given(feeds(), LIMITS)
def test_no_batch_exceeds_the_files_and_one_exceeds_the_bytes_by_its_last_file_at_most(
    feed: list[Step], limits: Limits
) -> None:
    start = beginning(feed)
    ends = batches(feed, start, limits)

    for begin, end in zip([start, *ends], ends, strict=False):
        sizes = [size for _, size in files_between(feed, begin, end)]
        assert limits.files is None or len(sizes) <= limits.files
        assert limits.size_bytes is None or sum(sizes[:-1]) < limits.size_bytes
        if files_between(feed, end, end_of(feed)):
            files_spent = limits.files is not None and len(sizes) == limits.files
            bytes_spent = limits.size_bytes is not None and sum(sizes) >= limits.size_bytes
            assert files_spent or bytes_spent


@given(feeds(), ANY_LIMITS)
def test_commits_that_are_not_split_are_in_one_batch_each(feed: list[Step], limits: Limits) -> None:
    whole = replace(limits, split_commits=False)

    assert all(end.in_snapshot or end.file_index == 0 for end in batches(feed, beginning(feed), whole))


@given(feeds(), ANY_LIMITS, LIMITS)
def test_a_query_with_an_end_comes_to_it_and_never_passes_it(feed: list[Step], limits: Limits, other: Limits) -> None:
    start = beginning(feed)

    for stop_at in batches(feed, start, other):
        ends = batches(feed, start, limits, stop_at=stop_at)
        assert all(end.position <= stop_at.position for end in ends)
        assert ends[-1:] == [stop_at]


@given(feeds(), st.integers(0, 10), st.integers(0, 6), LIMITS)
def test_no_end_whatever_is_passed_and_none_takes_a_query_back(
    feed: list[Step], version: int, file_index: int, limits: Limits
) -> None:
    start, stop_at = beginning(feed), at(version, file_index)

    end = furthest(start, feed, limits, stop_at=stop_at)

    assert start.position <= end.position <= max(start.position, stop_at.position)


MAX_BRUTE_FORCE = 6


@given(st.lists(st.integers(0, 50), max_size=30), st.integers(1, 8), st.integers(0, 20))
def test_tasks_are_a_partition_of_the_files_in_order_and_none_is_empty(
    sizes: list[int], task_count: int, open_cost_bytes: int
) -> None:
    tasks = pack(sizes, task_count=task_count, open_cost_bytes=open_cost_bytes)

    assert sorted(index for task in tasks for index in task) == list(range(len(sizes)))
    assert all(task and task == sorted(task) for task in tasks)
    assert len(tasks) == min(task_count, len(sizes))


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=40), st.integers(1, 8), st.integers(0, 10**7))
def test_the_largest_task_is_over_the_mean_by_less_than_its_largest_file(
    sizes: list[int], task_count: int, open_cost_bytes: int
) -> None:
    costs = [size + open_cost_bytes for size in sizes]
    tasks = pack(sizes, task_count=task_count, open_cost_bytes=open_cost_bytes)

    largest_task = max(sum(costs[i] for i in task) for task in tasks)
    # Graham 1966: list scheduling is within mean + (1 - 1/m) * largest job. In whole numbers: times m.
    assert largest_task * task_count <= sum(costs) + (task_count - 1) * max(costs)


@given(st.lists(st.integers(0, 30), min_size=1, max_size=MAX_BRUTE_FORCE), st.integers(1, 3))
def test_the_largest_task_is_within_a_third_of_the_best_there_is(sizes: list[int], task_count: int) -> None:
    tasks = pack(sizes, task_count=task_count, open_cost_bytes=1)
    costs = [size + 1 for size in sizes]

    best = min(
        max(sum(c for c, task in zip(costs, placed, strict=True) if task == t) for t in range(task_count))
        for placed in product(range(task_count), repeat=len(sizes))
    )
    largest_task = max(sum(costs[i] for i in task) for task in tasks)
    # Graham 1969: largest first is within 4/3 - 1/(3m) of the best.
    assert largest_task * 3 * task_count <= best * (4 * task_count - 1)


def test_files_are_spread_largest_first_onto_the_lightest_task() -> None:
    assert pack([3, 9, 4, 8], task_count=2, open_cost_bytes=0) == [[0, 1], [2, 3]]


def test_opening_a_file_counts_so_that_many_small_ones_are_spread_too() -> None:
    assert pack([100, *[1] * 6], task_count=2, open_cost_bytes=0) == [[0], [1, 2, 3, 4, 5, 6]]
    assert pack([100, *[1] * 6], task_count=2, open_cost_bytes=100) == [[0, 3, 5], [1, 2, 4, 6]]


def test_files_cannot_be_spread_over_no_task() -> None:
    with pytest.raises(ValueError, match="at least one task"):
        pack([1], task_count=0)


def test_empty_files_that_cost_nothing_to_open_leave_no_task_empty_either() -> None:
    assert pack([0, 0, 0], task_count=2, open_cost_bytes=0) == [[0, 2], [1]]
