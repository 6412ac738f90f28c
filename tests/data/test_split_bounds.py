"""What is told of the texts of a split: at most 32 characters, and never less than all that is in it."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablefeed.data.split_bounds import bounds

X = "x" * 31


def told(*texts: str | None) -> tuple[str | None, str | None]:
    least, greatest = bounds(pa.table({"c": pa.array(texts, pa.string())}))
    return least.get("c"), greatest.get("c")


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("", "", ""),
        (X + "y", X + "y", X + "y"),
        (X + "yz", X + "y", X + "z"),
        (X + ">>", X + ">", X + "?"),
        (X + "\u007fa", X + "\u007f", X + "\u0080"),
        (X + "\ud7ff?", X + "\ud7ff", "x" * 30 + "y"),
        ("a" + "\ud7ff" * 40, "a" + "\ud7ff" * 31, "b"),
    ],
)
def test_a_text_is_cut_at_32_characters_and_the_greatest_made_the_next(text: str, low: str, high: str) -> None:
    assert told(text) == (low, high)


@pytest.mark.parametrize("text", ["\ud7ff" * 33, "\U0001f600" * 40, X + "\uffff", X + "a\U0001f600"])
def test_a_text_without_a_next_or_that_java_orders_otherwise_is_not_told(text: str) -> None:
    assert told(text, "a") == (None, None)


def test_nulls_are_passed_over_and_of_nulls_alone_nothing_is_told() -> None:
    assert told(None, "x" * 40, None) == ("x" * 32, X + "y")
    assert told(None) == (None, None)


def test_a_partition_is_never_cut() -> None:
    rows = pa.table({"p": ["x" * 40], "n": ["1" * 40]})

    assert bounds(rows, whole=["p", "n"]) == (
        {"p": "x" * 40, "n": "1" * 39 + "0~"},
        {"p": "x" * 40, "n": "1" * 40 + "~"},
    )


TEXTS = st.text(st.characters(max_codepoint=0xD7FF), max_size=40) | st.text("\ud7ffx", max_size=40)


@given(st.lists(TEXTS, min_size=1))
def test_no_text_is_outside_of_what_is_told(texts: list[str]) -> None:
    low, high = told(*texts)

    if low is not None and high is not None:
        assert max(len(low), len(high)) <= 32
        assert all(low <= text <= high for text in texts)


# --- a reader that takes texts for numbers ---------------------------------------------------------------------------

NUMBERS = st.integers(-99, 1099).map(str) | st.sampled_from(
    ["1e3", "inf", "-inf", "NaN", "1.5", "007", ".5", "5.", "+1"]
)
RUST_NUMBER = re.compile(
    r"[+-]?(inf|infinity|nan|[0-9]+\.?[0-9]*(e[+-]?[0-9]+)?|\.[0-9]+(e[+-]?[0-9]+)?)", re.IGNORECASE
)
Operator = Callable[[Any, Any], Any]
OPERATORS: list[Operator] = [operator.eq, operator.lt, operator.le, operator.gt, operator.ge]


def by_native(operation: Operator, left: str, right: str) -> bool:
    """How IndexTables from 0.5.5 on compares."""
    if RUST_NUMBER.fullmatch(left) and RUST_NUMBER.fullmatch(right):
        return bool(operation(float(left), float(right)))
    return bool(operation(left, right))


def is_skipped(operation: Operator, value: str, low: str, high: str) -> bool:
    """Whether IndexTables from 0.5.5 on skips a split with these bounds."""
    if operation is operator.eq:
        return by_native(operator.lt, value, low) or by_native(operator.gt, value, high)
    return not by_native(operation, low if operation in (operator.lt, operator.le) else high, value)


@given(st.lists(NUMBERS, min_size=1, max_size=3), NUMBERS, st.sampled_from(OPERATORS))
def test_no_row_is_skipped_by_a_reader_that_compares_texts_as_numbers(
    texts: list[str], value: str, operation: Operator
) -> None:
    low, high = told(*texts)

    if low is not None and high is not None and any(operation(text, value) for text in texts):
        assert not is_skipped(operation, value, low, high)


@pytest.mark.parametrize(
    ("texts", "low", "high"),
    [
        (["10", "9"], "1/~", "9~"),
        (["-5", "a"], "-4~", "a"),
        (["9" * 40], "9" * 30 + "8~", "9" * 31 + ":"),
        (["1" * 40], "1" * 30 + "0~", "1" * 30 + "2~"),
    ],
)
def test_a_bound_of_texts_never_looks_like_a_number(texts: list[str], low: str, high: str) -> None:
    assert told(*texts) == (low, high)


@given(st.floats(width=32, allow_nan=False, allow_infinity=False).filter(bool), st.sampled_from(OPERATORS))
def test_no_float_is_skipped_by_a_reader_that_takes_its_text_for_a_double(value: float, operation: Operator) -> None:
    text = pa.scalar(value, pa.float32()).cast(pa.string()).as_py()

    low, high = (side["f"] for side in bounds(pa.table({"f": pa.array([value], pa.float32())})))

    assert not operation(1, 1) or not is_skipped(operation, text, low, high)
    assert float(low) <= value <= float(high)


def test_a_float_of_few_digits_is_told_as_it_is() -> None:
    rows = pa.table({"f": pa.array([0.5, -3.0, math.inf], pa.float32())})

    assert bounds(rows) == ({"f": "-3.0"}, {"f": "Infinity"})


@pytest.mark.parametrize(("least", "is_told"), [(-1, False), (0, False), (10**15, False), (10**15 + 1, True)])
def test_a_timestamp_that_native_readers_take_for_milliseconds_bounds_nothing(least: int, *, is_told: bool) -> None:
    rows = pa.table({"at": pa.array([least, 2 * 10**15], pa.timestamp("us", "UTC"))})

    assert bounds(rows) == (({"at": str(least)}, {"at": str(2 * 10**15)}) if is_told else ({}, {}))
