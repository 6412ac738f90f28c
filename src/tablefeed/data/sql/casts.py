"""CAST under ANSI (Spark's Cast, UTF8String and SparkDateTimeUtils): what a type does not hold fails.

Spellings of texts that are rare and hard to tell alike (hexadecimal floats, years of five digits, zones by name) fail
as well: such a row is refused, where Spark may have taken it.
"""

from __future__ import annotations

from dataclasses import replace

from tablefeed.data.sql import times
from tablefeed.data.sql.coerce import integral_decimal, wider_decimal
from tablefeed.data.sql.engine import constant
from tablefeed.data.sql.terms import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    FLOATING,
    INTEGRALS,
    LONG,
    NTZ,
    STRING,
    TIMESTAMP,
    VOID,
    Failure,
    Scope,
    Term,
    duck,
    spelt,
    strict,
    text_sql,
)
from tablefeed.model.schema import DataType, Decimal, Struct


def cast(scope: Scope, term: Term, to: DataType) -> Term:
    """Gives `term` as `to`. Raises NotExactError where that is not evaluated here."""
    kind = term.type
    if kind == to:
        return term
    if kind == VOID:
        return Term(type=to, sql=f"NULL::{duck(to)}", fails=term.fails, stage=term.stage)
    if term.literal is not None and term.stage == 0:
        return _folded(scope, term, to)
    return _made(scope, term, to)


def assigned(scope: Scope, term: Term, to: DataType) -> Term:
    """Gives `term` as a column of `to` takes it: a cast that ANSI store assignment allows."""
    kind = term.type
    numbers = (*INTEGRALS, *FLOATING)
    safe = (kind in numbers or isinstance(kind, Decimal)) and (to in numbers or isinstance(to, Decimal))
    times_too = kind in (DATE, TIMESTAMP, NTZ) and to in (DATE, TIMESTAMP, NTZ)
    if kind in (to, VOID) or to == STRING or safe or times_too:
        return cast(scope, term, to)
    raise scope.refuse(scope.text, f"{spelt(kind)} is not assigned to a column of {spelt(to)}")


def _folded(scope: Scope, term: Term, to: DataType) -> Term:
    """Casts a literal at compile time: it is the same in each row."""
    scratch = Scope(text=scope.text, schema=Struct(()), zone=scope.zone)
    made = _made(scratch, replace(term, fails=None), to)
    value, failure = constant(scratch, made.sql, made.fails)
    if failure is not None or value is None:
        return Term(type=to, sql=f"NULL::{duck(to)}", fails=str(failure))
    if isinstance(value, bytes):
        return Term(type=to, sql=f"unhex('{value.hex()}')")
    literal = value if isinstance(value, int) and to in INTEGRALS and not isinstance(value, bool) else None
    return Term(type=to, sql=f"{text_sql(str(value))}::{duck(to)}", literal=literal)


def _made(scope: Scope, term: Term, to: DataType) -> Term:
    kind = term.type
    made: Term | None = None
    if to in INTEGRALS:
        made = _to_integral(scope, term, to)
    elif to in FLOATING:
        made = _to_floating(scope, term, to)
    elif isinstance(to, Decimal):
        made = _to_decimal(scope, term, to)
    elif to == STRING:
        made = _to_string(scope, term)
    elif to == BOOLEAN:
        made = _to_boolean(scope, term)
    elif to == BINARY and kind == STRING:
        made = strict(scope, BINARY, [term], "encode({})")
    elif to in (DATE, TIMESTAMP, NTZ):
        made = times.cast_to_time(scope, term, to)
    if made is None:
        raise scope.refuse(f"CAST({spelt(kind)} AS {spelt(to)})", "this cast is not evaluated here")
    return made


_BLANKS = r"[\x00-\x20\x7f]*"
"""What UTF8String.trimAll trims."""


def _to_integral(scope: Scope, term: Term, to: DataType) -> Term | None:
    kind = term.type
    if kind in INTEGRALS:
        wider = INTEGRALS.index(kind) < INTEGRALS.index(to)
        if wider:
            return strict(scope, to, [term], f"{{}}::{duck(to)}")
        return strict(scope, to, [term], f"TRY_CAST({{}} AS {duck(to)})", Failure.CAST)
    if kind == BOOLEAN:
        return strict(scope, to, [term], f"{{}}::{duck(to)}")
    if kind in FLOATING:
        whole = f"TRY_CAST(trunc({{0}}) AS {duck(to)})"
        if to == LONG:  # the first number above is let through, and made the largest
            whole = f"CASE WHEN {{0}} = 9223372036854775808.0::DOUBLE THEN 9223372036854775807 ELSE {whole} END"
        return strict(scope, to, [term], whole, Failure.CAST)
    if isinstance(kind, Decimal):
        whole = "{}" if kind.scale == 0 else "trunc({})"
        return strict(scope, to, [term], f"TRY_CAST({whole} AS {duck(to)})", Failure.CAST)
    if kind == STRING:
        number = f"regexp_extract({{0}}, '^{_BLANKS}([+-]?)0*([0-9]{{{{1,19}}}}){_BLANKS}$', "
        spelt_right = f"TRY_CAST(nullif({number}1) || {number}2), '') AS HUGEINT)"
        return strict(scope, to, [term], f"TRY_CAST({spelt_right} AS {duck(to)})", Failure.CAST)
    if kind == TIMESTAMP:
        seconds = "(({0} - (({0} % 1000000 + 1000000) % 1000000)) // 1000000)"
        if to == LONG:
            return strict(scope, to, [term], seconds)
        return strict(scope, to, [term], f"TRY_CAST({seconds} AS {duck(to)})", Failure.CAST)
    return None


def _to_floating(scope: Scope, term: Term, to: DataType) -> Term | None:
    kind = term.type
    if kind in INTEGRALS or kind == BOOLEAN:
        middle = "{}::TINYINT" if kind == BOOLEAN else "{}"
        return strict(scope, to, [term], f"({middle})::{duck(to)}")
    if kind == FLOAT:
        return strict(scope, to, [term], "{}::DOUBLE")
    if kind == DOUBLE:
        # From half a step above the largest float on, Java rounds to infinity.
        most = "3.4028235677973366e38::DOUBLE"
        outer = f"WHEN {{0}} >= {most} THEN 'inf'::FLOAT WHEN {{0}} <= -{most} THEN '-inf'::FLOAT"
        inside = f"CASE WHEN isnan({{0}}) THEN 'nan'::FLOAT {outer} ELSE TRY_CAST({{0}} AS FLOAT) END"
        return strict(scope, to, [term], inside, Failure.RANGE)
    if isinstance(kind, Decimal):
        # Through the text, because reading the text rounds only once.
        return strict(scope, to, [term], f"({{}}::VARCHAR)::{duck(to)}")
    if kind == STRING:
        number = r"^[\x00-\x20]*([+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?)[fFdD]?[\x00-\x20]*$"
        digits = f"TRY_CAST(nullif(regexp_extract({{0}}, '{number}', 1), '') AS {duck(to)})"
        named = "CASE lower(trim({0})) WHEN 'nan' THEN 'nan' WHEN 'inf' THEN 'inf' WHEN '+inf' THEN 'inf' "
        named += "WHEN 'infinity' THEN 'inf' WHEN '+infinity' THEN 'inf' WHEN '-inf' THEN '-inf' "
        named += f"WHEN '-infinity' THEN '-inf' END::{duck(to)}"
        return strict(scope, to, [term], f"coalesce({digits}, {named})", Failure.CAST)
    return None


def _to_decimal(scope: Scope, term: Term, to: Decimal) -> Term | None:
    kind = term.type
    if kind in INTEGRALS or kind == BOOLEAN or isinstance(kind, Decimal):
        middle = "{}::TINYINT" if kind == BOOLEAN else "{}"
        whole = integral_decimal(kind)
        if isinstance(whole, Decimal) and wider_decimal(whole, to) == to:
            return strict(scope, to, [term], f"{{}}::{duck(to)}")
        return strict(scope, to, [term], f"TRY_CAST({middle} AS {duck(to)})", Failure.CAST)
    if kind == STRING:
        number = rf"^{_BLANKS}([+-]?([0-9]+\.?[0-9]*|\.[0-9]+)){_BLANKS}$"
        digits = f"nullif(regexp_extract({{0}}, '{number}', 1), '')"
        return strict(scope, to, [term], f"TRY_CAST({digits} AS {duck(to)})", Failure.CAST)
    return None


def _to_string(scope: Scope, term: Term) -> Term | None:
    kind = term.type
    if kind in INTEGRALS or kind == BOOLEAN or isinstance(kind, Decimal):
        return strict(scope, STRING, [term], "{}::VARCHAR")
    if kind in (DATE, TIMESTAMP, NTZ):
        return times.time_to_string(scope, term)
    return None


def _to_boolean(scope: Scope, term: Term) -> Term | None:
    kind = term.type
    if kind in INTEGRALS or kind in FLOATING or isinstance(kind, Decimal):
        return strict(scope, BOOLEAN, [term], "({} <> 0)")
    if kind == STRING:
        word = f"lower(regexp_extract({{0}}, '^{_BLANKS}([a-zA-Z01]+){_BLANKS}$', 1))"
        sql = f"CASE WHEN {word} IN ('t', 'true', 'y', 'yes', '1') THEN true "
        sql += f"WHEN {word} IN ('f', 'false', 'n', 'no', '0') THEN false END"
        return strict(scope, BOOLEAN, [term], sql, Failure.CAST)
    return None
