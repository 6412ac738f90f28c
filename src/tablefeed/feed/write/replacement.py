"""Plans which rows an overwrite replaces: all, those of some partitions, or those that match a predicate.

New rows must match the predicate too, which the tasks check (replaced_rows.py). If only partition columns decide, the
commit replaces whole files (replaced_files.py). A predicate on other columns may match only some rows of a file: the
commit then takes these rows out of their files (taking_out.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tablefeed.delta import names
from tablefeed.delta.schema.column_mapping import MappingMode, change_type_column, physical_name
from tablefeed.errors import TABLE, ConflictingOptionsError, IllegalOptionError, SchemaMismatchError
from tablefeed.feed.scan.task import PartitionColumn
from tablefeed.feed.write.write_rules import Scope, WriteRules
from tablefeed.log.conflicts import WriteKind

if TYPE_CHECKING:
    import pyarrow as pa

    from tablefeed.data.predicate import RowFilter
    from tablefeed.feed.write.table_change import Target


OPTION = "replaceWhere"


@dataclass(frozen=True, slots=True, kw_only=True)
class Replaces:
    """What an overwrite replaces: the rows that match a predicate, whose SQL is `text`, or what a `Scope` names.

    `partitions` are the table's partition columns, by their names. `text` is None where there is no predicate.
    """

    scope: RowFilter | Scope
    text: str | None
    partitions: Mapping[str, PartitionColumn]

    @property
    def by_row(self) -> RowFilter | None:
        """The predicate if it names a column that is no partition column: it may match part of a file; else None."""
        if isinstance(self.scope, Scope) or set(self.scope.fields.names) <= self.partitions.keys():
            return None
        return self.scope


def planned_replacement(rules: WriteRules, target: Target, *, kind: WriteKind, mapping: MappingMode) -> Replaces:
    """Gives what a write to `target` under `rules` replaces.

    A table without partition columns is replaced as a whole in both modes, as in Delta-Spark. Raises OptionError for
    options that contradict each other and for a predicate that is not understood.
    """
    schema = {field.name: field for field in target.schema}
    is_mapped = mapping is not MappingMode.NONE
    partitions = {
        name: PartitionColumn(physical_name=physical_name(schema[name]) if is_mapped else name, type=schema[name].type)
        for name in target.partition_columns
    }
    predicate = rules.replace_where
    scope = _predicate(rules, predicate, target, kind) if predicate is not None else _scope(rules, target, kind)
    return Replaces(scope=scope, text=predicate, partitions=partitions)


def _scope(rules: WriteRules, target: Target, kind: WriteKind) -> Scope:
    if rules.scope is Scope.TABLE or kind is WriteKind.APPEND or not target.partition_columns:
        return Scope.TABLE
    if rules.overwrites_schema:
        raise ConflictingOptionsError(
            options=("overwriteSchema", "partitionOverwriteMode"),
            remedy="The partitions that stay have the table's schema: leave one of them out.",
            error_class="DELTA_OVERWRITE_SCHEMA_WITH_DYNAMIC_PARTITION_OVERWRITE",
        )
    return Scope.PARTITIONS


def _predicate(rules: WriteRules, text: str, target: Target, kind: WriteKind) -> RowFilter:
    from tablefeed.data.predicate import columns_in
    from tablefeed.feed.scan.where import row_filter

    if kind is WriteKind.APPEND:
        raise ConflictingOptionsError(
            options=("mode", OPTION), remedy='Only an overwrite replaces rows: mode "overwrite".'
        )
    if rules.scope is Scope.PARTITIONS:
        raise ConflictingOptionsError(
            options=(OPTION, "partitionOverwriteMode"),
            remedy="Each says which rows are replaced: set one of them.",
            error_class="DELTA_REPLACE_WHERE_WITH_DYNAMIC_PARTITION_OVERWRITE",
        )
    if rules.overwrites_schema:
        raise ConflictingOptionsError(
            options=(OPTION, "overwriteSchema"),
            remedy="The rows that stay have the table's schema: leave one of them out.",
        )
    rows = row_filter(text, target.schema, option=OPTION)
    if not columns_in(rows.predicate):
        raise IllegalOptionError(
            option=OPTION, value=text, explain="names no column; leave it out to replace all rows of the table"
        )
    return rows


def check_replaceable(replaces: Replaces, target: Target) -> None:
    """Raises as `check_recordable` for a predicate by row on the existing table `target`."""
    if replaces.by_row is None:
        return
    check_recordable(target)


def check_recordable(target: Target) -> None:
    """Raises SchemaMismatchError if changes are recorded beside a column `_change_type`, in the table or in files."""
    reserved = change_type_column(target.schema)
    if reserved is not None and target.properties.records_changes:
        raise SchemaMismatchError(
            f"{TABLE} has a column {reserved.name!r}, whose name in its files is {names.CHANGE_TYPE}. Its change data "
            "feed has a column of that name itself. Nothing was written. Turn the feed off, or drop the column.",
            error_class="RESERVED_CDC_COLUMNS_ON_WRITE",
        )


def matches(batch: pa.RecordBatch, rows: RowFilter) -> pa.BooleanArray:
    """Says for each row of `batch` whether it matches the predicate; a row for which that is null does not.

    Raises IllegalOptionError for a predicate that Arrow cannot evaluate on these rows.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    from tablefeed.feed.snapshot.verdicts import answers

    held = answers(rows.condition, pa.Table.from_batches([batch]))
    if held is None:
        raise IllegalOptionError(option=OPTION, value=str(rows.condition), explain=f"cannot be evaluated on {TABLE}")
    return pc.fill_null(held, fill_value=False)
