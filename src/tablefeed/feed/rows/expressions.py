"""Evaluates the SQL that users give for row changes: `tablefeed.data.sql`, with errors that name argument and table."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from tablefeed.data.sql import Asked, NotExactError, Program, RowFailedError, compile_expressions
from tablefeed.errors import TABLE, IllegalOptionError, InvalidRowsError
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

    `doing` says what ends then, such as "update".
    """
    try:
        return program.evaluate(rows)
    except RowFailedError as error:
        raise InvalidRowsError(
            f"Nothing was committed to {TABLE}, because a row cannot be evaluated to {doing}: {error.text} meets "
            f"{error.reason} in row {error.row} of its batch. Exclude such rows, or change the expression.",
        ) from error
