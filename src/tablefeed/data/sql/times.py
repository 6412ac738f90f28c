"""Dates and timestamps: clocks, truncation and texts (Spark's SparkDateTimeUtils, DateTimeUtils).

DuckDB has a time zone database of its own, which may be older than Python's. So offsets come from Python's database in
both directions: for the wall clock of an instant, and for the instant of a wall clock, which is a cast.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta, tzinfo
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc

from tablefeed.data.sql import kinds
from tablefeed.data.sql.terms import Failure, PythonFunction, Scope, Term, mapped, strict
from tablefeed.model.spark_texts import DAY_US, date_text, read_zone, to_local

_IN_CALENDAR = "{0} BETWEEN -62167219200000000 AND 253433923199999999"
"""The years 0 to 10000: a little more than what any zone's clock shows in the years 1 to 9999."""
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896
"""Of the years 1 to 9999."""
AS_DATE = f"CASE WHEN {{0}} BETWEEN {_FIRST_DAY} AND {_LAST_DAY + 366} THEN DATE '1970-01-01' + {{0}}::INTEGER END"
"""DuckDB's date of a number of days; null outside of the years 1 to 10000."""
_OF_DAY = f"(({{0}} % {DAY_US} + {DAY_US}) % {DAY_US})"
"""The microseconds of a wall clock since midnight."""
UNITS_US = {"HOUR": 3_600_000_000, "MINUTE": 60_000_000, "SECOND": 1_000_000}
_CLOCK_UNITS_US = {**UNITS_US, **dict.fromkeys(("DAY", "DD"), DAY_US)}


def zone_of(scope: Scope) -> tzinfo:
    """The session's time zone."""
    if scope.zone is None:
        reason = (
            "it depends on the session's time zone, which is not known here: set the option timeZone (time_zone in "
            "Python)"
        )
        raise scope.refuse(scope.text, reason)
    try:
        return read_zone(scope.zone)
    except ValueError as error:
        reason = f"the time zone {scope.zone} is not read here: name it as Area/City, UTC or +01:00"
        raise scope.refuse(scope.text, reason) from error


def _offset(scope: Scope, instant: str) -> str:
    """The zone's offset in microseconds at an instant, which is a name; null outside of the years 0 to 10000."""
    zone = zone_of(scope)
    fixed = zone.utcoffset(None)
    if fixed is None:
        function = PythonFunction(name=f"offset {zone}", takes=("BIGINT",), gives="BIGINT", function=_offsets(zone))
        there = f"{scope.python(function)}({instant})"
    else:
        there = f"{fixed // timedelta(microseconds=1)}::BIGINT"
    return scope.bind(f"CASE WHEN {_IN_CALENDAR.format(instant)} THEN {there} END")


def _offsets(zone: tzinfo) -> Callable[[pa.ChunkedArray], pa.Array]:
    """Gives the offsets of `zone` in microseconds at instants. In no zone the offset changes twice in a day of UTC."""

    @lru_cache(maxsize=50_000)
    def of_day(day: int) -> int | None:
        """The offset on a day of UTC, None where it changes on that day."""
        first, next_first = (to_local(each * DAY_US, zone) - each * DAY_US for each in (day, day + 1))
        return first if first == next_first else None

    def offsets(given: pa.ChunkedArray) -> pa.Array:
        instants = given.combine_chunks()
        days = pc.divide(instants, DAY_US)  # rounded towards 1970
        days = pc.subtract(days, pc.less(instants, pc.multiply(days, DAY_US)).cast(pa.int64())).dictionary_encode()
        distinct = pa.array([of_day(day) for day in days.dictionary.to_pylist()], pa.int64())
        found = distinct.take(days.indices)
        changing = pc.and_(found.is_null(), instants.is_valid())
        if not pc.any(changing).as_py():
            return found
        one_by_one = [to_local(instant, zone) - instant for instant in instants.filter(changing).to_pylist()]
        return pc.replace_with_mask(found, changing, pa.array(one_by_one, pa.int64()))

    return offsets


def clock_of(scope: Scope, term: Term) -> Term:
    """The wall clock of a timestamp, in microseconds; a timestamp_ntz already is a wall clock."""
    term = scope.bound(term)
    inside = f"CASE WHEN {_IN_CALENDAR} THEN {{0}} END"
    clock = inside if term.type == kinds.NTZ else f"{{0}} + {_offset(scope, term.sql)}"
    return strict(scope, kinds.NTZ, [term], clock, Failure.RANGE)


def day_of(scope: Scope, moment: Term) -> Term:
    """The date that the clock shows at a timestamp, or with a timestamp_ntz."""
    days = f"{floor_divided(DAY_US)}::INTEGER"
    return scope.bound(strict(scope, kinds.DATE, [clock_of(scope, moment)], days))


def floor_divided(width: int) -> str:
    """SQL that divides a bigint by `width` and rounds down."""
    return f"({{0}} // {width} - CASE WHEN {{0}} % {width} < 0 THEN 1 ELSE 0 END)"


def clock_part(unit: str) -> str:
    """SQL of the hour, minute or whole second of a wall clock."""
    return f"({_OF_DAY} // {UNITS_US[unit]} % {24 if unit == 'HOUR' else 60})::INTEGER"


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


def truncated_clock(scope: Scope, moment: Term, unit: str) -> Term:
    """The date or wall clock to which DATE_TRUNC('unit', timestamp) cuts, before it is a timestamp again."""
    width = _CLOCK_UNITS_US.get(unit.upper())
    if width is not None:
        return strict(scope, kinds.NTZ, [clock_of(scope, moment)], f"({floor_divided(width)} * {width})")
    return truncated_date(scope, day_of(scope, moment), unit)


def kept_offset(scope: Scope, moment: Term, clock: Term, instant: Term) -> Term:
    """The instant of a clock a little before `moment`, with the same offset where the clock has it then too.

    That is ZonedDateTime.truncatedTo; `instant` is what the clock means otherwise.
    """
    kept = _offset(scope, moment.sql)
    same = scope.bind(f"{clock.sql} - {kept}")
    sql = f"CASE WHEN {_offset(scope, same)} = {kept} THEN {same} ELSE {instant.sql} END"
    return Term(type=kinds.TIMESTAMP, sql=sql, fails=instant.fails)


def text_of(scope: Scope, moment: Term) -> Term:
    """CAST of a date or timestamp AS STRING."""
    if moment.type == kinds.DATE:
        return mapped(scope, "date as text", moment, kinds.STRING, date_text, Failure.RANGE)
    clock = scope.bound(clock_of(scope, moment))
    sql = f"{{}} || ' ' || (TIME '00:00:00' + to_microseconds({_OF_DAY.format(clock.sql)}))::VARCHAR"
    return strict(scope, kinds.STRING, [text_of(scope, day_of(scope, clock))], sql)


_PATTERN = re.compile(r"yyyy|MM|dd|HH|mm|ss|[-/:._ ]")
_PLACES = {"yyyy": "1:4", "MM": "6:7", "dd": "9:10", "HH": "12:13", "mm": "15:16", "ss": "18:19"}
"""Where the text of a timestamp has each part."""


def formatted(scope: Scope, moment: Term, pattern: str) -> Term:
    """DATE_FORMAT with a pattern of yyyy, MM, dd, HH, mm, ss and separators."""
    tokens = _PATTERN.findall(pattern)
    if "".join(tokens) != pattern or not tokens:
        reason = "patterns are evaluated of yyyy, MM, dd, HH, mm, ss and - / : . _ blank"
        raise scope.refuse(f"the pattern {pattern}", reason)
    if not {"HH", "mm", "ss"}.isdisjoint(tokens):
        if moment.type == kinds.DATE:
            raise scope.refuse(f"the pattern {pattern}", "of a date it is evaluated without hours: cast the date first")
    elif moment.type != kinds.DATE:
        moment = day_of(scope, moment)
    words = [f"{{0}}[{_PLACES[token]}]" if token in _PLACES else f"'{token}'" for token in tokens]
    sql = f"CASE WHEN {{0}}[1:4] BETWEEN '0001' AND '9999' THEN {' || '.join(words)} END"
    return strict(scope, kinds.STRING, [text_of(scope, moment)], sql, Failure.RANGE)
