"""The functions of Spark's SQL that are evaluated, by name. Each makes a term from the terms of its arguments."""

from __future__ import annotations

from collections.abc import Sequence

from tablefeed.data.sql import decimals, operators
from tablefeed.data.sql.array_functions import ARRAY_FUNCTIONS
from tablefeed.data.sql.calls import ANY, Call, Known, Maker
from tablefeed.data.sql.casts import cast
from tablefeed.data.sql.hashes import hashed
from tablefeed.data.sql.terms import (
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOATING,
    INT,
    INTEGRALS,
    LONG,
    STRING,
    TIMESTAMP,
    VOID,
    Failure,
    Scope,
    Term,
    duck,
    first,
    spelt,
)
from tablefeed.data.sql.text_functions import TEXT_FUNCTIONS
from tablefeed.data.sql.time_functions import TIME_FUNCTIONS
from tablefeed.model.schema import DataType, Decimal


def call(scope: Scope, name: str, part: str, arguments: Sequence[Term]) -> Term:
    """Gives the term of a call. Raises NotExactError for a function or number of arguments that is not evaluated."""
    known = FUNCTIONS.get(name.lower())
    if known is None:
        raise scope.refuse(part, f"the function {name} is not evaluated here")
    counts, make = known
    if len(arguments) not in counts:
        raise scope.refuse(part, f"{name} is not evaluated with {len(arguments)} arguments")
    return make(Call(scope=scope, part=part, arguments=arguments))


def _if(c: Call) -> Term:
    condition = operators.as_condition(c.scope, c.part, c.arguments[0])
    return operators.case(c.scope, c.part, [(condition, c.arguments[1])], c.arguments[2])


def _coalesce(c: Call) -> Term:
    return operators.coalesced(c.scope, c.part, c.arguments)


def _nullif(c: Call) -> Term:
    same = operators.compare(c.scope, c.part, "=", c.arguments[0], c.arguments[1])
    null = Term(type=c.arguments[0].type, sql=f"NULL::{duck(c.arguments[0].type)}")
    return operators.case(c.scope, c.part, [(same, null)], c.arguments[0])


def _nvl2(c: Call) -> Term:
    return operators.case(c.scope, c.part, [(_is_not_null(c), c.arguments[1])], c.arguments[2])


def _is_null(c: Call) -> Term:
    term = c.arguments[0]
    return Term(type=BOOLEAN, sql=f"({term.sql} IS NULL)", fails=term.fails, stage=term.stage)


def _is_not_null(c: Call) -> Term:
    term = c.arguments[0]
    return Term(type=BOOLEAN, sql=f"({term.sql} IS NOT NULL)", fails=term.fails, stage=term.stage)


def _isnan(c: Call) -> Term:
    term = cast(c.scope, c.arguments[0], DOUBLE) if c.arguments[0].type not in FLOATING else c.arguments[0]
    return Term(type=BOOLEAN, sql=f"coalesce(isnan({term.sql}), false)", fails=term.fails, stage=term.stage)


def _abs(c: Call) -> Term:
    term = c.arguments[0]
    if term.type in INTEGRALS:
        return c.strict(term.type, [term], "TRY(abs({}))", Failure.OVERFLOW)
    if isinstance(term.type, Decimal):
        return decimals.negated(c.scope, c.part, term, "abs({0})")
    if term.type in FLOATING:
        return c.strict(term.type, [term], f"abs({{}})::{duck(term.type)}")
    raise c.refuse(f"{spelt(term.type)} is no number")


def _to_whole(name: str) -> Maker:
    def make(c: Call) -> Term:
        term = c.arguments[0]
        if term.type in INTEGRALS:
            return cast(c.scope, term, LONG)
        if isinstance(term.type, Decimal):
            kind = Decimal(min(term.type.precision - term.type.scale + 1, 38), 0)
            return c.strict(kind, [term], f"TRY_CAST({name}({{}}) AS {duck(kind)})", Failure.OVERFLOW)
        if term.type in FLOATING:
            whole = f"CASE WHEN isnan({{0}}) THEN 0 ELSE TRY_CAST({name}({{0}}) AS BIGINT) END"
            return c.strict(LONG, [term], whole, Failure.OVERFLOW)
        raise c.refuse(f"{spelt(term.type)} is no number")

    return make


def _round(c: Call) -> Term:
    term, digits = c.arguments[0], c.arguments[1].literal if len(c.arguments) > 1 else 0
    if not isinstance(term.type, Decimal) or not isinstance(digits, int) or digits < 0:
        raise c.refuse("it is evaluated only for decimals, and to a literal number of digits of 0 or more")
    scale = min(digits, term.type.scale)
    whole = term.type.precision - term.type.scale + 1
    kind = Decimal(min(whole + scale, 38), scale)
    return c.strict(kind, [term], f"TRY_CAST({{}} AS {duck(kind)})", Failure.OVERFLOW)


def _pmod(c: Call) -> Term:
    rest = operators.calculate(c.scope, c.part, "%", c.arguments[0], c.arguments[1])
    if rest.type not in INTEGRALS:
        raise c.refuse("it is evaluated for whole numbers")
    divisor = cast(c.scope, c.arguments[1], rest.type)
    rest, divisor = c.scope.bound(rest), c.scope.bound(divisor)
    wide = f"({rest.sql}::HUGEINT + {divisor.sql})"
    sql = f"CASE WHEN {rest.sql} < 0 THEN {wide} % {divisor.sql} ELSE {rest.sql} END::{duck(rest.type)}"
    return Term(type=rest.type, sql=sql, fails=rest.fails, stage=max(rest.stage, divisor.stage))


def _calculated(operator: str) -> Maker:
    return lambda c: operators.calculate(c.scope, c.part, operator, c.arguments[0], c.arguments[1])


def _assert_true(c: Call) -> Term:
    held = c.scope.bound(operators.as_condition(c.scope, c.part, c.arguments[0]))
    own = f"CASE WHEN {held.sql} IS DISTINCT FROM true THEN {int(Failure.ASSERTION)} END"
    return Term(type=VOID, sql="NULL::INTEGER", fails=first(held.fails, own), stage=held.stage)


def _date_part(c: Call) -> Term:
    return extract(c.scope, c.part, c.literal(0), c.arguments[1])


def extract(scope: Scope, part: str, field: str, source: Term) -> Term:
    """EXTRACT(field FROM source), which equals DATE_PART."""
    name = field.lower()
    if name not in ("year", "quarter", "month", "week", "day", "hour", "minute"):
        raise scope.refuse(part, f"EXTRACT of {field} is not evaluated here")
    return call(scope, name, part, [source])


def _cast_to(kind: DataType) -> Maker:
    return lambda c: cast(c.scope, c.arguments[0], kind)


FUNCTIONS: Known = {
    "if": ((3,), _if),
    "coalesce": (ANY, _coalesce),
    "nvl": ((2,), _coalesce),
    "ifnull": ((2,), _coalesce),
    "nullif": ((2,), _nullif),
    "nvl2": ((3,), _nvl2),
    "isnull": ((1,), _is_null),
    "isnotnull": ((1,), _is_not_null),
    "isnan": ((1,), _isnan),
    "greatest": (range(2, 1000), lambda c: operators.extreme(c.scope, c.part, "greatest", c.arguments)),
    "least": (range(2, 1000), lambda c: operators.extreme(c.scope, c.part, "least", c.arguments)),
    "abs": ((1,), _abs),
    "ceil": ((1,), _to_whole("ceil")),
    "ceiling": ((1,), _to_whole("ceil")),
    "floor": ((1,), _to_whole("floor")),
    "round": ((1, 2), _round),
    "mod": ((2,), _calculated("%")),
    "pmod": ((2,), _pmod),
    "assert_true": ((1,), _assert_true),
    "date_part": ((2,), _date_part),
    "datepart": ((2,), _date_part),
    "hash": (ANY, hashed),
    "date": ((1,), _cast_to(DATE)),
    "timestamp": ((1,), _cast_to(TIMESTAMP)),
    "int": ((1,), _cast_to(INT)),
    "bigint": ((1,), _cast_to(LONG)),
    "string": ((1,), _cast_to(STRING)),
    "double": ((1,), _cast_to(DOUBLE)),
    "boolean": ((1,), _cast_to(BOOLEAN)),
    **ARRAY_FUNCTIONS,
    **TEXT_FUNCTIONS,
    **TIME_FUNCTIONS,
}
