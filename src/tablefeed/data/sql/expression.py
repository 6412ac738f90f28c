"""Expressions of Spark's SQL, compiled once for the columns of a table and evaluated batch by batch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import pyarrow as pa

from tablefeed.data.sql.casts import assigned
from tablefeed.data.sql.engine import EngineError, engine, query
from tablefeed.data.sql.kinds import arrow_type, taken, terms_value
from tablefeed.data.sql.parse import parse
from tablefeed.data.sql.terms import Failure, NotExactError, PythonFunction, RowFailedError, Scope, Term
from tablefeed.data.sql.translate import translate
from tablefeed.model.schema import DataType, Struct


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """An expression's text, and the type of the column to which it is assigned; None: to no column.

    The assignment is Spark's under ANSI: a value that the column's type does not hold fails.
    """

    text: str
    wanted: DataType | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Expression:
    """The compiled expression `text`, its Spark type, and the columns and members of columns that it names.

    Each of `paths` begins with a column in the schema's spelling; members below it have the text's spelling.
    """

    text: str
    type: DataType
    paths: tuple[tuple[str, ...], ...]
    can_fail: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """Expressions that are evaluated together. Any thread may use it: each thread has its own engine."""

    expressions: tuple[Expression, ...]
    sql: str
    inputs: Mapping[str, str]
    functions: tuple[PythonFunction, ...]

    def evaluate(self, batch: pa.RecordBatch) -> list[pa.Array]:
        """Gives for each expression an array with a value for each row of `batch`, in order.

        Columns of `batch` have the Arrow types of the table's schema. Raises RowFailedError for the first expression
        for which Spark would raise, with its first such row, and EngineError for rows that DuckDB refuses, such as text
        that is not UTF-8.
        """
        if batch.num_rows == 0:
            return [pa.array([], arrow_type(e.type)) for e in self.expressions]
        given = {known: batch.column(name) for known, name in self.inputs.items()}
        columns = iter(_run(self.sql, given, self.functions, batch.num_rows).columns)
        return [_values(expression, columns) for expression in self.expressions]

    def try_out(self, schema: Struct) -> None:
        """Raises EngineError where the engine refuses the program for rows of `schema`."""
        kinds = {field.name: field.type for field in schema}
        _try_out(
            self.sql, tuple((known, arrow_type(kinds[name])) for known, name in self.inputs.items()), self.functions
        )


@lru_cache(maxsize=200)  # a stream's batches ask again and again, and DuckDB takes milliseconds; an error is not kept
def _try_out(sql: str, inputs: tuple[tuple[str, pa.DataType], ...], functions: tuple[PythonFunction, ...]) -> None:
    _run(sql, {name: pa.array([], kind) for name, kind in inputs}, functions, 0)


def _run(sql: str, columns: Mapping[str, pa.Array], functions: Iterable[PythonFunction], num_rows: int) -> pa.Table:
    rows = {name: taken(column) for name, column in columns.items()} or {"row": pa.nulls(num_rows)}
    found = engine()
    found.add(functions)
    return found.run(sql, pa.table(rows))


def compile_expressions(
    asked: Sequence[Asked], schema: Struct, *, time_zone: str | None, now_us: int | None = None
) -> Program:
    """Gives the program that evaluates expressions over rows of `schema`.

    `time_zone` is the session's, None where it is not known; `now_us` the value of `current_timestamp()`, None where
    the expressions may not depend on it. Raises NotExactError for what is not evaluated exactly as Spark does.
    """
    try:
        program = _compiled(asked, schema, time_zone, now_us)
        program.try_out(schema)
    except EngineError as error:
        if len(asked) > 1:
            for one in asked:  # which of them it is
                compile_expressions([one], schema, time_zone=time_zone, now_us=now_us)
        text = asked[0].text
        raise NotExactError(text, part=text, reason=f"it cannot be evaluated here: {error}") from error
    return program


def _compiled(asked: Sequence[Asked], schema: Struct, time_zone: str | None, now_us: int | None) -> Program:
    shared = Scope(text="", schema=schema, zone=time_zone, now_us=now_us)
    expressions: list[Expression] = []
    values: dict[str, str] = {}
    for index, one in enumerate(asked):
        scope = replace(shared, text=one.text, named=[])
        term = _term(scope, one)
        values[f"v{index}"] = term.sql
        if term.fails is not None:
            values[f"f{index}"] = f"({term.fails})::INTEGER"
        paths = tuple(dict.fromkeys(scope.named))
        expressions.append(Expression(text=one.text, type=term.type, paths=paths, can_fail=term.fails is not None))
    return Program(
        expressions=tuple(expressions),
        sql=query(shared.bindings, values),
        inputs=dict(shared.columns),
        functions=tuple(shared.functions.values()),
    )


def _term(scope: Scope, asked: Asked) -> Term:
    try:
        term = translate(scope, parse(asked.text))
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
