"""A query in complete mode: each batch takes the place of the one before, in one commit."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from deltalake import DeltaTable

from spark.streams import action, actions, data_files, finish, grow, newest_version, reader

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark


def write_whole(rows: DataFrame, target: Path, checkpoint: Path, **options: str) -> str:
    writer = rows.writeStream.format("tablefeed").outputMode("complete").options(**options)
    return finish(writer.option("checkpointLocation", str(checkpoint)).option("path", str(target)))


def counted(target: Path) -> list[dict[str, int]]:
    rows: list[dict[str, int]] = DeltaTable(str(target)).to_pyarrow_table().to_pylist()
    return sorted(rows, key=lambda row: row["id"])


def test_each_batch_of_counts_takes_the_place_of_the_one_before(spark: SparkSession, tmp_path: Path) -> None:
    source, target, checkpoint = tmp_path / "source", tmp_path / "target", tmp_path / "checkpoint"
    grow(source, [1, 2])
    query_id = write_whole(reader(spark, source).groupBy("id").count(), target, checkpoint)
    grow(source, [2, 3])

    assert write_whole(reader(spark, source).groupBy("id").count(), target, checkpoint) == query_id

    assert counted(target) == [{"id": 1, "count": 1}, {"id": 2, "count": 2}, {"id": 3, "count": 1}]
    last = newest_version(target)
    about = action(target, last, "commitInfo")
    assert about["operationParameters"] == {"outputMode": "Complete", "queryId": query_id, "epochId": str(last)}
    assert about["isBlindAppend"] is False
    assert action(target, last, "txn")["version"] == last
    removed = [values for kind, values in actions(target, last) if kind == "remove"]
    assert removed
    assert all(values["extendedFileMetadata"] and values["size"] > 0 for values in removed)


def test_a_batch_of_counts_run_again_after_its_commit_replaces_nothing(spark: SparkSession, tmp_path: Path) -> None:
    source, target, checkpoint = tmp_path / "source", tmp_path / "target", tmp_path / "checkpoint"
    grow(source, [1, 2])
    write_whole(reader(spark, source).groupBy("id").count(), target, checkpoint)
    last, files = newest_version(target), data_files(target)
    batch = max(int(file.name) for file in (checkpoint / "commits").glob("[0-9]*"))
    for name in (f"{batch}", f".{batch}.crc"):
        (checkpoint / "commits" / name).unlink()

    write_whole(reader(spark, source).groupBy("id").count(), target, checkpoint)

    assert action(target, last, "txn")["version"] == batch
    assert counted(target) == [{"id": 1, "count": 1}, {"id": 2, "count": 1}]
    assert files <= data_files(target)
    added = [values for kind, values in actions(target, last) if kind == "add"]
    assert len([values for kind, values in actions(target, newest_version(target)) if kind == "add"]) == len(added)


def test_with_overwrite_schema_a_new_query_gives_the_table_its_columns(spark: SparkSession, tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    grow(source, [1, 2])
    write_whole(reader(spark, source).groupBy("id").count(), target, tmp_path / "first")
    renamed = reader(spark, source).groupBy("id").count().withColumnRenamed("count", "n")

    write_whole(renamed, target, tmp_path / "second", overwriteSchema="true")

    assert counted(target) == [{"id": 1, "n": 1}, {"id": 2, "n": 1}]
