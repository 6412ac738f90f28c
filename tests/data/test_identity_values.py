"""Values of identity columns: no two tasks make the same one, and few are passed over."""

from __future__ import annotations

from itertools import islice

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablefeed.data.identity_values import IdentityValues, turns
from tablefeed.errors import InvalidRowsError
from tablefeed.model.rules import IdentityColumn

_JAVA_INTS = st.integers(min_value=0, max_value=2**31 - 1)


def column(start: int = 1, step: int = 1, mark: int | None = None) -> IdentityColumn:
    return IdentityColumn(name="id", start=start, step=step, high_water_mark=mark, takes_given=False)


def made(identity: IdentityColumn, *row_counts: int, task: int = 0, task_count: int | None = 1) -> list[int]:
    values = IdentityValues([identity], turns(task, task_count=task_count))
    batches = [pa.record_batch({"x": [0] * n, "id": pa.nulls(n, pa.int64())}) for n in row_counts]
    return [value for batch in batches for value in values(batch)["id"].to_pylist()]


@given(_JAVA_INTS, _JAVA_INTS, st.integers(min_value=0, max_value=10**9), st.integers(min_value=0, max_value=10**9))
def test_no_two_tasks_make_the_same_value(one: int, other: int, row: int, other_row: int) -> None:
    mine, theirs = turns(one, task_count=None), turns(other, task_count=None)

    same = mine[row] == theirs[other_row]

    assert same == ((one, row) == (other, other_row))


def test_small_tasks_are_looked_at_one_by_one() -> None:
    taken = [turn[row] for turn in (turns(t, task_count=None) for t in range(300)) for row in range(40)]

    assert len(set(taken)) == 300 * 40


@pytest.mark.parametrize("task_count", [1, 2, 3, 8, 200])
def test_of_tasks_of_a_known_number_no_value_is_passed_over(task_count: int) -> None:
    each = [turns(task, task_count=task_count) for task in range(task_count)]

    assert sorted(turn[row] for turn in each for row in range(3)) == list(range(3 * task_count))


@pytest.mark.parametrize("task_count", [1, 2, 3, 8, 200, 10_000])
def test_of_tasks_of_an_unknown_number_at_most_31_of_32_values_are_passed_over(task_count: int) -> None:
    last = max(turn[9] for turn in (turns(task, task_count=None) for task in range(task_count)))

    assert last < 32 * 10 * task_count


@pytest.mark.parametrize(
    ("identity", "values"),
    [
        (column(), [1, 2, 3]),
        (column(start=10, step=5), [10, 15, 20]),
        (column(start=10, step=-5), [10, 5, 0]),
        (column(start=10, step=5, mark=25), [30, 35, 40]),
        (column(start=0, step=-1, mark=-7), [-8, -9, -10]),
        (column(start=10, step=5, mark=-5), [10, 15, 20]),
        (column(start=-10, step=-5, mark=5), [-10, -15, -20]),
    ],
    ids=str,
)
def test_values_begin_at_the_start_or_behind_the_mark_and_go_by_steps(
    identity: IdentityColumn, values: list[int]
) -> None:
    assert made(identity, 2, 0, 1) == values


def test_the_tasks_of_one_write_make_other_values_over_all_of_their_batches() -> None:
    values = [value for task in range(5) for value in made(column(), 3, 4, task=task, task_count=None)]

    assert len(set(values)) == 35


@pytest.mark.parametrize("step", [1, -1])
def test_a_value_past_the_last_long_is_refused_and_the_last_is_not(step: int) -> None:
    last = 2**63 - 1 if step > 0 else -(2**63)

    assert made(column(start=last - 2 * step, step=step), 3) == list(islice((last - 2 * step, last - step, last), 3))
    with pytest.raises(InvalidRowsError, match="used up"):
        made(column(start=last - 2 * step, step=step), 3, 1)
    with pytest.raises(InvalidRowsError, match="used up"):
        made(column(start=1, step=last), 2 if step > 0 else 3)
