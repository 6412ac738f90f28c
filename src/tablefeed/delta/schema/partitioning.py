"""The partition columns of a table, and their names in the log (PROTOCOL.md, "Change Metadata").

The metadata names them for every file of a snapshot, whatever keys the file's partition values have. As in Delta-Spark,
other keys are ignored, and a partition column without its key is null.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tablefeed.delta.properties import TableProperties
from tablefeed.delta.schema.column_mapping import MappingMode, mapping_mode, physical_name
from tablefeed.delta.schema.schema_string import schema_of
from tablefeed.errors import TABLE, LogError
from tablefeed.model.actions import Metadata
from tablefeed.model.schema import Struct


def check_partition_columns(schema: Struct, columns: Sequence[str]) -> None:
    """Raises LogError unless each of `columns` is a column of `schema`, by its exact name, and none comes twice."""
    names = set(schema.names)
    bad = next((name for name in columns if name not in names), None)
    if bad is not None:
        what = f"by {bad!r}, which is no column of its schema"
    elif len(set(columns)) < len(columns):
        what = "by one column twice"
    else:
        return
    raise LogError(
        f"By its metadata the table at {TABLE} is partitioned {what} (partitionColumns: {', '.join(columns)}; "
        f"columns: {', '.join(schema.names)}). Restore the table's metadata."
    )


def partition_names(metadata: Metadata) -> tuple[str, ...]:
    """Returns the keys of partition values in files under `metadata`: physical names where columns are mapped.

    Raises LogError where a partition column is not in the schema, comes twice, or the metadata cannot be parsed.
    """
    if not metadata.partition_columns:
        return ()
    schema = schema_of(metadata)
    check_partition_columns(schema, metadata.partition_columns)
    if mapping_mode(TableProperties.of(metadata)) is MappingMode.NONE:
        return metadata.partition_columns
    physical = {field.name: physical_name(field) for field in schema}
    return tuple(physical[name] for name in metadata.partition_columns)


def of_columns(values: Mapping[str, str | None], names: Sequence[str]) -> Mapping[str, str | None]:
    """Returns the value of each of `names`, the partition columns' names in the log; None for a missing key."""
    return {name: values.get(name) for name in names}
