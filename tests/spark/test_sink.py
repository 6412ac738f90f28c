"""A query that writes to a table: one commit a batch, recorded as that batch, and never twice."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from deltalake import DeltaTable

from spark.streams import (
    action,
    actions,
    copy,
    data_files,
    grow,
    ids_by_delta_rs,
    newest_version,
    reader,
    write_out,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def forget_last_batch(checkpoint: Path) -> None:
    """Makes the last batch one that Spark planned and does not know the end of."""
    last = max(int(file.name) for file in (checkpoint / "commits").glob("[0-9]*"))
    for name in (f"{last}", f".{last}.crc"):
        (checkpoint / "commits" / name).unlink()


def test_the_first_batch_makes_the_table_and_each_batch_is_one_commit(spark: SparkSession, tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    grow(source, [1, 2], [3], [4])

    query_id = write_out(reader(spark, source, maxFilesPerTrigger=1), target, tmp_path / "checkpoint")

    assert ids_by_delta_rs(target) == [1, 2, 3, 4]
    assert newest_version(target) == 2
    assert [kind for kind, _ in actions(target, 0)] == ["commitInfo", "metaData", "protocol", "txn", "add"]
    for version in range(3):
        txn = action(target, version, "txn")
        assert (txn["appId"], txn["version"]) == (query_id, version)
        assert txn["lastUpdated"] > 0


def test_a_commit_describes_itself_as_delta_sparks_streaming_update(spark: SparkSession, tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    grow(source, [1, 2], [3])

    stream = reader(spark, source, maxFilesPerTrigger=1)
    query_id = write_out(stream, target, tmp_path / "checkpoint", userMetadata="nightly")

    info = action(target, 1, "commitInfo")
    size = sum(a["size"] for kind, a in actions(target, 1) if kind == "add")
    assert info.pop("timestamp") > 0
    assert info.pop("engineInfo").startswith("tablefeed/")
    assert len(info.pop("txnId")) == 36
    assert info == {
        "operation": "STREAMING UPDATE",
        "operationParameters": {"outputMode": "Append", "queryId": query_id, "epochId": "1"},
        "readVersion": 0,
        "isolationLevel": "Serializable",
        "isBlindAppend": True,
        "operationMetrics": {
            "numRemovedFiles": "0",
            "numAddedFiles": "1",
            "numOutputRows": "1",
            "numOutputBytes": str(size),
        },
        "userMetadata": "nightly",
    }
    history = DeltaTable(str(target)).history(1)[0]
    assert (history["operation"], history["userMetadata"]) == ("STREAMING UPDATE", "nightly")


def test_a_query_restarted_on_its_checkpoint_writes_only_what_is_new(spark: SparkSession, tmp_path: Path) -> None:
    source, target, checkpoint = tmp_path / "source", tmp_path / "target", tmp_path / "checkpoint"
    grow(source, [1], [2])
    copy(spark, source, target, checkpoint)
    grow(source, [3])

    copy(spark, source, target, checkpoint)

    assert ids_by_delta_rs(target) == [1, 2, 3]
    assert newest_version(target) == 1


def test_a_batch_run_again_after_its_commit_writes_no_file_and_no_version(
    session: SparkSession, tmp_path: Path
) -> None:
    source, target, checkpoint = tmp_path / "source", tmp_path / "target", tmp_path / "checkpoint"
    grow(source, [1], [2])
    query_id = copy(session, source, target, checkpoint)
    files = data_files(target)
    forget_last_batch(checkpoint)

    assert copy(session, source, target, checkpoint) == query_id

    assert ids_by_delta_rs(target) == [1, 2]
    assert newest_version(target) == 0
    assert data_files(target) == files
    assert DeltaTable(str(target)).transaction_version(query_id) == 0


def test_a_batch_without_rows_is_recorded_without_files(spark: SparkSession, tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    grow(source, [1], [2])

    stream = reader(spark, source, maxFilesPerTrigger=1).filter("id <> 2")
    query_id = write_out(stream, target, tmp_path / "checkpoint")

    assert newest_version(target) == 1
    assert [kind for kind, _ in actions(target, 1)] == ["commitInfo", "txn"]
    assert DeltaTable(str(target)).transaction_version(query_id) == 1
    assert ids_by_delta_rs(target) == [1]


def test_foreach_batch_writes_each_batch_once_with_a_transaction_of_its_own(
    spark: SparkSession, tmp_path: Path
) -> None:
    source, target, checkpoint = tmp_path / "source", tmp_path / "target", tmp_path / "checkpoint"
    grow(source, [1], [2])

    def write(rows: DataFrame, batch_id: int) -> None:
        options = {"txnAppId": "loader", "txnVersion": str(batch_id)}
        rows.write.format("tablefeed").mode("append").options(**options).save(str(target))

    def run() -> None:
        stream = reader(spark, source, maxFilesPerTrigger=1)
        query = stream.writeStream.foreachBatch(write).option("checkpointLocation", str(checkpoint))
        query.trigger(availableNow=True).start().awaitTermination()

    run()
    assert newest_version(target) == 1
    forget_last_batch(checkpoint)
    run()

    assert newest_version(target) == 1
    assert ids_by_delta_rs(target) == [1, 2]
    assert action(target, 1, "commitInfo")["operation"] == "WRITE"
