"""Reads the rules for a table's rows from its metaData.

PROTOCOL.md, "Column Invariants", "CHECK Constraints", "Generated Columns", "Default Columns"; Spark's marks of CHAR and
VARCHAR columns.

Text in, values out: the SQL is not evaluated here. features.py decides whether the table's protocol allows a rule.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Literal, TypeAlias

import orjson

from tablefeed.delta import names
from tablefeed.errors import TABLE, UnsupportedFeatureError
from tablefeed.model.rules import Check, TableRules, TextLimit
from tablefeed.model.schema import (
    ELEMENT,
    KEY,
    VALUE,
    DataType,
    Field,
    Path,
    Primitive,
    Struct,
    fields_at,
    fields_of,
    walk,
)


def table_rules(schema: Struct, configuration: Mapping[str, str]) -> TableRules:
    """Returns the rules of a table with `schema` and table properties `configuration`.

    Raises UnsupportedFeatureError for an invariant or a declared type in an unknown form, for a length that is declared
    of something else than a text, and for a generation expression or a default that is not on a top-level column.
    """
    checks = [
        Check(name=key[len(names.CHECK_CONSTRAINT_PREFIX) :], expression=expression)
        for key, expression in sorted(configuration.items())
        if key.lower().startswith(names.CHECK_CONSTRAINT_PREFIX)
    ]
    return TableRules(
        checks=(*checks, *_invariants(schema)),
        generated=_expressions(schema, names.GENERATION_EXPRESSION),
        defaults=_expressions(schema, names.CURRENT_DEFAULT),
        limits=tuple(limit for field in schema for limit in _limits(field)),
    )


def mentions(sql: str, column: str) -> bool:
    """Whether `sql` has the word `column`, in any case: it may be the column's name, or part of a text."""
    quoted = re.escape(column.replace("`", "``"))
    return re.search(rf"(?<!\w){quoted}(?!\w)", sql, re.IGNORECASE) is not None


def _invariants(schema: Struct) -> Iterator[Check]:
    # As in Delta-Spark, invariants inside arrays and maps are ignored: those have no rows of their own.
    for path, field in fields_at(schema, into=Struct):
        written = field.metadata.get(names.COLUMN_INVARIANTS)
        if written is not None:
            expression = _invariant(written)
            if expression is None:
                raise _unreadable(f"the invariant of column {'.'.join(path)}, {written!s:.200}", "invariants")
            yield Check(name=f"EXPRESSION({expression})", expression=expression)


def _invariant(written: object) -> str | None:
    """The SQL of an invariant: bare as in one example of the protocol, or in JSON as in the other and real tables."""
    if not isinstance(written, str):
        return None
    if not written.lstrip().startswith("{"):
        return written
    try:
        expression = orjson.loads(written)["expression"]["expression"]
    except (orjson.JSONDecodeError, LookupError, TypeError):
        return None
    return expression if isinstance(expression, str) else None


def _expressions(schema: Struct, key: str) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for field in schema:
        written = field.metadata.get(key)
        if written is None and not any(key in inner.metadata for inner in fields_of(field.type)):
            continue
        if not isinstance(written, str):
            raise _unreadable(f"{key} of column {field.name}", key)
        found[field.name] = written
    return found


def _unreadable(what: str, feature: str) -> UnsupportedFeatureError:
    return UnsupportedFeatureError(
        f"{TABLE} cannot be written: {what} is in a form that this version of tablefeed does not know. Drop that rule "
        "from the table, or write it with another writer.",
        features=(feature,),
        error_class="DELTA_UNSUPPORTED_FEATURES_FOR_WRITE",
    )


_TOKEN = re.compile(r"\s*(?:(?P<name>`(?:[^`]|``)+`|[^\s`<>:,()]+)|(?P<mark>[<>:,()]))")


def _limits(field: Field) -> Iterator[TextLimit]:
    declared = field.metadata.get(names.CHAR_VARCHAR_TYPE)
    if declared is None:
        return
    try:
        yield from _limits_within(_DeclaredType(str(declared)).read(), field.type, (field.name,))
    except ValueError as error:
        what = f"the declared type of column {field.name}, {declared!s:.200}"
        raise _unreadable(what, names.CHAR_VARCHAR_TYPE) from error


_Declared: TypeAlias = "tuple[Literal['char', 'varchar'], int] | Mapping[str, _Declared]"
"""The length of a text, or the parts of a type by their names; other types have no parts."""


def _limits_within(declared: _Declared, kind: DataType | None, path: Path) -> Iterator[TextLimit]:
    """The limits in `declared`, by the names in the column's own type `kind`. Raises ValueError where it has no text.

    Delta-Spark finds the members of a struct by their places: the declared type keeps the names that members had before
    they were renamed, and the members that were dropped.
    """
    if isinstance(declared, tuple):
        if kind != Primitive("string"):
            raise ValueError(path)
        yield TextLimit(path=path, length=declared[1], kind=declared[0])
        return
    parts = [] if kind is None else [(part.path[-1], part.type) for part in walk(kind) if len(part.path) == 1]
    found = {name: (name, inner) for name, inner in parts}
    if len(declared) == len(parts) and not declared.keys() <= found.keys():
        found = dict(zip(declared, parts, strict=True))
    was_dropped = bool(found) and found.keys() <= declared.keys()
    for name, inside in declared.items():
        own, inner = found.get(name, (name, None))
        if inner is not None or not was_dropped:
            yield from _limits_within(inside, inner, (*path, own))


class _DeclaredType:
    """Reads a type in Spark's syntax: varchar(5), array<char(2)>, struct<a:map<int,char(3)>>."""

    def __init__(self, text: str) -> None:
        self._tokens: list[str] = []
        at = 0
        while at < len(text.rstrip()):
            token = _TOKEN.match(text, at)
            if token is None:
                raise ValueError(text)
            self._tokens.append(token["name"] or token["mark"])
            at = token.end()
        self._at = 0

    def read(self) -> _Declared:
        """The type. Raises ValueError where the text is malformed."""
        found = self._type()
        if self._at != len(self._tokens):
            raise ValueError(self._tokens)
        return found

    def _type(self) -> _Declared:
        word = self._next().lower()
        if word in ("char", "varchar"):
            self._expect("(")
            length = int(self._next())
            self._expect(")")
            return ("char" if word == "char" else "varchar"), length
        if word in ("array", "map", "struct") and self._peek() == "<":
            return self._parts(word)
        if self._peek() == "(":
            while self._next() != ")":
                pass
        return {}

    def _parts(self, word: str) -> Mapping[str, _Declared]:
        self._expect("<")
        found: dict[str, _Declared] = {}
        inner = iter((ELEMENT,) if word == "array" else (KEY, VALUE))
        while self._peek() != ">":
            if word == "struct":
                name = self._next()
                name = name[1:-1].replace("``", "`") if name.startswith("`") else name
                self._expect(":")
            else:
                name = next(inner, "")
            found[name] = self._type()
            if self._peek() != ">":
                self._expect(",")
        self._expect(">")
        return found

    def _peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _next(self) -> str:
        word = self._peek()
        if not word:
            raise ValueError(self._tokens)
        self._at += 1
        return word

    def _expect(self, mark: str) -> None:
        if self._next() != mark:
            raise ValueError(self._tokens)
