"""Statistics and partition values in the types of their columns: `stats_parsed` and `partitionValues_parsed`.

PROTOCOL.md, "Checkpoints" and "Checkpoint Schema"; indexed_columns.py chooses the columns that have statistics. Values
are converted exactly, so that the struct has the same bounds as the text. A text that is not a value of its column's
type, or whose conversion could narrow a bound, becomes null.
"""

from __future__ import annotations

import decimal
import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from tablefeed.delta import partition_values
from tablefeed.delta.properties import TableProperties
from tablefeed.delta.schema.arrow_schema import arrow_type, to_arrow
from tablefeed.delta.schema.column_mapping import physical_name, physical_schema
from tablefeed.delta.stats.column_bounds import integers, valid_text
from tablefeed.delta.stats.indexed_columns import has_bounds, indexed_columns
from tablefeed.errors import TablefeedError
from tablefeed.model.schema import DataType, Decimal, Field, Primitive, Struct, plain, pruned


def stats_schema(
    schema: Struct, properties: TableProperties, *, partition_columns: Sequence[str], has_vectors: bool
) -> Struct:
    """The members of `stats_parsed`, by physical names: numRecords, and bounds and null counts of the indexed columns.

    `has_vectors`: the table supports deletion vectors, so that statistics say whether their bounds are tight.
    """
    indexed = plain(physical_schema(indexed_columns(schema, properties, partition_columns=partition_columns)))
    bounds = pruned(indexed, lambda _, kind: kind if has_bounds(kind) else None)
    nulls = pruned(indexed, lambda _path, _kind: _LONG)
    members = [
        nullable("numRecords", _LONG),
        *(nullable(name, bounds) for name in ("minValues", "maxValues") if bounds.fields),
        *([nullable("nullCount", nulls)] if nulls.fields else []),
        *([nullable("tightBounds", Primitive("boolean"))] if has_vectors else []),
    ]
    return Struct(tuple(members))


def parsed_stats(texts: pa.StringArray, schema: Struct) -> pa.StructArray:
    """The statistics in `texts` as structs of `schema`; null where a text is null or no JSON object."""
    kind = pa.struct(list(to_arrow(schema)))
    quickly = _parsed_quickly(texts, kind)
    if quickly is not None:
        return quickly
    parsed = [_loads(text) for text in texts.to_pylist()]
    return pa.array([None if p is None else _read(p, schema) for p in parsed], kind)


def partition_schema(schema: Struct, partition_columns: Sequence[str]) -> Struct:
    """The members of `partitionValues_parsed`, by physical names, in the order of `partition_columns`."""
    by_name = {f.name: f for f in schema}
    return Struct(tuple(nullable(physical_name(by_name[name]), by_name[name].type) for name in partition_columns))


def parsed_partition_values(values: pa.MapArray, schema: Struct) -> pa.StructArray:
    """The texts of partition values as structs of `schema`."""
    columns = []
    for member in schema:
        texts = pc.map_lookup(values, query_key=member.name, occurrence="first").dictionary_encode()
        kind = arrow_type(member.type)
        read = pa.array([_partition_value(text, member.type) for text in texts.dictionary.to_pylist()], kind)
        columns.append(read.take(texts.indices))
    return pa.StructArray.from_arrays(columns, fields=list(to_arrow(schema)))


_LONG = Primitive("long")


def nullable(name: str, kind: DataType) -> Field:
    """A column of a checkpoint: it may be null."""
    return Field(name, kind, nullable=True)


# --- many at once --------------------------------------------------------------------------------------------------


def _parsed_quickly(texts: pa.StringArray, kind: pa.StructType) -> pa.StructArray | None:
    """`parsed_stats` by Arrow's JSON reader; None where that cannot read every text safely."""
    if len(texts) == 0:
        return pa.array([], kind)
    lines = pc.fill_null(texts, "{}")
    if pc.any(pc.match_substring_regex(lines, r"^[^{]|[^}]$|\n")).as_py():
        return None
    data = "\n".join(lines.to_pylist()).encode()
    try:
        table = pyarrow.json.read_json(
            pa.BufferReader(data),
            read_options=pyarrow.json.ReadOptions(use_threads=False, block_size=len(data) + 1),
            parse_options=pyarrow.json.ParseOptions(
                explicit_schema=pa.schema(list(_wire_kind(kind))), unexpected_field_behavior="ignore"
            ),
        )
        if table.num_rows != len(texts):
            return None
        columns = [table[name].combine_chunks() for name in table.column_names]
        read = [_cast(column, member.type) for column, member in zip(columns, kind, strict=True)]
    except (pa.ArrowException, ValueError):
        return None
    return pa.StructArray.from_arrays(read, fields=list(kind), mask=texts.is_null())


def _wire_kind(kind: pa.DataType) -> pa.DataType:
    """The type with which Arrow's JSON reader reads `kind`: text for dates and timestamps, wide types for numbers."""
    if pa.types.is_struct(kind):
        return pa.struct([(member.name, _wire_kind(member.type)) for member in kind])
    if pa.types.is_temporal(kind):
        return pa.string()
    if pa.types.is_integer(kind):
        return pa.int64()
    return pa.float64() if pa.types.is_floating(kind) else kind


def _cast(values: pa.Array, kind: pa.DataType) -> pa.Array:
    if pa.types.is_timestamp(kind) and kind.tz and not pc.all(pc.ends_with(values, "Z"), min_count=0).as_py():
        raise ValueError("some are not in UTC")
    if pa.types.is_struct(kind):
        members = [_cast(values.field(member.name), member.type) for member in kind]
        return pa.StructArray.from_arrays(members, fields=list(kind), mask=values.is_null())
    return values.cast(kind, safe=not pa.types.is_floating(kind))


# --- one by one ----------------------------------------------------------------------------------------------------


def _loads(text: str | None) -> dict[str, Any] | None:
    try:
        # Parsed exactly: a decimal that is converted to a double may become a narrower bound.
        parsed = None if text is None else json.loads(text, parse_float=decimal.Decimal)
    except (ValueError, ArithmeticError, RecursionError):
        return None
    return parsed if isinstance(parsed, dict) else None


def _read(value: Any, kind: DataType) -> Any:  # Any: JSON, and what pyarrow takes
    match kind:
        case Struct():
            return {f.name: _read(value.get(f.name), f.type) for f in kind} if isinstance(value, dict) else None
        case Decimal():
            return _decimal(value, kind)
        case Primitive(name=name):
            return _READERS[name](value)
        case _:
            return None


def _decimal(value: Any, kind: Decimal) -> decimal.Decimal | None:
    if type(value) not in (int, decimal.Decimal):
        return None
    unrounded = decimal.Context(prec=kind.precision, traps=[decimal.Inexact, decimal.InvalidOperation])
    try:
        return decimal.Decimal(value).quantize(decimal.Decimal(1).scaleb(-kind.scale), context=unrounded)
    except decimal.DecimalException:
        return None


_ZONED = re.compile(r"(?:Z|[+-][0-9]{2}:?[0-9]{2})\Z")
_WORDS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def _float(value: Any) -> float | None:
    if isinstance(value, str):
        return _WORDS.get(value)
    try:
        return float(value) if type(value) in (int, decimal.Decimal) else None
    except OverflowError:
        return None


def _temporal(name: str) -> Any:
    return lambda value: _partition_value(value, Primitive(name)) if isinstance(value, str) else None


_LAST_ODD_OFFSET_US = 63_072_000_000_000  # 1972: before, some zones' offsets had seconds, which texts leave out


def _timestamp(value: Any) -> Any:
    if not isinstance(value, str) or not _ZONED.search(value):
        return None  # its zone is not known
    instant = _partition_value(value, Primitive("timestamp"))
    certain = value.endswith("Z") or (instant is not None and instant > _LAST_ODD_OFFSET_US)
    return instant if certain else None


def _partition_value(text: str | None, kind: DataType) -> Any:
    try:
        return partition_values.parse(text, kind, refuse=TablefeedError)
    except TablefeedError:
        return None


_READERS: Mapping[str, Any] = {
    "byte": integers(8),
    "short": integers(16),
    "integer": integers(32),
    "long": integers(64),
    "float": _float,
    "double": _float,
    "boolean": lambda value: value if isinstance(value, bool) else None,
    "string": valid_text,
    "date": _temporal("date"),
    "timestamp": _timestamp,
    "timestamp_ntz": _temporal("timestamp_ntz"),
}
