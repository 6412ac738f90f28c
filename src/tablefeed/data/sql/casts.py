"""CAST under ANSI (Spark's Cast): what a type does not hold fails.

`spark_texts` reads texts. Of a text that it does not read, though Spark may, the row is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC

from tablefeed.data import spark_texts
from tablefeed.data.casts import as_decimal
from tablefeed.data.sql import kinds, times
from tablefeed.data.sql.coerce import decimal_of, wider_decimal
from tablefeed.data.sql.kinds import arrow_type, duck, spelt
from tablefeed.data.sql.terms import Failure, Scope, Term, by_value, strict
from tablefeed.data.sql.zones import zone_of
from tablefeed.model.schema import DataType, Decimal


def cast(scope: Scope, term: Term, to: DataType) -> Term:
    """Gives `term` as `to`. Raises NotExactError where that is not evaluated here."""
    kind = term.type
    if kind == to:
        return term
    if kind == kinds.VOID:
        return Term(type=to, sql=f"NULL::{duck(to)}", fails=term.fails)
    if kind == kinds.STRING:
        return _from_text(scope, term, to)
    made = _made(scope, term, to)
    if made is None:
        raise _refused(scope, kind, to)
    return replace(made, literal=term.literal) if to in kinds.INTEGRALS else made


def assigned(scope: Scope, term: Term, to: DataType) -> Term:
    """Gives `term` as a column of `to` takes it: a cast that ANSI store assignment allows."""
    kind = term.type
    safe = kinds.is_numeric(kind) and kinds.is_numeric(to)
    if kind in (to, kinds.VOID) or to == kinds.STRING or safe or (kind in kinds.TIMES and to in kinds.TIMES):
        return cast(scope, term, to)
    raise scope.refuse(scope.text, f"{spelt(kind)} is not assigned to a column of {spelt(to)}")


def _refused(scope: Scope, kind: DataType, to: DataType) -> Exception:
    return scope.refuse(f"CAST({spelt(kind)} AS {spelt(to)})", "this cast is not evaluated here")


# --- from texts ------------------------------------------------------------------------------------------------------


def _from_text(scope: Scope, term: Term, to: DataType) -> Term:
    if to == kinds.BINARY:
        return strict(scope, to, [term], "encode({})")
    read = _reader(scope, term, to)
    if isinstance(term.literal, str):  # the same in each row
        try:
            value = read(term.literal)
        except (ValueError, ArithmeticError):
            return Term(type=to, sql=f"NULL::{duck(to)}", fails=str(int(Failure.CAST)))
        literal = value if isinstance(value, int) and to in kinds.INTEGRALS else None
        return Term(type=to, sql=f"'{value}'::{duck(to)}", literal=literal)
    zone = f"_{scope.zone}" if to == kinds.TIMESTAMP else ""
    name = scope.python(by_value(f"text as {spelt(to)}{zone}", kinds.STRING, to, read))
    return strict(scope, to, [term], f"{name}({{}})", Failure.CAST)


def _reader(scope: Scope, term: Term, to: DataType) -> Callable[[str], object]:
    if to in kinds.INTEGRALS:
        bits = 8 << kinds.INTEGRALS.index(to)
        return lambda text: spark_texts.read_integer(text, bits)
    if isinstance(to, Decimal):
        wanted = arrow_type(to)
        return lambda text: as_decimal(spark_texts.read_decimal(text), wanted)
    if to == kinds.TIMESTAMP:
        names_zone = isinstance(term.literal, str) and spark_texts.names_zone(term.literal)
        zone = UTC if names_zone else zone_of(scope, "a text as a timestamp")
        return lambda text: spark_texts.read_timestamp(text, zone)
    read = _READERS.get(to)
    if read is None:
        raise _refused(scope, term.type, to)
    return read


_READERS: dict[DataType, Callable[[str], object]] = {
    kinds.BOOLEAN: spark_texts.read_boolean,
    kinds.DOUBLE: spark_texts.read_double,
    kinds.FLOAT: spark_texts.read_float,
    kinds.DATE: spark_texts.read_date,
    kinds.NTZ: spark_texts.read_timestamp_ntz,
}


# --- from other types ------------------------------------------------------------------------------------------------


def _made(scope: Scope, term: Term, to: DataType) -> Term | None:
    kind = term.type
    if kind in kinds.TIMES and to == kinds.STRING:
        return times.time_to_string(scope, term)
    if to in kinds.TIMES:
        return times.cast_to_time(scope, term, to)
    sql = _sql(kind, to)
    if sql is None:
        return None
    return strict(scope, to, [term], sql, Failure.CAST if "TRY_CAST" in sql else None)


def _sql(kind: DataType, to: DataType) -> str | None:
    """The cast of a number, boolean or timestamp; null where it fails, then by TRY_CAST. None: there is none here."""
    number = kinds.is_numeric(kind)
    if to == kinds.BOOLEAN and number:
        return "({} <> 0)"
    if to == kinds.STRING and kind not in kinds.FLOATING and (number or kind == kinds.BOOLEAN):
        return "{}::VARCHAR"
    if to in kinds.INTEGRALS:
        return _to_integral(kind, to)
    if to in kinds.FLOATING and number:
        return _to_floating(kind, to)
    whole = decimal_of(kind)
    if isinstance(to, Decimal) and whole is not None:
        return f"{{}}::{duck(to)}" if wider_decimal(whole, to) == to else f"TRY_CAST({{}} AS {duck(to)})"
    return None


def _to_integral(kind: DataType, to: DataType) -> str | None:
    if kind == kinds.BOOLEAN or (kind in kinds.INTEGRALS and kinds.INTEGRALS.index(kind) < kinds.INTEGRALS.index(to)):
        return f"{{}}::{duck(to)}"
    if kind == kinds.TIMESTAMP:
        return "(({0} - (({0} % 1000000 + 1000000) % 1000000)) // 1000000)" if to == kinds.LONG else None
    if not kinds.is_numeric(kind):
        return None
    whole = f"TRY_CAST({'{0}' if kind in kinds.INTEGRALS else 'trunc({0})'} AS {duck(to)})"
    if kind in kinds.FLOATING and to == kinds.LONG:  # the first number above is let through, and made the largest
        return f"CASE WHEN {{0}} = 9223372036854775808.0::DOUBLE THEN 9223372036854775807 ELSE {whole} END"
    return whole


def _to_floating(kind: DataType, to: DataType) -> str:
    if isinstance(kind, Decimal):
        return f"({{}}::VARCHAR)::{duck(to)}"  # through the text, because reading the text rounds only once
    if kind == kinds.DOUBLE:
        # From half a step above the largest float on, Java rounds to infinity.
        most = "3.4028235677973366e38::DOUBLE"
        outer = f"WHEN {{0}} >= {most} THEN 'inf'::FLOAT WHEN {{0}} <= -{most} THEN '-inf'::FLOAT"
        return f"CASE WHEN isnan({{0}}) THEN 'nan'::FLOAT {outer} ELSE TRY_CAST({{0}} AS FLOAT) END"
    return f"({{}})::{duck(to)}"
