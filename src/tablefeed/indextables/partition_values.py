"""Partition values of an IndexTables table: what an add says of a column that its split does not store.

The writer by Arrow leaves partition columns out of the documents and their text in the add as it is. The writer by
rows has them in both, and the text in the add escaped so that it cannot be told back: there the documents count.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import pyarrow as pa

NULL = "__HIVE_DEFAULT_PARTITION__"
"""The text of null, with both writers."""


def constants(values: Mapping[str, str | None], columns: pa.Schema) -> dict[str, pa.Scalar]:
    """The value of each of the partition `columns` by its name, in the column's type; null where `values` has none.

    Timestamps are in UTC. Raises ValueError, naming the column, for a text that is no value of its type.
    """
    return {column.name: _scalar(column, values.get(column.name)) for column in columns}


def _scalar(column: pa.Field, text: str | None) -> pa.Scalar:
    if text is None or text == NULL:
        return pa.scalar(None, column.type)
    try:
        return _parsed(text, column.type)
    except (pa.ArrowException, ValueError) as error:
        raise ValueError(f"the partition value {text!r:.80} of {column.name} is no {column.type}") from error


_PLAIN = {
    "integer": re.compile(r"[+-]?[0-9]+", re.ASCII),
    "floating": re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|NaN|[+-]?(inf|Infinity)", re.ASCII),
    "boolean": re.compile(r"true|false"),
}


def _parsed(text: str, kind: pa.DataType) -> pa.Scalar:
    is_a = pa.types
    if is_a.is_string(kind):
        return pa.scalar(text, kind)
    for name, form in _PLAIN.items():
        # Arrow reads more than these, hexadecimal numbers among it.
        if getattr(is_a, f"is_{name}")(kind) and not form.fullmatch(text):
            raise ValueError(text)
    if is_a.is_timestamp(kind):
        return pa.scalar(text).cast(pa.timestamp("us")).cast(pa.int64()).cast(kind)
    return pa.scalar(text).cast(kind)
