"""The functions of Spark's SQL that are evaluated, by their names: each a maker of a term from its arguments' terms."""

from __future__ import annotations

from collections.abc import Sequence

from tablefeed.data.sql import operators
from tablefeed.data.sql.calls import ANY, Call, Known, Maker
from tablefeed.data.sql.casts import cast
from tablefeed.data.sql.coerce import is_numeric
from tablefeed.data.sql.terms import (
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOATING,
    INT,
    INTEGRALS,
    LONG,
    NTZ,
    STRING,
    TIMESTAMP,
    Failure,
    Scope,
    Term,
    duck,
    is_nested,
    spelt,
)
from tablefeed.data.sql.text_functions import TEXT_FUNCTIONS
from tablefeed.data.sql.time_functions import TIME_FUNCTIONS
from tablefeed.model.schema import Array, DataType, Decimal, Map


def call(scope: Scope, name: str, part: str, arguments: Sequence[Term]) -> Term:
    """Gives the term of a call. Raises NotExactError for a function that is not evaluated, or not so called."""
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
    there = Term(type=BOOLEAN, sql=f"({c.arguments[0].sql} IS NOT NULL)", fails=c.arguments[0].fails)
    return operators.case(c.scope, c.part, [(there, c.arguments[1])], c.arguments[2])


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
    if is_numeric(term.type):
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
        raise c.refuse("it is evaluated for decimals, and to 0 or more literal digits")
    scale = min(digits, term.type.scale)
    whole = term.type.precision - term.type.scale + 1
    kind = Decimal(min(whole + scale, 38), scale)
    return c.strict(kind, [term], f"TRY_CAST({{}} AS {duck(kind)})", Failure.OVERFLOW)


def _sqrt(c: Call) -> Term:
    term = cast(c.scope, c.arguments[0], DOUBLE)
    return c.strict(DOUBLE, [term], "CASE WHEN {0} < 0 THEN 'nan'::DOUBLE ELSE sqrt({0}) END")


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


def _size(c: Call) -> Term:
    term = c.arguments[0]
    if not isinstance(term.type, Array | Map):
        raise c.refuse("it is evaluated for arrays and maps")
    sql = "cardinality({})" if isinstance(term.type, Map) else "len({})"
    return c.strict(INT, [term], f"{sql}::INTEGER")


def _array_contains(c: Call) -> Term:
    array, value = c.arguments
    if not isinstance(array.type, Array) or array.type.element != value.type or is_nested(value.type):
        raise c.refuse("it is evaluated for an array and a value of its element type")
    if value.type in (DATE, TIMESTAMP, NTZ):
        raise c.refuse("it is not evaluated for arrays of dates and times")
    found = "list_contains({0}, {1})"
    unknown = "len({0}) > len(list_filter({0}, lambda x: x IS NOT NULL))"
    return c.strict(
        BOOLEAN,
        [array, value],
        f"CASE WHEN {{1}} IS NULL THEN NULL WHEN {found} THEN true WHEN {unknown} THEN NULL ELSE {found} END",
    )


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
    "sqrt": ((1,), _sqrt),
    "mod": ((2,), _calculated("%")),
    "pmod": ((2,), _pmod),
    "negative": ((1,), lambda c: operators.negated(c.scope, c.part, c.arguments[0])),
    "size": ((1,), _size),
    "cardinality": ((1,), _size),
    "array_contains": ((2,), _array_contains),
    "date": ((1,), _cast_to(DATE)),
    "timestamp": ((1,), _cast_to(TIMESTAMP)),
    "int": ((1,), _cast_to(INT)),
    "bigint": ((1,), _cast_to(LONG)),
    "string": ((1,), _cast_to(STRING)),
    "double": ((1,), _cast_to(DOUBLE)),
    "boolean": ((1,), _cast_to(BOOLEAN)),
    **TEXT_FUNCTIONS,
    **TIME_FUNCTIONS,
}
