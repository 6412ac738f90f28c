"""Says for which rows a predicate in Spark's SQL is true.

Most predicates are comparisons that the option `where` takes too. Arrow evaluates these. Other predicates are evaluated
by data/sql, which imports DuckDB; this import takes longer than a small batch.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from tablefeed.data.sql import Asked
from tablefeed.errors import IllegalOptionError
from tablefeed.feed.rows.expressions import compiled, evaluated
from tablefeed.feed.scan.where import row_filter
from tablefeed.feed.snapshot.verdicts import answers
from tablefeed.model.schema import Primitive, Struct


def held(rows: pa.Table, text: str, schema: Struct, *, option: str) -> pa.Array:
    """Says for each of `rows` whether `text`, the value of `option`, is true.

    The rows have the columns of `schema` in its Arrow types.

    Raises IllegalOptionError for SQL that is not evaluated exactly as Spark does, UnsupportedOptionError where sqlglot
    is not installed, InvalidRowsError for a row for which Spark would raise.
    """
    answer = by_arrow(rows, text, schema)
    return by_sql(rows, text, schema, option=option) if answer is None else answer


def by_arrow(rows: pa.Table, text: str, schema: Struct) -> pa.Array | None:
    """Does as `held`; None for SQL that the option `where` does not take."""
    try:
        asked = row_filter(text, schema)
    except IllegalOptionError:
        return None
    answer = answers(asked.condition, rows.select(asked.fields.names))
    return None if answer is None else pc.fill_null(answer, fill_value=False)


def by_sql(rows: pa.Table, text: str, schema: Struct, *, option: str) -> pa.Array:
    """Does as `held`, for any SQL that data/sql evaluates."""
    program = compiled([Asked(text=text)], schema, option=option)
    if program.expressions[0].type != Primitive("boolean"):
        raise IllegalOptionError(option=option, value=text, explain="must be true or false")
    batches = rows.combine_chunks().to_batches()
    found = [evaluated(program, batch, doing=f"read {option}")[0] for batch in batches]
    return pc.fill_null(pa.concat_arrays([pa.array([], pa.bool_()), *found]), fill_value=False)
