"""Arithmetic of decimals (Spark's DecimalPrecision and Decimal): the type of a result, and its digits.

DuckDB adds and multiplies as long as a result has 38 digits. What Spark rounds to fewer, quotients and remainders are
worked out in whole numbers, one row at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Context
from decimal import Decimal as Number
from typing import Literal

import pyarrow as pa

from tablefeed.data.sql.coerce import MOST_DIGITS, bounded
from tablefeed.data.sql.terms import Failure, PythonFunction, Scope, Term, duck, first, strict, when
from tablefeed.model.schema import Decimal

Operation = Literal["+", "-", "*", "/", "%"]
_CONTEXT = Context(prec=200)


def arithmetic(scope: Scope, operation: Operation, left: Term, right: Term) -> Term:
    """The result of two decimals. Null where an operand is; fails where it overflows or divides by zero."""
    a, b = left.type, right.type
    assert isinstance(a, Decimal)  # noqa: S101  # the caller cast them
    assert isinstance(b, Decimal)  # noqa: S101
    raw = _raw_type(operation, a, b)
    kind = bounded(*raw)
    if operation in "+-" and raw[0] <= MOST_DIGITS:
        sides = f"({{}}::{duck(kind)}) {operation} ({{}}::{duck(kind)})"
        return strict(scope, kind, [left, right], f"TRY_CAST(TRY({sides}) AS {duck(kind)})", Failure.OVERFLOW)
    if operation == "*" and raw[0] <= MOST_DIGITS:
        # For operands of up to 18 digits DuckDB's product has at most 18 digits too.
        wide = duck(Decimal(max(a.precision, 19), a.scale))
        product = f"TRY({{}}::{wide} * {{}})" if raw[0] > 18 else "TRY({} * {})"
        return strict(scope, kind, [left, right], f"TRY_CAST({product} AS {duck(kind)})", Failure.OVERFLOW)
    name = f"decimal_{_NAMES[operation]}_{a.precision}_{a.scale}_{b.precision}_{b.scale}"
    takes = (duck(a), duck(b))
    scope.python(PythonFunction(name=name, takes=takes, gives=duck(kind), function=_function(operation, a, b, kind)))
    if operation not in "/%":
        return strict(scope, kind, [left, right], f"{name}({{}}, {{}})", Failure.OVERFLOW)
    left, right = scope.bound(left), scope.bound(right)
    value, stage = scope.bind(f"{name}({left.sql}, {right.sql})", max(left.stage, right.stage))
    both = f"{left.sql} IS NOT NULL AND {right.sql} IS NOT NULL"
    own = f"CASE WHEN {both} AND {right.sql} = 0 THEN {int(Failure.DIVISION)} "
    own += f"WHEN {both} AND {value} IS NULL THEN {int(Failure.OVERFLOW)} END"
    fails = first(right.fails, when(f"{right.sql} IS NOT NULL", left.fails), own)
    return Term(type=kind, sql=value, fails=fails, stage=stage)


_MOST_NEGATED = 34
"""The digits to which Spark rounds when it negates: Scala's BigDecimal, MathContext.DECIMAL128."""


def negated(scope: Scope, part: str, term: Term, sql: str = "-{0}") -> Term:
    """A decimal with its sign changed as `sql` says: minus, or an absolute value."""
    if not isinstance(term.type, Decimal) or term.type.precision > _MOST_NEGATED:
        raise scope.refuse(part, f"Spark rounds what it negates to {_MOST_NEGATED} digits: cast to a smaller decimal")
    return strict(scope, term.type, [term], f"({sql})::{duck(term.type)}")


_NAMES = {"+": "plus", "-": "minus", "*": "times", "/": "by", "%": "mod"}


def _raw_type(operation: Operation, a: Decimal, b: Decimal) -> tuple[int, int]:
    match operation:
        case "+" | "-":
            scale = max(a.scale, b.scale)
            return max(a.precision - a.scale, b.precision - b.scale) + scale + 1, scale
        case "*":
            return a.precision + b.precision + 1, a.scale + b.scale
        case "/":
            scale = max(6, a.scale + b.precision + 1)
            return a.precision - a.scale + b.scale + scale, scale
        case "%":
            scale = max(a.scale, b.scale)
            return min(a.precision - a.scale, b.precision - b.scale) + scale, scale


def _function(operation: Operation, a: Decimal, b: Decimal, kind: Decimal) -> Callable[..., pa.Array]:
    whole = _WHOLE[operation]
    arrow = pa.decimal128(kind.precision, kind.scale)
    most = 10**kind.precision

    def one(left: Number | None, right: Number | None) -> Number | None:
        if left is None or right is None:
            return None
        result = whole(int(left.scaleb(a.scale, _CONTEXT)), int(right.scaleb(b.scale, _CONTEXT)), a.scale, b.scale)
        if result is None:
            return None
        number = rounded(*result, kind.scale)
        return None if abs(number) >= most else Number(number).scaleb(-kind.scale, _CONTEXT)

    def function(left: pa.ChunkedArray, right: pa.ChunkedArray) -> pa.Array:
        pairs = zip(left.to_pylist(), right.to_pylist(), strict=True)
        return pa.array([one(x, y) for x, y in pairs], arrow)

    return function


_Whole = Callable[[int, int, int, int], "tuple[int, int] | None"]
"""From two unscaled values and their scales, the unscaled result and its scale; None where there is none."""


def _sum(x: int, y: int, s: int, t: int) -> tuple[int, int]:
    scale = max(s, t)
    return x * 10 ** (scale - s) + y * 10 ** (scale - t), scale


def _quotient(x: int, y: int, s: int, t: int) -> tuple[int, int] | None:
    if y == 0:
        return None
    # Decimal./ first rounds to 39 digits after the point; its caller then rounds to the result's scale.
    digits = MOST_DIGITS + 1
    top, bottom = x * 10 ** (digits + t), y * 10**s
    number, rest = divmod(abs(top), abs(bottom))
    number += rest * 2 >= abs(bottom)
    return (-number if (top < 0) != (bottom < 0) else number), digits


def _remainder(x: int, y: int, s: int, t: int) -> tuple[int, int] | None:
    if y == 0:
        return None
    scale = max(s, t)
    top, bottom = x * 10 ** (scale - s), y * 10 ** (scale - t)
    rest = abs(top) % abs(bottom)
    return (-rest if top < 0 else rest), scale


_WHOLE: dict[str, _Whole] = {
    "+": _sum,
    "-": lambda x, y, s, t: _sum(x, -y, s, t),
    "*": lambda x, y, s, t: (x * y, s + t),
    "/": _quotient,
    "%": _remainder,
}


def rounded(number: int, scale: int, wanted: int) -> int:
    """Changes an unscaled value from one scale to another, rounding halves away from zero."""
    if wanted >= scale:
        return number * int(10 ** (wanted - scale))
    unit = int(10 ** (scale - wanted))
    whole = (abs(number) * 2 + unit) // (2 * unit)
    return -whole if number < 0 else whole
