"""Partition values of an IndexTables table: what an add says of a column that its split does not store.

The writer by Arrow leaves partition columns out of the documents and their text in the add as it is. The writer by
rows has them in both, and the text in the add escaped so that it cannot be told back: there the documents count.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

import pyarrow as pa

from tablefeed.errors import TablefeedError

NULL = "__HIVE_DEFAULT_PARTITION__"
"""The text of null, with both writers."""


Refusal = Callable[[str], TablefeedError]
"""Makes the error of a reason: the caller knows the table and the split to name."""


def constants(values: Mapping[str, str | None], columns: pa.Schema, *, refuse: Refusal) -> dict[str, pa.Scalar]:
    """The value of each of the partition `columns` by its name, in the column's type; null where `values` has none.

    Timestamps are in UTC. Raises what `refuse` makes of the reason where a text is no value of its column's type.
    """
    return {column.name: _scalar(column, values.get(column.name), refuse) for column in columns}


def _scalar(column: pa.Field, text: str | None, refuse: Refusal) -> pa.Scalar:
    if text is None or text == NULL:
        return pa.scalar(None, column.type)
    try:
        return _parsed(text, column.type)
    except (pa.ArrowException, ValueError) as error:
        raise refuse(f"the partition value {text!r:.80} of {column.name} is no {column.type}") from error


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
