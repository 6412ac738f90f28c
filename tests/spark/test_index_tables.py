"""IndexTables tables read by Spark: rows of a version, changes, and a stream that is copied into a Delta table."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from deltalake import DeltaTable

import tablefeed
from spark.streams import finish, reader
from support.session import environment

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROW = "id long, day string, name string, score double, flag boolean"
STATES, COMMITS = "it053_events_avro", "itnative_events"


@pytest.fixture(params=[STATES, pytest.param(COMMITS, marks=pytest.mark.one_spark)])
def table(index_tables: Path, request: pytest.FixtureRequest) -> Path:
    """The same commits, logged by states alone and by JSON commits."""
    name: str = request.param
    return index_tables / name


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


def test_a_batch_write_appends_and_overwrites_in_the_flavour_of_the_log(
    spark: SparkSession, tmp_path: Path, table: Path
) -> None:
    copy = tmp_path / "table"
    shutil.copytree(table, copy)
    before = tablefeed.open_table(copy)
    rows = spark.createDataFrame([(1, "2024-01-01", "a", 1.0, True)], ROW)

    rows.write.format("tablefeed").mode("append").save(str(copy))
    assert spark.read.format("tablefeed").load(str(copy)).count() == before.to_arrow().num_rows + 1
    rows.write.format("tablefeed").mode("overwrite").save(str(copy))

    assert [row.id for row in spark.read.format("tablefeed").load(str(copy)).collect()] == [1]
    assert tablefeed.open_table(copy).version == before.version + 2
    assert (copy / "_transaction_log" / f"{before.version + 2:020d}.json").exists() == (table.name == COMMITS)
    assert not (copy / "_delta_log").exists()


def test_a_batch_write_that_is_run_again_is_written_once(spark: SparkSession, tmp_path: Path) -> None:
    made = str(tmp_path / "made")
    rows = spark.createDataFrame([(n, f"2024-01-0{n}", "a", 1.0, True) for n in range(1, 5)], ROW).repartition(3)

    def write(**options: str) -> None:
        write = rows.write.format("tablefeed").mode("append").option("tableFormat", "indextables")
        write.option("partitionBy", "day").options(**options).save(made)

    for _ in range(2):
        write(txnAppId="loader", txnVersion="1")
    assert tablefeed.open_table(made).to_arrow().num_rows == 4
    write(txnAppId="loader", txnVersion="2")
    assert tablefeed.open_table(made).to_arrow().num_rows == 8


def test_a_stream_is_copied_into_a_new_table_once_over_restarts(spark: SparkSession, tmp_path: Path) -> None:
    source, made = tmp_path / "source", tmp_path / "made"

    def run() -> None:
        stream = reader(spark, source, startingVersion=0, maxFilesPerTrigger=1)
        written = stream.writeStream.format("tablefeed").option("checkpointLocation", str(tmp_path / "checkpoint"))
        finish(written.option("tableFormat", "indextables").option("path", str(made)))

    for number in range(3):
        tablefeed.append(source, pa.table({"id": [number], "name": [f"row {number}"]}))
        run()
    last = max((tmp_path / "checkpoint" / "commits").iterdir(), key=lambda path: path.name)
    for path in (last, last.with_name(f".{last.name}.crc")):
        path.unlink()  # as if Spark had been killed before it noted the last batch: it runs it again
    run()

    rows = tablefeed.open_table(made).to_arrow()
    assert sorted(zip(rows["id"].to_pylist(), rows["name"].to_pylist(), strict=True)) == [
        (number, f"row {number}") for number in range(3)
    ]
    assert (made / "_transaction_log").is_dir()


@pytest.mark.slow
@pytest.mark.one_spark
def test_delta_to_indextables_to_delta_killed_half_way_ends_with_equal_rows(tmp_path: Path) -> None:
    example = Path(__file__).parents[2] / "examples" / "round_trip.py"
    given = {**os.environ, **environment(tmp_path)}

    ended = subprocess.run([sys.executable, str(example), "4"], env=given, capture_output=True, text=True, check=False)

    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert ended.stdout.splitlines()[-1].startswith("Proven: 2,000 rows in all three tables")
