"""The doc mapping of a split: what a log tells of the fields of its index, and what that says of a table's choices.

It has a word for each field's type and tokenizer and whether it is fast, but not all of the options that a merge of
splits depends on: those are told by the list of fields in the index itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import orjson
import pyarrow as pa

from tablefeed.indextables.split.index_schema import Json, fields
from tablefeed.indextables.split.indexing import Indexing
from tablefeed.indextables.split.shapes import WRAPPED

_MAPPED_TYPES = {"date": "datetime", "ip_addr": "ip", "json_object": "object"}
"""What a mapping calls types of the index, where it is another word."""


def doc_mapping(schema: pa.Schema, indexing: Indexing, objects: Mapping[str, Sequence[Mapping[str, object]]]) -> str:
    """The doc mapping, JSON, of an index of these columns; `objects`: some objects of each column that has such.

    The members of structs and arrays are told by their types, so that the splits of a table share one mapping; of maps
    and of JSON by some of what they hold, as IndexTables tells all. A column without any is left out, since its readers
    take no object without members.
    """
    told = (_mapping(field, schema, objects) for field in fields(schema, indexing))
    return orjson.dumps([each for each in told if each is not None], option=orjson.OPT_SORT_KEYS).decode()


def mapped(field: Json) -> Json:
    """What a mapping tells of a field of an index, but for the members of objects."""
    kind, options = field["type"], field["options"]
    told: Json = {
        "name": field["name"],
        "type": _MAPPED_TYPES.get(kind, kind),
        "stored": True,
        "indexed": True,
        "fast": bool(options["fast"]),
    }
    if "indexing" in options:
        told["tokenizer"] = options["indexing"]["tokenizer"]
    if "expand_dots_enabled" in options:
        told["expand_dots"] = options["expand_dots_enabled"]
    return told


def _mapping(field: Json, schema: pa.Schema, objects: Mapping[str, Sequence[Mapping[str, object]]]) -> Json | None:
    told, name = mapped(field), field["name"]
    if told["type"] != "object":
        return told
    members = dict(_typed_members(schema.field(name).type, "")) or _discovered(objects.get(name, ()))
    if not members:
        return None
    inside = [
        {"name": path, "type": kind, "stored": False, "indexed": True, "fast": kind != "text"}
        for path, kind in sorted(members.items())
    ]
    return {**told, "field_mappings": inside}


# --- the members of objects ------------------------------------------------------------------------------------------

_MOST_MEMBERS = 100
"""Of the members of a map: a table keeps the mapping of every split that has other ones."""
_MEMBER_TYPES = {
    **dict.fromkeys((pa.int32(), pa.int64(), pa.date32(), pa.timestamp("us", "UTC")), "i64"),  # moments are numbers
    **dict.fromkeys((pa.float32(), pa.float64()), "f64"),
    pa.bool_(): "bool",
}


def _typed_members(kind: pa.DataType, path: str) -> Iterator[tuple[str, str]]:
    """The paths and types that all values of `kind` have in common: none of maps, and of the texts of objects."""
    if pa.types.is_struct(kind):
        for field in kind:
            yield from _typed_members(field.type, f"{path}.{field.name}" if path else field.name)
    elif pa.types.is_list(kind):
        yield path or WRAPPED, _MEMBER_TYPES.get(kind.value_type, "text")
    elif path and not pa.types.is_map(kind):
        yield path, _MEMBER_TYPES.get(kind, "text")


_WIDER = {"text": ("bool", "i64", "f64"), "bool": ("i64", "f64"), "i64": ("f64",)}
"""By which types of a later value one of an earlier gives way."""


def _discovered(objects: Sequence[Mapping[str, object]]) -> dict[str, str]:
    """The paths and types of some members of objects."""
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
        kind = _kind_of(first)
        if path not in found or kind in _WIDER.get(found[path], ()):
            found[path] = kind


def _kind_of(value: object) -> str:
    match value:
        case bool():
            return "bool"
        case int():
            return "i64"
        case float():
            return "f64"
    return "text"
