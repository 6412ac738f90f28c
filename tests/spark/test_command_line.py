"""The command line beside queries that ran: their checkpoints are those that Spark writes."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import tablefeed
from support.command_line import run

pytestmark = pytest.mark.usefixtures("few_rows")


def _copied(spark: SparkSession, source: Path, target: Path, checkpoint: Path) -> list[int]:
    rows = spark.readStream.format("tablefeed").load(str(source))
    writer = rows.writeStream.format("tablefeed").option("checkpointLocation", str(checkpoint))
    query = writer.trigger(availableNow=True).start(str(target))
    query.awaitTermination()
    return sorted(tablefeed.open_table(target).to_arrow()["id"].to_pylist())


def test_a_query_that_is_reset_goes_on_from_there_and_commits_under_new_batch_ids(
    spark: SparkSession, tmp_path: Path
) -> None:
    source, target, checkpoint = tmp_path / "source", tmp_path / "target", tmp_path / "checkpoint"
    for number in range(3):
        tablefeed.append(source, pa.table({"id": [number]}))
    assert _copied(spark, source, target, checkpoint) == [0, 1, 2]
    tablefeed.append(source, pa.table({"id": [3]}))

    (behind,) = run("lag", checkpoint, "--table", source, "--json").records
    checked = run("offsets", "check", checkpoint, "--table", source)
    (shown,) = run("offsets", "show", checkpoint, "--json").records
    reset = run("offsets", "reset", checkpoint, "--table", source, "--to", 2, "--write")

    assert (behind["versions_behind"], behind["files_outstanding"]) == (1, 1)
    assert (checked.code, shown["is_done"], reset.code) == (0, True, 0)
    assert _copied(spark, source, target, checkpoint) == [0, 1, 2, 2, 3]
    assert tablefeed.open_table(target).txn_version(shown["query_id"]) == shown["batch"] + 2
    assert run("lag", checkpoint, "--table", source, "--json").records[0]["versions_behind"] == 0
