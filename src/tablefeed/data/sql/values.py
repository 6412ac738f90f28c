"""Converts columns to the form that terms take, and results of terms to Arrow. In terms, times are integers."""

from __future__ import annotations

import pyarrow as pa

from tablefeed.data.sql.terms import DATE, NTZ, TIMESTAMP
from tablefeed.model.schema import Array, DataType, Decimal, Map, Primitive, Struct

_ARROW = {
    "boolean": pa.bool_(),
    "byte": pa.int8(),
    "short": pa.int16(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "void": pa.null(),
}


def arrow_type(kind: DataType) -> pa.DataType:
    """The Arrow type for a type of Spark."""
    match kind:
        case Primitive(name=name):
            return _ARROW[name]
        case Decimal(precision=precision, scale=scale):
            return pa.decimal128(precision, scale)
        case Array(element=element):
            return pa.list_(arrow_type(element))
        case Map(key=key, value=value):
            return pa.map_(arrow_type(key), arrow_type(value))
        case Struct():
            return pa.struct([pa.field(f.name, arrow_type(f.type)) for f in kind])


def taken(array: pa.Array) -> pa.Array:
    """A column in the form that terms take."""
    if pa.types.is_timestamp(array.type):
        return array.cast(pa.timestamp("us", tz=array.type.tz)).cast(pa.int64())
    return array.cast(pa.int32()) if pa.types.is_date32(array.type) else array


def terms_value(array: pa.Array, kind: DataType) -> pa.Array:
    """The values of a term of type `kind`, in its Arrow type."""
    wanted = arrow_type(kind)
    if kind == DATE:
        return array.cast(pa.int32()).cast(wanted)
    if kind in (TIMESTAMP, NTZ):
        return array.cast(pa.int64()).cast(wanted)
    return array.cast(wanted)


def decoded(sql: str, kind: DataType) -> str:
    """The SQL that turns a member or element from DuckDB's own date and time types into the form that terms take."""
    if kind == DATE:
        return f"({sql} - DATE '1970-01-01')::INTEGER"
    return f"epoch_us({sql})" if kind in (TIMESTAMP, NTZ) else sql
