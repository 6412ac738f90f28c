"""The functions of Spark's SQL that are evaluated, by name. Each makes a term from the terms of its arguments."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import replace

import pyarrow as pa

from tablefeed.data.sql import kinds, operators
from tablefeed.data.sql.calls import ANY, Call, Known, Maker
from tablefeed.data.sql.casts import cast
from tablefeed.data.sql.kinds import duck, spelt
from tablefeed.data.sql.terms import Failure, PythonFunction, Term, first, loose
from tablefeed.data.sql.text_functions import TEXT_FUNCTIONS
from tablefeed.data.sql.time_functions import TIME_FUNCTIONS
from tablefeed.model.murmur import SEED, murmur3
from tablefeed.model.schema import Array, DataType, Decimal, Map, Nested


def call(c: Call, name: str) -> Term:
    """Gives the term of a call. Raises NotExactError for a function or number of arguments that is not evaluated."""
    known = FUNCTIONS.get(name.lower())
    if known is None:
        raise c.refuse(f"the function {name} is not evaluated here")
    counts, make = known
    if len(c.arguments) not in counts:
        raise c.refuse(f"{name} is not evaluated with {len(c.arguments)} arguments")
    return replace(make(c), literal=None)  # INT(5) is no literal, though 5 is one


def _nullif(c: Call) -> Term:
    same = operators.compare(c, "=", *c.arguments)
    null = Term(type=c.arguments[0].type, sql=f"NULL::{duck(c.arguments[0].type)}")
    return operators.case(c, [(same, null)], c.arguments[0])


def _nvl2(c: Call) -> Term:
    condition = loose(kinds.BOOLEAN, c.arguments[:1], "({} IS NOT NULL)")
    return operators.case(c, [(condition, c.arguments[1])], c.arguments[2])


def _assert_true(c: Call) -> Term:
    held = c.scope.bound(operators.as_condition(c, c.arguments[0]))
    own = f"CASE WHEN {held.sql} IS DISTINCT FROM true THEN {int(Failure.ASSERTION)} END"
    return Term(type=kinds.VOID, sql="NULL::INTEGER", fails=first(held.fails, own))


def extract(c: Call, field: str) -> Term:
    """EXTRACT(field FROM the argument), which equals DATE_PART."""
    if field.lower() not in ("year", "quarter", "month", "week", "day", "hour", "minute"):
        raise c.refuse(f"EXTRACT of {field} is not evaluated here")
    return call(c, field)


def _date_part(c: Call) -> Term:
    return extract(replace(c, arguments=c.arguments[1:]), c.literal(0))


def _cast_to(kind: DataType) -> tuple[Sequence[int], Maker]:
    return (1,), lambda c: cast(c.scope, c.arguments[0], kind)


# --- numbers ---------------------------------------------------------------------------------------------------------


def _rounded(c: Call, name: str) -> Term:
    """CEIL and FLOOR of numbers; ROUND, by the name of no function of DuckDB, of decimals."""
    term, digits = c.arguments[0], c.arguments[1].literal if len(c.arguments) > 1 else 0
    if term.type in kinds.INTEGRALS and name:
        return cast(c.scope, term, kinds.LONG)
    if term.type in kinds.FLOATING and name:
        whole = f"CASE WHEN isnan({{0}}) THEN 0 ELSE TRY_CAST({name}({{0}}) AS BIGINT) END"
        return c.strict(kinds.LONG, [term], whole, Failure.OVERFLOW)
    if not isinstance(term.type, Decimal) or not isinstance(digits, int) or digits < 0:
        raise c.refuse(f"it is not evaluated for {spelt(term.type)}, or not to this number of digits")
    if name and term.type.scale == 0:
        return term
    scale = min(digits, term.type.scale)
    kind = Decimal(min(term.type.precision - term.type.scale + 1 + scale, 38), scale)
    return c.strict(kind, [term], f"TRY_CAST({name}({{}}) AS {duck(kind)})", Failure.OVERFLOW)


def _positive(c: Call) -> Term:
    """A number as it is; Spark makes a double of a text."""
    term = c.arguments[0]
    term = cast(c.scope, term, kinds.DOUBLE) if term.type == kinds.STRING else term
    if not kinds.is_numeric(term.type):
        raise c.refuse(f"{spelt(term.type)} is no number")
    return term


def _isnan(c: Call) -> Term:
    (term,) = c.arguments
    if not kinds.is_numeric(term.type):
        raise c.refuse(f"{spelt(term.type)} is no number")
    return loose(kinds.BOOLEAN, [cast(c.scope, term, kinds.DOUBLE)], "coalesce(isnan({}), false)")


def _pmod(c: Call) -> Term:
    rest = c.scope.bound(operators.calculate(c, "%", *c.arguments))
    if rest.type not in kinds.INTEGRALS:
        raise c.refuse("it is evaluated for whole numbers")
    divisor = cast(c.scope, c.arguments[1], rest.type)
    total = "({0}::HUGEINT + {1})"
    if rest.type in (kinds.INT, kinds.LONG):  # Java's sum of two negative numbers wraps around
        half = 1 << (31 if rest.type == kinds.INT else 63)
        total = f"CASE WHEN {total} < -{half} THEN {total} + {2 * half} ELSE {total} END"
    sql = f"CASE WHEN {{0}} < 0 THEN ({total}) % {{1}} ELSE {{0}} END"
    return loose(rest.type, [rest, replace(c.scope.bound(divisor), fails=None)], f"({sql})::{duck(rest.type)}")


def _hash(c: Call) -> Term:
    """Spark's Murmur3 over the values, one after the other; a null leaves the hash of those before it unchanged."""
    sql = f"{SEED}::INTEGER"
    for term in c.arguments:
        if term.type not in _ENCODED:
            raise c.refuse(f"it is not evaluated here for {spelt(term.type)}")
        takes, encoded = _ENCODED[term.type]
        over = PythonFunction(name=f"hash {takes}", takes=(takes, "INTEGER"), gives="INTEGER", function=_over(encoded))
        sql = c.scope.bind(f"{c.scope.python(over)}({term.sql}::{takes}, {sql})")
    return Term(type=kinds.INT, sql=sql, fails=first(*(term.fails for term in c.arguments)))


def _over(encoded: Callable[..., bytes]) -> Callable[..., pa.Array]:
    def over(values: pa.ChunkedArray, seeds: pa.ChunkedArray) -> pa.Array:
        pairs = zip(values.to_pylist(), seeds.to_pylist(), strict=True)
        return pa.array([seed if v is None else murmur3(encoded(v), seed) for v, seed in pairs], pa.int32())

    return over


_WORD, _TWO_WORDS = ("INTEGER", struct.Struct("<i").pack), ("BIGINT", struct.Struct("<q").pack)
_ENCODED: dict[DataType, tuple[str, Callable[..., bytes]]] = {
    **dict.fromkeys((kinds.BOOLEAN, kinds.BYTE, kinds.SHORT, kinds.INT, kinds.DATE), _WORD),
    **dict.fromkeys((kinds.LONG, kinds.TIMESTAMP, kinds.NTZ), _TWO_WORDS),
    kinds.STRING: ("VARCHAR", str.encode),
    kinds.BINARY: ("BLOB", bytes),
}
"""How HASH turns a value into bytes: as in Spark, numbers of up to 32 bits are one word, and longer ones two."""


# --- arrays ----------------------------------------------------------------------------------------------------------

_NOT_NULL = "list_filter({0}, lambda x: x IS NOT NULL)"


def _size(c: Call) -> Term:
    if isinstance(c.arguments[0].type, Map):
        return c.strict(kinds.INT, c.arguments, "cardinality({})::INTEGER")
    return _array_size(c)


def _array_size(c: Call) -> Term:
    return c.strict(kinds.INT, [_array(c)], "len({})::INTEGER")


def _contains(c: Call) -> Term:
    found, unknown = "list_contains({0}, {1})", f"len({{0}}) > len({_NOT_NULL})"
    sql = f"CASE WHEN {{1}} IS NULL OR (NOT {found} AND {unknown}) THEN NULL ELSE {found} END"
    return c.strict(kinds.BOOLEAN, [_array(c), _member(c)], sql)


def _put(sql: str) -> Maker:
    """Adds one element, which may be null, at an end."""

    def make(c: Call) -> Term:
        array, value = c.scope.bound(_array(c)), _member(c)
        if value.fails is not None:
            # Whether Spark evaluates the element where the array is null depends on how it runs the expression.
            raise c.refuse("it is evaluated only with an element that cannot fail")
        if len(c.arguments) == 3 and c.arguments[1].literal != 1:
            raise c.refuse("it is evaluated only at the literal position 1: use array_append for the end")
        return loose(array.type, [array, value], f"CASE WHEN {{0}} IS NOT NULL THEN {sql} END")

    return make


def _array(c: Call) -> Term:
    if not isinstance(c.arguments[0].type, Array):
        raise c.refuse("it is evaluated for arrays")
    return c.arguments[0]


def _member(c: Call) -> Term:
    """The last argument, which has the type of the array's elements."""
    array, value = _array(c).type, c.arguments[-1]
    if not isinstance(array, Array) or array.element != value.type or isinstance(value.type, Nested):
        raise c.refuse("it is evaluated for an array and a value of its element type")
    if value.type in kinds.TIMES:
        raise c.refuse("it is not evaluated for arrays of dates and times")
    return value


_CASTS = (kinds.DATE, kinds.TIMESTAMP, kinds.INT, kinds.LONG, kinds.STRING, kinds.DOUBLE, kinds.BOOLEAN)

FUNCTIONS: Known = {
    "if": ((3,), lambda c: operators.case(c, [(c.arguments[0], c.arguments[1])], c.arguments[2])),
    "coalesce": (ANY, operators.coalesced),
    "nvl": ((2,), operators.coalesced),
    "ifnull": ((2,), operators.coalesced),
    "nullif": ((2,), _nullif),
    "nvl2": ((3,), _nvl2),
    "isnull": ((1,), lambda c: loose(kinds.BOOLEAN, c.arguments, "({} IS NULL)")),
    "isnotnull": ((1,), lambda c: loose(kinds.BOOLEAN, c.arguments, "({} IS NOT NULL)")),
    "isnan": ((1,), _isnan),
    "greatest": (ANY[1:], lambda c: operators.extreme(c, "greatest")),
    "least": (ANY[1:], lambda c: operators.extreme(c, "least")),
    "abs": ((1,), lambda c: operators.signed(c, "abs({0})")),
    "ceil": ((1,), lambda c: _rounded(c, "ceil")),
    "ceiling": ((1,), lambda c: _rounded(c, "ceil")),
    "floor": ((1,), lambda c: _rounded(c, "floor")),
    "round": ((1, 2), lambda c: _rounded(c, "")),
    "mod": ((2,), lambda c: operators.calculate(c, "%", *c.arguments)),
    "pmod": ((2,), _pmod),
    "positive": ((1,), _positive),
    "hash": (ANY, _hash),
    "assert_true": ((1,), _assert_true),
    "date_part": ((2,), _date_part),
    "datepart": ((2,), _date_part),
    "size": ((1,), _size),
    "cardinality": ((1,), _size),
    "array_size": ((1,), _array_size),
    "array_contains": ((2,), _contains),
    "array_compact": ((1,), lambda c: c.strict(_array(c).type, c.arguments, _NOT_NULL)),
    "array_append": ((2,), _put("list_append({0}, {1})")),
    "array_prepend": ((2,), _put("list_prepend({1}, {0})")),
    "array_insert": ((3,), _put("list_prepend({1}, {0})")),
    **{spelt(kind): _cast_to(kind) for kind in _CASTS},
    **TEXT_FUNCTIONS,
    **TIME_FUNCTIONS,
}
