"""Writes the doc mapping of a split: the description of the index's fields that goes into the log.

A doc mapping has each field's type, its tokenizer and whether it is fast. It does not have all options that a merge of
splits depends on; only the list of fields in the index itself has them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import orjson
import pyarrow as pa

from tablefeed.indextables.split.index_schema import Json, fields
from tablefeed.indextables.split.indexing import Indexing
from tablefeed.indextables.split.shapes import WRAPPED

_MAPPED_TYPES = {"date": "datetime", "ip_addr": "ip", "json_object": "object"}
"""The doc mapping's word for a type of the index, where the two differ."""


def doc_mapping(schema: pa.Schema, indexing: Indexing, objects: Mapping[str, Sequence[Mapping[str, object]]]) -> str:
    """The doc mapping, as JSON, of an index of these columns. `objects`: some objects of each column stored as objects.

    The members of structs and arrays come from the column's type, so that all splits of a table share one mapping. The
    members of maps and JSON columns come from `objects`, where IndexTables takes those of all columns from the rows. An
    object column without members is left out, because IndexTables cannot read one.
    """
    entries = (_mapping(field, schema, objects) for field in fields(schema, indexing))
    return orjson.dumps([each for each in entries if each is not None], option=orjson.OPT_SORT_KEYS).decode()


def mapped(field: Json) -> Json:
    """The entry of a doc mapping for a field of the index, without the members of objects."""
    kind, options = field["type"], field["options"]
    entry: Json = {
        "name": field["name"],
        "type": _MAPPED_TYPES.get(kind, kind),
        "stored": True,
        "indexed": True,
        "fast": bool(options["fast"]),
    }
    if "indexing" in options:
        entry["tokenizer"] = options["indexing"]["tokenizer"]
    if "expand_dots_enabled" in options:
        entry["expand_dots"] = options["expand_dots_enabled"]
    return entry


def _mapping(field: Json, schema: pa.Schema, objects: Mapping[str, Sequence[Mapping[str, object]]]) -> Json | None:
    entry, name = mapped(field), field["name"]
    if entry["type"] != "object":
        return entry
    members = dict(_typed_members(schema.field(name).type, "")) or _discovered(objects.get(name, ()))
    if not members:
        return None
    inside = [
        {"name": path, "type": kind, "stored": False, "indexed": True, "fast": kind != "text"}
        for path, kind in sorted(members.items())
    ]
    return {**entry, "field_mappings": inside}


# --- the members of objects ------------------------------------------------------------------------------------------

_MOST_MEMBERS = 100
"""Of one map or JSON column. The log keeps a mapping for each different set of members, so a set has a limit."""
_MEMBER_TYPES = {
    **dict.fromkeys((pa.int32(), pa.int64(), pa.date32(), pa.timestamp("us", "UTC")), "i64"),  # times are numbers
    **dict.fromkeys((pa.float32(), pa.float64()), "f64"),
    pa.bool_(): "bool",
}


def _typed_members(kind: pa.DataType, path: str) -> Iterator[tuple[str, str]]:
    """The paths and types of the members that all values of `kind` have; none for maps and JSON texts."""
    if pa.types.is_struct(kind):
        for field in kind:
            yield from _typed_members(field.type, f"{path}.{field.name}" if path else field.name)
    elif pa.types.is_list(kind):
        yield path or WRAPPED, _MEMBER_TYPES.get(kind.value_type, "text")
    elif path and not pa.types.is_map(kind):
        yield path, _MEMBER_TYPES.get(kind, "text")


_KINDS = {bool: "bool", int: "i64", float: "f64"}
_WIDER = {"text": ("bool", "i64", "f64"), "bool": ("i64", "f64"), "i64": ("f64",)}
"""Which types of a later value replace the type of an earlier value."""


def _discovered(objects: Sequence[Mapping[str, object]]) -> dict[str, str]:
    """The paths and types of the members of `objects`, at most `_MOST_MEMBERS` of them."""
    found: dict[str, str] = {}
    for each in objects:
        _discover(each, "", found)
    return dict(sorted(found.items())[:_MOST_MEMBERS])


def _discover(members: Mapping[str, object], prefix: str, found: dict[str, str]) -> None:
    for name, value in members.items():
        path = f"{prefix}.{name}" if prefix else name
        if isinstance(value, dict):
            _discover(value, path, found)
            continue
        first = value[0] if isinstance(value, list) and value else value
        kind = _KINDS.get(type(first), "text")
        if path not in found or kind in _WIDER.get(found[path], ()):
            found[path] = kind
