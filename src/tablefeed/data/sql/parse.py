"""Parses an expression with sqlglot, as far as Spark's grammar gives the same tree.

sqlglot knows many dialects and translates functions into common ones. Here its parser is configured to keep each
function as a name and arguments, so that only Spark's own names occur, and a plus sign before a value as the function
`positive`. Some of its operators have another precedence than Spark's (`||`, `=` and `<`). An expression that Spark
would parse differently is refused; parentheses make it unambiguous.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from tablefeed.data.oldest import why_too_old
from tablefeed.data.sql.terms import NotExactError

if TYPE_CHECKING:
    from sqlglot import exp

_REMEDY = 'pip install "tablefeed[rules]" where the tasks\' Python runs'


def parse(text: str) -> exp.Expr:
    """Gives the tree of `text`. Raises NotExactError for what is no expression, or what Spark may parse differently."""
    try:
        import sqlglot
        from sqlglot import exp
        from sqlglot.dialects.spark import Spark
        from sqlglot.errors import SqlglotError
    except ImportError as error:
        raise NotExactError(text, part=text, reason=f"it needs sqlglot: {_REMEDY}") from error
    if (why := why_too_old(sqlglot)) is not None:
        raise NotExactError(text, part=text, reason=why)
    if "\\" in text:
        # Whether a backslash escapes the next character depends on a setting of Spark's session.
        raise NotExactError(text, part="\\", reason="Spark reads a backslash by a session setting")
    dialect = Spark()
    try:
        tokens = dialect.tokenize(text)
        found = _parser()(dialect=dialect).parse_into(exp.Condition, tokens, text)
    except (SqlglotError, ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        reason = "it is no expression that can be read; a name that is a word of SQL needs backticks"
        raise NotExactError(text, part=text, reason=reason) from error
    words = [text[token.start : token.end + 1] for token in tokens]
    unread = [word for word in words if word.upper() in _UNREAD_WORDS]
    if unread:
        raise NotExactError(text, part=unread[0], reason="it is not evaluated here: write it differently")
    if len(found) != 1 or found[0] is None:
        raise NotExactError(text, part=text, reason="it is not one expression")
    if (why := _unlike_spark([word.upper() for word in words], found[0])) is not None:
        raise NotExactError(text, part=text, reason=why)
    # One node stands for `<=>` and for IS NOT DISTINCT FROM, which in Spark also binds the comparisons on its right.
    has_distinct = any(word.upper() == "DISTINCT" for word in words)
    _check_binding(found[0], text, {**_LEVELS, "nullsafeeq": _PREDICATE} if has_distinct else _LEVELS)
    tree: exp.Expr = found[0]
    return tree


# fmt: off
_TYPES = frozenset({
    "BOOLEAN", "TINYINT", "BYTE", "SMALLINT", "SHORT", "INT", "INTEGER",
    "BIGINT", "LONG", "FLOAT", "REAL", "DOUBLE", "DECIMAL", "DEC",
    "NUMERIC", "STRING", "BINARY", "DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "TIMESTAMP_LTZ",
    "VOID", "VARIANT", "ARRAY", "MAP", "STRUCT",
})
# fmt: on
"""Spark's names of types. sqlglot knows more, such as TEXT and BOOL."""


def _unlike_spark(words: list[str], tree: exp.Expr) -> str | None:
    """Why Spark cannot read the `words`, in upper case, of which sqlglot made `tree`; None where it can."""
    from sqlglot import exp

    words = [word for before, word in pairwise(["", *words]) if before != "."]  # a member may be called like a keyword
    if (",", ")") in pairwise(words):
        return "a list ends with a comma"
    if ["IN", "(", ")"] in (words[at : at + 3] for at in range(len(words))):
        return "IN has an empty list"
    if len(list(tree.find_all(exp.Is))) > words.count("IS") - words.count("DISTINCT"):
        return "Spark writes IS NULL and IS NOT NULL"
    if tree.find(exp.Alias) is not None:
        return None  # AS gives a name, as in struct(a AS b): no alias is evaluated, which is said later
    for at in (at for at, word in enumerate(words) if word == "AS"):
        kind, behind = (*words[at + 1 : at + 3], "", "")[:2]
        if kind != "INTERVAL" and (kind not in _TYPES or behind not in ("(", ")", "<")):
            return f"Spark has no type {kind if behind in '()<' else f'{kind} {behind}'}"
    return None


def as_sql(node: exp.Expr) -> str:
    """The SQL of a node for an error; the name of its kind where sqlglot cannot write it again."""
    from sqlglot.errors import SqlglotError

    try:
        return str(node.sql("spark"))
    except (SqlglotError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        return str(node.key)


_UNREAD_WORDS = frozenset({"::", "CHAR", "VARCHAR", "CHARACTER", "COLLATE"})
"""Casts that `CAST` says as well, and types with lengths, which sqlglot drops."""


@functools.cache
def _parser() -> Any:  # Any: a class of sqlglot's, made where sqlglot is there
    from sqlglot import TokenType, exp
    from sqlglot.dialects.spark import Spark

    base = Spark.parser_class

    class _NamesOnly(base):  # type: ignore[misc, valid-type]  # its class is a value to mypy
        FUNCTIONS: dict[str, object] = {}  # noqa: RUF012  # sqlglot's way
        FUNCTION_PARSERS = {  # noqa: RUF012
            "CAST": lambda self: _marked(base.FUNCTION_PARSERS["CAST"](self)),
            "TRIM": base.FUNCTION_PARSERS["TRIM"],
            "EXTRACT": base.FUNCTION_PARSERS["EXTRACT"],
        }
        NO_PAREN_FUNCTIONS: dict[object, object] = {}  # noqa: RUF012
        UNARY_PARSERS = {  # noqa: RUF012
            **base.UNARY_PARSERS,
            TokenType.PLUS: lambda self: exp.Anonymous(
                this="positive", expressions=[self._parse_unary() or self.raise_error("A plus has no operand")]
            ),
        }

        def _parse_paren(self) -> Any:  # Any: as above
            node = super()._parse_paren()
            return _marked(node) if isinstance(node, exp.Paren) else node

    return _NamesOnly


def _marked(node: exp.Expr) -> exp.Expr:
    node.meta[WRITTEN] = True
    return node


WRITTEN = "written"
"""Marks a cast, or parentheses, that the text contains: sqlglot also makes casts of the literals 5L and 1.5BD, and puts
parentheses around parts that it binds."""

_OR, _AND, _NOT, _PREDICATE, _COMPARISON, _SUM, _PRODUCT, _UNARY, _PRIMARY = range(9)

_LEVELS = {
    "or": _OR,
    "and": _AND,
    "not": _NOT,
    "is": _PREDICATE,
    "in": _PREDICATE,
    "between": _PREDICATE,
    "like": _PREDICATE,
    "regexplike": _PREDICATE,
    **dict.fromkeys(("eq", "neq", "lt", "lte", "gt", "gte", "nullsafeeq"), _COMPARISON),
    **dict.fromkeys(("add", "sub", "dpipe"), _SUM),
    **dict.fromkeys(("mul", "div", "intdiv", "mod"), _PRODUCT),
    **dict.fromkeys(("neg",), _UNARY),
}
"""The precedence of each operator in Spark's SqlBaseParser; other nodes need no parentheses."""


def _check_binding(node: exp.Expr, text: str, levels: Mapping[str, int]) -> None:
    level = levels.get(node.key, _PRIMARY)
    for child, least in _operands(node, level):
        if levels.get(_as_written(child).key, _PRIMARY) < least:
            reason = "Spark may bind its parts in another order: put parentheses around them"
            raise NotExactError(text, part=as_sql(node), reason=reason)
    for child in node.iter_expressions():
        _check_binding(child, text, levels)


def _as_written(node: exp.Expr) -> exp.Expr:
    """The node without parentheses that the text does not have."""
    while node.key == "paren" and WRITTEN not in node.meta:
        node = node.this
    return node


def _operands(node: exp.Expr, level: int) -> Iterator[tuple[exp.Expr, int]]:
    """The operands of an operator, each with the lowest precedence that is allowed there without parentheses."""
    if level == _PRIMARY:
        return
    if level in (_OR, _AND):
        # Of three operands in a row it does not matter which two are combined first.
        yield node.args["this"], level
        yield node.args["expression"], level
    elif level == _NOT:
        yield node.this, _NOT
    elif level == _UNARY:
        yield node.this, _UNARY
    else:
        yield node.this, _COMPARISON if level == _PREDICATE else level
        if node.key not in ("is", "in"):
            for name in ("expression", "low", "high"):
                if node.args.get(name) is not None:
                    yield node.args[name], level + 1 if level != _PREDICATE else _SUM
