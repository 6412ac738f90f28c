"""Arithmetic of decimals (Spark's DecimalPrecision and Decimal): the type of a result, and its digits.

DuckDB adds and multiplies as long as a result has 38 digits. What Spark rounds to fewer, quotients and remainders are
computed one row at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context
from decimal import Decimal as Number

import pyarrow as pa

from tablefeed.data.casts import as_decimal
from tablefeed.data.sql.kinds import MOST_DIGITS, arrow_type, bounded, duck, spelt
from tablefeed.data.sql.terms import Failure, PythonFunction, Scope, Term, divided, strict
from tablefeed.model.schema import Decimal


def arithmetic(scope: Scope, operator: str, left: Term, right: Term) -> Term:
    """The result of two decimals by + - * / or %. Null where an operand is; fails on overflow or division by zero."""
    a, b = left.type, right.type
    assert isinstance(a, Decimal)  # noqa: S101  # the caller cast them
    assert isinstance(b, Decimal)  # noqa: S101
    precision, scale = _raw_type(operator, a, b)
    kind = bounded(precision, scale)
    if operator not in "/%" and precision <= MOST_DIGITS:
        # DuckDB's sum has the digits of its operands; its product has up to 18 where both have.
        wide = kind if operator != "*" else Decimal(max(a.precision, 19) if precision > 18 else a.precision, a.scale)
        other = f"{{}}::{duck(kind)}" if operator != "*" else "{}"
        sql = f"TRY_CAST(TRY({{}}::{duck(wide)} {operator} {other}) AS {duck(kind)})"
        return strict(scope, kind, [left, right], sql, Failure.OVERFLOW)
    name, takes = f"{spelt(a)} {operator} {spelt(b)}", (duck(a), duck(b))
    function = PythonFunction(name=name, takes=takes, gives=duck(kind), function=_function(operator, kind))
    sql = f"{scope.python(function)}({{0}}, {{1}})"
    if operator in "/%":
        return divided(scope, kind, left, right, sql)
    return strict(scope, kind, [left, right], sql, Failure.OVERFLOW)


def _raw_type(operator: str, a: Decimal, b: Decimal) -> tuple[int, int]:
    wider = max(a.scale, b.scale)
    match operator:
        case "*":
            return a.precision + b.precision + 1, a.scale + b.scale
        case "/":
            scale = max(6, a.scale + b.precision + 1)
            return a.precision - a.scale + b.scale + scale, scale
        case "%":
            return min(a.precision - a.scale, b.precision - b.scale) + wider, wider
        case _:
            return max(a.precision - a.scale, b.precision - b.scale) + wider + 1, wider


_EXACT = Context(prec=200, rounding=ROUND_HALF_UP)


def _remainder(x: Number, y: Number) -> Number:
    """As Decimal.%: raises OverflowError where the whole quotient has more digits than Java computes there."""
    if len(_EXACT.divide_int(x, y).normalize(_EXACT).as_tuple().digits) > MOST_DIGITS + 1:
        raise OverflowError
    return _EXACT.remainder(x, y)


_OPERATIONS: dict[str, Callable[[Number, Number], Number]] = {
    "+": _EXACT.add,
    "-": _EXACT.subtract,
    "*": _EXACT.multiply,
    # Decimal./ cuts off all digits but 39 after the point; so its result is the exact one after it is rounded.
    "/": _EXACT.divide,
    "%": _remainder,
}


def _function(operator: str, kind: Decimal) -> Callable[..., pa.Array]:
    wanted = arrow_type(kind)

    def one(left: Number | None, right: Number | None) -> Number | None:
        try:
            return None if left is None or right is None else as_decimal(_OPERATIONS[operator](left, right), wanted)
        except ArithmeticError:
            return None

    def function(left: pa.ChunkedArray, right: pa.ChunkedArray) -> pa.Array:
        pairs = zip(left.to_pylist(), right.to_pylist(), strict=True)
        return pa.array([one(x, y) for x, y in pairs], wanted)

    return function
