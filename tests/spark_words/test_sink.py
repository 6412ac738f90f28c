"""What the writer makes of the messages that Spark hands it. No JVM."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql.types import LongType, StructType

import tablefeed
from tablefeed.errors import CommitError
from tablefeed.feed.known_state import newest_state
from tablefeed.feed.sink import plan_write, write_task
from tablefeed.log.transaction import WriteKind
from tablefeed.spark.sink import StreamWriter, Written

ID = pa.schema([("id", pa.int64())])


def test_a_commit_without_word_from_its_tasks_as_of_a_continuous_trigger_is_refused(tmp_path: Path) -> None:
    table = tmp_path / "t"
    writer = StreamWriter({"path": str(table)}, StructType().add("id", LongType()), overwrite=False)

    with pytest.raises(CommitError, match=r"2 of 2 tasks did not report .* continuous trigger, with another"):
        writer.commit([None, None], 0)

    assert not table.exists()


def test_a_writer_that_spark_asks_to_overwrite_is_that_of_complete_mode(tmp_path: Path) -> None:
    table = tmp_path / "t"
    tablefeed.append(str(table), pa.table({"id": [1, 2]}))

    def run(batch_id: int) -> None:
        writer = StreamWriter({"path": str(table)}, StructType().add("id", LongType()), overwrite=True)
        plan = plan_write(*newest_state(str(table), {}), ID, partition_by=(), kind=WriteKind.OVERWRITE)
        files = write_task(plan, pa.table({"id": [batch_id]}).to_batches(), task=0, now_ms=0)
        writer.commit([Written(plan=plan, files=files, query_id="query", batch_id=batch_id)], batch_id)

    run(10)
    run(11)
    run(11)

    now = tablefeed.open_table(str(table))
    assert (now.version, now.to_arrow().to_pylist()) == (2, [{"id": 11}])
    [about] = now.history(1)
    assert about.fields["operationParameters"] == {"outputMode": "Complete", "queryId": "query", "epochId": "11"}
