"""Converts between instants and the wall clock of a time zone, as java.time does (ZoneRules, ZonedDateTime).

DuckDB gives the wall clock of an instant. For the opposite direction it differs from Java where clocks are set back or
forward: `spark_texts` does it.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta, tzinfo

from tablefeed.data.spark_texts import read_zone, start_of_day, to_utc
from tablefeed.data.sql import kinds
from tablefeed.data.sql.terms import ZONE_REMEDY, Failure, Scope, Term, by_value, strict, text_sql
from tablefeed.model.java_text import DAY_US

_FIRST_US, _LAST_US = -62_167_219_200_000_000, 253_433_923_199_999_999
IN_CALENDAR = f"{{0}} BETWEEN {_FIRST_US} AND {_LAST_US}"
"""The years 0 to 10000: a little more than what any zone's clock shows in the years 1 to 9999."""
MIDNIGHT = f"CASE WHEN {{0}} BETWEEN {_FIRST_US // DAY_US} AND {_LAST_US // DAY_US} THEN {{0}}::BIGINT * {DAY_US} END"
"""The wall clock at the beginning of a date."""


def zone_of(scope: Scope, part: str) -> tzinfo:
    """The session's time zone."""
    if scope.zone is None:
        raise scope.refuse(part, ZONE_REMEDY)
    try:
        return read_zone(scope.zone)
    except ValueError as error:
        reason = f"the time zone {scope.zone} is not read here: name it as Area/City, UTC or +01:00"
        raise scope.refuse(part, reason) from error


def _fixed_us(zone: tzinfo) -> int | None:
    offset = zone.utcoffset(None)
    return None if offset is None else offset // timedelta(microseconds=1)


def offset(scope: Scope, instant: str, part: str) -> str:
    """The zone's offset in microseconds at an instant, which is a name; null outside of the years 0 to 10000."""
    zone = zone_of(scope, part)
    fixed = _fixed_us(zone)
    there = f"epoch_us(timezone({text_sql(str(zone))}, make_timestamptz({instant}))) - {instant}"
    sql = f"CASE WHEN {IN_CALENDAR.format(instant)} THEN {there if fixed is None else f'{fixed}::BIGINT'} END"
    return sql if fixed is not None else scope.bind(sql)


def clock_of(scope: Scope, term: Term) -> Term:
    """The wall clock of a timestamp, in microseconds; a timestamp_ntz already is a wall clock."""
    term = scope.bound(term)
    if term.type == kinds.NTZ:
        return strict(scope, kinds.NTZ, [term], f"CASE WHEN {IN_CALENDAR} THEN {{0}} END", Failure.RANGE)
    shift = offset(scope, term.sql, "the day and the clock of a timestamp")
    return strict(scope, kinds.NTZ, [term], f"{{0}} + {shift}", Failure.RANGE)


def instant_of(scope: Scope, clock: Term, part: str) -> Term:
    """The instant at which the clock shows a time: the earlier one, or with the offset from before a gap."""
    inside = f"CASE WHEN {IN_CALENDAR} THEN {{0}} END"
    return _moved(scope, clock, part, inside, to_utc)


def midnight(scope: Scope, date: Term, part: str) -> Term:
    """The first instant of a date. It fails where the clock skips midnight from before it to after it."""
    return _moved(scope, date, part, MIDNIGHT, start_of_day)


def _moved(scope: Scope, term: Term, part: str, clock: str, one: Callable[[int, tzinfo], int]) -> Term:
    zone = zone_of(scope, part)
    fixed = _fixed_us(zone)
    if fixed is not None:
        return strict(scope, kinds.TIMESTAMP, [term], f"({clock} - {fixed})", Failure.RANGE)
    function = by_value(f"{one.__name__} {zone}", term.type, kinds.TIMESTAMP, lambda value: one(value, zone))
    value = "{0}" if term.type == kinds.DATE else clock
    return strict(scope, kinds.TIMESTAMP, [term], f"{scope.python(function)}({value})", Failure.RANGE)
