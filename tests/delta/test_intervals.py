from __future__ import annotations

import pytest

from tablefeed.delta.intervals import DAY_MS, parse_interval


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("interval 1 week", 7 * DAY_MS),
        ("30 days", 30 * DAY_MS),
        ("INTERVAL 2 WEEKS 1 second", 14 * DAY_MS + 1000),
        ("1 day -1 hour", 23 * 3_600_000),
        ("1.5 seconds", 1500),
        ("999 microseconds", 0),
        ("0 days", 0),
    ],
)
def test_an_interval_is_read_as_spark_reads_it(text: str, milliseconds: int) -> None:
    assert parse_interval(text) == milliseconds


@pytest.mark.parametrize("text", ["", "interval", "1 month", "1 year", "-1 day", "P1D", "7", "1.5 days", "1 day 2"])
def test_what_is_no_interval_or_has_no_certain_length_is_none(text: str) -> None:
    assert parse_interval(text) is None
