"""Evaluates the SQL that users give for row changes; errors name the argument and the table.

Most predicates are comparisons that the option `where` takes too. Arrow evaluates these. Other SQL is evaluated by
data/sql, which imports DuckDB; this import takes longer than a small batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import tzinfo

import pyarrow as pa
import pyarrow.compute as pc

from tablefeed.data.retype import LossyConversionError, in_form, safe_cast
from tablefeed.data.sql import Asked, EngineError, NotExactError, Program, RowFailedError, compile_expressions
from tablefeed.delta.schema.arrow_schema import to_arrow
from tablefeed.errors import TABLE, IllegalOptionError, InvalidRowsError, SchemaMismatchError
from tablefeed.feed.scan.where import row_filter
from tablefeed.feed.snapshot.verdicts import answers
from tablefeed.feed.timestamp_text import zone_text
from tablefeed.model.schema import Primitive, Struct


def compiled(
    asked: Sequence[Asked], schema: Struct, *, option: str, now_us: int | None = None, zone: tzinfo | None = None
) -> Program:
    """Compiles the texts in `asked`, which the user gave as `option`, for rows of `schema`.

    Raises IllegalOptionError for SQL that is not evaluated exactly as Spark does, UnsupportedOptionError where sqlglot
    is not installed.
    """
    try:
        return compile_expressions(asked, schema, time_zone=None if zone is None else zone_text(zone), now_us=now_us)
    except NotExactError as error:
        explain = f"cannot be evaluated at {error.part!r:.200}: {error.reason}"
        raise IllegalOptionError(option=option, value=error.text, explain=explain) from error


def evaluated(program: Program, rows: pa.RecordBatch, *, doing: str) -> list[pa.Array]:
    """Gives the values of each expression for `rows`.

    `doing` says what the values are for, such as "update". Raises InvalidRowsError where Spark would raise for a row,
    and for rows that are not evaluated here, such as those with a text that is not UTF-8.
    """
    try:
        return program.evaluate(rows)
    except EngineError as error:
        texts = ", ".join(dict.fromkeys(expression.text for expression in program.expressions))
        raise InvalidRowsError(
            f"Nothing was committed to {TABLE}, because {texts:.200} cannot be evaluated, to {doing}: {error}. Correct "
            "or exclude such rows.",
        ) from error
    except RowFailedError as error:
        raise InvalidRowsError(
            f"Nothing was committed to {TABLE}, because {error.text} cannot be evaluated in row {error.row} of its "
            f"batch, to {doing}: {error.reason}. Exclude such rows, or change the expression.",
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
        # Arrow's cast knows no dictionary of views.
        convert = in_form if pa.types.is_nested(kind) or pa.types.is_dictionary(values.type) else safe_cast
        return pa.chunked_array([convert(chunk, kind) for chunk in values.chunks], kind)
    except (LossyConversionError, pa.ArrowException) as error:
        raise SchemaMismatchError(
            f"The {what} for {TABLE} is {values.type} and cannot be converted to {kind} without loss: {error}. Nothing "
            "was committed. Cast the values first.",
            error_class="DELTA_FAILED_TO_MERGE_FIELDS",
        ) from error


def held(rows: pa.Table, text: str, schema: Struct, *, option: str, zone: tzinfo | None = None) -> pa.Array:
    """Says for each of `rows` whether `text`, the value of `option`, is true; `zone` is the time zone of the session.

    The rows have the columns of `schema` in its Arrow types.

    Raises IllegalOptionError for SQL that is not evaluated exactly as Spark does, UnsupportedOptionError where sqlglot
    is not installed, InvalidRowsError for a row for which Spark would raise.
    """
    answer = by_arrow(rows, text, schema, option=option)
    return by_sql(rows, text, schema, option=option, zone=zone) if answer is None else answer


def by_arrow(rows: pa.Table, text: str, schema: Struct, *, option: str) -> pa.Array | None:
    """Does as `held`; None for SQL that the option `where` does not take."""
    try:
        asked = row_filter(text, schema, option=option)
    except IllegalOptionError:
        return None
    answer = answers(asked.condition, rows.select(asked.fields.names))
    return None if answer is None else pc.fill_null(answer, fill_value=False)


def by_sql(rows: pa.Table, text: str, schema: Struct, *, option: str, zone: tzinfo | None = None) -> pa.Array:
    """Does as `held`, for any SQL that data/sql evaluates."""
    program = compiled([Asked(text=text)], schema, option=option, zone=zone)
    if program.expressions[0].type != Primitive("boolean"):
        raise IllegalOptionError(option=option, value=text, explain="must be true or false")
    batches = rows.combine_chunks().to_batches()
    found = [evaluated(program, batch, doing=f"read {option}")[0] for batch in batches]
    return pc.fill_null(pa.concat_arrays([pa.array([], pa.bool_()), *found]), fill_value=False)
