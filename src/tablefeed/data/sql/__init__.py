"""Expressions of Spark's SQL, evaluated on Arrow batches as Spark evaluates them: the same values, nulls and failures.

`parse` makes sqlglot's tree from the text, with functions as plain names and arguments. Each node then gets the type
that Spark gives it and is translated to DuckDB's SQL (`casts`, `operators`, `functions`, `times`), which `engine` runs.
Only what was compared with Spark's own values (tests/spark/test_expressions.py) is translated; everything else is
refused by name. ANSI mode is assumed to be on, as it is in Spark by default.

DuckDB and Spark raise errors at different times, so the SQL for DuckDB never raises. Instead each term has, besides its
value, the reason why Spark would raise for a row, found in Spark's order of evaluation.
"""

from tablefeed.data.sql.engine import EngineError
from tablefeed.data.sql.expression import Asked, Expression, Program, compile_expressions
from tablefeed.data.sql.terms import NoColumnError, NotExactError, RowFailedError

__all__ = [
    "Asked",
    "EngineError",
    "Expression",
    "NoColumnError",
    "NotExactError",
    "Program",
    "RowFailedError",
    "compile_expressions",
]
