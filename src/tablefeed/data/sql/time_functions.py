"""Functions of dates and timestamps."""

from __future__ import annotations

from tablefeed.data.sql import kinds, times
from tablefeed.data.sql.calls import Call, Known, simple
from tablefeed.data.sql.casts import cast
from tablefeed.data.sql.kinds import DATE, INT, LONG, NTZ, STRING, TIMESTAMP
from tablefeed.data.sql.terms import Failure, Term
from tablefeed.model.spark_texts import DAY_US

_PARTS = {
    "year": "year({})",
    "quarter": "quarter({})",
    "month": "month({})",
    **dict.fromkeys(("day", "dayofmonth"), "day({})"),
    "dayofyear": "dayofyear({})",
    "dayofweek": "(dayofweek({}) + 1)",
    "weekday": "(isodow({}) - 1)",
    **dict.fromkeys(("week", "weekofyear"), "weekofyear({})"),
}
_MADE = "(TRY(make_date({0}::BIGINT, {1}::BIGINT, {2}::BIGINT)) - DATE '1970-01-01')"
_WHOLE_SECONDS = "({3} * 3600::BIGINT + {4} * 60::BIGINT + {5})"
_INSIDE = "{3} BETWEEN 0 AND 23 AND {4} BETWEEN 0 AND 59 AND {5} BETWEEN 0 AND 60"


def _to_timestamp(c: Call) -> Term:
    if c.arguments[0].type not in (STRING, DATE, TIMESTAMP):
        raise c.refuse(f"of {kinds.spelt(c.arguments[0].type)} it is not evaluated here")
    return cast(c.scope, c.arguments[0], TIMESTAMP)


def _make_timestamp(c: Call) -> Term:
    """Takes whole seconds; 60 seconds are the next minute."""
    clock = f"TRY(CASE WHEN {_INSIDE} THEN {_MADE}::BIGINT * {DAY_US} + {_WHOLE_SECONDS} * 1000000 END)"
    return cast(c.scope, c.strict(NTZ, [c.argument(i, "i") for i in range(6)], clock, Failure.RANGE), TIMESTAMP)


def _unix_timestamp(c: Call) -> Term:
    """Gives whole seconds, unlike unix_seconds rounded towards 1970. Spark does not read a text as CAST does."""
    if c.arguments and c.arguments[0].type == STRING:
        raise c.refuse("of a text it is not evaluated here: cast it to a timestamp")
    return c.strict(LONG, [c.argument(0, "t") if c.arguments else _now(c)], "({} // 1000000)")


def _now(c: Call) -> Term:
    if c.scope.now_us is None:
        raise c.refuse("its value differs at each call, so a rule of a table may not depend on it")
    return Term(type=TIMESTAMP, sql=f"{c.scope.now_us}::BIGINT")


def _date_trunc(c: Call) -> Term:
    moment = c.scope.bound(c.argument(1, "t"))
    clock = c.scope.bound(times.truncated_clock(c.scope, moment, c.literal(0)))
    instant = cast(c.scope, clock, TIMESTAMP)
    return instant if clock.type == DATE else times.kept_offset(c.scope, moment, clock, instant)


def _date_format(c: Call) -> Term:
    term = c.arguments[0]
    return times.formatted(c.scope, term if term.type == DATE else c.argument(0, "t"), c.literal(1))


_LATER = simple("di", DATE, "TRY_CAST({}::BIGINT + {} AS INTEGER)", Failure.RANGE)
_BETWEEN = simple("dd", INT, "TRY_CAST({}::BIGINT - {} AS INTEGER)", Failure.RANGE)

TIME_FUNCTIONS: Known = {
    **{n: simple("d", INT, f"{sql.format(times.AS_DATE)}::INTEGER", Failure.RANGE) for n, sql in _PARTS.items()},
    **{unit.lower(): simple("c", INT, times.clock_part(unit)) for unit in times.UNITS_US},
    "last_day": simple("d", DATE, f"(last_day({times.AS_DATE}) - DATE '1970-01-01')::INTEGER", Failure.RANGE),
    "to_date": simple("d", DATE, "{}"),
    "to_timestamp": ((1,), _to_timestamp),
    "trunc": ((2,), lambda c: times.truncated_date(c.scope, c.argument(0, "d"), c.literal(1))),
    "date_trunc": ((2,), _date_trunc),
    "date_format": ((2,), _date_format),
    "date_add": _LATER,
    "dateadd": _LATER,
    "date_sub": simple("di", DATE, "TRY_CAST({}::BIGINT - {} AS INTEGER)", Failure.RANGE),
    "datediff": _BETWEEN,
    "date_diff": _BETWEEN,
    "make_date": simple("iii", DATE, f"{_MADE}::INTEGER", Failure.RANGE),
    "make_timestamp": ((6,), _make_timestamp),
    "unix_timestamp": ((0, 1), _unix_timestamp),
    "unix_seconds": simple("m", LONG, times.floor_divided(1_000_000)),
    "unix_millis": simple("m", LONG, times.floor_divided(1000)),
    "unix_micros": simple("m", LONG, "{}"),
    "timestamp_seconds": simple("n", TIMESTAMP, "TRY({} * 1000000)", Failure.OVERFLOW),
    "timestamp_millis": simple("n", TIMESTAMP, "TRY({} * 1000)", Failure.OVERFLOW),
    "timestamp_micros": simple("n", TIMESTAMP, "{}"),
    "current_timestamp": ((0,), _now),
    "now": ((0,), _now),
    "current_date": ((0,), lambda c: cast(c.scope, _now(c), DATE)),
    "curdate": ((0,), lambda c: cast(c.scope, _now(c), DATE)),
}
