"""Dates and timestamps: casts, truncation and texts (Spark's SparkDateTimeUtils, DateTimeUtils)."""

from __future__ import annotations

import re

from tablefeed.data.sql import kinds
from tablefeed.data.sql.terms import Failure, Scope, Term, strict
from tablefeed.data.sql.zones import MIDNIGHT, clock_of, instant_of, midnight, offset
from tablefeed.model.java_text import DAY_US
from tablefeed.model.schema import DataType

_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896
"""Of the years 1 to 9999."""
AS_DATE = f"CASE WHEN {{0}} BETWEEN {_FIRST_DAY} AND {_LAST_DAY + 366} THEN DATE '1970-01-01' + {{0}}::INTEGER END"
"""DuckDB's date of a number of days; null outside of the years 1 to 10000."""
OF_DAY = f"(({{0}} % {DAY_US} + {DAY_US}) % {DAY_US})"
"""The microseconds of a wall clock since midnight."""
UNITS_US = {"HOUR": 3_600_000_000, "MINUTE": 60_000_000, "SECOND": 1_000_000}


def floored(width: int) -> str:
    """SQL that rounds a number down to a multiple of `width`."""
    return f"({{0}} - ({{0}} % {width} + {width}) % {width})"


def day_of(scope: Scope, moment: Term) -> Term:
    """The date that the clock shows at a timestamp, or with a timestamp_ntz."""
    days = f"({floored(DAY_US)} // {DAY_US})::INTEGER"
    return scope.bound(strict(scope, kinds.DATE, [clock_of(scope, moment)], days))


def cast_to_time(scope: Scope, term: Term, to: DataType) -> Term | None:
    """CAST to a date or timestamp of what is no text; None where it is not evaluated here."""
    kind = term.type
    if kind in (kinds.TIMESTAMP, kinds.NTZ) and to == kinds.DATE:
        return day_of(scope, term)
    if kind == kinds.TIMESTAMP and to == kinds.NTZ:
        return clock_of(scope, term)
    if kind in kinds.INTEGRALS and to == kinds.TIMESTAMP:
        # From seconds; as in TimeUnit.toMicros, the result is limited to the extreme values.
        most = 9_223_372_036_854
        outer = f"WHEN {{0}}::BIGINT > {most} THEN 9223372036854775807 WHEN {{0}}::BIGINT < -{most}"
        sql = f"CASE {outer} THEN -9223372036854775807 - 1 ELSE {{0}}::BIGINT * 1000000 END"
        return strict(scope, kinds.TIMESTAMP, [term], sql)
    if kind == kinds.DATE and to == kinds.NTZ:
        return strict(scope, kinds.NTZ, [term], MIDNIGHT, Failure.RANGE)
    if kind == kinds.DATE and to == kinds.TIMESTAMP:
        return midnight(scope, term, "a date as a timestamp")
    if kind == kinds.NTZ and to == kinds.TIMESTAMP:
        return instant_of(scope, term, "a timestamp_ntz as a timestamp")
    return None


_DATE_UNITS = {
    **dict.fromkeys(("YEAR", "YYYY", "YY"), "year"),
    "QUARTER": "quarter",
    **dict.fromkeys(("MONTH", "MM", "MON"), "month"),
    "WEEK": "week",
}


def truncated_date(scope: Scope, date: Term, unit: str) -> Term:
    """TRUNC(date, 'unit')."""
    found = _DATE_UNITS.get(unit.upper())
    if found is None:
        raise scope.refuse(f"TRUNC to {unit}", "it is evaluated for YEAR, QUARTER, MONTH and WEEK")
    sql = f"(date_trunc('{found}', {AS_DATE})::DATE - DATE '1970-01-01')::INTEGER"
    return strict(scope, kinds.DATE, [date], sql, Failure.RANGE)


def truncated_timestamp(scope: Scope, moment: Term, unit: str) -> Term:
    """DATE_TRUNC('unit', timestamp)."""
    unit, part = unit.upper(), f"DATE_TRUNC to {unit}"
    moment = scope.bound(moment)
    if unit not in UNITS_US:
        days = day_of(scope, moment)
        return midnight(scope, days if unit in ("DAY", "DD") else truncated_date(scope, days, unit), part)
    clock = strict(scope, kinds.NTZ, [clock_of(scope, moment)], floored(UNITS_US[unit]))
    # As in ZonedDateTime.truncatedTo, the offset of the moment is kept where the clock has it then too.
    kept = scope.bind(offset(scope, moment.sql, part))
    same = scope.bind(f"{scope.bound(clock).sql} - {kept}")
    there = offset(scope, same, part)
    instant = instant_of(scope, clock, part)
    sql = f"CASE WHEN {there} = {kept} THEN {same} ELSE {instant.sql} END"
    return Term(type=kinds.TIMESTAMP, sql=sql, fails=instant.fails)


_PATTERN = re.compile(r"yyyy|MM|dd|HH|mm|ss|[-/:._ ]")
_OF_DATE = {"yyyy": "year", "MM": "month", "dd": "day"}
_OF_CLOCK = {"HH": "HOUR", "mm": "MINUTE", "ss": "SECOND"}


def formatted(scope: Scope, moment: Term, pattern: str) -> Term:
    """DATE_FORMAT with a pattern of yyyy, MM, dd, HH, mm, ss and separators."""
    tokens = _PATTERN.findall(pattern)
    if "".join(tokens) != pattern or not tokens:
        reason = "patterns are evaluated of yyyy, MM, dd, HH, mm, ss and - / : . _ blank"
        raise scope.refuse(f"the pattern {pattern}", reason)
    if moment.type == kinds.DATE and any(token in _OF_CLOCK for token in tokens):
        raise scope.refuse(f"the pattern {pattern}", "of a date it is evaluated without hours: cast the date first")
    date = scope.bound(moment) if moment.type == kinds.DATE else day_of(scope, moment)
    clock = date if moment.type == kinds.DATE else scope.bound(clock_of(scope, moment))
    day = scope.bind(AS_DATE.format(date.sql))
    words = []
    for token in tokens:
        if token in _OF_DATE:
            words.append(f"lpad({_OF_DATE[token]}({day})::VARCHAR, {len(token)}, '0')")
        elif token in _OF_CLOCK:
            words.append(f"lpad(({clock_part(_OF_CLOCK[token]).format(clock.sql)})::VARCHAR, 2, '0')")
        else:
            words.append(f"'{token}'")
    sql = f"CASE WHEN {{0}} <= {_LAST_DAY} THEN {' || '.join(words)} END"
    return strict(scope, kinds.STRING, [date], sql, Failure.RANGE)


def clock_part(unit: str) -> str:
    """SQL of the hour, minute or whole second of a wall clock."""
    return f"({OF_DAY} // {UNITS_US[unit]} % {24 if unit == 'HOUR' else 60})::INTEGER"


def time_to_string(scope: Scope, term: Term) -> Term:
    """CAST of a date or timestamp AS STRING."""
    if term.type == kinds.DATE:
        return formatted(scope, term, "yyyy-MM-dd")
    clock = scope.bound(clock_of(scope, term))
    whole = scope.bound(formatted(scope, clock, "yyyy-MM-dd HH:mm:ss"))
    micros = f"(({clock.sql} % 1000000 + 1000000) % 1000000)"
    fraction = f"rtrim(lpad({micros}::VARCHAR, 6, '0'), '0')"
    sql = f"{whole.sql} || CASE WHEN {micros} = 0 THEN '' ELSE '.' || {fraction} END"
    return Term(type=kinds.STRING, sql=sql, fails=whole.fails)
