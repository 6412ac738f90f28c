"""A table's schema as JSON text (PROTOCOL.md, "Schema Serialization Format") <-> `model.schema.Struct`.

Types only: which casts are allowed, and what a column's metadata means, is decided elsewhere. arrow_schema.py has the
same types in Arrow.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import orjson

from tablefeed.delta import names
from tablefeed.delta.schema.schema_faults import BadSchemaError, UnknownTypeError, dotted, of_rows, refuse_doubles
from tablefeed.errors import TABLE, LogError, UnsupportedFeatureError
from tablefeed.model.actions import Metadata
from tablefeed.model.schema import (
    ELEMENT,
    KEY,
    PRIMITIVES,
    VALUE,
    Array,
    DataType,
    Decimal,
    Field,
    Map,
    Path,
    Primitive,
    Struct,
    fields_at,
)
from tablefeed.model.shown import shown

MOST_LEVELS = 100
"""The deepest nesting of types. Arrow refuses deeper Parquet schemas, so their rows could not be read."""


def parse_schema(schema_string: str) -> Struct:
    """The schema in `schema_string`; a field's metadata is kept as parsed, in plain dicts.

    Raises UnsupportedFeatureError, naming type and column, for an unknown type, and for types nested deeper than
    `MOST_LEVELS`, so that callers may walk a schema by recursion. Raises LogError for text that is not a schema, or
    has names that differ only in case (DELTA_DUPLICATE_COLUMNS_FOUND).
    """
    try:
        return _struct(orjson.loads(schema_string), ())
    except (orjson.JSONDecodeError, RecursionError) as error:
        raise LogError(f"The schema of {TABLE} cannot be read: {error}.") from error
    except UnknownTypeError as unknown:
        raise UnsupportedFeatureError(
            f"Column {dotted(unknown.path)} of {TABLE} is of type {unknown.reason}, which this version of tablefeed "
            "does not handle. Upgrade tablefeed, or use a table without that column.",
            features=(unknown.reason,),
            error_class="DELTA_UNSUPPORTED_DATA_TYPES",
        ) from unknown
    except BadSchemaError as bad:
        where = f"at column {dotted(bad.path)}" if bad.path else "at its top"
        raise LogError(
            f"The schema of {TABLE} is not what the protocol says {where}: {bad.reason}.",
            error_class=bad.error_class,
        ) from bad


def schema_of(metadata: Metadata) -> Struct:
    """The schema of `metadata`. Raises as `parse_schema`."""
    return parse_schema(metadata.schema_string)


def format_schema(schema: Struct) -> str:
    """The text of `schema` as Spark writes it, without spaces; `parse_schema` gives `schema` back.

    Raises LogError where the metadata of a column can be parsed but is nested too deep to be written again.
    """
    try:
        return orjson.dumps(_json(schema), default=dict).decode()
    except TypeError as error:
        raise LogError(
            f"The schema of {TABLE} cannot be written again: the metadata of a column is nested too deep. Remove that "
            "metadata with the program that wrote it."
        ) from error


def from_spark(schema_json: str) -> Struct:
    """The table columns that hold the rows of a DataFrame with this schema, with their metadata.

    Spark's JSON is the log's own format, so each type is exactly the query's. In Arrow, in which Spark passes the rows,
    several of Spark's types are the same. Raises SchemaMismatchError as `from_arrow`.
    """
    with of_rows():
        schema = _struct(orjson.loads(schema_json), ())
        _refuse_collations(schema)
        return schema


# JSON to model

_VOID = Primitive("void")
_NAMED: Mapping[str, DataType] = {
    **{name: Primitive(name) for name in PRIMITIVES},
    # What Spark's own parser (DataType.nameToType) accepts besides the names that it writes.
    "null": _VOID,
    "timestamp_ltz": Primitive("timestamp"),
    "decimal": Decimal(10, 0),
}
_DECIMAL = re.compile(r"decimal\(\s*(\d+)\s*,\s*(\d+)\s*\)")


def _type(value: Any, path: Path) -> DataType:  # Any: JSON that is checked here
    if isinstance(value, str):
        return _named_type(value, path)
    if len(path) > MOST_LEVELS:
        raise UnknownTypeError(f"one that is nested more than {MOST_LEVELS} levels deep", path)
    kind = value.get("type") if isinstance(value, dict) else None
    match kind:
        case "struct":
            return _struct(value, path)
        case "array":
            element = _type(_member(value, "elementType", path), (*path, ELEMENT))
            return Array(element, _flag(value, "containsNull", path))
        case "map":
            key = _type(_member(value, "keyType", path), (*path, KEY))
            if key == _VOID:  # keys are never null, so such a map would always be empty: Arrow has no such type
                raise UnknownTypeError("void, as the key of a map", path)
            item = _type(_member(value, "valueType", path), (*path, VALUE))
            return Map(key, item, _flag(value, "valueContainsNull", path))
        case "udt":
            name = value.get("class") or value.get("pyClass")
            raise UnknownTypeError(f"the user-defined type {name}", path)
        case str():
            raise UnknownTypeError(kind, path)
        case _:
            raise BadSchemaError(f"its type is {shown(value)}", path)


def _named_type(name: str, path: Path) -> DataType:
    if name in _NAMED:
        return _NAMED[name]
    decimal = _DECIMAL.fullmatch(name)
    if decimal is None:
        raise UnknownTypeError(name, path)
    try:
        return Decimal(int(decimal[1]), int(decimal[2]))
    except ValueError as error:
        raise BadSchemaError(str(error), path) from error


def _struct(value: Any, path: Path) -> Struct:
    fields = value.get("fields") if isinstance(value, dict) and value.get("type") == "struct" else None
    if not isinstance(fields, list):
        raise BadSchemaError("it is not a struct with fields", path)
    struct = Struct(tuple(_field(field, path) for field in fields))
    refuse_doubles(struct.names, path)
    return struct


def _field(value: Any, path: Path) -> Field:
    name = value.get("name") if isinstance(value, dict) else None
    if not isinstance(name, str):
        raise BadSchemaError(f"a field is {shown(value)}", path)
    path = (*path, name)
    metadata = value.get("metadata")
    if not isinstance(metadata, dict | None):
        raise BadSchemaError(f"metadata is {shown(metadata)}", path)
    return Field(name, _type(_member(value, "type", path), path), _flag(value, "nullable", path), metadata or {})


def _refuse_collations(schema: Struct) -> None:
    # A field's metadata has the collations of the strings in it. Delta-Spark refuses collations at any depth.
    for path, field in fields_at(schema):
        collations = field.metadata.get(names.COLLATIONS)
        if isinstance(collations, Mapping) and collations:
            _, name = min(collations.items())
            raise UnknownTypeError(f"a string with the collation {name}", path)


def _member(value: dict[str, Any], name: str, path: Path) -> Any:
    if name not in value:
        raise BadSchemaError(f"{name} is missing", path)
    return value[name]


def _flag(value: dict[str, Any], name: str, path: Path) -> bool:
    flag = _member(value, name, path)
    if not isinstance(flag, bool):
        raise BadSchemaError(f"{name} is {shown(flag)}, not a boolean", path)
    return flag


# Model to JSON


def _json(kind: DataType) -> object:
    match kind:
        case Primitive(name):
            return name
        case Decimal(precision, scale):
            return f"decimal({precision},{scale})"
        case Array(element, contains_null):
            return {"type": "array", "elementType": _json(element), "containsNull": contains_null}
        case Map(key, value, value_contains_null):
            members = {"keyType": _json(key), "valueType": _json(value)}
            return {"type": "map", **members, "valueContainsNull": value_contains_null}
        case Struct(fields):
            return {"type": "struct", "fields": [_json_field(field) for field in fields]}


def _json_field(field: Field) -> object:
    return {"name": field.name, "type": _json(field.type), "nullable": field.nullable, "metadata": field.metadata}
