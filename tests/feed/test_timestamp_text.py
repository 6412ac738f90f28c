"""Which texts are timestamps and zones, and what they say."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablefeed.errors import IllegalOptionError
from tablefeed.feed.snapshot.timeline import parse_timestamp
from tablefeed.feed.timestamp_text import in_zone, read_timestamp, read_zone

BERLIN = ZoneInfo("Europe/Berlin")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("2024", "2024-01-01 00:00:00"),
        ("2024-02", "2024-02-01 00:00:00"),
        ("2024-2-3", "2024-02-03 00:00:00"),
        (" 2024-02-03 ", "2024-02-03 00:00:00"),
        ("2024-02-03 4:5", "2024-02-03 04:05:00"),
        ("2024-02-03T04:05:06", "2024-02-03 04:05:06"),
        ("2024-02-03 04:05:06.7", "2024-02-03 04:05:06.700000"),
        ("2024-02-03 04:05:06.123456789", "2024-02-03 04:05:06.123456"),
        ("2024-02-03T04:05:06Z", "2024-02-03 04:05:06+00:00"),
        ("2024-02-03 04:05:06 UTC", "2024-02-03 04:05:06+00:00"),
        ("2024-02-03 04:05:06+01:00", "2024-02-03 04:05:06+01:00"),
        ("2024-02-03 04:05:06 +1:00", "2024-02-03 04:05:06+01:00"),
        ("2024-02-03 04:05:06 UTC+1", "2024-02-03 04:05:06+01:00"),
        ("2024-02-03 04:05:06 Europe/Berlin", "2024-02-03 04:05:06+01:00"),
        ("2024-02-03 04:05:06 CET", "2024-02-03 04:05:06+01:00"),
        ("2024-02-03 04:05Z", "2024-02-03 04:05:00+00:00"),
        ("20240203T040506+0100", "2024-02-03 04:05:06+01:00"),
    ],
)
def test_a_text_that_spark_casts_to_a_timestamp_is_read_as_it_reads_it(text: str, said: str) -> None:
    assert str(read_timestamp(text)) == said


@pytest.mark.parametrize(
    "text",
    [
        *("", "yesterday", "now", "12:00:00", "24-01-01", "2024-13-01", "2024-02-30", "1704067200", "\u0662024-01-01"),
        *("2024-01-01 25:00:00", "2024-01-01 00:00 Mars/Base", "2024-01-01 00:00 +19:00", "2024-01-01 00:00 +01:60"),
    ],
)
def test_anything_else_is_no_timestamp(text: str) -> None:
    assert read_timestamp(text) is None
    with pytest.raises(IllegalOptionError, match=r"^\[DELTA_TIMESTAMP_INVALID\]") as caught:
        parse_timestamp(text, argument="startingTimestamp")
    assert caught.value.option == "startingTimestamp"


def test_a_time_without_a_zone_is_in_the_readers_and_one_with_a_zone_keeps_its_own() -> None:
    midnight_in_berlin = 1_704_063_600_000

    assert parse_timestamp("2024-01-01", argument="t", zone=BERLIN) == midnight_in_berlin
    assert parse_timestamp("2024-01-01 00:00:00+01:00", argument="t", zone=UTC) == midnight_in_berlin
    assert in_zone("2024-01-01", BERLIN) == datetime(2024, 1, 1, tzinfo=BERLIN)
    assert in_zone("2024-01-01T00:00Z", BERLIN) == "2024-01-01T00:00Z"
    assert in_zone("soon", BERLIN) == "soon"


def test_an_hour_that_a_clock_shows_twice_is_its_first_and_one_that_it_skips_is_counted_from_before() -> None:
    # As java.time has it: on 2024-10-27 at 03:00 summer time Berlin's clocks go back to 02:00, on 2024-03-31 forth.
    assert parse_timestamp("2024-10-27 02:30:00", argument="t", zone=BERLIN) == 1_729_989_000_000
    assert parse_timestamp("2024-03-31 02:30:00", argument="t", zone=BERLIN) == 1_711_848_600_000


@pytest.mark.parametrize(
    "text", ["", " ", "Mars/Base", "Europe", "../etc/passwd", "/etc/passwd", "+", "+25:00", "x" * 999]
)
def test_a_name_of_no_zone_is_none(text: str) -> None:
    assert read_zone(text) is None


@given(
    st.text() | st.from_regex(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}[ T][0-9:.]{0,12} ?[A-Za-z0-9+:/-]{0,8}", fullmatch=True)
)
def test_any_text_is_a_time_or_none(text: str) -> None:
    read = read_timestamp(text)

    assert read is None or parse_timestamp(text, argument="t") == parse_timestamp(read, argument="t")
