"""Functions of dates and timestamps."""

from __future__ import annotations

from tablefeed.data.sql import times
from tablefeed.data.sql.calls import Call, Known, Maker
from tablefeed.data.sql.casts import cast
from tablefeed.data.sql.terms import (
    DATE,
    INT,
    INTEGRALS,
    LONG,
    NTZ,
    STRING,
    TIMESTAMP,
    Failure,
    Term,
    spelt,
)
from tablefeed.data.sql.zones import DAY_US


def _date_part(name: str) -> Maker:
    return lambda c: times.date_part(c.scope, name, c.date(0))


def _time_part(name: str) -> Maker:
    def make(c: Call) -> Term:
        term = c.arguments[0]
        return times.time_part(c.scope, name, term if term.type == NTZ else c.timestamp(0))

    return make


def _to_timestamp(c: Call) -> Term:
    if c.arguments[0].type not in (STRING, DATE, TIMESTAMP):
        raise c.refuse(f"of {spelt(c.arguments[0].type)} it is not evaluated here")
    return cast(c.scope, c.arguments[0], TIMESTAMP)


def _to_date(c: Call) -> Term:
    if len(c.arguments) == 2 and c.literal(1) != "yyyy-MM-dd":
        raise c.refuse("it is evaluated without a pattern")
    if len(c.arguments) == 2 and c.arguments[0].type == STRING:
        raise c.refuse("of a text it is evaluated without a pattern")
    return c.date(0)


def _date_add(sign: str) -> Maker:
    def make(c: Call) -> Term:
        days = f"TRY_CAST({{}}::BIGINT {sign} {{}} AS INTEGER)"
        return c.strict(DATE, [c.date(0), c.whole(1)], days, Failure.RANGE)

    return make


def _datediff(c: Call) -> Term:
    return c.strict(INT, [c.date(0), c.date(1)], "TRY_CAST({}::BIGINT - {} AS INTEGER)", Failure.RANGE)


def _make_date(c: Call) -> Term:
    sql = "TRY(make_date({}::BIGINT, {}::BIGINT, {}::BIGINT)) - DATE '1970-01-01'"
    return c.strict(DATE, [c.whole(0), c.whole(1), c.whole(2)], f"({sql})::INTEGER", Failure.RANGE)


def _make_timestamp(c: Call) -> Term:
    """Takes whole seconds; 60 seconds are the next minute."""
    day = "(TRY(make_date({0}::BIGINT, {1}::BIGINT, {2}::BIGINT)) - DATE '1970-01-01')::BIGINT"
    of_day = "({3} * 3600::BIGINT + {4} * 60::BIGINT + {5})"
    inside = "{3} BETWEEN 0 AND 23 AND {4} BETWEEN 0 AND 59 AND {5} BETWEEN 0 AND 60"
    clock = f"CASE WHEN {inside} THEN {day} * {DAY_US} + {of_day} * 1000000 END"
    return cast(c.scope, c.strict(NTZ, [c.whole(i) for i in range(6)], clock, Failure.RANGE), TIMESTAMP)


def _unix_timestamp(c: Call) -> Term:
    """Gives whole seconds, unlike unix_seconds rounded towards 1970."""
    if not c.arguments:
        return c.strict(LONG, [_now(c)], "({} // 1000000)")
    return c.strict(LONG, [c.timestamp(0)], "({} // 1000000)")


def _unix(divisor: int) -> Maker:
    floor = f"(({{0}} - ({{0}} % {divisor} + {divisor}) % {divisor}) // {divisor})"
    return lambda c: c.strict(LONG, [c.timestamp(0)], floor)


def _from_unix(factor: int) -> Maker:
    def make(c: Call) -> Term:
        if c.arguments[0].type not in INTEGRALS:
            raise c.refuse("it is evaluated for whole numbers")
        return c.strict(TIMESTAMP, [c.arguments[0]], f"TRY({{}}::BIGINT * {factor})", Failure.OVERFLOW)

    return make


def _now(c: Call) -> Term:
    if c.scope.now_us is None:
        raise c.refuse("its value differs at each call, so a rule of a table may not depend on it")
    return Term(type=TIMESTAMP, sql=f"{c.scope.now_us}::BIGINT")


def _today(c: Call) -> Term:
    return cast(c.scope, _now(c), DATE)


def _date_format(c: Call) -> Term:
    term = c.arguments[0]
    return times.formatted(c.scope, term if term.type == DATE else c.timestamp(0), c.literal(1))


TIME_FUNCTIONS: Known = {
    **{name: ((1,), _date_part(name)) for name in times.DATE_PARTS},
    **{name: ((1,), _time_part(name)) for name in times.TIME_PARTS},
    "to_date": ((1, 2), _to_date),
    "to_timestamp": ((1,), _to_timestamp),
    "trunc": ((2,), lambda c: times.truncated_date(c.scope, c.date(0), c.literal(1))),
    "date_trunc": ((2,), lambda c: times.truncated_timestamp(c.scope, c.timestamp(1), c.literal(0))),
    "date_format": ((2,), lambda c: _date_format(c)),
    "date_add": ((2,), _date_add("+")),
    "dateadd": ((2,), _date_add("+")),
    "date_sub": ((2,), _date_add("-")),
    "datediff": ((2,), _datediff),
    "date_diff": ((2,), _datediff),
    "make_date": ((3,), _make_date),
    "make_timestamp": ((6,), _make_timestamp),
    "unix_timestamp": ((0, 1), _unix_timestamp),
    "unix_seconds": ((1,), _unix(1_000_000)),
    "unix_millis": ((1,), _unix(1000)),
    "unix_micros": ((1,), _unix(1)),
    "timestamp_seconds": ((1,), _from_unix(1_000_000)),
    "timestamp_millis": ((1,), _from_unix(1000)),
    "timestamp_micros": ((1,), _from_unix(1)),
    "current_timestamp": ((0,), _now),
    "now": ((0,), _now),
    "current_date": ((0,), _today),
    "curdate": ((0,), _today),
}
