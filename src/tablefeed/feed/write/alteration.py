"""Decides what altering a table makes of its metadata and protocol, and what existing rows must be checked for.

As by Delta-Spark's ALTER TABLE (alterDeltaTableCommands.scala), with its error classes. Nothing is read or written.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from tablefeed.delta import features, names, row_tracking
from tablefeed.delta.alteration import Alteration, constraint, operation_of, spelled_in
from tablefeed.delta.commit_info import TableChange
from tablefeed.delta.properties import TableProperties, column_names
from tablefeed.delta.property_changes import changed_properties
from tablefeed.delta.schema.column_changes import (
    check_not_null_enforced,
    column_at,
    described_anew,
    folded,
    with_columns,
    with_own_names,
    with_wider_types,
    without_columns,
)
from tablefeed.delta.schema.column_mapping import MappingMode, change_type_column, mapping_mode, physical_name
from tablefeed.delta.schema.iceberg_compat import check_compatible
from tablefeed.delta.schema.rules import mentions, table_rules
from tablefeed.delta.schema.schema_faults import dotted
from tablefeed.delta.stats.clustering import check_clustered
from tablefeed.delta.stats.indexed_columns import check_indexed
from tablefeed.errors import TABLE, IllegalOptionError, SchemaMismatchError, TableError, UnsupportedFeatureError
from tablefeed.feed.snapshot.table_log import Snapshot
from tablefeed.feed.write.delta_plan import clustering_of
from tablefeed.feed.write.evolution import (
    check_has_columns,
    check_storable,
    refuse_void,
    widened_columns,
    with_type_changes,
)
from tablefeed.feed.write.row_rules import Kept, built_rules
from tablefeed.feed.write.table_change import Target, changed, check_widened
from tablefeed.model.actions import Metadata, Protocol
from tablefeed.model.rules import Check, TableRules
from tablefeed.model.schema import Path, Struct, fields_along

_RESERVED_CONSTRAINT = "__CHAR_VARCHAR_STRING_LENGTH_CHECK__"
"""Delta-Spark's own name for the lengths of CHAR and VARCHAR columns."""


_UNMAPPED = {True: ("dropped", "DELTA_UNSUPPORTED_DROP_COLUMN"), False: ("renamed", "DELTA_UNSUPPORTED_RENAME_COLUMN")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Altered:
    """The table's metadata and protocol after an alteration, and what existing rows must be checked for.

    `required` are the columns that become NOT NULL, by their names before the alteration.
    """

    metadata: Metadata
    protocol: Protocol
    checks: tuple[Check, ...]
    required: tuple[Path, ...]
    operation: TableChange


def constraint_properties(constraints: Mapping[str, str]) -> dict[str, str]:
    """Gives the table properties of CHECK constraints; their names are in lower case there, as in Delta-Spark.

    Raises IllegalOptionError for a name that no constraint can have, and for two names that differ only in case.
    """
    seen: set[str] = set()
    for name in constraints:
        if not name.strip() or name == _RESERVED_CONSTRAINT:
            explain, error_class = "cannot be the name of a constraint", "DELTA_INVALID_CONSTRAINT_NAME"
            raise IllegalOptionError(option="constraints", value=name, explain=explain, error_class=error_class)
        if constraint(name) in seen:
            raise IllegalOptionError(option="constraints", value=name, explain="names a constraint twice")
        seen.add(constraint(name))
    return {constraint(name): sql for name, sql in constraints.items()}


def altered(table: Snapshot, wanted: Alteration) -> Altered:
    """Gives `table` as `wanted` makes it.

    Raises SchemaMismatchError and UnsupportedFeatureError for a change of columns that cannot be made, TableError for a
    constraint that is there already or is not there, UnsupportedExpressionError for SQL that is not evaluated here, and
    as `changed_properties`.
    """
    features.check_writable(table.protocol, table.metadata, removes=False)
    texts, asked = changed_properties(table.properties, wanted)
    _change_constraints(texts, wanted)
    properties = TableProperties(texts)
    _check_new_feed(table, properties)
    _check_columns(table, wanted, properties)
    _keep_in_step(texts, wanted)
    # The table after the change of its properties, before that of its columns.
    metadata = replace(table.metadata, configuration=texts)
    protocol = features.raised_protocol(table.protocol, metadata, schema=table.schema, asked=asked)
    base = replace(table, protocol=protocol, metadata=metadata)
    # Only from none to name can the mode have changed.
    begins_mapping = mapping_mode(properties) is not mapping_mode(table.properties)
    after = _changed_schema(base, wanted, begins_mapping=begins_mapping)
    renamed = {column_at(table.schema, path)[0]: name for path, name in wanted.renamed.items()}
    partition_columns = tuple(renamed.get((name,), name) for name in table.metadata.partition_columns)
    target = changed(base, after, partition_columns)
    metadata = target.metadata or base.metadata
    if target.schema == table.schema:
        metadata = replace(metadata, schema_string=table.metadata.schema_string)
    protocol = features.raised_protocol(target.protocol, metadata, schema=target.schema)
    if not row_tracking.supports_row_tracking(table.protocol):
        kept = row_tracking.with_column_names(metadata.configuration, protocol, new_name=lambda: str(uuid.uuid4()))
        metadata = replace(metadata, configuration=kept)
    _check_result(table, target, protocol, metadata)
    checks = tuple(Check(name=name.lower(), expression=sql) for name, sql in wanted.new_constraints.items())
    _check_defaults(table.schema, wanted)
    nulls = [column_at(table.schema, path) for path, nullable in wanted.nullable.items() if not nullable]
    return Altered(
        metadata=metadata,
        protocol=protocol,
        checks=checks,
        required=tuple(path for path, column in nulls if column.nullable),
        operation=operation_of(wanted, table.properties.texts, target.schema),
    )


# --- properties and constraints --------------------------------------------------------------------------------------


def _change_constraints(texts: dict[str, str], wanted: Alteration) -> None:
    for name in wanted.dropped_constraints:
        if texts.pop(spelled_in(texts, constraint(name)), None) is None:
            raise TableError(
                f"{TABLE} has no constraint {name!r} to drop. Nothing was changed. Leave it out.",
                error_class="DELTA_CONSTRAINT_DOES_NOT_EXIST",
            )
    for name, sql in constraint_properties(wanted.new_constraints).items():
        if known := spelled_in(texts, name):
            raise TableError(
                f"{TABLE} already has the constraint {known.removeprefix(names.CHECK_CONSTRAINT_PREFIX)!r}: "
                f"{texts[known]}. Nothing was changed. Drop it in the same call, or choose another name.",
                error_class="DELTA_CONSTRAINT_ALREADY_EXISTS",
            )
        texts[name] = sql


def _check_new_feed(table: Snapshot, properties: TableProperties) -> None:
    if table.properties.records_changes or not properties.records_changes:
        return
    reserved, in_files = {names.COMMIT_VERSION, names.COMMIT_TIMESTAMP}, change_type_column(table.schema)
    taken = in_files or next((column for column in table.schema if column.name.lower() in reserved), None)
    if taken is not None:
        # Change data files have the names that columns have in files, which no renaming changes.
        remedy = "Rename the column first" if in_files is None else "Drop the column, or make a new table without it"
        raise SchemaMismatchError(
            f"The change data feed of {TABLE} cannot be turned on: its column {taken.name!r} has a name, in the table "
            f"or in its files, that the feed uses. Nothing was changed. {remedy}.",
            error_class="DELTA_TABLE_ALREADY_CONTAINS_CDC_COLUMNS",
        )


def _keep_in_step(texts: dict[str, str], wanted: Alteration) -> None:
    """Renames and drops columns in the property that says which have statistics, as Delta-Spark does."""
    listed = column_names(texts.get(names.INDEXED_COLUMNS, ""))
    if not listed or not (wanted.renamed or wanted.dropped):
        return
    dropped = [folded(path) for path in wanted.dropped]
    kept = [path for path in listed if not any(folded(path)[: len(each)] == each for each in dropped)]
    renamed = {folded(path): name for path, name in wanted.renamed.items()}
    paths = ([renamed.get(folded(path[: i + 1]), name) for i, name in enumerate(path)] for path in kept)
    texts[names.INDEXED_COLUMNS] = ",".join(".".join(map(_quoted, path)) for path in paths)


def _quoted(name: str) -> str:
    return name if re.fullmatch(r"\w+", name) else "`{}`".format(name.replace("`", "``"))


# --- columns ---------------------------------------------------------------------------------------------------------


def _changed_schema(table: Snapshot, wanted: Alteration, *, begins_mapping: bool) -> Struct:
    """The schema after the change; `table` has its new properties already."""
    # Files that were written before the columns were mapped have their names.
    schema = with_own_names(table.schema) if begins_mapping else table.schema
    kept = without_columns(schema, wanted.dropped)
    for column in wanted.added.values():
        refuse_void(column)
    wider = with_wider_types(kept, wanted.widened)
    if widened := widened_columns(kept, wider):
        if not features.is_type_widening_enabled(table.protocol, table.properties):
            raise SchemaMismatchError(
                f"Column {widened[0]!r} of {TABLE} cannot be widened: {names.ENABLE_TYPE_WIDENING} is not true. "
                "Nothing was changed. Set the property in the same call.",
                error_class="DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP",
            )
        check_widened(widened, table)
        wider = with_type_changes(kept, wider)
    return described_anew(
        with_columns(wider, wanted.added),
        nullable=wanted.nullable,
        defaults=wanted.defaults,
        comments=wanted.comments,
        renamed=wanted.renamed,
    )


def _check_columns(table: Snapshot, wanted: Alteration, properties: TableProperties) -> None:
    """Refuses to rename, drop or change a column on which something of the table depends."""
    schema = table.schema
    if mapping_mode(properties) is MappingMode.NONE and (wanted.dropped or wanted.renamed):
        what, error_class = _UNMAPPED[bool(wanted.dropped)]
        raise UnsupportedFeatureError(
            f"No column of {TABLE} can be {what}: its columns are not mapped, so files find them by name. Nothing was "
            f"changed. Set {names.COLUMN_MAPPING_MODE} to name, in the same call if you like.",
            features=("columnMapping",),
            error_class=error_class,
        )
    gone = [column_at(schema, path)[0] for path in wanted.dropped]
    partitions = [path for path in gone if path[0] in table.metadata.partition_columns]
    if partitions:
        raise _depended_on(partitions[0], "the table is partitioned by it", "DELTA_UNSUPPORTED_DROP_PARTITION_COLUMN")
    clustered = {path[: i + 1] for path in clustering_of(table) for i in range(len(path))}
    for path in gone:
        if tuple(physical_name(f) for f in fields_along(schema, path, is_named=lambda f, n: f.name == n)) in clustered:
            raise _depended_on(path, "the table is clustered by it", "DELTA_UNSUPPORTED_DROP_CLUSTERING_COLUMN")
    for path in (*gone, *(column_at(schema, path)[0] for path in wanted.renamed)):
        for sql, error_class in _expressions(schema, properties, dropped=gone):
            if mentions(sql, path[-1]):
                raise _depended_on(path, f"an expression names it ({sql})", error_class)
    for path in (*wanted.widened, *wanted.nullable, *wanted.defaults):
        column = column_at(schema, path[:1])[1]
        if any(key.startswith(names.IDENTITY_PREFIX) for key in column.metadata):
            what = "its values are generated (IDENTITY)"
            raise _depended_on(path, what, "DELTA_IDENTITY_COLUMNS_ALTER_COLUMN_NOT_SUPPORTED")
    for path in wanted.defaults:
        if len(path) > 1 or names.GENERATION_EXPRESSION in column_at(schema, path)[1].metadata:
            raise _depended_on(path, "only a column that is not generated, and no member, has a default", None)


def _expressions(schema: Struct, properties: TableProperties, *, dropped: list[Path]) -> Iterator[tuple[str, str]]:
    rules = table_rules(schema, properties.texts)
    for check in rules.checks:
        yield check.expression, "DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE"
    for name, sql in rules.generated.items():
        if (name,) not in dropped:
            yield sql, "DELTA_GENERATED_COLUMNS_DEPENDENT_COLUMN_CHANGE"


def _depended_on(path: Path, why: str, error_class: str | None) -> SchemaMismatchError:
    return SchemaMismatchError(
        f"Column {dotted(path)} of {TABLE} cannot be changed like this: {why}. Nothing was changed. Change that first, "
        "or leave the column as it is.",
        error_class=error_class,
    )


# --- the result ------------------------------------------------------------------------------------------------------


def _check_result(table: Snapshot, target: Target, protocol: Protocol, metadata: Metadata) -> None:
    schema, partition_columns = target.schema, target.partition_columns
    properties = TableProperties.of(metadata)
    check_storable(schema)
    check_has_columns(schema, partition_columns)
    check_not_null_enforced(schema)
    check_compatible(properties, schema, partition_columns, before=partition_columns)
    check_clustered(clustering_of(table), schema, partition_columns)
    check_indexed(properties, schema, partition_columns)
    features.check_writable(protocol, metadata, removes=False)


def _check_defaults(schema: Struct, wanted: Alteration) -> None:
    """Raises UnsupportedExpressionError for a new default that no writer here could evaluate."""
    defaults = {column_at(schema, path)[1].name: sql for path, sql in wanted.defaults.items() if sql is not None}
    if defaults:
        rules = TableRules(defaults=defaults)
        built_rules(Kept(rules=rules, absent=frozenset(defaults), partition_by=(), zone=None, now_ms=0), schema)
