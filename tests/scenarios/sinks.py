"""Micro-batches and batch writes as Spark runs them, on Spark's own sink classes, without a JVM.

A writer is built to plan, pickled to a task each for the parts of the rows, and built again to commit what the tasks
tell, pickled too. What Spark tells a task stands in its TaskContext.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

import tablefeed
from tablefeed.spark.sink import BATCH_ID, QUERY_ID, BatchWriter, StreamWriter


@dataclass(slots=True)
class Sink:
    """A streaming query that writes to `table`: its next batch is number `batch_id`."""

    table: Path
    options: dict[str, str]
    query_id: str = "query"
    batch_id: int = 0

    def write(self, *parts: pa.Table, complete: bool = False, schema: StructType | None = None, **options: str) -> None:
        """Runs the next batch, whose tasks have a part each; in append mode, or in complete mode."""
        self.run(self.batch_id, *parts, complete=complete, schema=schema, **options)
        self.batch_id += 1

    def run(
        self, batch_id: int, *parts: pa.Table, complete: bool = False, schema: StructType | None = None, **options: str
    ) -> None:
        """Runs this batch, be it for the first time or again."""
        given = {"path": str(self.table), **self.options, **options}
        schema = from_arrow_schema(parts[0].schema, prefer_timestamp_ntz=True) if schema is None else schema
        planned = pickle.dumps(StreamWriter(given, schema, overwrite=complete))
        told = {QUERY_ID: self.query_id, BATCH_ID: str(batch_id)}
        messages = [_written(planned, number, part, told) for number, part in enumerate(parts)]
        StreamWriter(given, schema, overwrite=complete).commit(messages, batch_id)


def stream_into(table: Path, **options: str) -> Sink:
    """A query with these options."""
    return Sink(table, options)


def save(table: Path, *parts: pa.Table, mode: str = "append", **options: str) -> None:
    """A batch write, whose tasks have a part each."""
    given = {"path": str(table), **options}
    schema = from_arrow_schema(parts[0].schema, prefer_timestamp_ntz=True)
    planned = pickle.dumps(BatchWriter(given, schema, overwrite=mode == "overwrite"))
    messages = [_written(planned, number, part, {}) for number, part in enumerate(parts)]
    # Spark commits a batch write with the writer that planned it.
    pickle.loads(planned).commit(messages)  # noqa: S301 - our own


def rows_of(table: Path, version: int | None = None) -> list[Any]:
    """The rows of a table, sorted, nulls first: values where it has one column, else tuples."""
    rows = list(zip(*tablefeed.open_table(table, version=version).to_arrow().to_pydict().values(), strict=True))
    rows = [row[0] if len(row) == 1 else row for row in rows]
    return sorted(rows, key=lambda row: [(v is not None, v) for v in (row if isinstance(row, tuple) else (row,))])


def types_of(table: Path) -> dict[str, str]:
    """The columns of a table, in order, with their types in Arrow's words."""
    return {field.name: str(field.type) for field in tablefeed.open_table(table).schema}


def told_by(table: Path) -> Any:  # the fields of its commitInfo
    """What the newest commit says of itself."""
    return next(iter(tablefeed.open_table(table).history(1))).fields


def operations(table: Path) -> list[str | None]:
    """The names of all commits, the oldest first."""
    return [about.operation for about in tablefeed.open_table(table).history()][::-1]


def _written(planned: bytes, task: int, part: pa.Table, told: dict[str, str]) -> Any:
    with _task(task, told):
        message = pickle.loads(planned).write(iter(part.to_batches()))  # noqa: S301 - our own
    return pickle.loads(pickle.dumps(message))  # noqa: S301 - our own


@contextmanager
def _task(number: int, told: dict[str, str]) -> Iterator[None]:
    """Sets up what Spark's worker does before it runs a task; there is no public way."""
    context = TaskContext._getOrCreate()
    context._partitionId, context._localProperties = number, told
    try:
        yield
    finally:
        TaskContext._taskContext = None
