"""How far a batch goes by event time: what files cost lies evenly between their earliest and latest time."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablefeed.log.event_time import Spans, Spread, bucket_end, spans

LARGEST = 2**63 - 1


def spans_of(*files: tuple[int | None, int | None], has_times: Sequence[bool] | None = None) -> Spans | None:
    low, high = (pa.array([file[end] for file in files], pa.int64()) for end in (0, 1))
    return spans(low, high, pa.array(has_times or [True] * len(files), pa.bool_()))


def ends(over: Spans | None, weights: Sequence[int], limit: int) -> list[int | None]:
    """The ends of all batches."""
    assert over is not None
    spread = Spread(over, pa.array(weights, pa.int64()))
    found: list[int | None] = []
    while not found or found[-1] is not None:
        found.append(bucket_end(found[-1] if found else None, over, [(spread, limit)]))
        assert len(found) < 1000
    return found


def test_files_that_follow_each_other_are_taken_one_by_one_though_there_is_time_between_them() -> None:
    assert ends(spans_of((0, 9), (100, 109), (20, 29)), [1, 1, 1], 1) == [10, 30, None]
    assert ends(spans_of((0, 9), (100, 109), (20, 29)), [1, 1, 1], 2) == [30, None]


def test_a_file_is_cut_where_it_would_be_too_much() -> None:
    assert ends(spans_of((0, 99)), [1000], 250) == [25, 50, 75, None]
    assert ends(spans_of((0, 9)), [10], 9) == [9, None]  # what is at the last time alone is a batch too


def test_of_files_at_one_time_as_much_is_taken_as_they_have_in_common() -> None:
    assert ends(spans_of((0, 99), (0, 99), (100, 199)), [10, 10, 10], 10) == [50, 100, None]


def test_a_file_without_bounds_reaches_as_far_as_the_others_and_one_without_times_comes_first() -> None:
    assert spans_of((0, 9), (None, 5), (20, None), (None, None), has_times=[True] * 4) == Spans(
        low=pa.array([0, 0, 20, 0]), high=pa.array([9, 5, 20, 20]), first=0, last=20
    )
    over = spans_of((10, 19), (None, None), has_times=[True, False])
    assert over == Spans(low=pa.array([10, 10]), high=pa.array([19, 10]), first=10, last=19)


def test_where_no_file_has_bounds_there_is_nothing_to_cut_by() -> None:
    assert spans_of() is None
    assert spans_of((None, None), (None, None)) is None


def test_each_limit_ends_a_batch_the_one_that_is_reached_first() -> None:
    over = spans_of((0, 9), (10, 19))
    assert over is not None
    files, sizes = Spread(over, pa.array([1, 1])), Spread(over, pa.array([100, 1000]))

    assert bucket_end(None, over, [(files, 1), (sizes, 50)]) == 5
    assert bucket_end(None, over, [(files, 1), (sizes, 500)]) == 10
    assert bucket_end(10, over, [(files, 1), (sizes, 500)]) == 15
    assert bucket_end(10, over, []) is None


def test_what_short_files_cost_leaves_no_trace_in_the_long_time_behind_them() -> None:
    # A thousand slopes, each ten trillion times that of the long file, that have to cancel out.
    over = spans_of(*[(0, 2)] * 1000, (0, 10**15 - 1))

    found = ends(over, [1] * 1000 + [10], 1)

    assert found[:3] == [1, 2, 3]
    assert [end // 10**12 for end in found[3:-1] if end is not None] == [100 * n for n in range(1, 10)]


FILE = st.tuples(st.integers(-50, 50), st.integers(0, 60)).map(lambda f: (f[0], f[0] + f[1]))
EXTREME = st.tuples(st.sampled_from([-LARGEST - 1, -1, 0, LARGEST - 1, LARGEST]), st.just(0)).map(
    lambda f: (f[0], max(f[0], f[1]))
)


@given(st.lists(st.tuples(FILE | EXTREME, st.integers(0, 100)), min_size=1, max_size=12), st.integers(1, 200))
def test_batches_get_on_and_are_no_more_than_what_there_is_needs(
    files: list[tuple[tuple[int, int], int]], limit: int
) -> None:
    over = spans_of(*(file for file, _ in files))
    weights = [weight for _, weight in files]

    found = ends(over, weights, limit)

    moments = [end for end in found if end is not None]
    assert moments == sorted(set(moments))
    assert len(found) <= sum(weights) // limit + 1
    assert all(-LARGEST <= moment <= LARGEST for moment in moments)


@given(st.lists(st.tuples(FILE, st.integers(0, 100)), min_size=1, max_size=12), st.integers(-60, 120))
def test_what_lies_before_a_moment_is_each_files_share_of_it(
    files: list[tuple[tuple[int, int], int]], moment: int
) -> None:
    over = spans_of(*(file for file, _ in files))
    assert over is not None
    spread = Spread(over, pa.array([weight for _, weight in files]))

    shares = [w * min(max(moment - low, 0) / (high + 1 - low), 1) for (low, high), w in files]

    assert spread.before(moment) == pytest.approx(sum(shares))
