"""The fields of a split's index, as IndexTables makes them of a table's columns, and the doc mapping that tells them.

A column has the field type that IndexTables 0.5.3 gives it by default, with its very options: texts are terms as they
are, moments have microseconds, and whatever holds values is an object. What it does not take is not written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orjson
import pyarrow as pa

from tablefeed.errors import UnsupportedFeatureError
from tablefeed.indextables.shapes import WRAPPED

_FIELD = dict[str, Any]  # Any: JSON that is written here
_NUMBER = {"indexed": True, "fieldnorms": False, "fast": True, "stored": True}
_TEXT = {
    "indexing": {"record": "basic", "fieldnorms": True, "tokenizer": "raw"},
    "stored": True,
    "fast": {"with_tokenizer": "raw"},
}
_OBJECT = {
    "stored": True,
    "indexing": {"record": "position", "fieldnorms": True, "tokenizer": "default"},
    "fast": True,
    "expand_dots_enabled": True,
}
_SETTINGS = {"docstore_compression": "lz4", "docstore_blocksize": 16384}
_UTC_US = pa.timestamp("us", "UTC")
_TYPES: Mapping[pa.DataType, tuple[str, Mapping[str, object]]] = {
    pa.int32(): ("i64", _NUMBER),
    pa.int64(): ("i64", _NUMBER),
    pa.float32(): ("f64", _NUMBER),
    pa.float64(): ("f64", _NUMBER),
    pa.bool_(): ("bool", _NUMBER),
    pa.string(): ("text", _TEXT),
    pa.date32(): ("date", {**_NUMBER, "precision": "microseconds"}),
    _UTC_US: ("date", {**_NUMBER, "precision": "microseconds"}),
    pa.binary(): ("bytes", {**_NUMBER, "fast": False}),
}
_JSON_OBJECT = "json_object"


def check_types(schema: pa.Schema, *, url: str) -> None:
    """Raises UnsupportedFeatureError where a column, or what is in it, has a type that IndexTables does not write."""
    for field in schema:
        for path, kind in _leaves(field.name, field.type):
            if kind not in _TYPES:
                raise UnsupportedFeatureError(
                    f"{url} cannot be written: column {path} is {kind}, and IndexTables has int, long, float, double, "
                    "boolean, string, date, timestamp and binary, in structs, arrays and maps. Cast the column to one "
                    "of these first.",
                    url=url,
                    features=(str(kind),),
                )


def is_object(kind: pa.DataType) -> bool:
    """Whether a column of `kind` is stored as an object."""
    return kind not in _TYPES


def encode_meta(schema: pa.Schema, *, segment: tuple[str, int] | None, opstamp: int) -> bytes:
    """The `meta.json` of an index of these columns with a segment, its id and how many rows it has; None: without."""
    segments = [] if segment is None else [{"segment_id": segment[0], "max_doc": segment[1], "deletes": None}]
    fields = [{"name": field.name, **_type_of(field.type)} for field in schema]
    meta = {"index_settings": _SETTINGS, "segments": segments, "schema": fields, "opstamp": opstamp}
    return orjson.dumps(meta)


def encode_managed(names: Sequence[str]) -> bytes:
    """The `.managed.json` of an index of these files."""
    return orjson.dumps(sorted(names))


def doc_mapping(schema: pa.Schema, objects: Mapping[str, Sequence[Mapping[str, object]]]) -> str:
    """The doc mapping, JSON, of an index of these columns; `objects`: some objects of each column that has such.

    The members of structs and arrays are told by their types, so that the splits of a table share one mapping; of maps
    by some of what they hold, as IndexTables tells all. A column without any is left out, since its readers take no
    object without members.
    """
    told = (_mapping(field, objects.get(field.name, ())) for field in schema)
    return orjson.dumps([each for each in told if each is not None], option=orjson.OPT_SORT_KEYS).decode()


def _leaves(path: str, kind: pa.DataType) -> Iterator[tuple[str, pa.DataType]]:
    is_a = pa.types
    if is_a.is_struct(kind):
        for field in kind:
            yield from _leaves(f"{path}.{field.name}", field.type)
    elif is_a.is_list(kind):
        yield from _leaves(f"{path}.element", kind.value_type)
    elif is_a.is_map(kind):
        yield f"{path}.key", kind.key_type
        yield from _leaves(f"{path}.value", kind.item_type)
    else:
        yield path, kind


def _type_of(kind: pa.DataType) -> _FIELD:
    name, options = _TYPES.get(kind, (_JSON_OBJECT, _OBJECT))
    return {"type": name, "options": options}


_MAPPED_TYPES = {"date": "datetime"}
"""What the mapping calls types of the index, where it is another word."""


def _mapping(field: pa.Field, objects: Sequence[Mapping[str, object]]) -> _FIELD | None:
    name, options = _TYPES.get(field.type, (_JSON_OBJECT, _OBJECT))
    mapped: _FIELD = {"name": field.name, "stored": True, "indexed": True, "fast": bool(options["fast"])}
    if name == "text":
        return {**mapped, "type": name, "tokenizer": "raw"}
    if name != _JSON_OBJECT:
        return {**mapped, "type": _MAPPED_TYPES.get(name, name)}
    members = dict(_typed_members(field.type, "")) or _discovered(objects)
    if not members:
        return None
    inside = [
        {"name": path, "type": kind, "stored": False, "indexed": True, "fast": kind != "text"}
        for path, kind in sorted(members.items())
    ]
    return {**mapped, "type": "object", "field_mappings": inside, "tokenizer": "default", "expand_dots": True}


_MOST_MEMBERS = 100
"""Of the members of a map: a table keeps the mapping of every split that has other ones."""
_MEMBER_TYPES = {
    **dict.fromkeys((pa.int32(), pa.int64(), pa.date32(), _UTC_US), "i64"),  # moments inside of values are numbers
    **dict.fromkeys((pa.float32(), pa.float64()), "f64"),
    pa.bool_(): "bool",
}


def _typed_members(kind: pa.DataType, path: str) -> Iterator[tuple[str, str]]:
    """The paths and types that all values of `kind` have in common: none of maps."""
    if pa.types.is_struct(kind):
        for field in kind:
            yield from _typed_members(field.type, f"{path}.{field.name}" if path else field.name)
    elif pa.types.is_list(kind):
        yield path or WRAPPED, _MEMBER_TYPES.get(kind.value_type, "text")
    elif not pa.types.is_map(kind):
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
