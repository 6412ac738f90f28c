"""Translates sqlglot's tree to a term, with the meaning that each node has in Spark."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from tablefeed.data.sql import functions, operators
from tablefeed.data.sql.casts import cast
from tablefeed.data.sql.literals import boolean, bytes_literal, named_type, null, number, text_or_number
from tablefeed.data.sql.parse import WRITTEN
from tablefeed.data.sql.patterns import like, regex
from tablefeed.data.sql.terms import (
    BOOLEAN,
    BYTE,
    DATE,
    INT,
    LONG,
    SHORT,
    STRING,
    Failure,
    Scope,
    Term,
    first,
    spelt,
    strict,
    text_sql,
)
from tablefeed.data.sql.values import decoded
from tablefeed.model.schema import Array, Field, Map, Struct

if TYPE_CHECKING:
    from sqlglot import exp


def translate(scope: Scope, node: exp.Expr) -> Term:
    """Gives the term of a node. Raises NotExactError for a node, or a part of one, that is not evaluated here."""
    maker = _MAKERS.get(node.key)
    if maker is None:
        raise _unknown(scope, node)
    make, parts = maker
    odd = [name for name, part in node.args.items() if part and name not in parts]
    if odd:
        raise scope.refuse(_said(node), f"its {odd[0].upper()} is not evaluated here")
    return make(scope, node)


def _said(node: exp.Expr) -> str:
    return str(node.sql("spark"))


def _unknown(scope: Scope, node: exp.Expr) -> Exception:
    return scope.refuse(_said(node), f"{node.key} is not evaluated here")


def _inner(scope: Scope, node: exp.Expr) -> Term:
    return translate(scope, node.this)


def _joined(scope: Scope, node: exp.Expr) -> Term:
    operator = node.key.upper()
    parts = [operators.as_condition(scope, _said(p), translate(scope, p)) for p in node.flatten(unnest=False)]
    joined = parts[-1]
    for part in reversed(parts[:-1]):
        joined = operators.both(scope, operator, part, joined)
    return joined


def _not(scope: Scope, node: exp.Expr) -> Term:
    return strict(scope, BOOLEAN, [operators.as_condition(scope, _said(node), _inner(scope, node))], "(NOT {})")


def _is(scope: Scope, node: exp.Expr) -> Term:
    from sqlglot import exp

    term = _inner(scope, node)
    match node.expression:
        case exp.Null():
            return Term(type=BOOLEAN, sql=f"({term.sql} IS NULL)", fails=term.fails, stage=term.stage)
        case exp.Boolean(this=value):
            term = operators.as_condition(scope, _said(node), term)
            sql = f"({term.sql} IS NOT DISTINCT FROM {'true' if value else 'false'})"
            return Term(type=BOOLEAN, sql=sql, fails=term.fails, stage=term.stage)
    raise _unknown(scope, node)


_COMPARISONS = {"eq": "=", "neq": "<>", "lt": "<", "lte": "<=", "gt": ">", "gte": ">=", "nullsafeeq": "<=>"}
_SUMS = {"add": "+", "sub": "-", "mul": "*", "div": "/", "mod": "%", "intdiv": "DIV"}


def _compared(scope: Scope, node: exp.Expr) -> Term:
    left, right = translate(scope, node.this), translate(scope, node.expression)
    return operators.compare(scope, _said(node), _COMPARISONS[node.key], left, right)


def _calculated(scope: Scope, node: exp.Expr) -> Term:
    left, right = translate(scope, node.this), translate(scope, node.expression)
    if node.key in ("add", "sub") and left.type == DATE and right.type in (BYTE, SHORT, INT):
        return functions.call(scope, f"date_{node.key}", _said(node), [left, right])
    return operators.calculate(scope, _said(node), _SUMS[node.key], left, right)


def _concatenated(scope: Scope, node: exp.Expr) -> Term:
    terms = [translate(scope, node.this), translate(scope, node.expression)]
    return functions.call(scope, "concat", _said(node), terms)


def _between(scope: Scope, node: exp.Expr) -> Term:
    term = translate(scope, node.this)
    low, high = translate(scope, node.args["low"]), translate(scope, node.args["high"])
    above = operators.compare(scope, _said(node), ">=", term, low)
    below = operators.compare(scope, _said(node), "<=", term, high)
    return operators.both(scope, "AND", above, below)


def _in(scope: Scope, node: exp.Expr) -> Term:
    if not node.expressions:
        raise _unknown(scope, node)
    return operators.among(scope, _said(node), _inner(scope, node), [translate(scope, e) for e in node.expressions])


def _like(scope: Scope, node: exp.Expr) -> Term:
    from sqlglot import exp

    if isinstance(node.expression, exp.Any | exp.All):
        return _like_several(scope, node)
    term = like(scope, _said(node), _inner(scope, node), translate(scope, node.expression))
    return strict(scope, BOOLEAN, [term], "(NOT {})") if node.args.get("negate") else term


def _like_several(scope: Scope, node: exp.Expr) -> Term:
    """LIKE ANY and LIKE ALL. NOT LIKE ANY means that the text is unlike one pattern; it does not negate LIKE ANY."""
    quantifier, term = node.expression, scope.bound(_inner(scope, node))
    listed = quantifier.this.expressions or [quantifier.this.unnest()]
    likes = [like(scope, _said(node), term, translate(scope, pattern)) for pattern in listed]
    if node.args.get("negate"):
        likes = [strict(scope, BOOLEAN, [one], "(NOT {})") for one in likes]
    joined = likes[-1]
    for one in reversed(likes[:-1]):
        joined = operators.both(scope, "OR" if quantifier.key == "any" else "AND", one, joined)
    return joined


def _rlike(scope: Scope, node: exp.Expr) -> Term:
    term = regex(scope, _said(node), _inner(scope, node), translate(scope, node.expression))
    return strict(scope, BOOLEAN, [term], "(NOT {})") if node.args.get("negate") else term


def _negated(scope: Scope, node: exp.Expr) -> Term:
    from sqlglot import exp

    inner = node.this
    if isinstance(inner, exp.Literal) and not inner.is_string:
        return number(scope, f"-{inner.this}")
    if isinstance(inner, exp.TryCast) and WRITTEN not in inner.meta and isinstance(inner.this, exp.Literal):
        # -128Y is one literal: 128 without the minus does not fit in a tinyint.
        return cast(scope, number(scope, f"-{inner.this.this}"), named_type(scope, inner.args["to"]))
    return operators.negated(scope, _said(node), translate(scope, inner))


def _case(scope: Scope, node: exp.Expr) -> Term:
    subject = None if node.this is None else translate(scope, node.this)
    branches = []
    for branch in node.args["ifs"]:
        condition = translate(scope, branch.this)
        if subject is not None:
            condition = operators.compare(scope, _said(node), "=", subject, condition)
        condition = operators.as_condition(scope, _said(node), condition)
        branches.append((condition, translate(scope, branch.args["true"])))
    otherwise = node.args.get("default")
    return operators.case(scope, _said(node), branches, None if otherwise is None else translate(scope, otherwise))


def _if(scope: Scope, node: exp.Expr) -> Term:
    parts = [node.this, node.args["true"], node.args.get("false")]
    if parts[-1] is None:
        raise _unknown(scope, node)
    return functions.call(scope, "if", _said(node), [translate(scope, p) for p in parts])


def _call(scope: Scope, node: exp.Expr) -> Term:
    name = str(node.this)
    return functions.call(scope, name, _said(node), [translate(scope, e) for e in node.expressions])


def _trimmed(scope: Scope, node: exp.Expr) -> Term:
    return functions.call(scope, "trim", _said(node), [_inner(scope, node)])


def _extract(scope: Scope, node: exp.Expr) -> Term:
    return functions.extract(scope, _said(node), str(node.this.name), translate(scope, node.expression))


def _cast(scope: Scope, node: exp.Expr) -> Term:
    term = cast(scope, _inner(scope, node), named_type(scope, node.args["to"]))
    if WRITTEN in node.meta and isinstance(term.literal, int):
        return replace(term, literal=None)
    return term


def _column(scope: Scope, node: exp.Expr) -> Term:
    from sqlglot import exp

    parts = list(getattr(node, "parts", []))
    if any(type(part) is not exp.Identifier for part in parts):
        raise _unknown(scope, node)
    names = [str(part.this) for part in parts]
    if len(names) == 1 and names[0].lower() in ("current_timestamp", "current_date") and not parts[0].args["quoted"]:
        return functions.call(scope, names[0], _said(node), [])
    term = _named(scope, node, names[0])
    for name in names[1:]:
        term = _within(scope, node, term, name)
        scope.named[-1] = (*scope.named[-1], name)
    return _checked(scope, node, term)


def _named(scope: Scope, node: exp.Expr, column: str) -> Term:
    field = _member(scope, node, scope.schema, column)
    scope.named.append((field.name,))
    known = next((key for key, name in scope.columns.items() if name == field.name), None)
    if known is None:
        known = f"c{len(scope.columns)}"
        scope.columns[known] = field.name
    return Term(type=field.type, sql=known)


def _dot(scope: Scope, node: exp.Expr) -> Term:
    from sqlglot import exp

    if type(node.expression) is not exp.Identifier:
        raise _unknown(scope, node)
    term, name = translate(scope, node.this), str(node.expression.this)
    term = _within(scope, node, term, name)
    if _is_path(node.this):
        scope.named[-1] = (*scope.named[-1], name)
    return _checked(scope, node, term)


def _is_path(node: exp.Expr) -> bool:
    """Whether a node is a column or a member of one, not an element of an array or map."""
    return node.key == "column" or (node.key == "dot" and _is_path(node.this))


def _within(scope: Scope, node: exp.Expr, term: Term, name: str) -> Term:
    if not isinstance(term.type, Struct):
        raise scope.refuse(_said(node), f"{spelt(term.type)} has no member {name}")
    field = _member(scope, node, term.type, name)
    sql = decoded(f"struct_extract({term.sql}, {text_sql(field.name)})", field.type)
    return Term(type=field.type, sql=sql, fails=term.fails, stage=term.stage)


def _member(scope: Scope, node: exp.Expr, struct: Struct, name: str) -> Field:
    # As in Spark by default, the case of a name is ignored. Where two names match, one must match exactly.
    alike = [field for field in struct if field.name.lower() == name.lower()]
    exact = [field for field in alike if field.name == name]
    if len(alike) != 1 and len(exact) != 1:
        raise scope.missing(_said(node), name, struct.names)
    field = (exact or alike)[0]
    declared = str(field.metadata.get("__CHAR_VARCHAR_TYPE_STRING", ""))
    if "__COLLATIONS" in field.metadata or re.search(r"(?<!var)char\(", declared):
        raise scope.refuse(_said(node), "a CHAR or a collated column is compared by rules of its own, not known here")
    return field


def _checked(scope: Scope, node: exp.Expr, term: Term) -> Term:
    if getattr(term.type, "name", "") == "variant":
        raise scope.refuse(_said(node), f"a column of {spelt(term.type)} is not evaluated here")
    return term


def _element_of_array(scope: Scope, node: exp.Expr) -> Term:
    """`array[...]`, which Spark reads as an element of a column named `array`."""
    return _element_of(scope, node, _named(scope, node, "array"))


def _element(scope: Scope, node: exp.Expr) -> Term:
    return _element_of(scope, node, _inner(scope, node))


def _element_of(scope: Scope, node: exp.Expr, term: Term) -> Term:
    if len(node.expressions) != 1:
        raise _unknown(scope, node)
    key = translate(scope, node.expressions[0])
    match term.type:
        case Map(key=kind, value=value) if key.type == kind and kind in (STRING, INT, LONG):
            found = decoded("map_extract({}, {})[1]", value)
            return strict(scope, value, [term, key], found)
        case Array(element=value) if key.type in (BYTE, SHORT, INT):
            term, key = scope.bound(term), scope.bound(key)
            there = f"{term.sql} IS NOT NULL AND {key.sql} IS NOT NULL"
            inside = f"{key.sql} >= 0 AND {key.sql} < len({term.sql})"
            own = f"CASE WHEN {there} AND NOT ({inside}) THEN {int(Failure.INDEX)} END"
            sql = decoded(f"CASE WHEN {inside} THEN {term.sql}[{key.sql}::BIGINT + 1] END", value)
            stage = max(term.stage, key.stage)
            return Term(type=value, sql=sql, fails=first(term.fails, key.fails, own), stage=stage)
    raise _unknown(scope, node)


_Maker = Callable[[Scope, "exp.Expr"], Term]
_BOTH = ("this", "expression")
_MAKERS: Mapping[str, tuple[_Maker, tuple[str, ...]]] = {
    "paren": (_inner, ("this",)),
    "and": (_joined, _BOTH),
    "or": (_joined, _BOTH),
    "not": (_not, ("this",)),
    "is": (_is, _BOTH),
    **dict.fromkeys(_COMPARISONS, (_compared, _BOTH)),
    **dict.fromkeys(_SUMS, (_calculated, (*_BOTH, "typed", "safe"))),
    "dpipe": (_concatenated, (*_BOTH, "safe")),
    "between": (_between, ("this", "low", "high")),
    "in": (_in, ("this", "expressions")),
    "like": (_like, (*_BOTH, "negate")),
    "regexplike": (_rlike, (*_BOTH, "negate")),
    "neg": (_negated, ("this",)),
    "literal": (text_or_number, ("this", "is_string")),
    "boolean": (boolean, ("this",)),
    "null": (null, ()),
    "hexstring": (bytes_literal, ("this",)),
    "case": (_case, ("this", "ifs", "default")),
    "if": (_if, ("this", "true", "false")),
    "anonymous": (_call, ("this", "expressions")),
    "trim": (_trimmed, ("this",)),
    "extract": (_extract, _BOTH),
    "cast": (_cast, ("this", "to", "_type")),
    "trycast": (_cast, ("this", "to", "_type")),
    "column": (_column, ("this", "table", "db", "catalog")),
    "dot": (_dot, _BOTH),
    "bracket": (_element, ("this", "expressions")),
    "array": (_element_of_array, ("expressions",)),
}
"""The kinds of nodes that are evaluated, each with the parts of it that are read."""
