"""What the writer makes of the messages that Spark hands it. No JVM."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql.types import LongType, StructType

from tablefeed.errors import CommitError
from tablefeed.spark.sink import StreamWriter


def test_a_commit_without_word_from_its_tasks_as_of_a_continuous_trigger_is_refused(tmp_path: Path) -> None:
    table = tmp_path / "t"
    writer = StreamWriter({"path": str(table)}, StructType().add("id", LongType()), overwrite=False)

    with pytest.raises(CommitError, match=r"2 of 2 tasks did not report .* continuous trigger, with another"):
        writer.commit([None, None], 0)

    assert not table.exists()
