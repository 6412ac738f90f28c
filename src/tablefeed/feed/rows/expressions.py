"""Evaluates the SQL that users give for row changes by `tablefeed.data.sql`; errors name the argument and the table."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from tablefeed.data.sql import Asked, NotExactError, Program, RowFailedError, compile_expressions
from tablefeed.delta.schema.arrow_schema import to_arrow
from tablefeed.errors import TABLE, IllegalOptionError, InvalidRowsError, SchemaMismatchError
from tablefeed.model.schema import Struct


def compiled(asked: Sequence[Asked], schema: Struct, *, option: str, now_us: int | None = None) -> Program:
    """Compiles the texts in `asked`, which the user gave as `option`, for rows of `schema`.

    Raises IllegalOptionError for SQL that is not evaluated exactly as Spark does, UnsupportedOptionError where sqlglot
    is not installed.
    """
    try:
        return compile_expressions(asked, schema, time_zone=None, now_us=now_us)
    except NotExactError as error:
        raise IllegalOptionError(option=option, value=error.text, explain=str(error)) from error


def evaluated(program: Program, rows: pa.RecordBatch, *, doing: str) -> list[pa.Array]:
    """Gives the values of each expression for `rows`. Raises InvalidRowsError where Spark would raise for a row.

    `doing` names the call that fails then, such as "update".
    """
    try:
        return program.evaluate(rows)
    except RowFailedError as error:
        raise InvalidRowsError(
            f"Nothing was committed to {TABLE}, because a row cannot be evaluated to {doing}: {error.text} meets "
            f"{error.reason} in row {error.row} of its batch. Exclude such rows, or change the expression.",
        ) from error


def in_plain_types(rows: pa.Table, schema: Struct, *, of: str) -> pa.Table:
    """Gives `rows`, whose columns are those of `schema`, in the Arrow types that these have in tables.

    Raises as `converted`.
    """
    arrow = to_arrow(schema)
    columns = [converted(rows[field.name], field.type, f"column {field.name} of the {of}") for field in arrow]
    return pa.table(columns, schema=arrow)


def converted(values: pa.ChunkedArray, kind: pa.DataType, what: str) -> pa.ChunkedArray:
    """Gives `values`, which `what` names, as `kind`. Raises SchemaMismatchError for a value that it does not hold."""
    try:
        return values.cast(kind)
    except pa.ArrowException as error:
        raise SchemaMismatchError(
            f"The {what} for {TABLE} is {values.type} and cannot be taken as {kind} without loss: {error}. Nothing was "
            "committed. Cast the values first.",
            error_class="DELTA_FAILED_TO_MERGE_FIELDS",
        ) from error
