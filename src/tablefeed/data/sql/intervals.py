"""Dates and timestamps plus and minus days and interval literals (Spark's BinaryArithmeticWithDatetimeResolver)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tablefeed.data.sql import times
from tablefeed.data.sql.casts import cast
from tablefeed.data.sql.terms import BYTE, DATE, INT, NTZ, SHORT, TIMESTAMP, Failure, Scope, Term, spelt, strict

if TYPE_CHECKING:
    from sqlglot import exp

_MONTHS = {"MONTH": 1, "YEAR": 12}
_MICROS = {"DAY": 86_400_000_000, "HOUR": 3_600_000_000, "MINUTE": 60_000_000, "SECOND": 1_000_000}
_COUNT = re.compile(r"[+-]?[0-9]{1,9}")


def shifted(scope: Scope, node: exp.Expr, term: Term) -> Term:
    """A date or timestamp plus or minus an interval literal of one unit."""
    from sqlglot import exp

    part, interval = str(node.sql("spark")), node.expression
    unit = interval.args.get("unit")
    count, name = str(getattr(interval.this, "this", "")), str(unit.this).upper().removesuffix("S")
    if type(unit) is not exp.Var or type(interval.this) is not exp.Literal or _COUNT.fullmatch(count) is None:
        raise scope.refuse(part, "only intervals of one whole number and one unit are evaluated here")
    amount = int(count) if node.key == "add" else -int(count)
    if term.type not in (DATE, TIMESTAMP, NTZ) or name not in (*_MONTHS, *_MICROS):
        raise scope.refuse(part, f"{spelt(term.type)} and an interval of {name} are not evaluated here")
    if name in _MONTHS:
        months = amount * _MONTHS[name]
        if term.type == DATE:
            return times.add_months(scope, term, Term(type=INT, sql=f"({months})"))
        return times.add_clock_months(scope, term, months)
    if term.type == DATE:
        if name != "DAY":
            raise scope.refuse(part, "a date and a part of a day make a timestamp: cast the date first")
        return strict(scope, DATE, [term], f"TRY_CAST({{}}::BIGINT + {amount} AS INTEGER)", Failure.RANGE)
    micros = amount * _MICROS[name]
    days = abs(micros) // _MICROS["DAY"] * (1 if micros > 0 else -1)
    return times.add_clock_days(scope, term, days, micros - days * _MICROS["DAY"])


def moved_date(scope: Scope, part: str, operator: str, date: Term, days: Term) -> Term:
    """A date plus or minus days."""
    if days.type not in (BYTE, SHORT, INT):
        raise scope.refuse(part, f"a date {operator} {spelt(days.type)} is not evaluated here")
    sql = f"TRY_CAST({{}}::BIGINT {operator} {{}} AS INTEGER)"
    return strict(scope, DATE, [date, cast(scope, days, INT)], sql, Failure.RANGE)
