"""Arithmetic of decimals (Spark's DecimalPrecision and Decimal): the type of a result, and its digits.

DuckDB adds and multiplies as long as a result has 38 digits. What Spark rounds to fewer, quotients and remainders are
worked out in whole numbers, one row at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Context
from decimal import Decimal as Number

import pyarrow as pa

from tablefeed.data.sql.coerce import MOST_DIGITS, bounded
from tablefeed.data.sql.kinds import arrow_type, duck
from tablefeed.data.sql.terms import Failure, PythonFunction, Scope, Term, divided, strict
from tablefeed.model.schema import Decimal

_CONTEXT = Context(prec=200)
_MOST_NEGATED = 34
"""The digits to which Spark rounds when it negates: Scala's BigDecimal, MathContext.DECIMAL128."""


def arithmetic(scope: Scope, operator: str, left: Term, right: Term) -> Term:
    """The result of two decimals by + - * / or %. Null where an operand is; fails on overflow or division by zero."""
    a, b = left.type, right.type
    assert isinstance(a, Decimal)  # noqa: S101  # the caller cast them
    assert isinstance(b, Decimal)  # noqa: S101
    raw = _raw_type(operator, a, b)
    kind = bounded(*raw)
    if operator not in "/%" and raw[0] <= MOST_DIGITS:
        # DuckDB's sum has the digits of its operands; its product has up to 18 where both have.
        wide = kind if operator != "*" else Decimal(max(a.precision, 19) if raw[0] > 18 else a.precision, a.scale)
        other = f"{{}}::{duck(kind)}" if operator != "*" else "{}"
        sql = f"TRY_CAST(TRY({{}}::{duck(wide)} {operator} {other}) AS {duck(kind)})"
        return strict(scope, kind, [left, right], sql, Failure.OVERFLOW)
    name = f"decimal_{_NAMES[operator]}_{a.precision}_{a.scale}_{b.precision}_{b.scale}"
    takes = (duck(a), duck(b))
    scope.python(PythonFunction(name=name, takes=takes, gives=duck(kind), function=_function(operator, a, b, kind)))
    if operator in "/%":
        return divided(scope, kind, left, right, f"{name}({{0}}, {{1}})")
    return strict(scope, kind, [left, right], f"{name}({{}}, {{}})", Failure.OVERFLOW)


def negated(scope: Scope, part: str, term: Term, sql: str = "-{0}") -> Term:
    """A decimal with its sign changed as `sql` says: minus, or an absolute value."""
    if not isinstance(term.type, Decimal) or term.type.precision > _MOST_NEGATED:
        raise scope.refuse(part, f"Spark rounds what it negates to {_MOST_NEGATED} digits: cast to a smaller decimal")
    return strict(scope, term.type, [term], f"({sql})::{duck(term.type)}")


_NAMES = {"+": "plus", "-": "minus", "*": "times", "/": "by", "%": "mod"}


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


def _function(operator: str, a: Decimal, b: Decimal, kind: Decimal) -> Callable[..., pa.Array]:
    most = 10**kind.precision

    def one(left: Number | None, right: Number | None) -> Number | None:
        if left is None or right is None or (operator in "/%" and not right):
            return None
        whole = int(left.scaleb(a.scale, _CONTEXT)), int(right.scaleb(b.scale, _CONTEXT))
        number = rounded(*_whole(operator, *whole, a.scale, b.scale), kind.scale)
        return None if abs(number) >= most else Number(number).scaleb(-kind.scale, _CONTEXT)

    def function(left: pa.ChunkedArray, right: pa.ChunkedArray) -> pa.Array:
        pairs = zip(left.to_pylist(), right.to_pylist(), strict=True)
        return pa.array([one(x, y) for x, y in pairs], arrow_type(kind))

    return function


def _whole(operator: str, x: int, y: int, s: int, t: int) -> tuple[int, int]:
    """From two unscaled values and their scales, the unscaled result and its scale."""
    if operator == "*":
        return x * y, s + t
    if operator == "/":
        # Decimal./ first rounds to 39 digits after the point; its caller then rounds to the result's scale.
        digits = MOST_DIGITS + 1
        return _nearest(x * 10 ** (digits + t), y * 10**s), digits
    scale = max(s, t)
    x, y = x * 10 ** (scale - s), y * 10 ** (scale - t)
    if operator == "%":
        rest = abs(x) % abs(y)
        return (-rest if x < 0 else rest), scale
    return (x + y if operator == "+" else x - y), scale


def _nearest(top: int, bottom: int) -> int:
    """The whole number nearest to a fraction, halves away from zero."""
    number, rest = divmod(abs(top), abs(bottom))
    number += rest * 2 >= abs(bottom)
    return -number if (top < 0) != (bottom < 0) else number


def rounded(number: int, scale: int, wanted: int) -> int:
    """Changes an unscaled value from one scale to another, rounding halves away from zero."""
    return _nearest(number * 10 ** max(wanted - scale, 0), 10 ** max(scale - wanted, 0))
