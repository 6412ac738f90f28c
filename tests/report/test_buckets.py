"""Spans of time: they cover what they are for, and are few, for any two times."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tablefeed.report.buckets import MOST, buckets

MOMENTS = st.integers(min_value=-(2**63), max_value=2**63 - 1)


@given(MOMENTS, MOMENTS)
def test_few_spans_cover_the_time_between_any_two_moments(one: int, other: int) -> None:
    first, last = sorted([one, other])

    found = buckets(first, last)

    assert found.start_ms <= first < found.start_ms + found.length_ms
    assert found.start_ms + (found.count - 1) * found.length_ms <= last < found.start_ms + found.count * found.length_ms
    assert 1 <= found.count <= MOST


def test_a_span_is_named_as_exactly_as_its_length_asks_for() -> None:
    minute, day = 60_000, 86_400_000

    assert buckets(0, 59 * 1000).label(30) == "1970-01-01 00:00:30"
    assert buckets(0, 59 * minute).label(30) == "1970-01-01 00:30"
    assert buckets(0, 59 * day).label(30) == "1970-01-31"
