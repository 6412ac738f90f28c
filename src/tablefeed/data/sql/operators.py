"""The operators of Spark's SQL: comparisons, logic, arithmetic and choices."""

from __future__ import annotations

from collections.abc import Sequence

from tablefeed.data.sql import decimals, kinds
from tablefeed.data.sql.casts import cast
from tablefeed.data.sql.coerce import common_type, decimal_of
from tablefeed.data.sql.kinds import BOOLEAN, DOUBLE, LONG, STRING, VOID, duck, spelt
from tablefeed.data.sql.terms import Failure, Scope, Term, divided, first, loose, strict, when
from tablefeed.model.schema import DataType, Decimal


def widened(scope: Scope, part: str, terms: Sequence[Term]) -> list[Term]:
    """Casts the terms to their common type in Spark, which has no parts."""
    kind: DataType | None = terms[0].type
    for term in terms[1:]:
        kind = None if kind is None else common_type(kind, term.type)
    if kind is None:
        found = ", ".join(spelt(t.type) for t in terms)
        raise scope.refuse(part, f"Spark has no common type for {found}, or one that rounds: cast them to one type")
    if kinds.is_nested(kind):
        raise scope.refuse(part, f"it is not evaluated for {spelt(kind)}")
    return [cast(scope, term, kind) for term in terms]


def _chosen(scope: Scope, part: str, terms: Sequence[Term]) -> list[Term]:
    """As `widened`, for values that are given back: they are not all NULL."""
    if all(term.type == VOID for term in terms):
        raise scope.refuse(part, "it is not evaluated for NULL alone")
    return widened(scope, part, terms)


def compare(scope: Scope, part: str, operator: str, left: Term, right: Term) -> Term:
    """A comparison; `operator` is one of = <> < <= > >= <=>."""
    left, right = _as_decimals(scope, left, right) or widened(scope, part, [left, right])
    if left.type != right.type:
        left, right = widened(scope, part, [left, right])
    if left.type == VOID:
        left, right = cast(scope, left, BOOLEAN), cast(scope, right, BOOLEAN)
    if operator == "<=>":
        return loose(BOOLEAN, [left, right], "({} IS NOT DISTINCT FROM {})")
    return strict(scope, BOOLEAN, [left, right], f"({{}} {operator} {{}})")


def _as_decimals(scope: Scope, left: Term, right: Term) -> list[Term] | None:
    """Both as decimals where one is a decimal and the other a decimal or a whole number."""
    of_left, of_right = decimal_of(left.type, left.literal), decimal_of(right.type, right.literal)
    if Decimal not in (type(left.type), type(right.type)) or of_left is None or of_right is None:
        return None
    return [cast(scope, left, of_left), cast(scope, right, of_right)]


def as_condition(scope: Scope, part: str, term: Term) -> Term:
    """A boolean, as AND, OR, NOT and WHEN take it."""
    if term.type not in (BOOLEAN, VOID, STRING):
        raise scope.refuse(part, f"{spelt(term.type)} is no boolean")
    return cast(scope, term, BOOLEAN)


def both(scope: Scope, operator: str, left: Term, right: Term) -> Term:
    """AND and OR: the right side is not evaluated where the left side decides."""
    if right.fails:
        left = scope.bound(left)
    decides = "false" if operator == "AND" else "true"
    fails = first(left.fails, when(f"{left.sql} IS DISTINCT FROM {decides}", right.fails))
    return Term(type=BOOLEAN, sql=f"({left.sql} {operator} {right.sql})", fails=fails)


def calculate(scope: Scope, part: str, operator: str, left: Term, right: Term) -> Term:
    """+ - * / % and DIV of numbers, and of texts as the numbers that they spell."""
    if VOID in (left.type, right.type):
        known = right.type if left.type == VOID else left.type
        left, right = cast(scope, left, known), cast(scope, right, known)
    left, right = _as_number(scope, left, right.type), _as_number(scope, right, left.type)
    if not (kinds.is_numeric(left.type) and kinds.is_numeric(right.type)):
        raise scope.refuse(part, f"{spelt(left.type)} {operator} {spelt(right.type)} is not evaluated here")
    if operator == "DIV":
        if left.type not in kinds.INTEGRALS or right.type not in kinds.INTEGRALS:
            raise scope.refuse(part, "DIV is evaluated for whole numbers: cast them to bigint")
        left, right = cast(scope, left, LONG), cast(scope, right, LONG)
        return divided(scope, LONG, left, right, "TRY({0} // {1})")
    of_decimals = _as_decimals(scope, left, right)
    if of_decimals is not None:
        return decimals.arithmetic(scope, operator, *of_decimals)
    left, right = widened(scope, part, [left, right])
    kind = left.type
    if operator == "/":
        return divided(scope, DOUBLE, cast(scope, left, DOUBLE), cast(scope, right, DOUBLE), "({0} / {1})")
    if operator == "%":
        # The remainder by -1 is 0 for each number, also for the least one.
        whole = "CASE WHEN {1} = -1 AND {0} IS NOT NULL THEN 0 ELSE {0} % {1} END"
        rest = whole if kind in kinds.INTEGRALS else "({0} % {1})"
        return divided(scope, kind, left, right, f"TRY({rest})::{duck(kind)}")
    if kind in kinds.FLOATING:
        return strict(scope, kind, [left, right], f"({{}} {operator} {{}})")
    return strict(scope, kind, [left, right], f"TRY({{}} {operator} {{}})", Failure.OVERFLOW)


def _as_number(scope: Scope, term: Term, other: DataType) -> Term:
    if term.type != STRING or not kinds.is_numeric(other):
        return term
    return cast(scope, term, LONG if other in kinds.INTEGRALS else DOUBLE)


def negated(scope: Scope, part: str, term: Term) -> Term:
    """Unary minus."""
    kind = term.type
    if kind in kinds.INTEGRALS:
        return strict(scope, kind, [term], "TRY(-{})", Failure.OVERFLOW)
    if kind in kinds.FLOATING:
        return strict(scope, kind, [term], f"(-{{}})::{duck(kind)}")
    if isinstance(kind, Decimal):
        return decimals.negated(scope, part, term)
    raise scope.refuse(part, f"minus {spelt(kind)} is not evaluated here")


def among(scope: Scope, part: str, term: Term, values: Sequence[Term]) -> Term:
    """IN a list. Values are evaluated in order, up to the first that is equal."""
    term, *values = _chosen(scope, part, [term, *values])
    if any(v.fails for v in values):
        raise scope.refuse(part, "a value in the list can fail: compare with each value by = instead")
    return loose(BOOLEAN, [term, *values], f"({{}} IN ({', '.join('{}' for _ in values)}))")


def case(scope: Scope, part: str, branches: Sequence[tuple[Term, Term]], otherwise: Term | None) -> Term:
    """CASE WHEN: a branch is evaluated where its condition holds and no earlier condition does."""
    last = otherwise or Term(type=VOID, sql="NULL")
    *results, last = _chosen(scope, part, [result for _, result in branches] + [last])
    conditions = [condition for condition, _ in branches]
    if any(t.fails for t in [*conditions, *results, last]):
        conditions = [scope.bound(c) for c in conditions]
    whens = " ".join(f"WHEN {c.sql} THEN {r.sql}" for c, r in zip(conditions, results, strict=True))
    fails: list[str | None] = []
    passed: list[str] = []
    for condition, result in zip(conditions, results, strict=True):
        fails.append(when(" AND ".join(passed) or "true", condition.fails))
        fails.append(when(" AND ".join([*passed, condition.sql]), result.fails))
        passed.append(f"{condition.sql} IS DISTINCT FROM true")
    fails.append(when(" AND ".join(passed), last.fails))
    return Term(type=last.type, sql=f"CASE {whens} ELSE {last.sql} END", fails=first(*fails))


def coalesced(scope: Scope, part: str, terms: Sequence[Term]) -> Term:
    """COALESCE: evaluated in order, up to the first value that is not null."""
    terms = _chosen(scope, part, terms)
    if any(t.fails for t in terms[1:]):
        terms = [scope.bound(t) for t in terms]
    fails = [terms[0].fails]
    for index, term in enumerate(terms[1:], 1):
        fails.append(when(" AND ".join(f"{t.sql} IS NULL" for t in terms[:index]), term.fails))
    return Term(type=terms[0].type, sql=f"coalesce({', '.join(t.sql for t in terms)})", fails=first(*fails))


def extreme(scope: Scope, part: str, name: str, terms: Sequence[Term]) -> Term:
    """GREATEST and LEAST, which ignore nulls."""
    terms = _chosen(scope, part, terms)
    return loose(terms[0].type, terms, f"{name}({', '.join('{}' for _ in terms)})")
