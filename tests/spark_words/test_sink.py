"""What the writer makes of the messages that Spark hands it. No JVM."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.types import LongType, StructType

import tablefeed
from tablefeed.errors import CommitError
from tablefeed.feed.sink import write_task
from tablefeed.feed.upkeep import wait_until_done
from tablefeed.spark.sink import StreamWriter, Written


def test_a_commit_without_word_from_its_tasks_as_of_a_continuous_trigger_is_refused(tmp_path: Path) -> None:
    table = tmp_path / "t"
    writer = StreamWriter({"path": str(table)}, StructType().add("id", LongType()), overwrite=False)

    with pytest.raises(CommitError, match=r"2 of 2 tasks did not report .* continuous trigger, with another"):
        writer.commit([None, None], 0)

    assert not table.exists()


def batch(table: Path, batch_id: int, *ids: int, **options: str) -> None:
    """A micro-batch of one task."""
    writer = StreamWriter({"path": str(table), **options}, StructType().add("id", LongType()), overwrite=False)
    files = write_task(writer._plan, [pa.record_batch({"id": list(ids)})], task=0, now_ms=0)
    writer.commit([Written(plan=writer._plan, files=files, query_id="query", batch_id=batch_id)], batch_id)
    wait_until_done()


def operations(table: Path) -> list[Any]:
    return [info.operation for info in tablefeed.open_table(table).history()][::-1]


def test_after_every_so_many_batches_small_files_are_folded_behind_the_commit(tmp_path: Path) -> None:
    for n in range(4):
        batch(tmp_path, n, n, compactEvery="2")

    update = "STREAMING UPDATE"
    assert operations(tmp_path) == [update, update, "OPTIMIZE", update, update, "OPTIMIZE"]
    assert sorted(tablefeed.open_table(tmp_path).to_arrow()["id"].to_pylist()) == [0, 1, 2, 3]


def test_nothing_is_folded_unless_it_is_asked_for(tmp_path: Path) -> None:
    for n in range(4):
        batch(tmp_path, n, n)

    assert operations(tmp_path) == ["STREAMING UPDATE"] * 4


def test_a_codec_and_a_row_limit_are_obeyed(tmp_path: Path) -> None:
    batch(tmp_path, 0, 1, 2, 3, compression="ZSTD", maxRecordsPerFile="2")

    files = [pq.ParquetFile(path).metadata for path in tmp_path.glob("*.zstd.parquet")]
    assert sorted(file.num_rows for file in files) == [1, 2]
    assert {file.row_group(0).column(0).compression for file in files} == {"ZSTD"}
