"""Expressions of Spark's SQL, evaluated on Arrow batches as Spark evaluates them: the same values, nulls and failures.

`parse` makes sqlglot's tree of the text, and of its functions no more than names and arguments. Each node is then
given the type that Spark gives it and is said again in DuckDB's words (`casts`, `operators`, `functions`, `times`);
`engine` runs those. Only what was held against Spark's own values is said again (tests/spark/test_expressions.py):
everything else is refused by name. ANSI mode is taken to be on, as it is in Spark by default.

DuckDB and Spark raise at different times, so what is said to DuckDB never raises: beside its value each term has the
reason why Spark would raise for a row, and whether it is asked at all follows Spark's order of evaluation.
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
