"""What a task of `tablefeed.spark.apply_changes` does with its rows; no JVM is needed to see it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

import tablefeed
from tablefeed.errors import InvalidEventsError, SchemaMismatchError
from tablefeed.feed.rows.asking import asking
from tablefeed.model.actions import Version
from tablefeed.spark.changes.applying import _Task, _Work


def _work(url: str) -> _Work:
    empty = pa.schema([("id", pa.int64()), ("ts", pa.int64())]).empty_table()
    tablefeed.append(url, empty, properties={"delta.feature.domainMetadata": "supported"})
    asked = asking({"keys": "id", "sequence_by": "ts"})
    return _Work(location=url, storage_options={}, asked=asked, tasks=None)


def test_an_error_of_a_task_names_the_table(tmp_path: Path) -> None:
    url = str(tmp_path / "target")
    work = _work(url)
    rows, columns = pa.record_batch({"0": pa.array([None], pa.int64()), "1": [1], "2": [0]}), ("id", "ts", "__ORDER")
    with pytest.raises(InvalidEventsError, match="target cannot take these changes") as caught:
        work.part(iter([rows]), _Task(work=work, columns=columns, version=Version(0), after=None, now_ms=0))
    assert caught.value.url == url


class _Changes(DataFrame):
    """A DataFrame of which only the columns are asked."""

    def __new__(cls, schema: StructType) -> _Changes:  # noqa: ARG004 - for __init__
        return object.__new__(cls)

    def __init__(self, schema: StructType) -> None:
        self._columns = schema

    @property
    def schema(self) -> StructType:
        return self._columns


@pytest.mark.parametrize("name", ["__order", "__IS_GONE", "__key_0"])
def test_rows_with_a_column_that_is_added_on_the_way_are_refused(tmp_path: Path, name: str) -> None:
    work = _work(str(tmp_path / "target"))
    rows = _Changes(StructType().add("id", "long").add("ts", "long").add(name, "boolean"))
    with pytest.raises(SchemaMismatchError, match=f"AUTOCDC_RESERVED_COLUMN_NAME_CONFLICT.*have a column {name}"):
        work.apply_snapshot(rows, pa.scalar(1))
