"""What a stream makes of commits that are no appends, of lost log files, and of partition columns."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from spark.streams import action, actions, drain, finish, grow, log_file, reader, refusal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture
def changed(tmp_path: Path) -> Path:
    """A table with a commit that removes a whole file (2), one that rewrites a file (3), and an append after each."""
    table = tmp_path / "t"
    grow(table, [1, 2, 3], [4])
    DeltaTable(str(table)).delete("id = 4")
    assert [kind for kind, _ in actions(table, 2) if kind in ("add", "remove")] == ["remove"]
    grow(table, [5])
    DeltaTable(str(table)).delete("id = 1")
    assert sorted(kind for kind, _ in actions(table, 4) if kind in ("add", "remove")) == ["add", "remove"]
    grow(table, [6])
    return table


@pytest.mark.parametrize(
    ("option", "rows"),
    [
        ("skipChangeCommits", [1, 2, 3, 4, 5, 6]),
        ("ignoreChanges", [1, 2, 2, 3, 3, 4, 5, 6]),
    ],
)
def test_an_option_says_what_becomes_of_a_rewriting_commit(
    spark: SparkSession, tmp_path: Path, changed: Path, option: str, rows: list[int]
) -> None:
    assert drain(spark, changed, tmp_path / "checkpoint", startingVersion=0, **{option: "true"}) == [rows]


def test_without_an_option_a_stream_stops_before_a_commit_that_deletes(
    spark: SparkSession, tmp_path: Path, changed: Path
) -> None:
    text = refusal(lambda: drain(spark, changed, tmp_path / "checkpoint", startingVersion=0))

    assert "[DELTA_SOURCE_IGNORE_DELETE]" in text
    assert str(changed) in text
    assert "Version 2 of" in text
    assert "ignoreDeletes" in text


def test_ignoring_deletes_does_not_pass_a_rewrite(spark: SparkSession, tmp_path: Path, changed: Path) -> None:
    text = refusal(lambda: drain(spark, changed, tmp_path / "checkpoint", startingVersion=1, ignoreDeletes="true"))

    assert "[DELTA_SOURCE_TABLE_IGNORE_CHANGES]" in text
    assert "Version 4 of" in text
    assert "skipChangeCommits" in text


def test_files_rewritten_without_a_change_of_data_are_not_delivered_again(spark: SparkSession, tmp_path: Path) -> None:
    table, checkpoint = tmp_path / "t", tmp_path / "checkpoint"
    grow(table, [1], [2])
    assert drain(spark, table, checkpoint) == [[1, 2]]
    DeltaTable(str(table)).optimize.compact()
    assert not action(table, 2, "add")["dataChange"]
    grow(table, [3])

    assert drain(spark, table, checkpoint) == [[3]]


@pytest.fixture
def lossy(spark: SparkSession, tmp_path: Path) -> tuple[Path, Path]:
    """A table and a checkpoint that stands before version 1, which was cleaned up since; 2 and 3 are there."""
    table, checkpoint = tmp_path / "t", tmp_path / "checkpoint"
    grow(table, [1])
    assert drain(spark, table, checkpoint) == [[1]]
    grow(table, [2], [3], [4])
    DeltaTable(str(table)).create_checkpoint()
    for version in (0, 1):
        log_file(table, version).unlink()
    return table, checkpoint


def test_commits_removed_before_they_were_read_stop_the_stream(spark: SparkSession, lossy: tuple[Path, Path]) -> None:
    table, checkpoint = lossy

    text = refusal(lambda: drain(spark, table, checkpoint))

    assert "[DELTA_MISSING_FILES_UNEXPECTED_VERSION]" in text
    assert f"The log of {table} has a gap: version 1 is missing" in text
    assert "failOnDataLoss=false" in text
    assert drain(spark, table, checkpoint, failOnDataLoss="false") == [[3, 4]]


def test_a_data_file_that_is_gone_stops_the_stream_and_names_the_file(spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "t"
    grow(table, [1], [2])
    path = action(table, 1, "add")["path"]
    (table / path).unlink()

    text = refusal(lambda: drain(spark, table, tmp_path / "checkpoint"))

    assert "[DELTA_FILE_NOT_FOUND]" in text
    assert f"The data file {path} of {table} is gone" in text
    assert "Restart from a newer version" in text


def test_partition_columns_stand_where_the_schema_has_them(spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "t"
    rows = pa.table(
        {
            "id": pa.array([1, 2, 3, 4], pa.int64()),
            "day": pa.array(["a%b c/ü:", None, "x", "x"]),
            "n": pa.array([7, 7, None, 8], pa.int32()),
            "item": pa.array(["tea", None, "cup", "pot"]),
        }
    )
    write_deltalake(str(table), rows, partition_by=["day", "n"])
    found: list[pa.Table] = []

    def keep(batch: DataFrame, _batch_id: int) -> None:
        found.append(batch.toArrow())

    stream = reader(spark, table)
    finish(stream.writeStream.foreachBatch(keep).option("checkpointLocation", str(tmp_path / "checkpoint")))

    assert stream.columns == ["id", "day", "n", "item"]
    assert pa.concat_tables(found).sort_by("id").to_pylist() == rows.to_pylist()
