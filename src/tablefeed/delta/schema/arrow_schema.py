"""A table's schema in Arrow's types: `model.schema.Struct` <-> `pyarrow.Schema`. schema_string.py has it as text.

It is apart from the text because pyarrow is slow to import: who only reads a log's facts needs none of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

import pyarrow as pa

from tablefeed.delta import names
from tablefeed.delta.schema.schema_faults import ANY_TYPE, UnknownTypeError, of_rows, refuse_doubles
from tablefeed.model.schema import (
    ELEMENT,
    KEY,
    VALUE,
    Array,
    DataType,
    Decimal,
    Field,
    Map,
    Path,
    Primitive,
    Struct,
    rebuilt,
)


def to_arrow(schema: Struct) -> pa.Schema:
    """The columns of `schema` in Arrow. NOT NULL is kept, at every depth; metadata is not.

    Strings are `string`, binaries `binary`, timestamps in microseconds (`timestamp` in UTC, `timestamp_ntz` without a
    zone). Lists and maps name their members `ELEMENT`, `KEY` and `VALUE`. Void becomes null and is nullable.
    """
    return pa.schema([_arrow_field(f.name, f.type, nullable=f.nullable) for f in schema])


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


def from_arrow(schema: pa.Schema) -> Struct:
    """The table columns that hold `schema`, without metadata: `from_arrow(to_arrow(s))` is `s` without its metadata.

    Every layout of text, bytes or lists becomes the same type, and so does every time unit. A dictionary becomes the
    type of its values, a struct that PySpark marks as a variant becomes a variant. Raises SchemaMismatchError, naming
    the column and a type to cast it to, for a type that no table can have, and for names that differ only in case
    (DELTA_DUPLICATE_COLUMNS_FOUND).
    """
    with of_rows():
        return _fields_from_arrow(schema, ())


def from_arrow_described(schema: pa.Schema) -> Struct:
    """As `from_arrow`, with the comments that fields have, at every depth, in their metadata."""
    comments = {path: text for field in schema for path, text in _comments(field, ())}
    return rebuilt(
        from_arrow(schema),
        lambda path, field: replace(field, metadata={names.COMMENT: comments[path]}) if path in comments else field,
    )


def _comments(field: pa.Field, above: Path) -> Iterator[tuple[Path, str]]:
    path, kind, is_a = (*above, field.name), field.type, pa.types
    if (field.metadata or {}).get(names.COMMENT.encode()) is not None:
        yield path, field.metadata[names.COMMENT.encode()].decode(errors="replace")
    if is_a.is_struct(kind):
        inner = list(kind)
    elif is_a.is_map(kind):
        inner = [kind.key_field.with_name(KEY), kind.item_field.with_name(VALUE)]
    elif any(is_list(kind) for is_list in _LISTS):
        inner = [kind.value_field.with_name(ELEMENT)]
    else:
        inner = []
    for member in inner:
        yield from _comments(member, path)


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
    # Arrow's null type must be nullable.
    return pa.field(name, arrow_type(kind), nullable=nullable or kind == Primitive("void"))


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
    refuse_doubles(struct.names, path)
    return struct


def _from_arrow(kind: pa.DataType, path: Path) -> DataType:
    is_a = pa.types
    if isinstance(kind, pa.BaseExtensionType):  # before it is looked up: a user's own type need not have a hash
        raise UnknownTypeError(str(kind), path, remedy=f"Cast it to {kind.storage_type}.")
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
    raise UnknownTypeError(str(kind), path, remedy=_remedy(kind))


def _marked(kind: pa.StructType, path: Path) -> DataType | None:
    """The type of a struct that PySpark marks by a member's metadata as a variant; None for a plain struct."""
    marks = {key for member in kind for key, value in (member.metadata or {}).items() if value == b"true"}
    if b"variant" in marks:
        return Primitive("variant")
    for mark in (b"geometry", b"geography"):
        if mark in marks:
            raise UnknownTypeError(f"a {mark.decode()}", path)
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
        raise UnknownTypeError(str(kind), path, remedy=_remedy(kind))
    return Decimal(kind.precision, kind.scale)


def _remedy(found: pa.DataType) -> str:
    if found in _WIDER:
        return f"Cast it to {_WIDER[found]}."
    if pa.types.is_decimal(found):
        return "Cast it to decimal128 with 0 <= scale <= precision <= 38."
    return ANY_TYPE
