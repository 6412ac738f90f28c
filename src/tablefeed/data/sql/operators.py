"""The operators of Spark's SQL: comparisons, logic, arithmetic and choices."""

from __future__ import annotations

from collections.abc import Sequence

from tablefeed.data.sql import decimals
from tablefeed.data.sql.casts import cast
from tablefeed.data.sql.coerce import common_type, decimal_of, is_numeric
from tablefeed.data.sql.terms import (
    BOOLEAN,
    DOUBLE,
    FLOATING,
    INTEGRALS,
    LONG,
    STRING,
    VOID,
    Failure,
    Scope,
    Term,
    duck,
    first,
    is_nested,
    spelt,
    strict,
    when,
)
from tablefeed.model.schema import DataType, Decimal


def widened(scope: Scope, part: str, terms: Sequence[Term]) -> list[Term]:
    """Casts the terms to their common type in Spark."""
    kind: DataType | None = terms[0].type
    for term in terms[1:]:
        kind = None if kind is None else common_type(kind, term.type)
    if kind is None:
        found = ", ".join(spelt(t.type) for t in terms)
        raise scope.refuse(part, f"Spark has no common type for {found}, or one that rounds: cast them to one type")
    return [cast(scope, term, kind) for term in terms]


def compare(scope: Scope, part: str, operator: str, left: Term, right: Term) -> Term:
    """A comparison; `operator` is one of = <> < <= > >= <=>."""
    if isinstance(left.type, Decimal) or isinstance(right.type, Decimal):
        of_left, of_right = decimal_of(left), decimal_of(right)
        if of_left is not None and of_right is not None:
            left, right = cast(scope, left, of_left), cast(scope, right, of_right)
    left, right = widened(scope, part, [left, right])
    if is_nested(left.type):
        raise scope.refuse(part, f"{spelt(left.type)} is not compared here")
    if left.type == VOID:
        left, right = cast(scope, left, BOOLEAN), cast(scope, right, BOOLEAN)
    if operator != "<=>":
        return strict(scope, BOOLEAN, [left, right], f"({{}} {operator} {{}})")
    return Term(
        type=BOOLEAN,
        sql=f"({left.sql} IS NOT DISTINCT FROM {right.sql})",
        fails=first(left.fails, right.fails),
        stage=max(left.stage, right.stage),
    )


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
    return Term(
        type=BOOLEAN,
        sql=f"({left.sql} {operator} {right.sql})",
        fails=first(left.fails, when(f"{left.sql} IS DISTINCT FROM {decides}", right.fails)),
        stage=max(left.stage, right.stage),
    )


def calculate(scope: Scope, part: str, operator: str, left: Term, right: Term) -> Term:
    """+ - * / % and DIV of numbers, and of texts as the numbers that they spell."""
    if VOID in (left.type, right.type):
        known = right.type if left.type == VOID else left.type
        left, right = cast(scope, left, known), cast(scope, right, known)
    left, right = _as_numbers(scope, left, right)
    if not (is_numeric(left.type) and is_numeric(right.type)):
        raise scope.refuse(part, f"{spelt(left.type)} {operator} {spelt(right.type)} is not evaluated here")
    of_left, of_right = decimal_of(left), decimal_of(right)
    has_decimal = isinstance(left.type, Decimal) or isinstance(right.type, Decimal)
    if has_decimal and of_left is not None and of_right is not None:
        if operator == "DIV":
            raise scope.refuse(part, "DIV of decimals is not evaluated here: cast them to bigint")
        left, right = cast(scope, left, of_left), cast(scope, right, of_right)
        return decimals.arithmetic(scope, _decimal_operation(operator), left, right)
    if operator == "DIV":
        if left.type not in INTEGRALS or right.type not in INTEGRALS:
            raise scope.refuse(part, "DIV is evaluated for whole numbers: cast them to bigint")
        return _divided(scope, LONG, "//", cast(scope, left, LONG), cast(scope, right, LONG))
    left, right = widened(scope, part, [left, right])
    kind = left.type
    if operator == "/":
        kind = DOUBLE
        left, right = cast(scope, left, DOUBLE), cast(scope, right, DOUBLE)
    if operator in "/%":
        return _divided(scope, kind, operator, left, right)
    if kind in FLOATING:
        return strict(scope, kind, [left, right], f"({{}} {operator} {{}})")
    return strict(scope, kind, [left, right], f"TRY({{}} {operator} {{}})", Failure.OVERFLOW)


def _decimal_operation(operator: str) -> decimals.Operation:
    match operator:
        case "+" | "-" | "*" | "/" | "%":
            return operator
        case _:
            raise ValueError(operator)


def _as_numbers(scope: Scope, left: Term, right: Term) -> tuple[Term, Term]:
    if left.type == STRING and is_numeric(right.type):
        left = cast(scope, left, LONG if right.type in INTEGRALS else DOUBLE)
    elif right.type == STRING and is_numeric(left.type):
        right = cast(scope, right, LONG if left.type in INTEGRALS else DOUBLE)
    return left, right


def _divided(scope: Scope, kind: DataType, operator: str, left: Term, right: Term) -> Term:
    """Division and remainder: the divisor is evaluated first."""
    left, right = scope.bound(left), scope.bound(right)
    stage = max(left.stage, right.stage)
    # The remainder by -1 is 0 for each number, also for the least one.
    quotient = f"({left.sql} {operator} {right.sql})"
    if operator == "%" and kind in INTEGRALS:
        quotient = f"CASE WHEN {right.sql} = -1 AND {left.sql} IS NOT NULL THEN 0 ELSE {quotient} END"
    value, stage = scope.bind(f"CASE WHEN {right.sql} <> 0 THEN TRY({quotient}) END::{duck(kind)}", stage)
    there = f"{left.sql} IS NOT NULL AND {right.sql} IS NOT NULL"
    own = f"CASE WHEN {there} AND {right.sql} = 0 THEN {int(Failure.DIVISION)} "
    own += f"WHEN {there} AND {value} IS NULL THEN {int(Failure.OVERFLOW)} END"
    fails = first(right.fails, when(f"{right.sql} IS NOT NULL", left.fails), own)
    return Term(type=kind, sql=value, fails=fails, stage=stage)


def negated(scope: Scope, part: str, term: Term) -> Term:
    """Unary minus."""
    kind = term.type
    if kind in INTEGRALS:
        return strict(scope, kind, [term], "TRY(-{})", Failure.OVERFLOW)
    if isinstance(kind, Decimal):
        return decimals.negated(scope, part, term)
    if kind in FLOATING:
        return strict(scope, kind, [term], f"(-{{}})::{duck(kind)}")
    raise scope.refuse(part, f"minus {spelt(kind)} is not evaluated here")


def among(scope: Scope, part: str, term: Term, values: Sequence[Term]) -> Term:
    """IN a list. Values are evaluated in order, up to the first that is equal."""
    term, *values = widened(scope, part, [term, *values])
    if is_nested(term.type) or term.type == VOID:
        raise scope.refuse(part, f"IN is not evaluated for {spelt(term.type)}")
    if any(v.fails for v in values):
        raise scope.refuse(part, "a value in the list can fail: compare with each value by = instead")
    listed = ", ".join(v.sql for v in values)
    stage = max(term.stage, *(v.stage for v in values))
    return Term(type=BOOLEAN, sql=f"({term.sql} IN ({listed}))", fails=term.fails, stage=stage)


def case(scope: Scope, part: str, branches: Sequence[tuple[Term, Term]], otherwise: Term | None) -> Term:
    """CASE WHEN: a branch is evaluated where its condition holds and no earlier condition does."""
    last = otherwise or Term(type=VOID, sql="NULL")
    results = widened(scope, part, [result for _, result in branches] + [last])
    conditions = [condition for condition, _ in branches]
    if any(t.fails for t in [*conditions, *results]):
        conditions = [scope.bound(c) for c in conditions]
    kind = results[0].type
    if kind == VOID or is_nested(kind):
        raise scope.refuse(part, f"a choice of {spelt(kind)} is not evaluated here")
    whens = " ".join(f"WHEN {c.sql} THEN {r.sql}" for c, r in zip(conditions, results, strict=False))
    fails: list[str | None] = []
    passed: list[str] = []
    for condition, result in zip(conditions, results, strict=False):
        fails.append(when(" AND ".join(passed) or "true", condition.fails))
        fails.append(when(" AND ".join([*passed, condition.sql]), result.fails))
        passed.append(f"{condition.sql} IS DISTINCT FROM true")
    fails.append(when(" AND ".join(passed), results[-1].fails))
    stage = max(t.stage for t in [*conditions, *results])
    sql = f"CASE {whens} ELSE {results[-1].sql} END"
    return Term(type=kind, sql=sql, fails=first(*fails), stage=stage)


def coalesced(scope: Scope, part: str, terms: Sequence[Term]) -> Term:
    """COALESCE: evaluated in order, up to the first value that is not null."""
    terms = widened(scope, part, terms)
    if is_nested(terms[0].type) or terms[0].type == VOID:
        raise scope.refuse(part, f"a choice of {spelt(terms[0].type)} is not evaluated here")
    if any(t.fails for t in terms[1:]):
        terms = [scope.bound(t) for t in terms]
    fails = [terms[0].fails]
    for index, term in enumerate(terms[1:], 1):
        fails.append(when(" AND ".join(f"{t.sql} IS NULL" for t in terms[:index]), term.fails))
    sql = f"coalesce({', '.join(t.sql for t in terms)})"
    return Term(type=terms[0].type, sql=sql, fails=first(*fails), stage=max(t.stage for t in terms))


def extreme(scope: Scope, part: str, name: str, terms: Sequence[Term]) -> Term:
    """GREATEST and LEAST, which ignore nulls."""
    terms = widened(scope, part, terms)
    if is_nested(terms[0].type) or terms[0].type == VOID:
        raise scope.refuse(part, f"{name} is not evaluated for {spelt(terms[0].type)}")
    sql = f"{name}({', '.join(t.sql for t in terms)})"
    return Term(type=terms[0].type, sql=sql, fails=first(*(t.fails for t in terms)), stage=max(t.stage for t in terms))
