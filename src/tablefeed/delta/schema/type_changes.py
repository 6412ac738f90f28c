"""The type changes that a column's metadata records (PROTOCOL.md, "Type Widening", `delta.typeChanges`).

Rows are read by the type that each file has, and not by this record. But a change that the protocol does not list may
come from a newer writer, whose files may store values in an unknown way. So the table is refused, as Delta-Spark does
(`TypeWidening.assertTableReadable`). Delta-Spark writes types in the words of Spark's DDL.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from tablefeed.delta import names
from tablefeed.model.schema import PRIMITIVES, DataType, Decimal, Primitive, widens
from tablefeed.model.shown import shown


def unknown_type_change(parts: Iterable[Mapping[str, Any]]) -> str | None:  # Any: parsed JSON
    """Names the first of `parts`, the structs and fields of a schema, with a change that is not known; None if none.

    A change from one kind of text to another (string, char, varchar, collations) is always known.
    """
    for part in parts:
        metadata = part.get("metadata")
        changes = metadata.get(names.TYPE_CHANGES) if isinstance(metadata, Mapping) else None
        if changes is None:
            continue
        if not isinstance(changes, list):
            return f"{part.get('name')} by {shown(changes)}"
        for change in changes:
            if not (isinstance(change, Mapping) and _is_known(change.get("fromType"), change.get("toType"))):
                return f"{part.get('name')} by {shown(change, most=120)}"
    return None


def _is_known(older: object, newer: object) -> bool:
    before, after = _type_of(older), _type_of(newer)
    return before is not None and after is not None and (before == after or widens(before, after))


_ALIASES = {
    "tinyint": "byte",
    "smallint": "short",
    "int": "integer",
    "bigint": "long",
    "real": "float",
    "timestamp_ltz": "timestamp",
}
_DECIMAL = re.compile(r"(?:decimal|dec|numeric)(?:\s*\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\))?")
_TEXT = re.compile(r"string(?:\s+collate\s+\S+)?|(?:char|character|varchar)\s*\(\s*\d+\s*\)")


def _type_of(word: object) -> DataType | None:
    if not isinstance(word, str):
        return None
    name = word.strip().lower()
    name = "string" if _TEXT.fullmatch(name) else _ALIASES.get(name, name)
    if name in PRIMITIVES:
        return Primitive(name)
    decimal = _DECIMAL.fullmatch(name)
    if decimal is None:
        return None
    try:
        return Decimal(int(decimal[1] or 10), int(decimal[2] or 0))
    except ValueError:
        return None
