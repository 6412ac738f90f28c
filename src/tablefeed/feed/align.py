"""How incoming rows become a table's rows: which column goes where, or why they do not fit.

Columns meet by name, case-insensitively; a column that is missing becomes null where it may. Types must be equal:
nothing is cast on the way in.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tablefeed.errors import SchemaMismatchError
from tablefeed.model.schema import Array, DataType, Field, Map, Primitive, Struct

if TYPE_CHECKING:
    import pyarrow as pa

_FORBIDDEN_IN_NAMES = " ,;{}()\n\t="
"""Characters that Parquet's schema cannot carry without column mapping, as Delta-Spark refuses them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alignment:
    """For each column of the table, in its order, the index of the incoming column; None: not there, null."""

    sources: tuple[int | None, ...]


def align(table: Struct, incoming: Struct, *, partition_columns: Sequence[str], url: str) -> Alignment:
    """Fits `incoming` to `table`. Raises SchemaMismatchError, naming the column, where it does not fit."""
    positions = {f.name.lower(): i for i, f in enumerate(incoming)}
    known = {f.name.lower() for f in table}
    extra = [f.name for f in incoming if f.name.lower() not in known]
    if extra:
        raise SchemaMismatchError(
            f"The rows have a column {extra[0]!r} that {url} has not; it has {', '.join(table.names)}. Drop the "
            "column, or add it to the table first (mergeSchema is not supported by this version).",
            url=url,
            error_class="DELTA_METADATA_MISMATCH",
        )
    sources: list[int | None] = []
    for column in table:
        position = positions.get(column.name.lower())
        if position is None:
            _check_may_be_missing(column, partition_columns, url)
        elif not same_type(column.type, incoming.fields[position].type):
            raise SchemaMismatchError(
                f"Column {column.name!r} of {url} is {describe(column.type)}, but the rows have "
                f"{describe(incoming.fields[position].type)}. Cast it before writing.",
                url=url,
                error_class="DELTA_FAILED_TO_MERGE_FIELDS",
            )
        sources.append(position)
    return Alignment(sources=tuple(sources))


def new_table_schema(incoming: Struct, *, partition_columns: Sequence[str], url: str) -> Struct:
    """Gives the schema of a table made for `incoming`: every column nullable, as no stream can promise more.

    Raises SchemaMismatchError for what no table can be: void columns, names that Parquet cannot carry, a partition
    column that is not there or of a type that has no text, nothing but partition columns.
    """

    def refuse(why: str, error_class: str) -> SchemaMismatchError:
        return SchemaMismatchError(f"No table can be made at {url}: {why}.", url=url, error_class=error_class)

    if not incoming.fields:
        raise refuse("the rows have no columns", "DELTA_EMPTY_DATA")
    for column in incoming:
        if any(c in _FORBIDDEN_IN_NAMES for name in _names(column) for c in name):
            raise refuse(
                f"column {column.name!r} has one of the characters {_FORBIDDEN_IN_NAMES!r} in its name; rename it",
                "DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES",
            )
        if _has_void(column.type):
            raise refuse(f"column {column.name!r} has no type (void); cast it", "DELTA_NULL_SCHEMA_IN_STREAMING_WRITE")
    by_name = {f.name.lower(): f for f in incoming}
    for name in partition_columns:
        column_ = by_name.get(name.lower())
        if column_ is None:
            raise refuse(f"there is no column {name!r} to partition by", "DELTA_PARTITION_COLUMN_NOT_FOUND")
        if isinstance(column_.type, Array | Map | Struct):
            raise refuse(f"column {name!r} is nested: it cannot partition", "DELTA_INVALID_PARTITION_COLUMN_TYPE")
    if len({n.lower() for n in partition_columns}) < len(partition_columns):
        raise refuse(f"({', '.join(partition_columns)}) names a column twice", "DELTA_DUPLICATE_COLUMNS_FOUND")
    if len(partition_columns) >= len(incoming.fields):
        raise refuse("all of its columns partition it", "DELTA_CANNOT_USE_ALL_COLUMNS_FOR_PARTITION")
    return nullable(incoming)


def aligned(
    batches: Iterable[pa.RecordBatch], alignment: Alignment, schema: pa.Schema, *, url: str
) -> Iterator[pa.RecordBatch]:
    """Gives `batches` with the columns of `schema`, the table's in Arrow.

    Only representations change (units, layouts, names inside lists). Raises SchemaMismatchError for a value that the
    table's cannot hold, such as a nanosecond.
    """
    import pyarrow as pa

    for batch in batches:
        columns = [
            pa.nulls(batch.num_rows, type=field.type) if source is None else _retyped(batch.column(source), field, url)
            for source, field in zip(alignment.sources, schema, strict=True)
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=schema)


def same_type(table: DataType, incoming: DataType) -> bool:
    """Says whether two types are equal but for what they say about null."""
    return _nullable(table) == _nullable(incoming)


def nullable(schema: Struct) -> Struct:
    """Gives `schema` with null allowed everywhere but as a map's key."""
    return Struct(tuple(Field(f.name, _nullable(f.type), nullable=True) for f in schema))


def describe(kind: DataType) -> str:
    """Gives a type in Spark's short form."""
    match kind:
        case Primitive(name):
            return name
        case Array(element):
            return f"array<{describe(element)}>"
        case Map(key, value):
            return f"map<{describe(key)},{describe(value)}>"
        case Struct():
            return f"struct<{','.join(f'{f.name}:{describe(f.type)}' for f in kind)}>"
        case _:
            return f"decimal({kind.precision},{kind.scale})"


def _check_may_be_missing(column: Field, partition_columns: Sequence[str], url: str) -> None:
    if column.name in partition_columns:
        raise SchemaMismatchError(
            f"The rows have no column {column.name!r}, by which {url} is partitioned. Add it to the rows.",
            url=url,
            error_class="DELTA_PARTITION_COLUMN_NOT_FOUND",
        )
    if not column.nullable:
        raise SchemaMismatchError(
            f"The rows have no column {column.name!r}, which must not be null in {url}. Add it to the rows.",
            url=url,
            error_class="DELTA_MISSING_NOT_NULL_COLUMN_VALUE",
        )


def _retyped(column: pa.Array, field: pa.Field, url: str) -> pa.Array:
    import pyarrow as pa

    from tablefeed.data.retype import LossyConversionError, conversion

    try:
        convert = conversion(column.type, field.type)
        return column if convert is None else convert(column)
    except (LossyConversionError, pa.ArrowException) as error:
        raise SchemaMismatchError(
            f"Column {field.name!r} of {url} is {field.type}, which does not hold a value of the rows ({column.type}): "
            f"{error}. Cast it before writing.",
            url=url,
            error_class="DELTA_FAILED_TO_MERGE_FIELDS",
        ) from error


def _nullable(kind: DataType) -> DataType:
    match kind:
        case Struct():
            return nullable(kind)
        case Array(element):
            return Array(_nullable(element), contains_null=True)
        case Map(key, value):
            return Map(_nullable(key), _nullable(value), value_contains_null=True)
        case _:
            return kind


def _has_void(kind: DataType) -> bool:
    match kind:
        case Struct():
            return any(_has_void(f.type) for f in kind)
        case Array(element):
            return _has_void(element)
        case Map(key, value):
            return _has_void(key) or _has_void(value)
        case _:
            return kind == Primitive("void")


def _names(column: Field) -> Iterator[str]:
    yield column.name
    stack: list[DataType] = [column.type]
    while stack:
        match stack.pop():
            case Struct() as struct:
                for field in struct:
                    yield field.name
                    stack.append(field.type)
            case Array(element):
                stack.append(element)
            case Map(key, value):
                stack += [key, value]
