"""A table's schema as JSON text and as Arrow types (PROTOCOL.md, "Schema Serialization Format").

The model's schema is in the middle: text <-> `model.schema.Struct` <-> `pyarrow.Schema`. Types only: which casts are
allowed, and what a column's metadata means, is decided elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import orjson
import pyarrow as pa

from tablefeed.delta import names
from tablefeed.errors import TABLE, LogError, SchemaMismatchError, UnsupportedFeatureError
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
    except _UnknownTypeError as unknown:
        raise UnsupportedFeatureError(
            f"Column {_dotted(unknown.path)} of {TABLE} is of type {unknown.reason}, which this version of tablefeed "
            "does not handle. Upgrade tablefeed, or use a table without that column.",
            features=(unknown.reason,),
            error_class="DELTA_UNSUPPORTED_DATA_TYPES",
        ) from unknown
    except _BadSchemaError as bad:
        where = f"at column {_dotted(bad.path)}" if bad.path else "at its top"
        raise LogError(
            f"The schema of {TABLE} is not what the protocol says {where}: {bad.reason}.",
            error_class=bad.error_class,
        ) from bad


def schema_of(metadata: Metadata) -> Struct:
    """The schema of `metadata`. Raises as `parse_schema`."""
    return parse_schema(metadata.schema_string)


def format_schema(schema: Struct) -> str:
    """The text of `schema` as Spark writes it, without spaces; `parse_schema` gives `schema` back."""
    return orjson.dumps(_json(schema), default=dict).decode()


def to_arrow(schema: Struct) -> pa.Schema:
    """The columns of `schema` in Arrow. NOT NULL is kept, at every depth; metadata is not.

    Strings are `string`, binaries `binary`, timestamps in microseconds (`timestamp` in UTC, `timestamp_ntz` without a
    zone). Lists and maps name their members `ELEMENT`, `KEY` and `VALUE`. Void becomes null and is nullable.
    """
    return pa.schema([_arrow_field(f.name, f.type, nullable=f.nullable) for f in schema])


def from_arrow(schema: pa.Schema) -> Struct:
    """The table columns that hold `schema`, without metadata: `from_arrow(to_arrow(s))` is `s` without its metadata.

    Every layout of text, bytes or lists becomes the same type, and so does every time unit. A dictionary becomes the
    type of its values, a struct that PySpark marks as a variant becomes a variant. Raises SchemaMismatchError, naming
    the column and a type to cast it to, for a type that no table can have, and for names that differ only in case
    (DELTA_DUPLICATE_COLUMNS_FOUND).
    """
    with _of_rows():
        return _fields_from_arrow(schema, ())


def from_spark(schema_json: str) -> Struct:
    """The table columns that hold the rows of a DataFrame with this schema, with their metadata.

    Spark's JSON is the log's own format, so each type is exactly the query's. In Arrow, in which Spark passes the rows,
    several of Spark's types are the same. Raises SchemaMismatchError as `from_arrow`.
    """
    with _of_rows():
        schema = _struct(orjson.loads(schema_json), ())
        _refuse_collations(schema)
        return schema


@contextmanager
def _of_rows() -> Iterator[None]:
    try:
        yield
    except _UnknownTypeError as unknown:
        raise SchemaMismatchError(
            f"Column {_dotted(unknown.path)} of the rows for {TABLE} is {unknown.reason}, which tablefeed cannot "
            f"write. {_remedy(unknown.found)}",
            error_class="DELTA_UNSUPPORTED_DATA_TYPES",
        ) from unknown
    except _BadSchemaError as bad:
        raise SchemaMismatchError(
            f"The rows for {TABLE} have {bad.reason}. Rename one.", error_class=bad.error_class
        ) from bad


class _BadSchemaError(ValueError):
    """The column at `path` is not what a schema may hold. Never leaves this module."""

    def __init__(self, reason: str, path: Path, *, error_class: str | None = None) -> None:
        self.reason, self.path, self.error_class = reason, path, error_class
        super().__init__(reason)


class _UnknownTypeError(_BadSchemaError):
    """The column at `path` has a type that is not in the model; `found` is the type where it is an Arrow type."""

    def __init__(self, reason: str, path: Path, *, found: pa.DataType | None = None) -> None:
        self.found = found
        super().__init__(reason, path)


def _dotted(path: Path) -> str:
    return ".".join(f"`{name}`" if "." in name else name for name in path)


def _refuse_doubles(columns: Iterable[str], path: Path) -> None:
    # "Schema Serialization Format": all column names must be unique regardless of casing.
    seen: dict[str, str] = {}
    for name in columns:
        if name.lower() in seen:
            both = (_dotted((*path, seen[name.lower()])), _dotted((*path, name)))
            raise _BadSchemaError(
                "two columns {} and {}".format(*both), path, error_class="DELTA_DUPLICATE_COLUMNS_FOUND"
            )
        seen[name.lower()] = name


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
        raise _UnknownTypeError(f"one that is nested more than {MOST_LEVELS} levels deep", path)
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
                raise _UnknownTypeError("void, as the key of a map", path)
            item = _type(_member(value, "valueType", path), (*path, VALUE))
            return Map(key, item, _flag(value, "valueContainsNull", path))
        case "udt":
            name = value.get("class") or value.get("pyClass")
            raise _UnknownTypeError(f"the user-defined type {name}", path)
        case str():
            raise _UnknownTypeError(kind, path)
        case _:
            raise _BadSchemaError(f"its type is {value!r:.60}", path)


def _named_type(name: str, path: Path) -> DataType:
    if name in _NAMED:
        return _NAMED[name]
    decimal = _DECIMAL.fullmatch(name)
    if decimal is None:
        raise _UnknownTypeError(name, path)
    try:
        return Decimal(int(decimal[1]), int(decimal[2]))
    except ValueError as error:
        raise _BadSchemaError(str(error), path) from error


def _struct(value: Any, path: Path) -> Struct:
    fields = value.get("fields") if isinstance(value, dict) and value.get("type") == "struct" else None
    if not isinstance(fields, list):
        raise _BadSchemaError("it is not a struct with fields", path)
    struct = Struct(tuple(_field(field, path) for field in fields))
    _refuse_doubles(struct.names, path)
    return struct


def _field(value: Any, path: Path) -> Field:
    name = value.get("name") if isinstance(value, dict) else None
    if not isinstance(name, str):
        raise _BadSchemaError(f"a field is {value!r:.60}", path)
    path = (*path, name)
    metadata = value.get("metadata")
    if not isinstance(metadata, dict | None):
        raise _BadSchemaError(f"metadata is {metadata!r:.60}", path)
    return Field(name, _type(_member(value, "type", path), path), _flag(value, "nullable", path), metadata or {})


def _refuse_collations(schema: Struct) -> None:
    # A field's metadata has the collations of the strings in it. Delta-Spark refuses collations at any depth.
    for path, field in fields_at(schema):
        collations = field.metadata.get(names.COLLATIONS)
        if isinstance(collations, Mapping) and collations:
            _, name = min(collations.items())
            raise _UnknownTypeError(f"a string with the collation {name}", path)


def _member(value: dict[str, Any], name: str, path: Path) -> Any:
    if name not in value:
        raise _BadSchemaError(f"{name} is missing", path)
    return value[name]


def _flag(value: dict[str, Any], name: str, path: Path) -> bool:
    flag = _member(value, name, path)
    if not isinstance(flag, bool):
        raise _BadSchemaError(f"{name} is {flag!r:.60}, not a boolean", path)
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


# Model to Arrow

_ARROW: Mapping[str, pa.DataType] = {
    "string": pa.string(),
    "long": pa.int64(),
    "integer": pa.int32(),
    "short": pa.int16(),
    "byte": pa.int8(),
    "float": pa.float32(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "void": pa.null(),
    # "Variant Type": in Parquet a group of these two columns. PySpark marks it with this metadata.
    "variant": pa.struct(
        [
            pa.field("metadata", pa.binary(), nullable=False, metadata={"variant": "true"}),
            pa.field("value", pa.binary(), nullable=False),
        ]
    ),
}


def _arrow_field(name: str, kind: DataType, *, nullable: bool) -> pa.Field:
    return pa.field(name, arrow_type(kind), nullable=nullable or kind == _VOID)  # Arrow's null type must be nullable


def arrow_type(kind: DataType) -> pa.DataType:
    """The type that a column of type `kind` has in the result of `to_arrow`."""
    match kind:
        case Primitive(name):
            return _ARROW[name]
        case Decimal(precision, scale):
            return pa.decimal128(precision, scale)
        case Array(element, contains_null):
            return pa.list_(_arrow_field(ELEMENT, element, nullable=contains_null))
        case Map(key, value, value_contains_null):
            item = _arrow_field(VALUE, value, nullable=value_contains_null)
            return pa.map_(_arrow_field(KEY, key, nullable=False), item)
        case Struct(fields):
            return pa.struct([_arrow_field(f.name, f.type, nullable=f.nullable) for f in fields])


# Arrow to model

_FROM_ARROW: Mapping[pa.DataType, Primitive] = {
    # For Arrow a variant equals a struct of the same members: `_marked` finds it by PySpark's mark.
    **{kind: Primitive(name) for name, kind in _ARROW.items() if name != "variant"},
    pa.large_string(): Primitive("string"),
    pa.string_view(): Primitive("string"),
    pa.large_binary(): Primitive("binary"),
    pa.binary_view(): Primitive("binary"),
    pa.date64(): Primitive("date"),
}
_WIDER: Mapping[pa.DataType, str] = {
    pa.uint8(): "int16",
    pa.uint16(): "int32",
    pa.uint32(): "int64",
    pa.uint64(): "decimal128(20, 0)",
    pa.float16(): "float32",
}


def _fields_from_arrow(fields: Iterable[pa.Field], path: Path) -> Struct:
    struct = Struct(tuple(Field(f.name, _from_arrow(f.type, (*path, f.name)), f.nullable) for f in fields))
    _refuse_doubles(struct.names, path)
    return struct


def _from_arrow(kind: pa.DataType, path: Path) -> DataType:
    is_a = pa.types
    if kind in _FROM_ARROW:
        return _FROM_ARROW[kind]
    if is_a.is_timestamp(kind):
        return Primitive("timestamp" if kind.tz is not None else "timestamp_ntz")
    if is_a.is_decimal(kind):
        return _decimal_from_arrow(kind, path)
    if is_a.is_dictionary(kind):
        return _from_arrow(kind.value_type, path)
    if is_a.is_struct(kind):
        return _marked(kind, path) or _fields_from_arrow(kind, path)
    if is_a.is_map(kind):
        key, value = _from_arrow(kind.key_type, (*path, KEY)), _from_arrow(kind.item_type, (*path, VALUE))
        return Map(key, value, kind.item_field.nullable)
    if any(is_list(kind) for is_list in _LISTS):
        return Array(_from_arrow(kind.value_type, (*path, ELEMENT)), kind.value_field.nullable)
    if is_a.is_fixed_size_binary(kind):
        return Primitive("binary")
    raise _UnknownTypeError(str(kind), path, found=kind)


def _marked(kind: pa.StructType, path: Path) -> DataType | None:
    """The type of a struct that PySpark marks by a member's metadata as a variant; None for a plain struct."""
    marks = {key for member in kind for key, value in (member.metadata or {}).items() if value == b"true"}
    if b"variant" in marks:
        return Primitive("variant")
    for mark in (b"geometry", b"geography"):
        if mark in marks:
            raise _UnknownTypeError(f"a {mark.decode()}", path)
    return None


_LISTS = (
    pa.types.is_list,
    pa.types.is_large_list,
    pa.types.is_fixed_size_list,
    pa.types.is_list_view,
    pa.types.is_large_list_view,
)


def _decimal_from_arrow(kind: pa.DataType, path: Path) -> DataType:
    if pa.types.is_decimal256(kind) or not 0 <= kind.scale <= kind.precision:
        raise _UnknownTypeError(str(kind), path, found=kind)
    return Decimal(kind.precision, kind.scale)


def _remedy(found: pa.DataType | None) -> str:
    if found in _WIDER:
        return f"Cast it to {_WIDER[found]}."
    if isinstance(found, pa.BaseExtensionType):
        return f"Cast it to {found.storage_type}."
    if found is not None and pa.types.is_decimal(found):
        return "Cast it to decimal128 with 0 <= scale <= precision <= 38."
    return "Cast it to a type that tables have (int64 or string, perhaps), or drop it."
