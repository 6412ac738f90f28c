"""Expressions of Spark's SQL, compiled once for the columns of a table and evaluated batch by batch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from tablefeed.data.sql.casts import assigned
from tablefeed.data.sql.engine import engine, query
from tablefeed.data.sql.parse import parse
from tablefeed.data.sql.terms import Failure, PythonFunction, RowFailedError, Scope, Term
from tablefeed.data.sql.translate import translate
from tablefeed.data.sql.values import arrow_type, taken, terms_value
from tablefeed.model.schema import DataType, Struct


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """An expression's text, and the type of the column that it is assigned to, None where to none.

    The assignment is Spark's under ANSI: a value that the column's type does not hold fails.
    """

    text: str
    wanted: DataType | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Expression:
    """What `text` says of a row: of Spark's type `type`, by `columns`, the columns that it names as they are spelt."""

    text: str
    type: DataType
    columns: tuple[str, ...]
    can_fail: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """Expressions that are evaluated together, by whichever thread: the engine behind is a thread's own."""

    expressions: tuple[Expression, ...]
    sql: str
    inputs: Mapping[str, str]
    functions: tuple[PythonFunction, ...]

    def evaluate(self, batch: pa.RecordBatch) -> list[pa.Array]:
        """Gives for each expression an array with a value for each row of `batch`, in order.

        Columns of `batch` have the Arrow types of the table's schema. Raises RowFailedError for the first expression
        for which Spark would raise, at its first such row.
        """
        if batch.num_rows == 0:
            return [pa.array([], arrow_type(e.type)) for e in self.expressions]
        rows = [taken(batch.column(name)) for name in self.inputs.values()] or [pa.nulls(batch.num_rows)]
        found = engine()
        found.add(self.functions)
        result = found.run(self.sql, pa.Table.from_arrays(rows, names=list(self.inputs) or ["row"]))
        columns = iter(result.columns)
        return [_values(expression, columns) for expression in self.expressions]


def compile_expressions(
    asked: Sequence[Asked], schema: Struct, *, time_zone: str | None, now_us: int | None = None
) -> Program:
    """Gives the program of expressions over rows of `schema`.

    `time_zone` is the session's, None where it is not known; `now_us` the moment that `current_timestamp()` is, None
    where the expressions may not hang on it. Raises NotExactError for what is not evaluated exactly as Spark does.
    """
    shared = Scope(text="", schema=schema, zone=time_zone, now_us=now_us)
    expressions: list[Expression] = []
    values: dict[str, str] = {}
    for index, one in enumerate(asked):
        scope = replace(shared, text=one.text, named=[])
        term = _term(scope, one)
        values[f"v{index}"] = term.sql
        if term.fails is not None:
            values[f"f{index}"] = f"({term.fails})::INTEGER"
        columns = tuple(dict.fromkeys(scope.named))
        expressions.append(Expression(text=one.text, type=term.type, columns=columns, can_fail=term.fails is not None))
    return Program(
        expressions=tuple(expressions),
        sql=query(shared.stages, values),
        inputs=dict(shared.columns),
        functions=tuple(shared.functions.values()),
    )


def _term(scope: Scope, asked: Asked) -> Term:
    tree = parse(asked.text)
    try:
        term = translate(scope, tree)
        return term if asked.wanted is None else assigned(scope, term, asked.wanted)
    except RecursionError as error:
        raise scope.refuse(asked.text, "it nests too deep") from error


def _values(expression: Expression, columns: Iterator[pa.ChunkedArray]) -> pa.Array:
    values = next(columns)
    fails = next(columns) if expression.can_fail else None
    if fails is not None and fails.null_count < len(fails):
        row, failure = next((i, f) for i, f in enumerate(fails.to_pylist()) if f is not None)
        raise RowFailedError(expression.text, row=row, reason=Failure(failure).reason)
    return terms_value(values.combine_chunks(), expression.type)
