"""A query in complete mode: each batch takes the place of the one before, in one commit."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from deltalake import DeltaTable

from spark.streams import action, actions, finish, grow, newest_version, reader

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


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
