"""Which columns of a table have statistics, and how long their texts are (Delta-Spark's StatisticsCollection.scala).

The protocol leaves both to writers. Delta-Spark's readers use only the columns that the table's properties select.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Collection, Iterable, Sequence

from tablefeed.delta import names
from tablefeed.delta.features import supported_features
from tablefeed.delta.properties import MOST_LEAVES, TableProperties
from tablefeed.delta.schema.column_mapping import physical_schema
from tablefeed.delta.stats.stats_text import PREFIX_LENGTH, StatisticsShape
from tablefeed.errors import TABLE, SchemaMismatchError
from tablefeed.model.actions import Protocol
from tablefeed.model.schema import DataType, Decimal, Path, Primitive, Struct, fields_along, leaves, pruned
from tablefeed.model.statistics import LeafPath

_UNBOUNDED = frozenset({"boolean", "binary", "void", "variant"})


def statistics_shape(
    schema: Struct,
    properties: TableProperties,
    protocol: Protocol,
    *,
    partition_columns: Sequence[str],
    also: Iterable[LeafPath],
) -> StatisticsShape:
    """The statistics' shape for a table with `schema`, `properties` and `partition_columns`.

    `also` are leaves, by physical name, that have statistics whatever the properties say: those of clustering and
    identity columns.
    """
    is_mapped = properties.mapping_word.lower() != "none"
    indexed = indexed_columns(schema, properties, partition_columns=partition_columns)
    wanted = {*dict(leaves(_in_files(indexed, is_mapped=is_mapped))), *also}
    found = {path: kind for path, kind in leaves(_in_files(schema, is_mapped=is_mapped)) if path in wanted}
    length = properties.prefix_length
    return StatisticsShape(
        leaves=tuple(found),
        bounded=tuple(path for path, kind in found.items() if has_bounds(kind)),
        prefix_length=PREFIX_LENGTH if length is None else max(length, 0),
        tells_tightness="deletionVectors" in supported_features(protocol),
    )


def has_bounds(kind: DataType) -> bool:
    """Whether a leaf's type has minimum and maximum in statistics: Delta-Spark's SkippingEligibleDataType."""
    return isinstance(kind, Decimal) or (isinstance(kind, Primitive) and kind.name not in _UNBOUNDED)


def indexed_columns(schema: Struct, properties: TableProperties, *, partition_columns: Sequence[str]) -> Struct:
    """The columns of `schema`, and their members, for which the table's properties ask for statistics.

    These are the columns that the properties name, or else the first leaves up to a number; a list or map counts as
    one leaf. Partition columns have no statistics.
    """
    data = Struct(tuple(field for field in schema if field.name not in partition_columns))
    if properties.indexed_columns is not None:
        return _named(data, {tuple(part.lower() for part in path) for path in properties.indexed_columns})
    most = MOST_LEAVES if properties.indexed_leaves is None else properties.indexed_leaves
    if most < 0:
        return data
    numbers = itertools.count()
    return pruned(data, lambda _, kind: kind if next(numbers) < most else None)


def check_indexed(properties: TableProperties, schema: Struct, partition_columns: Sequence[str]) -> None:
    """Raises SchemaMismatchError where `properties` name a column twice for statistics, or one that can have none."""
    partitions = {column.lower() for column in partition_columns}
    seen: Counter[LeafPath] = Counter()
    for path in properties.indexed_columns or ():
        column = ".".join(path)
        if len(path) == 1 and path[0].lower() in partitions:
            error_class = "DELTA_COLUMN_DATA_SKIPPING_NOT_SUPPORTED_PARTITIONED_COLUMN"
            raise _refused(f"{column!r} is a partition column", error_class)
        kind = _type_at(path, schema)
        if kind is None:
            raise _refused(f"there is no column {column!r}", "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA")
        if len(path) == 1 and not isinstance(kind, Struct) and not has_bounds(kind):
            error_class = "DELTA_COLUMN_DATA_SKIPPING_NOT_SUPPORTED_TYPE"
            raise _refused(f"values of {column!r} have no order", error_class)
        # Names are compared with their case, as in Delta-Spark.
        named = tuple(path)
        seen.update((named + inner for inner, _ in leaves(kind)) if isinstance(kind, Struct) else [named])
    twice = next((path for path, count in seen.items() if count > 1), None)
    if twice is not None:
        raise _refused(f"{'.'.join(twice)!r} is named twice", "DELTA_DUPLICATE_DATA_SKIPPING_COLUMNS")


def _in_files(schema: Struct, *, is_mapped: bool) -> Struct:
    return physical_schema(schema) if is_mapped else schema


def _named(schema: Struct, paths: Collection[Path]) -> Struct:
    """The fields at `paths`, whose names are in lower case. A struct that is named itself keeps all its members.

    It keeps only the named ones where some of its members are named too.
    """
    longest = {path for path in paths if not any(other != path and other[: len(path)] == path for other in paths)}

    def taken(path: Path, kind: DataType) -> DataType | None:
        folded = tuple(name.lower() for name in path)
        return kind if any(folded[:count] in longest for count in range(1, len(path) + 1)) else None

    return pruned(schema, taken)


def _type_at(path: Sequence[str], schema: Struct) -> DataType | None:
    found = fields_along(schema, path, is_named=lambda field, name: field.name.lower() == name.lower())
    return found[-1].type if len(found) == len(path) else None


def _refused(reason: str, error_class: str) -> SchemaMismatchError:
    return SchemaMismatchError(
        f"Nothing was written to {TABLE}: its property {names.INDEXED_COLUMNS} says which columns have statistics, but "
        f"{reason}. Correct the property, or keep the columns that it names.",
        error_class=error_class,
    )
