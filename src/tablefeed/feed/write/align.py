"""Maps the columns of incoming rows to a table's columns, or says why they do not fit.

Columns are matched by name, case-insensitively. A missing column becomes null if it is nullable. evolution.py decides
the table's schema after the write; `tablefeed.data.storing` converts the values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from tablefeed.data.assignment import Assignment, needs_zone
from tablefeed.delta import names
from tablefeed.delta.schema.schema_faults import dotted
from tablefeed.errors import TABLE, BrokenRule, InvalidRowsError, SchemaMismatchError
from tablefeed.feed.write.evolution import refuse_void
from tablefeed.model.schema import Field, Nested, Primitive, Struct, describe, fields_at, paired

if TYPE_CHECKING:
    import pyarrow as pa

    from tablefeed.data.retype import Conversion

_FORBIDDEN_IN_NAMES = " ,;{}()\n\t="
"""Characters that Delta-Spark refuses in column names of a table without column mapping."""


Alignment = tuple[int | None, ...]
"""For each column of the table, in order, the index of the incoming column; None: the rows do not have it."""


def align(
    table: Struct, incoming: Struct, *, partition_columns: Sequence[str], filled: frozenset[str] = frozenset()
) -> Alignment:
    """Aligns `incoming` with `table`, which has all columns of `incoming`.

    Columns in `filled` may be missing: they get their values later. Raises SchemaMismatchError where another required
    column is missing: a partition column, or one that is not nullable.
    """
    positions = {f.name.lower(): i for i, f in enumerate(incoming)}
    sources: list[int | None] = []
    for column in table:
        position = positions.get(column.name.lower())
        if position is None and column.name not in filled:
            _check_may_be_missing(column, partition_columns)
        sources.append(position)
    return tuple(sources)


def check_zone(table: Struct, incoming: Struct, how: Assignment) -> None:
    """Raises SchemaMismatchError where the cast of a column needs a time zone and `how` has none."""
    if how.zone is not None:
        return
    for one, other in paired(incoming, table, fold=str.lower):
        if needs_zone(one.type, other.type):
            raise SchemaMismatchError(
                f"Column {other.path[0]!r} of {TABLE} and of the rows differ in whether they have a time zone. Set the "
                "option timeZone (time_zone in Python) to the zone of the values without one, or cast the column.",
                error_class="DELTA_FAILED_TO_MERGE_FIELDS",
            )


def check_new_table(incoming: Struct, *, partition_columns: Sequence[str], any_name: bool = False) -> None:
    """Checks the schema of a new table.

    Raises SchemaMismatchError where no such table can exist: no columns, a void column, a name with a forbidden
    character (allowed with `any_name`: files then use other names), or partition columns that `check_partition_by`
    refuses.
    """
    if not incoming.fields:
        raise _no_table("the rows have no columns", "DELTA_EMPTY_DATA")
    if not any_name:
        check_new_columns(incoming.fields)
    for column in incoming:
        refuse_void(column)
    check_partition_by(incoming, partition_columns)


def check_new_columns(columns: Sequence[Field]) -> None:
    """Raises SchemaMismatchError for a name, at any depth, that a table without column mapping cannot have."""
    for path, column in fields_at(Struct(tuple(columns))):
        if needs_mapping(column):
            raise SchemaMismatchError(
                f"{TABLE} cannot have the column {dotted(path)}, because its name has one of the characters "
                f"{_FORBIDDEN_IN_NAMES!r}. Rename it, or give the table the property {names.COLUMN_MAPPING_MODE}=name.",
                error_class="DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES",
            )


def needs_mapping(column: Field) -> bool:
    """Says whether only a table with column mapping can have the name of `column`."""
    return any(c in _FORBIDDEN_IN_NAMES for c in column.name)


def check_partition_by(incoming: Struct, partition_columns: Sequence[str]) -> None:
    """Raises SchemaMismatchError where a table with the schema `incoming` cannot be partitioned by those columns."""
    by_name = {f.name.lower(): f for f in incoming}
    for name in partition_columns:
        column = by_name.get(name.lower())
        if column is None:
            raise _no_table(f"there is no column {name!r} to partition by", "DELTA_PARTITION_COLUMN_NOT_FOUND")
        if isinstance(column.type, Nested) or column.type == Primitive("variant"):
            raise _no_table(
                f"column {name!r} is nested or a variant, so it cannot be a partition column",
                "DELTA_INVALID_PARTITION_COLUMN_TYPE",
            )
    if len({n.lower() for n in partition_columns}) < len(partition_columns):
        raise _no_table(f"({', '.join(partition_columns)}) names a column twice", "DELTA_DUPLICATE_COLUMNS_FOUND")
    if len(partition_columns) >= len(incoming.fields):
        raise _no_table(
            "a table needs a column that is not a partition column", "DELTA_CANNOT_USE_ALL_COLUMNS_FOR_PARTITION"
        )


def aligned(
    batches: Iterable[pa.RecordBatch], alignment: Alignment, schema: pa.Schema, how: Assignment
) -> Iterator[pa.RecordBatch]:
    """Gives `batches` with the columns of `schema`, the table's Arrow schema, and their values cast as `how` says.

    Raises InvalidRowsError for a value that the table's type cannot hold, or a text that cannot be parsed as it.
    Raises SchemaMismatchError where only the Arrow representation does not fit, such as nanoseconds.
    """
    import pyarrow as pa

    found: pa.Schema | None = None
    columns: list[_Column] = []
    for batch in batches:
        if found is None or not batch.schema.equals(found):
            found = batch.schema
            columns = [
                _Column(None if source is None else (source, found.field(source).type), field, how)
                for source, field in zip(alignment, schema, strict=True)
            ]
        yield pa.RecordBatch.from_arrays([column.of(batch) for column in columns], schema=schema)
        del batch  # so that the next batch is not made while a large one is held


class _Column:
    """Makes one column of the table from a column of the rows, or of nulls where they do not have it."""

    def __init__(self, source: tuple[int, pa.DataType] | None, field: pa.Field, how: Assignment) -> None:
        from tablefeed.data.retype import LossyConversionError
        from tablefeed.data.storing import assigned

        self._source, self._field = source, field
        self._convert: Conversion | None = None
        if source is not None:
            try:
                self._convert = assigned(source[1], field.type, how)
            except LossyConversionError as error:
                raise self._mismatch(error) from error

    def of(self, batch: pa.RecordBatch) -> pa.Array:
        import pyarrow as pa

        from tablefeed.data.casts import CastError
        from tablefeed.data.retype import LossyConversionError, nulls

        if self._source is None:
            return nulls(batch.num_rows, self._field.type)
        column = batch.column(self._source[0])
        try:
            return column if self._convert is None else self._convert(column)
        except CastError as error:
            from tablefeed.delta.schema.arrow_schema import from_arrow

            path = ".".join((self._field.name, *error.column))
            (wanted,) = from_arrow(pa.schema([pa.field(self._field.name, error.wanted)]))
            raise InvalidRowsError(
                f"A value of the rows does not fit column {path!r} of {TABLE}: it cannot be stored as "
                f"{describe(wanted.type)} ({error.reason}). Nothing of this write was committed: correct or filter "
                "the rows.",
                error_class=error.error_class,
                broken=BrokenRule(
                    reason=f"a value cannot be stored as {error.wanted if error.column else self._field.type}",
                    column=path,
                    rows=None if error.column or error.failed is None else error.failed.to_pylist(),
                ),
            ) from error
        except (LossyConversionError, pa.ArrowException) as error:
            raise self._mismatch(error) from error

    def _mismatch(self, error: Exception) -> SchemaMismatchError:
        found = None if self._source is None else self._source[1]
        return SchemaMismatchError(
            f"Column {self._field.name!r} of {TABLE} is {self._field.type}, which does not hold a value of the "
            f"rows ({found}): {error}. Cast it before writing.",
            error_class="DELTA_FAILED_TO_MERGE_FIELDS",
        )


def _no_table(why: str, error_class: str) -> SchemaMismatchError:
    return SchemaMismatchError(f"No table can be made at {TABLE}: {why}.", error_class=error_class)


def _check_may_be_missing(column: Field, partition_columns: Sequence[str]) -> None:
    if column.name in partition_columns:
        raise SchemaMismatchError(
            f"The rows have no column {column.name!r}, by which {TABLE} is partitioned. Add it to the rows.",
            error_class="DELTA_PARTITION_COLUMN_NOT_FOUND",
        )
    if not column.nullable:
        raise SchemaMismatchError(
            f"The rows have no column {column.name!r}, which must not be null in {TABLE}. Add it to the rows.",
            error_class="DELTA_MISSING_NOT_NULL_COLUMN_VALUE",
        )
