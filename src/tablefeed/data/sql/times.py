"""Dates and timestamps: casts, parts, truncation and texts (Spark's SparkDateTimeUtils, DateTimeUtils)."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tablefeed.data.sql.terms import (
    DATE,
    INT,
    INTEGRALS,
    NTZ,
    STRING,
    TIMESTAMP,
    Failure,
    Scope,
    Term,
    first,
    strict,
)
from tablefeed.data.sql.zones import DAY_US, FIRST_US, LAST_US, instant_of, offset, start_of_day, wall_clock
from tablefeed.model.schema import DataType

_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896
"""Of the years 1 to 9999."""
_BLANKS = r"[\x00-\x20\x7f]*"


def made(scope: Scope, kind: DataType, operand: Term, sql: str, stage: int) -> Term:
    """A term with the value `sql`, made from `operand`; fails where `sql` is null and `operand` is not."""
    value, after = scope.bind(sql, stage)
    odd = f"CASE WHEN {operand.sql} IS NOT NULL AND {value} IS NULL THEN {int(Failure.RANGE)} END"
    return Term(type=kind, sql=value, fails=first(operand.fails, odd), stage=max(after, operand.stage))


def as_date(sql: str) -> str:
    """DuckDB's date of a number of days; null outside of the years 1 to 10000."""
    return f"CASE WHEN {sql} BETWEEN {_FIRST_DAY} AND {_LAST_DAY + 366} THEN DATE '1970-01-01' + {sql}::INTEGER END"


def days_of(sql: str) -> str:
    """The days of microseconds, rounded down."""
    return f"(({sql} - ({sql} % {DAY_US} + {DAY_US}) % {DAY_US}) // {DAY_US})::INTEGER"


def clock_of(scope: Scope, term: Term) -> Term:
    """The wall clock of a timestamp, in microseconds; a timestamp_ntz already is a wall clock."""
    term = scope.bound(term)
    if term.type == NTZ:
        inside = f"CASE WHEN {term.sql} BETWEEN {FIRST_US} AND {LAST_US} THEN {term.sql} END"
        return made(scope, NTZ, term, inside, term.stage)
    clock, stage = wall_clock(scope, term.sql, term.stage, "the day and the clock of a timestamp")
    return made(scope, NTZ, term, clock, stage)


def cast_to_time(scope: Scope, term: Term, to: DataType) -> Term | None:
    """CAST to a date or timestamp; None where it is not evaluated here."""
    kind = term.type
    if kind == STRING:
        return _parsed(scope, term, to)
    if kind in (TIMESTAMP, NTZ) and to == DATE:
        return strict(scope, DATE, [clock_of(scope, term)], days_of("{0}"))
    if kind == TIMESTAMP and to == NTZ:
        return clock_of(scope, term)
    if kind in INTEGRALS and to == TIMESTAMP:
        # From seconds; as in TimeUnit.toMicros, the result is limited to the extreme values.
        most = 9_223_372_036_854
        outer = f"WHEN {{0}}::BIGINT > {most} THEN 9223372036854775807 WHEN {{0}}::BIGINT < -{most}"
        sql = f"CASE {outer} THEN -9223372036854775807 - 1 ELSE {{0}}::BIGINT * 1000000 END"
        return strict(scope, TIMESTAMP, [term], sql)
    if kind == DATE and to == NTZ:
        return strict(scope, NTZ, [term], f"({{}}::BIGINT * {DAY_US})")
    if kind == DATE and to == TIMESTAMP:
        term = scope.bound(term)
        clock, stage = scope.bind(f"{term.sql}::BIGINT * {DAY_US}", term.stage)
        instant, stage = start_of_day(scope, clock, stage, "a date as a timestamp")
        return made(scope, TIMESTAMP, term, instant, stage)
    if kind == NTZ and to == TIMESTAMP:
        term = scope.bound(term)
        instant, stage = instant_of(scope, term.sql, term.stage, "a timestamp_ntz as a timestamp")
        return made(scope, TIMESTAMP, term, instant, stage)
    return None


_DATE_TEXT = rf"(?s)^{_BLANKS}([0-9]{{4}})(-([0-9]{{1,2}})(-([0-9]{{1,2}})([ T].*)?)?)?{_BLANKS}$"
_TIME_TEXT = r"([0-9]{1,2})(:([0-9]{1,2})(:([0-9]{1,2})(\.([0-9]{0,9}))?)?)?"
_ZONE_TEXT = r" ?(Z|UTC|([+-])([0-9]{1,2}):([0-9]{2}))"
_MOMENT_TEXT = (
    rf"^{_BLANKS}([0-9]{{4}})(-([0-9]{{1,2}})(-([0-9]{{1,2}})([ T]{_TIME_TEXT}({_ZONE_TEXT})?)?)?)?{_BLANKS}$"
)


def _parsed(scope: Scope, term: Term, to: DataType) -> Term:
    term = scope.bound(term)
    if to == DATE:
        parts, stage = scope.bind(_groups(term.sql, _DATE_TEXT, {1: "y", 3: "m", 5: "d"}), term.stage)
        year, month, day = (f"TRY_CAST(nullif({parts}.{n}, '') AS BIGINT)" for n in "ymd")
        month, day = f"coalesce({month}, 1)", f"coalesce({day}, 1)"
        value = f"TRY(make_date({year}, {month}, {day})) - DATE '1970-01-01'"
        return _or_failed(scope, DATE, term, f"CASE WHEN {year} > 0 THEN {value} END::INTEGER", stage)
    names = {1: "y", 3: "m", 5: "d", 7: "h", 9: "i", 11: "s", 13: "f", 14: "z", 16: "g", 17: "j", 18: "k"}
    parts, stage = scope.bind(_groups(term.sql, _MOMENT_TEXT, names), term.stage)
    least = {"m": 1, "d": 1}
    number = {n: f"coalesce(TRY_CAST(nullif({parts}.{n}, '') AS BIGINT), {least.get(n, 0)})" for n in "ymdhisjk"}
    day = f"TRY(make_date({number['y']}, {number['m']}, {number['d']}))"
    fraction = f"TRY_CAST(rpad({parts}.f, 6, '0')[1:6] AS BIGINT)"
    clock = (
        f"CASE WHEN {number['y']} > 0 AND {number['h']} < 24 AND {number['i']} < 60 AND {number['s']} < 60 THEN "
        f"({day} - DATE '1970-01-01')::BIGINT * {DAY_US} + ({number['h']} * 3600 + {number['i']} * 60 + {number['s']})"
        f" * 1000000 + {fraction} END"
    )
    clock, stage = scope.bind(clock, stage)
    sound = f"({number['j']} < 18 AND {number['k']} < 60)"
    if to == NTZ:  # a zone is checked and ignored
        return _or_failed(scope, NTZ, term, f"CASE WHEN {parts}.z = '' OR {sound} THEN {clock} END", stage)
    shift = f"(CASE WHEN {parts}.g = '-' THEN -60000000 ELSE 60000000 END) * ({number['j']} * 60 + {number['k']})"
    zoned = f"CASE WHEN {parts}.z <> '' AND {sound} THEN {clock} - ({shift}) END"
    if isinstance(term.literal, str) and re.search(_ZONE_TEXT + _BLANKS + r"\Z", term.literal):
        return _or_failed(scope, TIMESTAMP, term, zoned, stage)
    local, stage_local = instant_of(scope, clock, stage, "a text as a timestamp")
    value = f"CASE WHEN {parts}.z = '' THEN {local} ELSE {zoned} END"
    return _or_failed(scope, TIMESTAMP, term, value, max(stage, stage_local))


def _groups(text: str, pattern: str, names: Mapping[int, str]) -> str:
    wanted = [names.get(i, f"x{i}") for i in range(1, max(names) + 1)]
    return f"regexp_extract({text}, '{pattern}', [{', '.join(repr(n) for n in wanted)}])"


def _or_failed(scope: Scope, kind: DataType, operand: Term, sql: str, stage: int) -> Term:
    value, after = scope.bind(sql, stage)
    odd = f"CASE WHEN {operand.sql} IS NOT NULL AND {value} IS NULL THEN {int(Failure.CAST)} END"
    return Term(type=kind, sql=value, fails=first(operand.fails, odd), stage=after)


DATE_PARTS: Mapping[str, str] = {
    "year": "year({})",
    "quarter": "quarter({})",
    "month": "month({})",
    "day": "day({})",
    "dayofmonth": "day({})",
    "dayofyear": "dayofyear({})",
    "dayofweek": "(dayofweek({}) + 1)",
    "weekday": "(isodow({}) - 1)",
    "week": "weekofyear({})",
    "weekofyear": "weekofyear({})",
    "last_day": "(last_day({}) - DATE '1970-01-01')",
}
TIME_PARTS: Mapping[str, int] = {"hour": 3_600_000_000, "minute": 60_000_000, "second": 1_000_000}
_WRAPS = {"hour": 24, "minute": 60, "second": 60}


def date_part(scope: Scope, part: str, date: Term) -> Term:
    """A part of a date, by its name in DATE_PARTS."""
    date = scope.bound(date)
    day, stage = scope.bind(as_date(date.sql), date.stage)
    kind = DATE if part == "last_day" else INT
    return made(scope, kind, date, f"{DATE_PARTS[part].format(day)}::INTEGER", stage)


def time_part(scope: Scope, part: str, moment: Term) -> Term:
    """Hour, minute or whole second of a wall clock."""
    clock = clock_of(scope, moment)
    unit = TIME_PARTS[part]
    of_day = f"({{0}} % {DAY_US} + {DAY_US}) % {DAY_US}"
    return strict(scope, INT, [clock], f"(({of_day}) // {unit} % {_WRAPS[part]})::INTEGER")


_DATE_UNITS = {
    **dict.fromkeys(("YEAR", "YYYY", "YY"), "year"),
    "QUARTER": "quarter",
    **dict.fromkeys(("MONTH", "MM", "MON"), "month"),
    "WEEK": "week",
}
_DAY_UNITS = ("DAY", "DD")
_CLOCK_UNITS = {"HOUR": 3_600_000_000, "MINUTE": 60_000_000, "SECOND": 1_000_000}
_INSTANT_UNITS = {"MILLISECOND": 1000, "MICROSECOND": 1}


def truncated_date(scope: Scope, date: Term, unit: str) -> Term:
    """TRUNC(date, 'unit')."""
    found = _DATE_UNITS.get(unit.upper())
    if found is None:
        raise scope.refuse(f"TRUNC to {unit}", "it is evaluated for YEAR, QUARTER, MONTH and WEEK")
    date = scope.bound(date)
    day, stage = scope.bind(as_date(date.sql), date.stage)
    return made(scope, DATE, date, f"(date_trunc('{found}', {day})::DATE - DATE '1970-01-01')::INTEGER", stage)


def truncated_timestamp(scope: Scope, moment: Term, unit: str) -> Term:
    """DATE_TRUNC('unit', timestamp)."""
    unit = unit.upper()
    if unit in _INSTANT_UNITS:
        width = _INSTANT_UNITS[unit]
        return strict(scope, TIMESTAMP, [moment], f"({{0}} - ({{0}} % {width} + {width}) % {width})")
    moment = scope.bound(moment)
    clock = clock_of(scope, moment)
    if unit in _CLOCK_UNITS:
        width = _CLOCK_UNITS[unit]
        floor, stage = scope.bind(f"{clock.sql} - ({clock.sql} % {width} + {width}) % {width}", clock.stage)
        kept, stage_kept = offset(scope, moment.sql, moment.stage, f"DATE_TRUNC to {unit}")
        instant, stage = instant_of(scope, floor, max(stage, stage_kept), f"DATE_TRUNC to {unit}", kept=kept)
        return made(scope, TIMESTAMP, moment, instant, stage)
    days = scope.bound(strict(scope, DATE, [clock], days_of("{0}")))
    if unit not in _DAY_UNITS:
        days = truncated_date(scope, days, unit)
    midnight, stage = scope.bind(f"{days.sql}::BIGINT * {DAY_US}", days.stage)
    instant, stage = start_of_day(scope, midnight, stage, f"DATE_TRUNC to {unit}")
    return made(scope, TIMESTAMP, moment, instant, stage)


_PATTERN = re.compile(r"yyyy|MM|dd|HH|mm|ss|[-/:._ ]")
_OF_DAY = {"HH": "hour", "mm": "minute", "ss": "second"}
_OF_DATE = {"yyyy": "year", "MM": "month", "dd": "day"}


def formatted(scope: Scope, moment: Term, pattern: str) -> Term:
    """DATE_FORMAT with a pattern of yyyy, MM, dd, HH, mm, ss and separators."""
    tokens = _PATTERN.findall(pattern)
    if "".join(tokens) != pattern or not tokens:
        raise scope.refuse(
            f"the pattern {pattern}", "patterns are evaluated of yyyy, MM, dd, HH, mm, ss and - / : . _ blank"
        )
    date = scope.bound(moment)
    if moment.type != DATE:
        moment = clock_of(scope, moment)
        date = scope.bound(strict(scope, DATE, [moment], days_of("{0}")))
    elif any(token in _OF_DAY for token in tokens):
        raise scope.refuse(f"the pattern {pattern}", "of a date it is evaluated without hours: cast the date first")
    day, stage = scope.bind(as_date(date.sql), date.stage)
    words = []
    for token in tokens:
        if token in _OF_DATE:
            words.append(_padded(f"{_OF_DATE[token]}({day})", len(token)))
        elif token in _OF_DAY:
            of_day = f"(({moment.sql} % {DAY_US} + {DAY_US}) % {DAY_US})"
            part = _OF_DAY[token]
            words.append(_padded(f"({of_day} // {TIME_PARTS[part]} % {_WRAPS[part]})", 2))
        else:
            words.append(f"'{token}'")
    sql = f"CASE WHEN {date.sql} <= {_LAST_DAY} THEN {' || '.join(words)} END"
    return made(scope, STRING, date, sql, max(stage, moment.stage))


def _padded(number: str, width: int) -> str:
    return f"lpad(({number})::VARCHAR, {width}, '0')"


def time_to_string(scope: Scope, term: Term) -> Term:
    """CAST of a date or timestamp AS STRING."""
    if term.type == DATE:
        return formatted(scope, term, "yyyy-MM-dd")
    clock = clock_of(scope, scope.bound(term))
    whole = scope.bound(formatted(scope, clock, "yyyy-MM-dd HH:mm:ss"))
    micros = f"(({clock.sql} % 1000000 + 1000000) % 1000000)"
    fraction = f"rtrim({_padded(micros, 6)}, '0')"
    sql = f"{whole.sql} || CASE WHEN {micros} = 0 THEN '' ELSE '.' || {fraction} END"
    return Term(type=STRING, sql=sql, fails=whole.fails, stage=max(whole.stage, clock.stage))
