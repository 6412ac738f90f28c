"""Converts between instants and the wall clock of a time zone, as java.time does (ZoneRules, ZonedDateTime).

DuckDB gives the wall clock of an instant. For the opposite direction it differs from Java where clocks are set back or
forward, so this module computes it: of two instants the earlier one; where there is none, the offset from before the
change is used.
"""

from __future__ import annotations

import re

from tablefeed.data.sql.engine import knows_zone
from tablefeed.data.sql.terms import ZONE_REMEDY, Scope, text_sql

DAY_US = 86_400_000_000
FIRST_US, LAST_US = -62_167_219_200_000_000, 253_433_923_199_999_999
"""The years 0 to 10000: a little more than what any zone's clock shows in the years 1 to 9999."""

_FIXED = re.compile(r"(?:UTC|GMT|UT)?(?P<sign>[+-])(?P<hours>[01]?[0-9])(?::(?P<minutes>[0-5][0-9]))?")
_REGION = re.compile(r"[A-Za-z]+/[A-Za-z0-9_+/-]+")


def zone_offset_us(zone: str) -> int | None:
    """The offset in microseconds of a fixed-offset zone, None for a region. Raises ValueError for an unknown zone."""
    if zone in ("UTC", "Z", "GMT", "UT", "Etc/UTC", "Etc/GMT"):
        return 0
    fixed = _FIXED.fullmatch(zone)
    if fixed is not None:
        minutes = int(fixed["hours"]) * 60 + int(fixed["minutes"] or 0)
        if minutes <= 18 * 60:
            return minutes * 60_000_000 * (-1 if fixed["sign"] == "-" else 1)
    if _REGION.fullmatch(zone) is None or not knows_zone(zone):
        raise ValueError(f"the time zone {zone} is not read here: name it as Area/City, UTC or +01:00")
    return None


def _zone(scope: Scope, part: str) -> tuple[str, int | None]:
    if scope.zone is None:
        raise scope.refuse(part, ZONE_REMEDY)
    try:
        return scope.zone, zone_offset_us(scope.zone)
    except ValueError as error:
        raise scope.refuse(part, str(error)) from error


def offset(scope: Scope, instant: str, stage: int, part: str) -> tuple[str, int]:
    """The zone's offset in microseconds at an instant; null outside of the years 0 to 10000."""
    zone, fixed = _zone(scope, part)
    if fixed is not None:
        return f"CASE WHEN {instant} BETWEEN {FIRST_US} AND {LAST_US} THEN {fixed}::BIGINT END", stage
    there = f"epoch_us(timezone({text_sql(zone)}, make_timestamptz({instant}))) - {instant}"
    return scope.bind(f"CASE WHEN {instant} BETWEEN {FIRST_US} AND {LAST_US} THEN {there} END", stage)


def wall_clock(scope: Scope, instant: str, stage: int, part: str) -> tuple[str, int]:
    """The wall clock at an instant, both in microseconds; null outside of the years 0 to 10000."""
    _, fixed = _zone(scope, part)
    if fixed == 0:
        return f"CASE WHEN {instant} BETWEEN {FIRST_US} AND {LAST_US} THEN {instant} END", stage
    shift, stage = offset(scope, instant, stage, part)
    return scope.bind(f"{instant} + {shift}", stage)


def instant_of(scope: Scope, clock: str, stage: int, part: str, *, kept: str | None = None) -> tuple[str, int]:
    """The instant of a wall-clock time. `kept` is the offset to use if it is one of the valid offsets at that time.

    Null outside of the years 0 to 10000, a day at their ends included.
    """
    _, fixed = _zone(scope, part)
    if fixed is not None:
        inside = f"{clock} BETWEEN {FIRST_US} AND {LAST_US}"
        return f"CASE WHEN {inside} THEN {clock} - {fixed} END", stage
    before, after = (offset(scope, f"({clock} {sign} {DAY_US})", stage, part) for sign in "-+")
    stage = max(before[1], after[1])
    a, b = before[0], after[0]
    at_a, stage_a = offset(scope, f"({clock} - {a})", stage, part)
    at_b, stage_b = offset(scope, f"({clock} - {b})", stage, part)
    stage = max(stage_a, stage_b)
    cases = f"WHEN {a} IS NULL OR {b} IS NULL THEN NULL "
    if kept is not None:
        at_kept, stage_kept = offset(scope, f"({clock} - {kept})", stage, part)
        stage = max(stage, stage_kept)
        cases += f"WHEN {at_kept} = {kept} THEN {clock} - {kept} "
    cases += f"WHEN {at_a} = {a} THEN {clock} - {a} WHEN {at_b} = {b} THEN {clock} - {b} ELSE {clock} - {a}"
    return scope.bind(f"CASE {cases} END", stage)


def start_of_day(scope: Scope, clock: str, stage: int, part: str) -> tuple[str, int]:
    """The first instant of the day whose midnight `clock` is (LocalDate.atStartOfDay).

    Null also where clocks went forward from before a midnight to after it.
    """
    instant, stage = instant_of(scope, clock, stage, part)
    _, fixed = _zone(scope, part)
    if fixed is not None:
        return instant, stage
    at, stage_at = offset(scope, instant, stage, part)
    earlier, stage_earlier = offset(scope, f"({instant} - 1)", stage, part)
    stage = max(stage_at, stage_earlier)
    # After a gap the clock shows a later time than `clock`. If the gap begins at midnight, its end is the start.
    odd = f"{instant} + {at} <> {clock} AND {instant} - 1 + {earlier} <> {clock} - 1"
    return scope.bind(f"CASE WHEN {odd} THEN NULL ELSE {instant} END", stage)
