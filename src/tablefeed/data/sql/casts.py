"""CAST under ANSI (Spark's Cast): what a type does not hold fails.

DuckDB converts where no value can fail. All else is converted by the casts of rows (`tablefeed.data.casts`), which know
what Spark reads and rounds. Of a text that they do not read, though Spark may, the row is refused.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, tzinfo

import pyarrow as pa

from tablefeed.data import casts
from tablefeed.data.retype import Conversion, LossyConversionError
from tablefeed.data.sql import kinds, times
from tablefeed.data.sql.kinds import arrow_type, decimal_of, duck, spelt
from tablefeed.data.sql.terms import Failure, PythonFunction, Scope, Term, nulled, strict, text_sql
from tablefeed.model import spark_texts
from tablefeed.model.schema import DataType, Decimal, Nested


def cast(scope: Scope, term: Term, to: DataType) -> Term:
    """Gives `term` as `to`. Raises NotExactError where that is not evaluated here."""
    kind = term.type
    if kind == to:
        return term
    if kind == kinds.VOID:
        return Term(type=to, sql=f"NULL::{duck(to)}", fails=term.fails)
    if kind in (kinds.TIMESTAMP, kinds.NTZ) and to in (kinds.DATE, kinds.NTZ):
        return times.day_of(scope, term) if to == kinds.DATE else times.clock_of(scope, term)
    if kind in kinds.TIMES and to == kinds.STRING:
        return times.text_of(scope, term)
    sql = _sql(kind, to)
    if sql is not None:
        made = strict(scope, to, [term], sql)
        return replace(made, literal=term.literal) if to in kinds.INTEGRALS else made
    return _converted(scope, term, to)


def assigned(scope: Scope, term: Term, to: DataType) -> Term:
    """Gives `term` as a column of `to` takes it: a cast that ANSI store assignment allows."""
    kind = term.type
    safe = kinds.is_numeric(kind) and kinds.is_numeric(to)
    if isinstance(to, Nested) and kinds.shape(kind) == kinds.shape(to):
        return term
    if kind in (to, kinds.VOID) or to == kinds.STRING or safe or (kind in kinds.TIMES and to in kinds.TIMES):
        return cast(scope, term, to)
    raise scope.refuse(scope.text, f"{spelt(kind)} is not assigned to a column of {spelt(to)}")


def _sql(kind: DataType, to: DataType) -> str | None:
    """The cast in DuckDB; None where a value can fail."""
    if to == kinds.BOOLEAN and kinds.is_numeric(kind):
        return "({} <> 0)"
    if to == kinds.STRING and isinstance(kind, Decimal):
        # DuckDB writes no 0 before the point where the type has no digits there.
        return "{}::VARCHAR" if kind.precision > kind.scale else "replace({}::VARCHAR, '.', '0.')"
    if to == kinds.STRING and kind in (*kinds.INTEGRALS, kinds.BOOLEAN):
        return "{}::VARCHAR"
    if to in kinds.INTEGRALS and kind == kinds.TIMESTAMP:
        return times.floor_divided(1_000_000) if to == kinds.LONG else None
    if to == kinds.TIMESTAMP and kind in kinds.INTEGRALS:
        # From seconds; as in TimeUnit.toMicros, the result is limited to the extreme values.
        most = 9_223_372_036_854
        outer = f"WHEN {{0}}::BIGINT > {most} THEN 9223372036854775807 WHEN {{0}}::BIGINT < -{most}"
        return f"CASE {outer} THEN -9223372036854775807 - 1 ELSE {{0}}::BIGINT * 1000000 END"
    return f"({{}})::{duck(to)}" if _is_wider(kind, to) else None


def _is_wider(kind: DataType, to: DataType) -> bool:
    of_kind, order = decimal_of(kind), (kinds.BOOLEAN, *kinds.INTEGRALS, *kinds.FLOATING)
    if isinstance(to, Decimal):
        return of_kind is not None and kinds.wider_decimal(of_kind, to) == to
    return kind in order and to in order and order.index(kind) < order.index(to)


def _converted(scope: Scope, term: Term, to: DataType) -> Term:
    needs_zone = kinds.TIMESTAMP in (term.type, to)
    names_zone = isinstance(term.literal, str) and spark_texts.names_zone(term.literal)
    zone = (UTC if names_zone else times.zone_of(scope)) if needs_zone else None
    convert = _conversion(scope, term.type, to, zone)
    if term.literal is not None and to != kinds.BINARY:  # the same in each row
        (value,) = kinds.taken(convert(pa.array([term.literal], arrow_type(term.type)))).to_pylist()
        if value is None:
            return Term(type=to, sql=f"NULL::{duck(to)}", fails=str(int(Failure.CAST)))
        literal = value if to in kinds.INTEGRALS else None
        shown = f"{value:f}" if isinstance(to, Decimal) else str(value)
        return Term(type=to, sql=f"{text_sql(shown)}::{duck(to)}", literal=literal)
    function = PythonFunction(
        name=f"{spelt(term.type)} as {spelt(to)} {zone}",
        takes=(duck(term.type),),
        gives=duck(to),
        function=lambda given: kinds.taken(convert(kinds.terms_value(given.combine_chunks(), term.type))),
    )
    return strict(scope, to, [term], f"{scope.python(function)}({{}})", Failure.CAST)


def _conversion(scope: Scope, kind: DataType, to: DataType, zone: tzinfo | None) -> Conversion:
    """The conversion to Arrow's values, with null for each value that fails."""
    refused = scope.refuse(f"CAST({spelt(kind)} AS {spelt(to)})", "this cast is not evaluated here")
    # How a floating-point number is spelt depends on the version of Java.
    is_spelt = kind in kinds.FLOATING and (to == kinds.STRING or isinstance(to, Decimal))
    if is_spelt or kind == kinds.BINARY or isinstance(kind, Nested) or isinstance(to, Nested):
        raise refused
    try:
        return nulled(casts.cast(arrow_type(kind), arrow_type(to), zone))
    except LossyConversionError as error:
        raise refused from error
