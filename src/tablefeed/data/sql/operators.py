"""The operators of Spark's SQL: comparisons, logic, arithmetic, choices and elements."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal as Number

from tablefeed.data.sql import decimals, kinds
from tablefeed.data.sql.calls import Call
from tablefeed.data.sql.casts import cast
from tablefeed.data.sql.kinds import BOOLEAN, BYTE, DATE, DOUBLE, INT, LONG, SHORT, STRING, VOID, duck, spelt
from tablefeed.data.sql.terms import Failure, Term, divided, first, loose, when
from tablefeed.model.schema import Array, DataType, Decimal, Map, Nested


def _widened(c: Call, terms: Sequence[Term]) -> list[Term]:
    """Casts the terms to their common type in Spark, which has no parts."""
    kind: DataType | None = terms[0].type
    for term in terms[1:]:
        kind = None if kind is None else kinds.common_type(kind, term.type)
    if kind is None:
        found = ", ".join(spelt(t.type) for t in terms)
        raise c.refuse(f"Spark has no common type for {found}, or one that rounds: cast them to one type")
    if isinstance(kind, Nested):
        raise c.refuse(f"it is not evaluated for {spelt(kind)}")
    return [cast(c.scope, term, kind) for term in terms]


def _chosen(c: Call, terms: Sequence[Term]) -> list[Term]:
    """As `_widened`, for values that are given back: they are not all NULL."""
    if all(term.type == VOID for term in terms):
        raise c.refuse("it is not evaluated for NULL alone")
    return _widened(c, terms)


def _as_decimals(c: Call, left: Term, right: Term) -> list[Term] | None:
    """Both as decimals where one is a decimal and the other a decimal or a whole number."""
    of_left, of_right = kinds.decimal_of(left.type, left.literal), kinds.decimal_of(right.type, right.literal)
    if Decimal not in (type(left.type), type(right.type)) or of_left is None or of_right is None:
        return None
    return [cast(c.scope, left, of_left), cast(c.scope, right, of_right)]


def compare(c: Call, operator: str, left: Term, right: Term) -> Term:
    """A comparison; `operator` is one of = <> < <= > >= <=>."""
    settled = _settled(operator, left, right)
    if settled is not None:
        return settled
    left, right = _widened(c, _as_decimals(c, left, right) or [left, right])
    if left.type == VOID:
        left, right = cast(c.scope, left, BOOLEAN), cast(c.scope, right, BOOLEAN)
    if operator == "<=>":
        return loose(BOOLEAN, [left, right], "({} IS NOT DISTINCT FROM {})")
    return c.strict(BOOLEAN, [left, right], f"({{}} {operator} {{}})")


_SWAPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


def _settled(operator: str, left: Term, right: Term) -> Term | None:
    """Orders a whole number against a literal beyond every bigint; None for other comparisons.

    Spark does not look at the number, so the result is the same for null.
    """
    if right.type in kinds.INTEGRALS:
        left, right, operator = right, left, _SWAPPED.get(operator, operator)
    literal = right.literal
    if left.type not in kinds.INTEGRALS or not isinstance(literal, Number) or operator not in _SWAPPED:
        return None
    if -(1 << 63) <= literal <= (1 << 63) - 1:
        return None
    return Term(type=BOOLEAN, sql="true" if (operator in ("<", "<=")) == (literal > 0) else "false")


def between(c: Call) -> Term:
    """BETWEEN, both bounds inclusive."""
    term, low, high = c.arguments
    return both(c, "AND", compare(c, ">=", term, low), compare(c, "<=", term, high))


def as_condition(c: Call, term: Term) -> Term:
    """A boolean, as AND, OR, NOT and WHEN take it."""
    if term.type not in (BOOLEAN, VOID, STRING):
        raise c.refuse(f"{spelt(term.type)} is no boolean")
    return cast(c.scope, term, BOOLEAN)


def both(c: Call, operator: str, *terms: Term) -> Term:
    """AND and OR: what is further to the right is not evaluated where the left side decides."""
    *before, joined = terms
    decides = "false" if operator == "AND" else "true"
    for left in reversed(before):
        left = c.scope.bound(left) if joined.fails else left
        fails = first(left.fails, when(f"{left.sql} IS DISTINCT FROM {decides}", joined.fails))
        joined = Term(type=BOOLEAN, sql=f"({left.sql} {operator} {joined.sql})", fails=fails)
    return joined


def calculate(c: Call, operator: str, left: Term, right: Term) -> Term:
    """+ - * / % and DIV of numbers, and of texts as the numbers that they spell; dates plus and minus days."""
    if left.type == DATE and right.type in (BYTE, SHORT, INT) and operator in "+-":
        days = [left, cast(c.scope, right, INT)]
        return c.strict(DATE, days, f"TRY_CAST({{}}::BIGINT {operator} {{}} AS INTEGER)", Failure.RANGE)
    if VOID in (left.type, right.type):
        known = right.type if left.type == VOID else left.type
        left, right = cast(c.scope, left, known), cast(c.scope, right, known)
    left, right = _as_number(c, left, right.type), _as_number(c, right, left.type)
    if not (kinds.is_numeric(left.type) and kinds.is_numeric(right.type)):
        raise c.refuse(f"{spelt(left.type)} {operator} {spelt(right.type)} is not evaluated here")
    if operator == "DIV":
        if left.type not in kinds.INTEGRALS or right.type not in kinds.INTEGRALS:
            raise c.refuse("DIV is evaluated for whole numbers: cast them to bigint")
        left, right = cast(c.scope, left, LONG), cast(c.scope, right, LONG)
        return divided(c.scope, LONG, left, right, "TRY({0} // {1})")
    of_decimals = _as_decimals(c, left, right)
    if of_decimals is not None:
        return decimals.arithmetic(c.scope, operator, *of_decimals)
    left, right = _widened(c, [left, right])
    kind = left.type
    if operator == "/":
        return divided(c.scope, DOUBLE, cast(c.scope, left, DOUBLE), cast(c.scope, right, DOUBLE), "({0} / {1})")
    if operator == "%":
        # The remainder by -1 is 0 for each number, also for the least one.
        whole = "CASE WHEN {1} = -1 AND {0} IS NOT NULL THEN 0 ELSE {0} % {1} END"
        rest = whole if kind in kinds.INTEGRALS else "({0} % {1})"
        return divided(c.scope, kind, left, right, f"TRY({rest})::{duck(kind)}")
    if kind in kinds.FLOATING:
        return c.strict(kind, [left, right], f"({{}} {operator} {{}})")
    return c.strict(kind, [left, right], f"TRY({{}} {operator} {{}})", Failure.OVERFLOW)


def _as_number(c: Call, term: Term, other: DataType) -> Term:
    if term.type != STRING or not kinds.is_numeric(other):
        return term
    return cast(c.scope, term, LONG if other in kinds.INTEGRALS else DOUBLE)


def signed(c: Call, sql: str) -> Term:
    """Minus a number, or its absolute value: `sql` is `-{0}` or `abs({0})`."""
    (term,) = c.arguments
    if not kinds.is_numeric(term.type):
        raise c.refuse(f"{spelt(term.type)} is no number")
    if isinstance(term.type, Decimal) and term.type.precision > _MOST_NEGATED:
        raise c.refuse(f"Spark rounds what it negates to {_MOST_NEGATED} digits: cast it to a smaller decimal")
    failure = Failure.OVERFLOW if term.type in kinds.INTEGRALS else None
    return c.strict(term.type, [term], f"TRY({sql})::{duck(term.type)}", failure)


_MOST_NEGATED = 34
"""The digits to which Spark rounds a decimal that it negates: Scala's BigDecimal, MathContext.DECIMAL128."""


def among(c: Call) -> Term:
    """IN a list. Values are evaluated in order, up to the first that is equal."""
    term, *values = _chosen(c, c.arguments)
    if any(v.fails for v in values):
        raise c.refuse("a value in the list can fail: compare with each value by = instead")
    return loose(BOOLEAN, [term, *values], f"({{}} IN ({', '.join('{}' for _ in values)}))")


def case(c: Call, branches: Sequence[tuple[Term, Term]], otherwise: Term) -> Term:
    """CASE WHEN: a branch is evaluated where its condition holds and no earlier condition does."""
    *results, last = _chosen(c, [*(result for _, result in branches), otherwise])
    conditions = [as_condition(c, condition) for condition, _ in branches]
    if any(t.fails for t in [*conditions, *results, last]):
        conditions = [c.scope.bound(condition) for condition in conditions]
    whens = " ".join(f"WHEN {c.sql} THEN {r.sql}" for c, r in zip(conditions, results, strict=True))
    fails: list[str | None] = []
    passed: list[str] = []
    for condition, result in zip(conditions, results, strict=True):
        fails.append(when(" AND ".join(passed) or "true", condition.fails))
        fails.append(when(" AND ".join([*passed, condition.sql]), result.fails))
        passed.append(f"{condition.sql} IS DISTINCT FROM true")
    fails.append(when(" AND ".join(passed), last.fails))
    return Term(type=last.type, sql=f"CASE {whens} ELSE {last.sql} END", fails=first(*fails))


def coalesced(c: Call) -> Term:
    """COALESCE: evaluated in order, up to the first value that is not null."""
    terms = _chosen(c, c.arguments)
    if any(t.fails for t in terms[1:]):
        terms = [c.scope.bound(t) for t in terms]
    fails = [terms[0].fails]
    for index, term in enumerate(terms[1:], 1):
        fails.append(when(" AND ".join(f"{t.sql} IS NULL" for t in terms[:index]), term.fails))
    return Term(type=terms[0].type, sql=f"coalesce({', '.join(t.sql for t in terms)})", fails=first(*fails))


def extreme(c: Call, name: str) -> Term:
    """GREATEST and LEAST, which ignore nulls. Unlike COALESCE, they do not cast a text to another type."""
    terms = _chosen(c, c.arguments)
    kind = terms[0].type
    if kind != STRING and any(term.type == STRING for term in c.arguments):
        raise c.refuse(f"Spark does not compare a text with {spelt(kind)} here: cast the values to one type")
    # Only among doubles DuckDB keeps the sign of -0.0.
    one, whole = ("{}::DOUBLE", "{}::FLOAT") if kind == kinds.FLOAT else ("{}", "{}")
    return loose(kind, terms, whole.format(f"{name}({', '.join(one for _ in terms)})"))


def element(c: Call) -> Term:
    """An element of an array, counted from 0, or the value of a key in a map."""
    if len(c.arguments) != 2:
        raise c.refuse("an element is evaluated by one index or key")
    term, key = c.arguments
    match term.type:
        case Map(key=kind, value=value) if key.type == kind and kind in (STRING, INT, LONG):
            return c.strict(value, [term, key], "map_extract({}, {})[1]")
        case Array(element=value) if key.type in (BYTE, SHORT, INT):
            term, key = c.scope.bound(term), c.scope.bound(key)
            inside = f"{key.sql} >= 0 AND {key.sql} < len({term.sql})"
            own = f"CASE WHEN {term.sql} IS NOT NULL AND NOT ({inside}) THEN {int(Failure.INDEX)} END"
            sql = f"CASE WHEN {inside} THEN {term.sql}[{key.sql}::BIGINT + 1] END"
            return Term(type=value, sql=sql, fails=first(term.fails, key.fails, own))
    raise c.refuse(f"an element of {spelt(term.type)} by {spelt(key.type)} is not evaluated here")
