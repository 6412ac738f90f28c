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
from tablefeed.delta.schema.column_mapping import MappingMode, mapping_mode, physical_name
from tablefeed.delta.schema.iceberg_compat import compat_version
from tablefeed.delta.schema.mapping_assignment import like_before, with_mapping
from tablefeed.delta.schema.schema_string import format_schema
from tablefeed.errors import SchemaMismatchError, UnsupportedFeatureError
from tablefeed.feed.write.align import check_new_columns, check_partition_by, new_table_schema
from tablefeed.feed.write.evolution import (
    Merging,
    SchemaMode,
    as_new,
    merged,
    refuse_void,
    widened_columns,
    with_type_changes,
)
from tablefeed.feed.write.identity import check_brought
from tablefeed.feed.write.write_rules import WriteRules
from tablefeed.model.actions import Metadata, Protocol
from tablefeed.model.schema import Struct

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


def new_table(rows: Struct, *, partition_by: Sequence[str], rules: WriteRules, url: str) -> Target:
    """Gives a new table for `rows`. Raises SchemaMismatchError where no table can have their schema."""
    properties = checked_properties(rules.properties)
    if compat_version(TableProperties(properties)) is not None:
        # The properties that Iceberg compatibility requires, or that Delta-Spark adds to such a table.
        properties = {names.COLUMN_MAPPING_MODE: str(MappingMode.NAME), names.ATOMIC_CONVERSION: "true", **properties}
    if rules.cluster_by:
        properties = {**properties, names.FEATURE_PREFIX + names.CLUSTERING: "supported"}
    draft = Metadata(table_id="", schema_string="", configuration=properties)
    is_mapped = mapping_mode(TableProperties(properties), url=url) is not MappingMode.NONE
    schema = new_table_schema(rows, partition_columns=partition_by, url=url, any_name=is_mapped)
    schema, configuration = with_mapping(schema, draft, new_name=_new_name, url=url)
    return Target(
        schema=schema,
        partition_columns=spelled_as(schema, partition_by),
        properties=TableProperties(configuration),
        protocol=features.required_protocol(schema, configuration),
    )


def changed_table(
    metadata: Metadata, protocol: Protocol, schema: Struct, rows: Struct, *, rules: WriteRules, url: str
) -> Target:
    """Gives the table of `metadata` and `schema` after a write of `rows` that changes its schema only as `rules` allow.

    Raises SchemaMismatchError where the rows do not fit, and UnsupportedFeatureError where the new schema needs a
    feature that the table cannot get.
    """
    adds = rules.schema is SchemaMode.MERGE
    widens = adds and features.is_type_widening_enabled(protocol, TableProperties.of(metadata))
    how = Merging(url=url, policy=rules.assignment.policy, adds=adds, widens=widens)
    after = merged(schema, rows, how)
    if after == schema:
        return _as_it_is(metadata, protocol, schema)
    if widened := widened_columns(schema, after):
        _check_widened(widened, metadata, schema, protocol, url)
        after = with_type_changes(schema, after)
    return _changed(metadata, protocol, schema, after, metadata.partition_columns, url)


def replaced_table(
    metadata: Metadata, protocol: Protocol, schema: Struct, rows: Struct, *, partition_by: Sequence[str], url: str
) -> Target:
    """Gives the table of `metadata` after `rows` replace its rows, schema and partitioning.

    The properties stay, and so does the column mapping of a column with the same name and type. As in Delta-Spark, all
    else about the old columns is dropped: comments (the rows may bring new ones), NOT NULL, defaults, generation
    expressions and identity. Rows with values for a GENERATED ALWAYS identity column are refused all the same. Raises
    SchemaMismatchError, and UnsupportedFeatureError for a table with CHECK constraints.
    """
    check_brought(schema, rows, protocol, partition_columns=metadata.partition_columns, url=url)
    if TableProperties.of(metadata).constraints:
        raise UnsupportedFeatureError(
            f"{url} has CHECK constraints, which may name columns that the new schema has not. Nothing was written. "
            "Drop them first, or overwrite without overwriteSchema.",
            url=url,
            features=("checkConstraints",),
        )
    check_partition_by(rows, partition_by, url=url)
    after = as_new(rows)
    for column in after:
        refuse_void(column, url)
    partition_columns = spelled_as(after, partition_by)
    if mapping_mode(TableProperties.of(metadata), url=url) is not MappingMode.NONE:
        after = like_before(after, schema)
    unchanged = format_schema(after) == format_schema(schema)
    if unchanged and partition_columns == metadata.partition_columns:
        return _as_it_is(metadata, protocol, schema)
    return _changed(metadata, protocol, schema, after, partition_columns, url)


def spelled_as(schema: Struct, columns: Sequence[str]) -> tuple[str, ...]:
    """Gives the names of `columns` as `schema` spells them."""
    spelling = {column.name.lower(): column.name for column in schema}
    return tuple(spelling[name.lower()] for name in columns)


def _as_it_is(metadata: Metadata, protocol: Protocol, schema: Struct) -> Target:
    return Target(
        schema=schema,
        partition_columns=metadata.partition_columns,
        properties=TableProperties.of(metadata),
        protocol=protocol,
    )


def _changed(
    metadata: Metadata,
    protocol: Protocol,
    before: Struct,
    after: Struct,
    partition_columns: tuple[str, ...],
    url: str,
) -> Target:
    is_mapped = mapping_mode(TableProperties.of(metadata), url=url) is not MappingMode.NONE
    known = {column.name.lower() for column in before}
    if not is_mapped:
        check_new_columns([column for column in after if column.name.lower() not in known], url=url)
    _check_reserved(metadata, after, url)
    protocol = features.protocol_for(after, protocol, url=url)
    after, configuration = with_mapping(after, metadata, new_name=_new_name, url=url)
    changed = replace(
        metadata,
        schema_string=format_schema(after),
        partition_columns=partition_columns,
        # Plain dicts: the metadata crosses to every task.
        configuration=dict(configuration),
        format_options=dict(metadata.format_options),
        extra=dict(metadata.extra),
    )
    return Target(
        schema=after,
        partition_columns=partition_columns,
        properties=TableProperties.of(changed),
        protocol=protocol,
        metadata=changed,
    )


def _check_reserved(metadata: Metadata, after: Struct, url: str) -> None:
    reserved = {names.CHANGE_TYPE, names.COMMIT_VERSION, names.COMMIT_TIMESTAMP}
    taken = next((column.name for column in after if column.name.lower() in reserved), None)
    properties = TableProperties.of(metadata)
    if taken is not None and properties.records_changes:
        raise SchemaMismatchError(
            f"The rows have a column {taken!r}, which the change data feed of {url} has itself. Rename it.",
            url=url,
            error_class="RESERVED_CDC_COLUMNS_ON_WRITE",
        )
    internal = {properties.row_id_column, properties.row_version_column}
    taken = next(
        (column.name for column in after if not internal.isdisjoint({column.name, physical_name(column)})), None
    )
    if taken is not None:
        raise SchemaMismatchError(
            f"The rows have a column {taken!r}, in which {url} keeps the ids of its rows. Rename it.",
            url=url,
            error_class="DELTA_ADDING_COLUMN_WITH_INTERNAL_NAME_FAILED",
        )


def _check_widened(widened: Sequence[str], metadata: Metadata, schema: Struct, protocol: Protocol, url: str) -> None:
    """Refuses to widen under the feature's preview, and to widen a column whose name is in the SQL of a rule."""
    if PREVIEW_OF_WIDENING in (protocol.writer_features or ()):
        raise UnsupportedFeatureError(
            f"{url} has the preview of type widening, in which wider columns are told of in a way that is not written "
            f"here; {widened[0]!r} would be one. Cast it, or widen it with ALTER TABLE first.",
            url=url,
            features=(PREVIEW_OF_WIDENING,),
        )
    constraints = list(TableProperties.of(metadata).constraints.values())
    generated = [
        str(c.metadata[names.GENERATION_EXPRESSION]) for c in schema if names.GENERATION_EXPRESSION in c.metadata
    ]
    kinds: tuple[tuple[Sequence[str], str, str], ...] = (
        (constraints, "CHECK constraint", "DELTA_CONSTRAINT_DATA_TYPE_MISMATCH"),
        (generated, "generated column", "DELTA_GENERATED_COLUMNS_DATA_TYPE_MISMATCH"),
    )
    for texts, what, error_class in kinds:
        for column in widened:
            user = next((t for t in texts if column.rpartition(".")[2].lower() in t.lower()), None)
            if user is not None:
                raise SchemaMismatchError(
                    f"Column {column!r} of {url} cannot become wider: a {what} uses it ({user}). Cast it before "
                    "writing.",
                    url=url,
                    error_class=error_class,
                )


def _new_name() -> str:
    return f"col-{uuid.uuid4()}"
