"""Spark's own places for a data source: SQL, and the logs of Python workers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException

import tablefeed
from spark.streams import reader

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.one_spark, pytest.mark.usefixtures("few_rows")]


def test_sql_reads_a_table_its_versions_and_its_changes_and_joins_a_stream_by_views(
    spark: SparkSession, tmp_path: Path
) -> None:
    table, copy = str(tmp_path / "t"), str(tmp_path / "copy")
    tablefeed.append(table, pa.table({"id": [1, 2]}), properties={"delta.enableChangeDataFeed": "true"})
    tablefeed.delete(table, "id = 1")

    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW now USING tablefeed OPTIONS (path '{table}')")
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW before USING tablefeed OPTIONS (path '{table}', versionAsOf '0')")
    spark.sql(
        "CREATE OR REPLACE TEMPORARY VIEW changes USING tablefeed "
        f"OPTIONS (path '{table}', readChangeFeed 'true', startingVersion '0')"
    )
    tablefeed.append(table, pa.table({"id": [3]}))  # a view has the version that was the newest when it was made
    assert [row.id for row in spark.sql("SELECT id FROM now").collect()] == [2]
    assert [row.id for row in spark.sql("SELECT b.id FROM before b LEFT ANTI JOIN now n USING (id)").collect()] == [1]
    changed = spark.sql("SELECT id FROM changes WHERE _change_type = 'delete'").collect()
    assert [row.id for row in changed] == [1]

    reader(spark, tmp_path / "t", skipChangeCommits="true", startingVersion=0).createOrReplaceTempView("appended")
    rows = spark.sql("SELECT a.id * 10 AS id FROM appended a JOIN before b USING (id)")
    query = rows.writeStream.format("tablefeed").option("checkpointLocation", str(tmp_path / "c"))
    query.trigger(availableNow=True).start(copy).awaitTermination()
    assert sorted(tablefeed.open_table(copy).to_arrow()["id"].to_pylist()) == [10, 20]


def test_sql_inserts_into_a_view_and_is_refused_where_it_needs_a_catalog(spark: SparkSession, tmp_path: Path) -> None:
    table = str(tmp_path / "t")
    tablefeed.append(table, pa.table({"id": [1]}))
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW now USING tablefeed OPTIONS (path '{table}')")

    spark.sql("INSERT INTO now VALUES (5)")
    spark.sql("INSERT OVERWRITE now SELECT id + 1 FROM VALUES (5), (6) AS v (id)")
    with pytest.raises(PySparkException, match="No path was given"):
        spark.range(1).write.format("tablefeed").saveAsTable("saved")

    with pytest.raises(PySparkException, match="does not support deletes"):
        spark.sql("DELETE FROM now WHERE id = 6")
    written = tablefeed.open_table(table)
    assert (written.version, sorted(written.to_arrow()["id"].to_pylist())) == (2, [6, 7])


def test_the_logs_of_spark_have_the_lines_of_the_worker_that_commits(spark: SparkSession, tmp_path: Path) -> None:
    table, sink = str(tmp_path / "t"), str(tmp_path / "sink")
    tablefeed.append(table, pa.table({"id": [1]}))
    session = spark.newSession()
    session.conf.set("spark.sql.pyspark.worker.logging.enabled", "true")
    rows = session.read.format("tablefeed").load(table)
    # The table records a later version of the application, of which the process that commits warns.
    for version in (7, 3):
        written = rows.write.format("tablefeed").mode("append")
        written.options(txnAppId="etl", txnVersion=version).save(sink)

    logs = session.tvf.python_worker_logs().collect()
    [skipped] = [row for row in logs if row.logger == "tablefeed.feed.commit.collisions"]
    assert (skipped.level, "of the application etl" in skipped.msg) == ("WARNING", True)
