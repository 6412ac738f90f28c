"""Plots and tables: a table has few rows, and a scale has round numbers."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from support.html_page import Page
from tablefeed.report.figures import MOST_ROWS, data_table, round_count, round_number


def test_a_table_has_at_most_its_rows() -> None:
    page = Page(data_table("many", ("a", "b"), [[str(number), "1"] for number in range(1000)]))

    assert len(page.tables["many"]) == 1 + MOST_ROWS


@given(st.integers(min_value=0, max_value=10**15))
def test_the_top_of_a_scale_of_counts_holds_the_highest_and_has_a_whole_half(highest: int) -> None:
    top = round_count(highest)

    assert highest <= top <= max(2 * highest, 2)
    assert top % 2 == 0


def test_the_top_of_a_scale_is_round() -> None:
    assert [round_number(each) for each in (0, 0.5, 12.2, 61, 999)] == [1, 0.5, 15, 80, 1000]
