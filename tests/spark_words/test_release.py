"""What one version of tablefeed passes to another is refused; nothing of it is restored."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import LongType, StructField, StructType

import tablefeed
from pyspark_tablefeed import DefaultSource
from tablefeed.errors import TablefeedError
from tablefeed.feed.rows.asking import asking
from tablefeed.spark import release
from tablefeed.spark.changes.applying import _Work
from tablefeed.spark.written import Written

SCHEMA = StructType([StructField("id", LongType())])
EVENTS = StructType([StructField("id", LongType()), StructField("ts", LongType())])

Passed = Callable[[Path], Any]


def source(table: Path, **options: str) -> DefaultSource:
    """The source of a table, as Spark makes it for `options`."""
    return DefaultSource({"path": str(table), **options})


def analysed(table: Path) -> DefaultSource:
    """A source that looked at its table."""
    found = source(table)
    found.schema()
    return found


def planned(table: Path) -> object:
    """A partition of a stream."""
    reader = analysed(table).streamReader(SCHEMA)
    start = reader.initialOffset()
    return reader.partitions(start, reader.latestOffset(start, reader.getDefaultReadLimit()))[0]


def task_of(table: Path, schema: StructType, **options: str) -> Any:
    """What a task of a batch write works by."""
    return source(table, **options).writer(schema, overwrite=False)


PASSED: dict[str, Passed] = {
    "an analysed source": analysed,
    "a stream reader": lambda table: analysed(table).streamReader(SCHEMA),
    "a batch reader": lambda table: analysed(table).reader(SCHEMA),
    "a stream's partition": planned,
    "a batch's partition": lambda table: analysed(table).reader(SCHEMA).partitions()[0],
    "a stream writer": lambda table: source(table).streamWriter(SCHEMA, overwrite=False),
    "a batch writer": lambda table: source(table).writer(SCHEMA, overwrite=False),
    "a writer of changes": lambda table: source(table, keys="id", sequenceBy="ts").writer(EVENTS, overwrite=False),
    "a report to a commit": lambda table: Written(plan=task_of(table, SCHEMA)._plan, files=()),
    "a task of apply_changes": lambda table: _Work(
        location=str(table), storage_options={}, asked=asking({"keys": "id", "sequence_by": "ts"}), tasks=None
    ),
    "a report of events": lambda table: task_of(table, EVENTS, keys="id", sequenceBy="ts")._changes.set_aside(
        iter(()), None, task=0
    ),
}
WITH_TS = {"a writer of changes", "a report of events"}


@pytest.mark.parametrize("name", PASSED)
def test_what_spark_passes_to_a_process_with_another_version_is_refused_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    properties = {"delta.feature.domainMetadata": "supported"}
    columns = {"id": [1], "ts": [1]} if name in WITH_TS else {"id": [1]}
    tablefeed.append(tmp_path / "t", pa.table(columns), properties=properties)
    passed = pickle.dumps(PASSED[name](tmp_path / "t"))
    pickle.loads(passed)  # noqa: S301 - pickled here

    monkeypatch.setattr(release, "__version__", "0.0.9")
    said = f"has tablefeed {tablefeed.__version__}, and this one has tablefeed 0.0.9"
    with pytest.raises(TablefeedError, match=re.escape(said)):
        pickle.loads(passed)  # noqa: S301 - pickled here
