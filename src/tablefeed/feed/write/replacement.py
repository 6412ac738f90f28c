"""Decides which rows an overwrite replaces: all, those of some partitions, or those that match a predicate.

If only partition columns decide, whole files are replaced. The partition values in the log are parsed and compared as
values, not as text. A predicate on other columns may match only some rows of a file; row_replacement.py then finds and
rewrites such files. In both cases this module checks that new rows match the predicate.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tablefeed.delta import names, row_tracking
from tablefeed.delta.schema.column_mapping import MappingMode, physical_name
from tablefeed.errors import (
    TABLE,
    ConflictingOptionsError,
    IllegalOptionError,
    InvalidRowsError,
    LogError,
    SchemaMismatchError,
    UnsupportedFeatureError,
)
from tablefeed.feed.scan.task import PartitionColumn
from tablefeed.feed.write.table_change import Target
from tablefeed.feed.write.write_rules import Scope, WriteRules
from tablefeed.log.conflicts import WriteKind
from tablefeed.model.actions import AddFile, CdcFile, FileAction

if TYPE_CHECKING:
    import pyarrow as pa

    from tablefeed.data.predicate import RowFilter


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
    return row_filter(text, target.schema, option=OPTION)


def check_replaceable(replaces: Replaces, target: Target) -> None:
    """Refuses a predicate by row on an existing table `target` whose files cannot be rewritten.

    Raises UnsupportedFeatureError for a table with row tracking, and SchemaMismatchError for a table that records
    changes and has a column `_change_type`.
    """
    if replaces.by_row is None:
        return
    if row_tracking.supports_row_tracking(target.protocol):
        raise UnsupportedFeatureError(
            f"The table at {TABLE} has row tracking ({names.ROW_TRACKING}), and {replaces.text!r} names columns that "
            "are not partition columns. This version of tablefeed cannot rewrite files without giving their rows new "
            "ids. Nothing was written. Use Delta-Spark for this overwrite.",
            features=(names.ROW_TRACKING,),
            error_class="DELTA_UNSUPPORTED_FEATURES_FOR_WRITE",
        )
    reserved = next((column.name for column in target.schema if column.name.lower() == names.CHANGE_TYPE), None)
    if reserved is not None and target.properties.records_changes:
        raise SchemaMismatchError(
            f"{TABLE} has a column {reserved!r}, which its change data feed has itself. Nothing was written; rename "
            "it.",
            error_class="RESERVED_CDC_COLUMNS_ON_WRITE",
        )


def as_replaced(batches: Iterable[pa.RecordBatch], replaces: Replaces) -> Iterator[pa.RecordBatch]:
    """Gives `batches`, new rows in the table's columns, after checking that each row matches a predicate by row.

    Raises InvalidRowsError for the first row for which it is false or null. Without a predicate by row nothing is
    checked.
    """
    rows = replaces.by_row
    return iter(batches) if rows is None else (_held(batch, rows, replaces) for batch in batches)


def _held(batch: pa.RecordBatch, rows: RowFilter, replaces: Replaces) -> pa.RecordBatch:
    import pyarrow.compute as pc

    from tablefeed.data.partition import empty_is_null
    from tablefeed.data.rule_evaluation import shown_row

    asked = empty_is_null(batch.select(rows.fields.names), [n for n in rows.fields.names if n in replaces.partitions])
    first = pc.index(matches(asked, rows), False).as_py()
    if first >= 0:
        shown = shown_row(asked, first, [(name,) for name in rows.fields.names])
        raise InvalidRowsError(
            f"Rows for {TABLE} are not as replaceWhere says, {replaces.text!r}. One has the values:\n"
            f"{shown}\nNothing was written; filter them, or replace more.",
            error_class="DELTA_REPLACE_WHERE_MISMATCH",
        )
    return batch


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


class Replacement:
    """Decides which files the commit of `written` replaces, except for a plan with a predicate by row.

    Raises LogError for a file whose partition values in the log are missing or cannot be parsed.
    """

    def __init__(self, planned: Replaces, written: Iterable[AddFile]) -> None:
        self._planned, self._scope = planned, planned.scope
        self._partitions: frozenset[tuple[object, ...]] = frozenset()
        if self._scope is Scope.PARTITIONS:
            self._partitions = frozenset(self._keys(_maps([file.partition_values for file in written])))

    def of(self, files: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Gives the files among `files` (`tablefeed.delta.columns.FILE_COLUMNS`) that are replaced."""
        for batch in files:
            yield batch if self._scope is Scope.TABLE else batch.filter(self._among(batch["partition_values"]))

    def reads(self, file: FileAction) -> bool:
        """Whether `file`, which another commit added or removed, is among what this write replaces."""
        if self._scope is Scope.TABLE:
            return True
        if isinstance(file, CdcFile):
            return False
        if file.partition_values is None:
            return True  # a remove may leave out its partition values
        return bool(self._among(_maps([file.partition_values]))[0].as_py())

    def check(self, files: Sequence[AddFile]) -> None:
        """Raises InvalidRowsError where a partition of the written `files` does not match the plan's predicate."""
        if isinstance(self._scope, Scope) or not files or self._planned.by_row is not None:
            return  # no predicate, or one that each row was checked against
        for file, is_among in zip(
            files, self._among(_maps([f.partition_values for f in files])).to_pylist(), strict=True
        ):
            if not is_among:
                values = ", ".join(f"{name}={text}" for name, text in file.partition_values.items())
                raise InvalidRowsError(
                    f"Rows for {TABLE} are not as replaceWhere says, {self._planned.text!r}: some "
                    f"have {values}. Nothing was written; filter them, or replace more.",
                    error_class="DELTA_REPLACE_WHERE_MISMATCH",
                )

    def _among(self, values: pa.MapArray) -> pa.BooleanArray:
        """Whether each of the partitions is replaced. Equal partitions are judged once."""
        import pyarrow.compute as pc

        from tablefeed.delta.json_texts import texts_of_map

        texts = texts_of_map(values)
        partitions = texts.dictionary_encode()
        first_rows = pc.index_in(partitions.dictionary, value_set=texts)
        return self._judged(values.take(first_rows)).take(partitions.indices)

    def _judged(self, values: pa.MapArray) -> pa.BooleanArray:
        import pyarrow as pa

        if isinstance(self._scope, Scope):
            return pa.array([key in self._partitions for key in self._keys(values)], pa.bool_())
        return matches(pa.RecordBatch.from_pydict(self._columns(values)), self._scope)

    def _keys(self, values: pa.MapArray) -> list[tuple[object, ...]]:
        return list(zip(*(_comparable(column) for column in self._columns(values).values()), strict=True))

    def _columns(self, values: pa.MapArray) -> Mapping[str, pa.Array]:
        import pyarrow.compute as pc

        from tablefeed.feed.scan.pruning import leaf_of, partition_values_of

        columns: dict[str, pa.Array] = {}
        for name, column in self._planned.partitions.items():
            known = partition_values_of(values, leaf_of(column))
            if not pc.all(known.is_known).as_py() and len(known.is_known):
                raise LogError(
                    f"The log of {TABLE} has a file without a valid value of partition column {name!r}, so it is "
                    "not known whether to replace that file. Nothing was committed. Overwrite the whole table.",
                )
            columns[name] = known.values
        return columns


def _maps(values: Sequence[Mapping[str, str | None]]) -> pa.MapArray:
    import pyarrow as pa

    from tablefeed.delta.columns import STRING_MAP

    return pa.array([list(each.items()) for each in values], type=STRING_MAP)


def _comparable(column: pa.Array) -> list[object]:
    """The values as Python objects that are equal where Spark's `<=>` is true: NaN equals NaN, null equals null."""
    import pyarrow as pa

    if pa.types.is_temporal(column.type):
        # Python's dates end with the year 9999.
        column = column.view(pa.int32() if column.type.bit_width == 32 else pa.int64())
    values: list[object] = column.to_pylist()
    if pa.types.is_floating(column.type):
        return ["NaN" if value != value else value for value in values]
    return values
