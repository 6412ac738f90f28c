"""Clocks and instants are told as another mind tells them: Python's zoneinfo, whose fold 0 is java.time's choice."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

from tablefeed.data.sql import Asked, compile_expressions
from tablefeed.model.schema import Field, Primitive, Struct

_SCHEMA = Struct(
    (Field("t", Primitive("timestamp"), nullable=True), Field("n", Primitive("timestamp_ntz"), nullable=True))
)
_HALF_HOURS = [datetime(year, 1, 1) + timedelta(minutes=30 * i) for year in (1945, 2024) for i in range(366 * 48)]  # noqa: DTZ001  # wall clocks


@pytest.mark.parametrize(
    "zone", ["Europe/Berlin", "America/St_Johns", "Australia/Lord_Howe", "America/Sao_Paulo", "Asia/Kolkata"]
)
def test_a_wall_clock_means_the_earlier_instant_and_goes_on_over_a_gap(zone: str) -> None:
    batch = pa.record_batch(
        {
            "t": pa.array([moment.replace(tzinfo=UTC) for moment in _HALF_HOURS], pa.timestamp("us", tz="UTC")),
            "n": pa.array(_HALF_HOURS, pa.timestamp("us")),
        }
    )
    asked = [Asked(text="CAST(n AS TIMESTAMP)"), Asked(text="CAST(t AS TIMESTAMP_NTZ)")]

    instants, clocks = compile_expressions(asked, _SCHEMA, time_zone=zone).evaluate(batch)

    there = ZoneInfo(zone)
    assert instants == pa.array([clock.replace(tzinfo=there).astimezone(UTC) for clock in _HALF_HOURS], instants.type)
    seen = [moment.replace(tzinfo=UTC).astimezone(there).replace(tzinfo=None) for moment in _HALF_HOURS]
    assert clocks == pa.array(seen, clocks.type)


@pytest.mark.parametrize("zone", ["America/Tijuana", "America/Vancouver", "Africa/Casablanca"])
def test_a_clock_has_the_offsets_of_pythons_database_though_that_of_the_engine_is_older(zone: str) -> None:
    moments = [datetime(year, 1, 1, tzinfo=UTC) + timedelta(hours=i) for year in (1955, 2027) for i in range(366 * 24)]
    batch = pa.record_batch({"t": pa.array([None, *moments], pa.timestamp("us", tz="UTC"))})

    (clocks,) = compile_expressions([Asked(text="CAST(t AS TIMESTAMP_NTZ)")], _SCHEMA, time_zone=zone).evaluate(batch)

    seen = [moment.astimezone(ZoneInfo(zone)).replace(tzinfo=None) for moment in moments]
    assert clocks == pa.array([None, *seen], clocks.type)


@pytest.mark.parametrize("zone", ["Europe/Stockholm", "Europe/Amsterdam", "Asia/Kuala_Lumpur", "Africa/Accra"])
def test_a_clock_and_its_instant_have_the_same_rules_before_1970(zone: str) -> None:
    noons = [datetime(1900, 1, 1, 12) + timedelta(days=7 * i) for i in range(52 * 80)]  # noqa: DTZ001  # wall clocks
    batch = pa.record_batch({"n": pa.array(noons, pa.timestamp("us"))})
    asked = [Asked(text="CAST(CAST(n AS TIMESTAMP) AS TIMESTAMP_NTZ)")]

    (clocks,) = compile_expressions(asked, _SCHEMA, time_zone=zone).evaluate(batch)

    assert clocks == batch.column("n")


@pytest.mark.parametrize(
    ("zone", "moment", "midnight"),
    [
        # 0:00 is shown twice on that day: a moment after the clock was put back belongs to the second one.
        ("America/Havana", datetime(2020, 11, 1, 15, tzinfo=UTC), datetime(2020, 11, 1, 5, tzinfo=UTC)),
        ("America/Havana", datetime(2020, 11, 1, 4, 30, tzinfo=UTC), datetime(2020, 11, 1, 4, tzinfo=UTC)),
        ("America/Sao_Paulo", datetime(2018, 11, 4, 15, tzinfo=UTC), datetime(2018, 11, 4, 3, tzinfo=UTC)),
        ("America/Toronto", datetime(1919, 3, 31, 15, tzinfo=UTC), datetime(1919, 3, 31, 5, tzinfo=UTC)),
    ],
)
def test_the_day_of_a_timestamp_begins_as_in_java_where_midnight_is_shown_twice_or_never(
    zone: str, moment: datetime, midnight: datetime
) -> None:
    batch = pa.record_batch({"t": pa.array([moment], pa.timestamp("us", tz="UTC"))})

    (day,) = compile_expressions([Asked(text="DATE_TRUNC('DAY', t)")], _SCHEMA, time_zone=zone).evaluate(batch)

    assert day == pa.array([midnight], day.type)
