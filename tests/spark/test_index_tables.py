"""IndexTables tables read by Spark: rows of a version, changes, and a stream that is copied into a Delta table."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from deltalake import DeltaTable

import tablefeed
from spark.streams import finish, reader, refusal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

STATES, COMMITS = "it053_events_avro", "itnative_events"


@pytest.fixture(params=[STATES, COMMITS])
def table(corpus: Path, request: pytest.FixtureRequest) -> Path:
    """The same commits, logged by states alone and by JSON commits."""
    name: str = request.param
    return corpus / "indextables" / name


def test_a_batch_read_has_the_rows_of_a_version_in_the_tables_types(spark: SparkSession, table: Path) -> None:
    newest = spark.read.format("tablefeed").load(str(table))
    then = spark.read.format("tablefeed").option("versionAsOf", "5").load(str(table))

    assert newest.schema.simpleString() == "struct<id:bigint,day:string,name:string,score:double,flag:boolean>"
    assert sorted(row.id for row in newest.collect()) == [200, 201, 202, 203, 204, 205]
    assert then.count() == 17


def test_a_batch_read_of_changes_tells_what_each_version_did(spark: SparkSession, table: Path) -> None:
    options = {"readChangeFeed": "true", "startingVersion": "5", "endingVersion": "7"}
    rows = spark.read.format("tablefeed").options(**options).load(str(table)).collect()

    told = Counter((row._commit_version, row._change_type) for row in rows)
    assert told == {(5, "insert"): 3, (6, "delete"): 5, (7, "delete"): 12, (7, "insert"): 4}


def test_a_stream_is_copied_into_a_delta_table_once(spark: SparkSession, tmp_path: Path, table: Path) -> None:
    copy = tmp_path / "copy"

    def run() -> None:
        stream = reader(spark, table, startingVersion=0, skipChangeCommits="true", maxFilesPerTrigger=1)
        written = stream.writeStream.format("tablefeed").option("checkpointLocation", str(tmp_path / "checkpoint"))
        finish(written.option("path", str(copy)))

    run()
    run()

    expected = tablefeed.appends(table, skip_change_commits=True).read_all()
    rows = DeltaTable(str(copy)).to_pyarrow_table()
    assert sorted(map(repr, rows.to_pylist())) == sorted(map(repr, expected.to_pylist()))
    assert rows.num_rows == 19


def test_a_write_to_one_is_refused_by_name(spark: SparkSession, table: Path) -> None:
    rows = spark.createDataFrame(
        [(1, "2024-01-01", "a", 1.0, True)], "id long, day string, name string, score double, flag boolean"
    )

    said = refusal(lambda: rows.write.format("tablefeed").mode("append").save(str(table)))

    assert "[INDEXTABLES_WRITE_UNSUPPORTED]" in said
    assert not (table / "_delta_log").exists()
