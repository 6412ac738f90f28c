"""Tables on local disk that both write: the JAR's statements and rows, and what the log says as raw JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

Action = dict[str, Any]  # Any: JSON

# Spark's own wrappers, and an outer class beside the one that says what is wrong.
_WRAPPERS = {"STREAM_FAILED", "PYTHON_STREAMING_DATA_SOURCE_RUNTIME_ERROR", "PYTHON_DATA_SOURCE_ERROR"}
_WRAPPERS |= {"TASK_WRITE_FAILED", "PYTHON_EXCEPTION"}


def run(session: SparkSession, table: Path, *statements: str, **words: object) -> list[Row]:
    """The rows of the last statement of those that the JAR runs; {t} is the table, {t_source} a table beside it."""
    found: list[Row] = []
    for statement in statements:
        names = {"t": f"delta.`{table}`", "t_source": f"delta.`{table}_source`"}
        found = session.sql(statement.format(**names, **words)).collect()
    return found


def read(session: SparkSession, table: Path | str, by: str = "delta", **options: str | int) -> pa.Table:
    """The rows as the JAR reads them, or another format."""
    return session.read.format(by).options(**options).load(str(table)).toArrow()


def read_all(session: SparkSession, tables: Sequence[Path], **options: str | int) -> list[pa.Table]:
    """The rows of tables of one schema as the JAR reads them, all by one query."""
    reader = session.read.format("delta").options(**options)
    frames = [reader.load(str(table)).selectExpr("*", f"{number} AS _table") for number, table in enumerate(tables)]
    found = reduce(lambda one, other: one.unionAll(other), frames).toArrow()
    return [found.filter(pc.equal(found["_table"], n)).drop_columns(["_table"]) for n in range(len(tables))]


def rows(table: pa.Table) -> list[str]:
    """Rows as text, sorted: whichever order they come in, and in which layout of text."""
    return sorted(repr(row) for row in table.to_pylist())


def in_spark(session: SparkSession, rows: pa.Table) -> DataFrame:
    """The rows in one task, in Spark's types."""
    from pyspark.sql.pandas.types import from_arrow_schema

    return session.createDataFrame(rows, schema=from_arrow_schema(rows.schema, prefer_timestamp_ntz=True)).coalesce(1)


@contextmanager
def any_retention(session: SparkSession) -> Iterator[None]:
    """Lets VACUUM delete files that were removed just now."""
    session.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    try:
        yield
    finally:
        session.conf.unset("spark.databricks.delta.retentionDurationCheck.enabled")


def error_class(text: str) -> str:
    """The class that says what is wrong, or the beginning of a text without one."""
    classes = re.findall(r"\[([A-Z][A-Z_]{5,}(?:\.[A-Z_]+)?)\]", text)
    return next((name.partition(".")[0] for name in classes if name.partition(".")[0] not in _WRAPPERS), text[:300])


def commit_actions(table: Path, version: int) -> list[tuple[str, Action]]:
    """The actions of one version in log order, each with its kind."""
    lines = (table / "_delta_log" / f"{version:020d}.json").read_text(encoding="utf-8").splitlines()
    return [(kind, action) for line in lines for kind, action in json.loads(line).items()]


def actions_of_kind(table: Path, kind: str) -> list[Action]:
    """All actions of one kind in the JSON commits, in log order."""
    commits = range(len(list((table / "_delta_log").glob("*.json"))))
    return [action for version in commits for found, action in commit_actions(table, version) if found == kind]
