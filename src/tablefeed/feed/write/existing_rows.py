"""Checks the rows that a table has against conditions that it is to get: new CHECK constraints, new NOT NULL columns.

Rows are streamed; only the columns that the conditions name are read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from tablefeed.delta.schema.schema_faults import dotted
from tablefeed.errors import TABLE, InvalidRowsError
from tablefeed.feed.snapshot.table_log import Snapshot
from tablefeed.model.rules import Check, TableRules
from tablefeed.model.schema import Path, Struct

if TYPE_CHECKING:
    import pyarrow as pa


def check_existing_rows(table: Snapshot, checks: Sequence[Check], required: Sequence[Path], *, now_ms: int) -> None:
    """Raises InvalidRowsError for the first row that breaks one of `checks`, or has no value at a path of `required`.

    A member of a null struct has no value. Raises UnsupportedExpressionError for SQL that is not evaluated here.
    """
    from tablefeed.data.rule_evaluation import RowRules, Setting
    from tablefeed.delta.schema.arrow_schema import to_arrow

    setting = Setting(absent=frozenset(), time_zone=None, now_us=now_ms * 1000)
    rules = [(check, RowRules(TableRules(checks=(check,)), table.schema, setting)) for check in checks]
    named = {path[0] for path in required}.union(*(keeps.inputs for _, keeps in rules))
    # Without a column there would be no rows to count.
    schema = Struct(tuple(column for column in table.schema if column.name in named)) if named else table.schema
    for batch in _rows(table, to_arrow(schema)):
        for path in required:
            if _has_null(batch.column(path[0]), path[1:]):
                raise InvalidRowsError(
                    f"{TABLE} has rows without a value in {dotted(path)}, which cannot become NOT NULL. Nothing was "
                    "changed. Update or delete these rows first.",
                    error_class="DELTA_NEW_NOT_NULL_VIOLATION",
                )
        for check, keeps in rules:
            try:
                keeps(batch)
            except InvalidRowsError as broken:
                raise InvalidRowsError(
                    f"{TABLE} has rows that violate the new CHECK constraint {check.name} ({check.expression}). "
                    f"Nothing was changed. Update or delete these rows first. The first of them: {broken.message}",
                    error_class="DELTA_NEW_CHECK_CONSTRAINT_VIOLATION",
                ) from broken


def _rows(table: Snapshot, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    from tablefeed.delta.columns import to_add_files
    from tablefeed.feed.scan.table_scan import table_scan
    from tablefeed.feed.scan.task import read_task

    scan = table_scan(table)
    for files in table.live_files():
        for add in to_add_files(files):
            yield from read_task(scan.of([add]), schema, store=table.log.store)


def _has_null(column: pa.Array, path: Path) -> bool:
    import pyarrow.compute as pc

    return column.null_count > 0 or (bool(path) and _has_null(pc.struct_field(column, [path[0]]), path[1:]))
