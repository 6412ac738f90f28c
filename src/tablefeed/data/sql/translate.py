"""Translates sqlglot's tree to a term, with the meaning that each node has in Spark."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal as Number
from typing import TYPE_CHECKING

from tablefeed.data.sql import functions, kinds, operators
from tablefeed.data.sql.calls import Call, Maker
from tablefeed.data.sql.casts import cast
from tablefeed.data.sql.kinds import BOOLEAN, VOID, spelt
from tablefeed.data.sql.literals import checked_number, floating, named_type, number, text_or_number
from tablefeed.data.sql.parse import WRITTEN, as_sql
from tablefeed.data.sql.terms import Scope, Term, loose, text_sql
from tablefeed.data.sql.text_functions import like, rlike
from tablefeed.model.schema import DataType, Decimal, Field, Struct

if TYPE_CHECKING:
    from sqlglot import exp


def translate(scope: Scope, node: exp.Expr) -> Term:
    """Gives the term of a node. Raises NotExactError for a node, or a part of one, that is not evaluated here."""
    if node.key in _OPERATORS:
        make, names = _OPERATORS[node.key]
        _check_parts(scope, node, (*names, *_IGNORED))
        parts = [part for name in names if (part := node.args.get(name)) is not None]
        children = [child for part in parts for child in (part if isinstance(part, list) else [part])]
        return make(_call(scope, node, children))
    if node.key not in _NODES:
        raise _unknown(scope, node)
    translated, names = _NODES[node.key]
    _check_parts(scope, node, names)
    return translated(scope, node)


def _check_parts(scope: Scope, node: exp.Expr, names: Sequence[str]) -> None:
    odd = [name for name, part in node.args.items() if part and name not in names]
    if odd:
        raise scope.refuse(_said(node), f"its {odd[0].upper()} is not evaluated here")


def _call(scope: Scope, node: exp.Expr, arguments: Sequence[exp.Expr]) -> Call:
    return Call(scope=scope, part=_said(node), arguments=[translate(scope, argument) for argument in arguments])


def _said(node: exp.Expr) -> str:
    return as_sql(node)


def _unknown(scope: Scope, node: exp.Expr) -> Exception:
    return scope.refuse(_said(node), f"{node.key} is not evaluated here")


_NULL = Term(type=VOID, sql="NULL")
"""It takes the type of its context."""


def _joined(scope: Scope, node: exp.Expr) -> Term:
    c = _call(scope, node, list(node.flatten(unnest=False)))
    return operators.both(c, node.key.upper(), *(operators.as_condition(c, term) for term in c.arguments))


def _is(scope: Scope, node: exp.Expr) -> Term:
    from sqlglot import exp

    c = _call(scope, node, [node.this])
    match node.expression:
        case exp.Null():
            return loose(BOOLEAN, c.arguments, "({} IS NULL)")
        case exp.Boolean(this=value):
            term = operators.as_condition(c, c.arguments[0])
            return loose(BOOLEAN, [term], f"({{}} IS NOT DISTINCT FROM {'true' if value else 'false'})")
    raise _unknown(scope, node)


def _like(scope: Scope, node: exp.Expr) -> Term:
    """LIKE, also ANY and ALL. NOT LIKE ANY means that the text is unlike one pattern; it does not negate LIKE ANY."""
    from sqlglot import exp

    patterns, make = [node.expression], like if node.key == "like" else rlike
    if isinstance(node.expression, exp.Any | exp.All):
        patterns = node.expression.this.expressions or [node.expression.this.unnest()]
    c = _call(scope, node, [node.this, *patterns])
    text, *given = c.arguments
    likes = [make(replace(c, arguments=[scope.bound(text), pattern])) for pattern in given]
    if node.args.get("negate"):
        likes = [c.strict(BOOLEAN, [one], "(NOT {})") for one in likes]
    return operators.both(c, "OR" if node.expression.key == "any" else "AND", *likes)


def _negated(scope: Scope, node: exp.Expr) -> Term:
    from sqlglot import exp

    inner = node.this
    if isinstance(inner, exp.Literal) and not inner.is_string:
        return number(scope, f"-{inner.this}")
    if isinstance(inner, exp.TryCast) and WRITTEN not in inner.meta and isinstance(inner.this, exp.Literal):
        # -128Y is one literal: 128 without the minus does not fit in a tinyint.
        return _suffixed(scope, f"-{inner.this.this}", named_type(scope, inner.args["to"]))
    return operators.signed(_call(scope, node, [inner]), "-{0}")


def _case(scope: Scope, node: exp.Expr) -> Term:
    c = _call(scope, node, [] if node.this is None else [node.this])
    branches = []
    for branch in node.args["ifs"]:
        condition = translate(scope, branch.this)
        if c.arguments:
            condition = operators.compare(c, "=", c.arguments[0], condition)
        branches.append((condition, translate(scope, branch.args["true"])))
    otherwise = node.args.get("default")
    return operators.case(c, branches, _NULL if otherwise is None else translate(scope, otherwise))


def _cast(scope: Scope, node: exp.Expr) -> Term:
    from sqlglot import exp

    kind = named_type(scope, node.args["to"])
    if WRITTEN in node.meta:
        term = cast(scope, translate(scope, node.this), kind)
        return term if isinstance(term.literal, str) else replace(term, literal=None)
    quoted = isinstance(node.this, exp.Literal) and node.this.is_string
    if quoted and kind not in kinds.TIMES and not isinstance(kind, Decimal):  # 1.5BD has quotes in the tree
        raise scope.refuse(_said(node), f"Spark has no literals of {spelt(kind)} in quotes: use CAST")
    if isinstance(node.this, exp.Literal) and kinds.is_numeric(kind):
        return _suffixed(scope, str(node.this.this), kind)
    return cast(scope, translate(scope, node.this), kind)


def _suffixed(scope: Scope, text: str, kind: DataType) -> Term:
    """A number whose suffix names its type: 5L, 1.5BD, 0.1D."""
    if kind in kinds.FLOATING:
        return floating(scope, text, kind)
    if isinstance(kind, Decimal):
        checked_number(scope, text)
        term = Term(type=kinds.STRING, sql=text_sql(text), literal=text)
        return replace(cast(scope, term, kind), literal=Number(text))
    return cast(scope, number(scope, text), kind)


def _column(scope: Scope, node: exp.Expr) -> Term:
    from sqlglot import exp

    parts = list(getattr(node, "parts", []))
    if any(type(part) is not exp.Identifier for part in parts):
        raise _unknown(scope, node)
    names = [str(part.this) for part in parts]
    is_function = len(names) == 1 and names[0].lower() in ("current_timestamp", "current_date")
    # As in Spark, a column of that name comes first.
    if is_function and not parts[0].args["quoted"] and names[0].lower() not in map(str.lower, scope.schema.names):
        return functions.call(_call(scope, node, []), names[0])
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
    return Term(type=field.type, sql=f"struct_extract({term.sql}, {text_sql(field.name)})", fails=term.fails)


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
    c = _call(scope, node, node.expressions)
    return operators.element(replace(c, arguments=[_named(scope, node, "array"), *c.arguments]))


def _binary(make: Callable[[Call, str, Term, Term], Term], operator: str) -> tuple[Maker, tuple[str, ...]]:
    return lambda c: make(c, operator, *c.arguments), _BOTH


_BOTH = ("this", "expression")
_COMPARISONS = {"eq": "=", "neq": "<>", "lt": "<", "lte": "<=", "gt": ">", "gte": ">=", "nullsafeeq": "<=>"}
_SUMS = {"add": "+", "sub": "-", "mul": "*", "div": "/", "mod": "%", "intdiv": "DIV"}
_IGNORED = ("typed", "safe")
"""What sqlglot notes about its own translation."""
_OPERATORS: Mapping[str, tuple[Maker, tuple[str, ...]]] = {
    "paren": (lambda c: c.arguments[0], ("this",)),
    "not": (lambda c: c.strict(BOOLEAN, [operators.as_condition(c, c.arguments[0])], "(NOT {})"), ("this",)),
    **{key: _binary(operators.compare, operator) for key, operator in _COMPARISONS.items()},
    **{key: _binary(operators.calculate, operator) for key, operator in _SUMS.items()},
    "dpipe": (lambda c: functions.call(c, "concat"), _BOTH),
    "between": (operators.between, ("this", "low", "high")),
    "in": (operators.among, ("this", "expressions")),
    "if": (lambda c: functions.call(c, "if"), ("this", "true", "false")),
    "trim": (lambda c: functions.call(c, "trim"), ("this",)),
    "bracket": (operators.element, ("this", "expressions")),
}
"""The kinds of nodes that only depend on the terms of their parts, and these parts in order."""
_NODES: Mapping[str, tuple[Callable[[Scope, exp.Expr], Term], tuple[str, ...]]] = {
    "and": (_joined, _BOTH),
    "or": (_joined, _BOTH),
    "is": (_is, _BOTH),
    "like": (_like, (*_BOTH, "negate")),
    "regexplike": (_like, (*_BOTH, "negate")),
    "neg": (_negated, ("this",)),
    "literal": (text_or_number, ("this", "is_string")),
    "boolean": (lambda _, node: Term(type=BOOLEAN, sql="true" if node.this else "false"), ("this",)),
    "null": (lambda _, __: _NULL, ()),
    "case": (_case, ("this", "ifs", "default")),
    "anonymous": (lambda s, n: functions.call(_call(s, n, n.expressions), str(n.this)), ("this", "expressions")),
    "extract": (lambda s, n: functions.extract(_call(s, n, [n.expression]), str(n.this.name)), _BOTH),
    "cast": (_cast, ("this", "to", "_type")),
    "trycast": (_cast, ("this", "to", "_type")),
    "column": (_column, ("this", "table", "db", "catalog")),
    "dot": (_dot, _BOTH),
    "array": (_element_of_array, ("expressions",)),
}
"""The other kinds of nodes that are evaluated, each with the parts of it that are read."""
