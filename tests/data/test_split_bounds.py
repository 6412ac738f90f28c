"""What is told of the texts of a split: at most 32 characters, and never less than all that is in it."""

from __future__ import annotations

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
    rows = pa.table({"p": ["x" * 40]})

    assert bounds(rows, whole=["p"]) == ({"p": "x" * 40}, {"p": "x" * 40})


TEXTS = st.text(st.characters(max_codepoint=0xD7FF), max_size=40) | st.text("\ud7ffx", max_size=40)


@given(st.lists(TEXTS, min_size=1))
def test_no_text_is_outside_of_what_is_told(texts: list[str]) -> None:
    low, high = told(*texts)

    if low is not None and high is not None:
        assert max(len(low), len(high)) <= 32
        assert all(low <= text <= high for text in texts)
