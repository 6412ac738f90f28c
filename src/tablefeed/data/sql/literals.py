"""Literals and the names of types, as Spark types them: 1.0 is a decimal(2,1), 1e0 a double."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal as Number
from typing import TYPE_CHECKING

from tablefeed.data.sql import kinds
from tablefeed.data.sql.parse import as_sql
from tablefeed.data.sql.terms import Scope, Term, text_sql
from tablefeed.model.schema import DataType, Decimal
from tablefeed.model.spark_texts import read_double, read_float

if TYPE_CHECKING:
    from sqlglot import exp


def text_or_number(scope: Scope, node: exp.Expr) -> Term:
    """A text or a number that is written out."""
    if not node.is_string:
        return number(scope, str(node.this))
    value = str(node.this)
    if "\0" in value:
        raise scope.refuse(as_sql(node), "a text with a NUL character is not evaluated here")
    if "'" in value:
        raise scope.refuse(as_sql(node), "Spark reads a quote within a text by a session setting")
    return Term(type=kinds.STRING, sql=text_sql(value), literal=value)


def floating(scope: Scope, text: str, kind: DataType) -> Term:
    """A number that is a double or float by its exponent or suffix, from its digits with its minus sign: -0.0D."""
    checked_number(scope, text)
    value = (read_double if kind == kinds.DOUBLE else read_float)(text)
    if abs(Number(text)) > _LARGEST[kind]:  # though the nearest one may be the largest
        raise scope.refuse(text, f"it is above every {kinds.spelt(kind)}")
    return Term(type=kind, sql=f"'{value!r}'::{kinds.duck(kind)}")


_LARGEST: Mapping[DataType, Number] = {
    kinds.FLOAT: Number("3.4028234663852886E+38"),
    kinds.DOUBLE: Number("1.7976931348623157E+308"),
}

_NUMBER = re.compile(r"-?(?:[0-9]+(?P<point>\.[0-9]*)?|\.[0-9]+)(?P<exponent>[eE][+-]?[0-9]+)?")


def checked_number(scope: Scope, text: str) -> re.Match[str]:
    """The parts of a number. Raises NotExactError for a text that is none, or too long."""
    found = _NUMBER.fullmatch(text)
    if found is None or len(text) > 2 * kinds.MOST_DIGITS:
        raise scope.refuse(text, "it is no number that is read here")
    return found


def number(scope: Scope, text: str) -> Term:
    """A number from its digits with its minus sign: the least bigint has no positive counterpart."""
    if checked_number(scope, text)["exponent"]:
        return floating(scope, text, kinds.DOUBLE)
    if "." in text:
        return _decimal(scope, Number(text))
    whole = int(text)
    for kind, bits, duck in ((kinds.INT, 31, "INTEGER"), (kinds.LONG, 63, "BIGINT")):
        if -(1 << bits) <= whole < 1 << bits:
            return Term(type=kind, sql=f"'{whole}'::{duck}", literal=whole)
    return _decimal(scope, Number(whole))


def _decimal(scope: Scope, value: Number) -> Term:
    _, digits, exponent = value.as_tuple()
    scale = max(-int(exponent), 0)
    precision = max(len(digits), scale)
    if precision > kinds.MOST_DIGITS:
        raise scope.refuse(str(value), "it has more digits than a decimal")
    return Term(type=Decimal(precision, scale), sql=f"'{value:f}'::DECIMAL({precision},{scale})", literal=value)


_SPELT_ALIKE = (kinds.BOOLEAN, *kinds.INTEGRALS, *kinds.FLOATING, kinds.BINARY, kinds.DATE)
_TYPES: Mapping[str, DataType] = {
    **{kinds.spelt(kind).upper(): kind for kind in _SPELT_ALIKE},
    "TEXT": kinds.STRING,
    "TIMESTAMPTZ": kinds.TIMESTAMP,
    "TIMESTAMPLTZ": kinds.TIMESTAMP,
    "TIMESTAMPNTZ": kinds.NTZ,
}
"""Types by sqlglot's names."""


def named_type(scope: Scope, node: exp.Expr) -> DataType:
    """The type that CAST names."""
    name = getattr(node.this, "name", "")
    parameters = [str(p.this) for p in node.expressions]
    if name == "DECIMAL" and len(parameters) <= 2 and all(p.isdecimal() for p in parameters):
        precision, scale = [*map(int, parameters), *(10, 0)[len(parameters) :]]
        if 1 <= precision <= kinds.MOST_DIGITS and 0 <= scale <= precision:
            return Decimal(precision, scale)
    if name in _TYPES and not parameters:
        return _TYPES[name]
    raise scope.refuse(as_sql(node), "this type is not evaluated here")
