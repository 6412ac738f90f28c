"""Parses the option `where`, a predicate in Spark's SQL over a table's columns, into the tree of a filter.

sqlglot parses the text. A part of it is accepted only where it means the same in Spark; anything else is refused by
name, because a predicate with another meaning than in a query would deliver wrong rows. comparison.py decides that for
comparisons.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal as Number
from typing import TYPE_CHECKING

from tablefeed.data.oldest import why_too_old
from tablefeed.data.predicate import FLIPPED, And, Column, Constant, IsNull, Not, Or, Predicate, RowFilter, filter_by
from tablefeed.data.sql.parse import as_sql
from tablefeed.delta.schema.arrow_schema import to_arrow
from tablefeed.delta.schema.schema_string import parse_schema
from tablefeed.errors import IllegalOptionError, UnsupportedOptionError, naming
from tablefeed.feed import arguments
from tablefeed.feed.scan.comparison import Operand, Value, among, compared, read_day
from tablefeed.model.schema import DataType, Field, Primitive, Struct

if TYPE_CHECKING:
    from sqlglot import exp

ALLOWED = (
    "allowed are AND, OR, NOT, =, <>, <, <=, >, >=, <=>, IN (...), BETWEEN and IS [NOT] NULL between a column and "
    "literals: numbers, 'texts' without a backslash, TRUE, FALSE, DATE'2024-01-31', "
    "TIMESTAMP'2024-01-31 12:00:00Z' and TIMESTAMP_NTZ'2024-01-31 12:00:00'"
)


def row_filter(text: str, schema: Struct, *, option: str = "where") -> RowFilter:
    """Gives the filter for the rows of a table of `schema` for which `text`, the value of `option`, is true in Spark.

    Raises IllegalOptionError for SQL that is not understood or could mean something else in Spark, and
    UnsupportedOptionError where sqlglot is not installed.
    """
    arguments.text(text, argument=option)
    reading = _Reading(text, schema, option)
    try:
        return filter_by(reading.predicate(_parsed(text, reading.refuse, option)), to_arrow(schema))
    except RecursionError as error:
        raise reading.refuse("nests too deep") from error


def check_where(text: str, schema_string: str, *, url: str) -> None:
    """Raises as `row_filter` does, for a table with the schema string `schema_string`."""
    with naming(url):
        row_filter(text, parse_schema(schema_string))


def _parsed(text: str, refuse: Callable[[str], IllegalOptionError], option: str) -> exp.Expr:
    try:
        import sqlglot
        from sqlglot import TokenType, exp
        from sqlglot.dialects.spark import Spark
        from sqlglot.errors import SqlglotError
    except ImportError as error:
        raise UnsupportedOptionError(
            option=option,
            remedy='It needs sqlglot, where the driver\'s Python runs: pip install "tablefeed[where]".',
        ) from error
    if (why := why_too_old(sqlglot)) is not None:
        raise UnsupportedOptionError(option=option, remedy=f"{why}.")
    if "\\" in text:
        # A setting of Spark's session decides whether a backslash escapes the next character.
        raise refuse("has a backslash")
    dialect = Spark()
    try:
        tokens = dialect.tokenize(text)
        found = dialect.parser().parse_into(exp.Condition, tokens, text)
    except (SqlglotError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise refuse("is no predicate that can be read; a name that is a word of SQL needs backticks") from error
    if any(token.token_type == TokenType.PLUS for token in tokens):
        # sqlglot drops a plus sign before a value. Spark makes a number of a text there.
        raise refuse("has a plus sign")
    if len(found) != 1 or found[0] is None:
        raise refuse("is not one predicate")
    return found[0]


class _Reading:
    """Reads one text as a predicate on rows of `schema`."""

    def __init__(self, text: str, schema: Struct, option: str) -> None:
        self._text, self._schema, self._option = text, schema, option

    def refuse(self, reason: str, remedy: str = f"; {ALLOWED}") -> IllegalOptionError:
        """The error that refuses the text for `reason`."""
        return IllegalOptionError(option=self._option, value=self._text, explain=f"{reason}{remedy}")

    def predicate(self, node: exp.Expr) -> Predicate:
        """Gives the predicate that `node` is."""
        from sqlglot import exp

        self._check_parts(node)
        match node:
            case exp.Paren():
                return self.predicate(node.this)
            case exp.And() | exp.Or():
                parts = tuple(self.predicate(part) for part in node.flatten(unnest=False))
                return And(parts) if isinstance(node, exp.And) else Or(parts)
            case exp.Not():
                return Not(self.predicate(node.this))
            case exp.Is() if type(node.expression) is exp.Null:
                return IsNull(self._operand(node.this, compared=False).column)
            case exp.Between():
                operand = self._operand(node.this)
                low, high = (self._value(node.args[end]) for end in ("low", "high"))
                return And((compared(operand, "greater_equal", low), compared(operand, "less_equal", high)))
            case exp.In() if node.expressions:
                return among(self._operand(node.this), [self._value(value) for value in node.expressions])
            case exp.Binary() if node.key in _COMPARISONS:
                return self._comparison(node, _COMPARISONS[node.key], is_null_safe=node.key == "nullsafeeq")
            case exp.Boolean():
                return Constant(bool(node.this))
            case exp.Column() | exp.Dot():
                operand = self._operand(node)
                if operand.type != Primitive("boolean"):
                    raise self.refuse(f"asks whether {operand.name} holds, which is {operand.kind} and no boolean")
                return operand.column
            case _:
                raise self._unknown(node)

    def _comparison(self, node: exp.Expr, function: str, *, is_null_safe: bool) -> Predicate:
        from sqlglot import exp

        left, right = _bare(node.args["this"]), _bare(node.args["expression"])
        if isinstance(right, exp.Column | exp.Dot) and not isinstance(left, exp.Column | exp.Dot):
            left, right, function = right, left, FLIPPED.get(function, function)
        operand = self._operand(left)
        if type(right) is exp.Null:
            if is_null_safe:
                return IsNull(operand.column)
            raise self.refuse("compares with NULL, which is never true: write IS NULL")
        answer = compared(operand, function, self._value(right))
        return And((Not(IsNull(operand.column)), answer)) if is_null_safe else answer

    def _operand(self, node: exp.Expr, *, compared: bool = True) -> Operand:
        from sqlglot import exp

        node = _bare(node)
        if not isinstance(node, exp.Column | exp.Dot):
            raise self._unknown(node)
        self._check_parts(node)
        fields = self._fields([self._name(part) for part in node.parts])
        if compared and any(is_special_text(field) for field in fields):
            name = ".".join(field.name for field in fields)
            raise self.refuse(f"compares {name}, a CHAR or a collated column, which Spark compares by rules of its own")
        kind = fields[-1].type
        if kind == Primitive("variant"):
            raise self.refuse(f"names {fields[-1].name}, a variant")
        return Operand(column=Column(tuple(field.name for field in fields)), type=kind, refuse=self.refuse)

    def _name(self, part: exp.Expr) -> str:
        from sqlglot import exp

        if type(part) is not exp.Identifier:
            raise self._unknown(part)
        return str(part.this)

    def _fields(self, names: Sequence[str]) -> list[Field]:
        found: list[Field] = []
        kind: DataType = self._schema
        for name in names:
            members = kind if isinstance(kind, Struct) else ()
            # Names match in any case, as in Spark by default. Where two columns match, one must match exactly.
            alike = [field for field in members if field.name.lower() == name.lower()]
            exact = [field for field in alike if field.name == name]
            if len(alike) != 1 and len(exact) != 1:
                known = ", ".join(field.name for field in members) or "no members"
                within = ".".join(field.name for field in found) or "the table"
                raise self.refuse(f"names {name!r}, but {within} has {known}", remedy="")
            found.append((exact or alike)[0])
            kind = found[-1].type
        return found

    def _value(self, node: exp.Expr) -> Value:
        from sqlglot import exp

        node = _bare(node)
        self._check_parts(node)
        match node:
            case exp.Literal(is_string=True):
                return str(node.this)
            case exp.Literal():
                return self._number(str(node.this))
            case exp.Neg() if isinstance(number := _bare(node.this), exp.Literal) and not number.is_string:
                return self._number(f"-{number.this}")
            case exp.Boolean():
                return bool(node.this)
            case exp.Cast() if type(node) is exp.Cast and isinstance(node.this, exp.Literal) and node.this.is_string:
                return self._time(node, str(node.this.this))
            case _:
                raise self._unknown(node)

    def _number(self, text: str) -> Value:
        spelt = _NUMBER.fullmatch(text)
        if spelt is None or len(text) > _MOST_CHARACTERS:
            raise self.refuse(f"has {text:.40} where a number is expected")
        return float(text) if spelt["exponent"] else Number(text) if spelt["point"] else int(text)

    def _time(self, node: exp.Expr, text: str) -> Value:
        kind = node.args["to"].this.name
        if kind == "DATE" and (day := read_day(text)) is not None:
            return day
        pattern = _TIMES.get(kind)
        try:
            if pattern is not None and pattern.fullmatch(text):
                return datetime.fromisoformat(_iso(text))
        except ValueError:
            pass  # no such date, like the 30th of February
        raise self.refuse(f"has {text!r:.60}, which is no such time, or one whose zone the session would decide")

    def _check_parts(self, node: exp.Expr) -> None:
        """Refuses a node with other parts than those that are read, such as SYMMETRIC or a subquery of IN."""
        odd = [name for name, part in node.args.items() if part and name not in _PARTS]
        if odd:
            raise self.refuse(f"has {odd[0].upper()} in {as_sql(node):.60}")

    def _unknown(self, node: exp.Expr) -> IllegalOptionError:
        return self.refuse(f"has {as_sql(node):.60} where something else is expected")


_COMPARISONS = {
    "eq": "equal",
    "neq": "not_equal",
    "lt": "less",
    "lte": "less_equal",
    "gt": "greater",
    "gte": "greater_equal",
    "nullsafeeq": "equal",
}

_PARTS = frozenset(
    {"this", "expression", "expressions", "low", "high", "to", "is_string", "quoted", "table", "db", "catalog"}
)

_NUMBER = re.compile(r"-?(?:[0-9]+(?P<point>\.[0-9]*)?)(?P<exponent>[eE][+-]?[0-9]+)?")
_MOST_CHARACTERS = 100

_MOMENT = r"[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6})?"
_WITH_ZONE = re.compile(_MOMENT + r"(?: ?(?:Z|UTC)|[+-][0-9]{2}:[0-9]{2})")
_TIMES: Mapping[str, re.Pattern[str]] = {
    "TIMESTAMP": _WITH_ZONE,
    "TIMESTAMPTZ": _WITH_ZONE,
    "TIMESTAMPLTZ": _WITH_ZONE,
    "TIMESTAMPNTZ": re.compile(_MOMENT),
}


def _iso(text: str) -> str:
    return re.sub(r" ?(Z|UTC)$", "+00:00", text)


def _bare(node: exp.Expr) -> exp.Expr:
    from sqlglot import exp

    while type(node) is exp.Paren:
        node = node.this
    return node


def is_special_text(field: Field) -> bool:
    """Whether equal values of a column may be different texts: Spark pads CHAR, and a collation may ignore case."""
    declared = str(field.metadata.get("__CHAR_VARCHAR_TYPE_STRING", ""))
    return "__COLLATIONS" in field.metadata or re.search(r"(?<!var)char\(", declared) is not None
