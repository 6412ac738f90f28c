"""What a task of `tablefeed.spark.apply_changes` does with its rows; no JVM is needed to see it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import tablefeed
from tablefeed.errors import InvalidEventsError
from tablefeed.feed.api.row_changes import asking
from tablefeed.model.actions import Version
from tablefeed.spark.applying import _Task, _Work

NOT_ASKED = (
    "source apply_as_deletes apply_as_truncates column_list except_column_list ignore_null_updates_column_list "
    "ignore_null_updates_except_column_list track_history_column_list track_history_except_column_list"
)


def test_an_error_of_a_task_names_the_table(tmp_path: Path) -> None:
    url = str(tmp_path / "target")
    empty = pa.schema([("id", pa.int64()), ("ts", pa.int64())]).empty_table()
    tablefeed.append(url, empty, properties={"delta.feature.domainMetadata": "supported"})
    left_out = dict.fromkeys(NOT_ASKED.split())
    asked = asking(
        keys="id",
        sequence_by="ts",
        ignore_null_updates=False,
        merge_schema=False,
        stored_as_scd_type=1,
        ties="fail",
        **left_out,
    )
    work = _Work(location=url, storage_options={}, asked=asked, tasks=None)
    rows = pa.record_batch({"id": pa.array([None], pa.int64()), "ts": [1], "__ORDER": [0]})
    with pytest.raises(InvalidEventsError, match="target cannot take these changes") as caught:
        work.part(iter([rows]), _Task(work=work, version=Version(0), after=None, now_ms=0))
    assert caught.value.url == url
