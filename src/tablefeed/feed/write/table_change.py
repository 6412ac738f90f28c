"""Decides the metadata of a table after a write: of a new table, or of an existing one, changed or not.

This happens on the driver before a file is written, so files and commit use the same generated ids and names. Changed
metadata keeps the table's id, creation time, name and unknown fields.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tablefeed.delta import features, names
from tablefeed.delta.new_properties import checked_properties
from tablefeed.delta.properties import TableProperties
from tablefeed.delta.schema.column_changes import folded
from tablefeed.delta.schema.column_mapping import MappingMode, mapping_mode, physical_name
from tablefeed.delta.schema.iceberg_compat import compat_version
from tablefeed.delta.schema.mapping_assignment import like_before, with_mapping
from tablefeed.delta.schema.rules import mentions
from tablefeed.delta.schema.schema_string import format_schema
from tablefeed.errors import TABLE, SchemaMismatchError, UnsupportedFeatureError
from tablefeed.feed.snapshot.table_log import Snapshot
from tablefeed.feed.write.align import check_new_columns, check_new_table, check_partition_by
from tablefeed.feed.write.evolution import Merging, as_new, merged, refuse_void, widened_columns, with_type_changes
from tablefeed.feed.write.row_rules import check_brought
from tablefeed.feed.write.write_rules import WriteRules
from tablefeed.model.actions import Metadata, Protocol
from tablefeed.model.schema import Struct, fields_at

PREVIEW_OF_WIDENING = "typeWidening-preview"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The table as it is after the write. `metadata` is None where an existing table's metadata does not change.

    It is also None for a new table, whose metadata the commit makes. `protocol` decides which rules are in force.
    """

    schema: Struct
    partition_columns: tuple[str, ...]
    properties: TableProperties
    protocol: Protocol
    metadata: Metadata | None = None


def new_table(rows: Struct, *, partition_by: Sequence[str], rules: WriteRules, declared: bool = False) -> Target:
    """Gives a new table for `rows`, with every column nullable (`as_new`), or for the schema that a user `declared`.

    Raises SchemaMismatchError where no table can have their schema.
    """
    texts = checked_properties(rules.properties)
    if compat_version(TableProperties(texts)) is not None:
        # The properties that Iceberg compatibility requires, or that Delta-Spark adds to such a table.
        texts = {names.COLUMN_MAPPING_MODE: str(MappingMode.NAME), names.ATOMIC_CONVERSION: "true", **texts}
    if rules.cluster_by:
        texts = {**texts, names.FEATURE_PREFIX + names.CLUSTERING: "supported"}
    properties = TableProperties(texts)
    is_mapped = mapping_mode(properties) is not MappingMode.NONE
    check_new_table(rows, partition_columns=partition_by, any_name=is_mapped)
    _check_reserved(properties, rows)
    schema = rows if declared else as_new(rows)
    schema, properties = with_mapping(schema, properties, new_name=_new_name)
    return Target(
        schema=schema,
        partition_columns=spelled_as(schema, partition_by),
        properties=properties,
        protocol=features.required_protocol(schema, properties.texts),
    )


def changed_table(table: Snapshot, rows: Struct, *, rules: WriteRules) -> Target:
    """Gives `table` after a write of `rows` that changes its schema only as `rules` allow.

    Raises SchemaMismatchError where the rows do not fit, and UnsupportedFeatureError where the new schema needs a
    feature that the table cannot get.
    """
    adds = rules.merges_schema
    widens = adds and features.is_type_widening_enabled(table.protocol, table.properties)
    how = Merging(policy=rules.assignment.policy, adds=adds, widens=widens, takes_void=rules.takes_void)
    after = merged(table.schema, rows, how)
    if after == table.schema:
        return _as_it_is(table)
    if widened := widened_columns(table.schema, after):
        check_widened(widened, table)
        after = with_type_changes(table.schema, after)
    return changed(table, after, table.metadata.partition_columns)


def replaced_table(table: Snapshot, rows: Struct, *, partition_by: Sequence[str]) -> Target:
    """Gives `table` after `rows` replace its rows, schema and partitioning.

    The properties stay, and so does the column mapping of a column with the same name and type. As in Delta-Spark, all
    else about the old columns is dropped: comments (the rows may bring new ones), NOT NULL, defaults, generation
    expressions and identity. Rows with values for a GENERATED ALWAYS identity column are refused all the same. Raises
    SchemaMismatchError, and UnsupportedFeatureError for a table with CHECK constraints.
    """
    partitioned_by = table.metadata.partition_columns
    check_brought(table.schema, rows, table.protocol, partition_columns=partitioned_by)
    if table.properties.constraints:
        raise UnsupportedFeatureError(
            f"{TABLE} has CHECK constraints, which may name columns that the new schema does not have. Nothing was "
            "written. Drop them first, or overwrite without overwriteSchema.",
            features=("checkConstraints",),
        )
    check_partition_by(rows, partition_by)
    after = as_new(rows)
    for column in after:
        refuse_void(column)
    partition_columns = spelled_as(after, partition_by)
    if mapping_mode(table.properties) is not MappingMode.NONE:
        after = like_before(after, table.schema)
    if format_schema(after) == format_schema(table.schema) and partition_columns == partitioned_by:
        return _as_it_is(table)
    return changed(table, after, partition_columns)


def spelled_as(schema: Struct, columns: Sequence[str]) -> tuple[str, ...]:
    """Gives the names of `columns` as `schema` spells them."""
    spelling = {column.name.lower(): column.name for column in schema}
    return tuple(spelling[name.lower()] for name in columns)


def _as_it_is(table: Snapshot) -> Target:
    return Target(
        schema=table.schema,
        partition_columns=table.metadata.partition_columns,
        properties=table.properties,
        protocol=table.protocol,
    )


def changed(table: Snapshot, after: Struct, partition_columns: tuple[str, ...]) -> Target:
    """Gives `table` with the schema `after`, in which new columns of a mapped table get ids and physical names.

    Raises SchemaMismatchError for a name that the table cannot have, else as `features.protocol_for`.
    """
    metadata = table.metadata
    if mapping_mode(table.properties) is MappingMode.NONE:
        known = {folded(path) for path, _ in fields_at(table.schema)}
        check_new_columns([column for path, column in fields_at(after) if folded(path) not in known])
    _check_reserved(table.properties, after)
    protocol = features.protocol_for(after, table.protocol)
    after, properties = with_mapping(after, table.properties, new_name=_new_name)
    changed = replace(
        metadata,
        schema_string=format_schema(after),
        partition_columns=partition_columns,
        # Plain dicts: the metadata crosses to every task.
        configuration=dict(properties.texts),
        format_options=dict(metadata.format_options),
        extra=dict(metadata.extra),
    )
    return Target(
        schema=after,
        partition_columns=partition_columns,
        properties=properties,
        protocol=protocol,
        metadata=changed,
    )


def _check_reserved(properties: TableProperties, after: Struct) -> None:
    reserved = {names.CHANGE_TYPE, names.COMMIT_VERSION, names.COMMIT_TIMESTAMP}
    taken = next((column.name for column in after if column.name.lower() in reserved), None)
    if taken is not None and properties.records_changes:
        raise SchemaMismatchError(
            f"The rows have a column {taken!r}, which is reserved for the change data feed of {TABLE}. Rename it.",
            error_class="RESERVED_CDC_COLUMNS_ON_WRITE",
        )
    # Readers find the columns of a file by name, whatever the case.
    internal = {name.lower() for name in (properties.row_id_column, properties.row_version_column) if name}
    taken = next(
        (c.name for c in after if not internal.isdisjoint({c.name.lower(), physical_name(c).lower()})),
        None,
    )
    if taken is not None:
        raise SchemaMismatchError(
            f"The rows have a column {taken!r}, in which {TABLE} stores the ids of its rows. Rename it.",
            error_class="DELTA_ADDING_COLUMN_WITH_INTERNAL_NAME_FAILED",
        )


def check_widened(widened: Sequence[str], table: Snapshot) -> None:
    """Refuses to widen under the feature's preview, and to widen a column whose name is in the SQL of a rule."""
    if PREVIEW_OF_WIDENING in (table.protocol.writer_features or ()):
        raise UnsupportedFeatureError(
            f"{TABLE} has the preview of type widening, so tablefeed cannot record that column {widened[0]!r} becomes "
            "wider. Cast the column, or widen it with ALTER TABLE first.",
            features=(PREVIEW_OF_WIDENING,),
        )
    constraints = list(table.properties.constraints.values())
    generated = [str(sql) for c in table.schema if (sql := c.metadata.get(names.GENERATION_EXPRESSION)) is not None]
    kinds: tuple[tuple[Sequence[str], str, str], ...] = (
        (constraints, "CHECK constraint", "DELTA_CONSTRAINT_DATA_TYPE_MISMATCH"),
        (generated, "generated column", "DELTA_GENERATED_COLUMNS_DATA_TYPE_MISMATCH"),
    )
    for texts, what, error_class in kinds:
        for column in widened:
            user = next((t for t in texts if mentions(t, column.rpartition(".")[2])), None)
            if user is not None:
                raise SchemaMismatchError(
                    f"Column {column!r} of {TABLE} cannot become wider: a {what} uses it ({user}). Cast it before "
                    "writing.",
                    error_class=error_class,
                )


def _new_name() -> str:
    return f"col-{uuid.uuid4()}"
