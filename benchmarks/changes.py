"""`python -m benchmarks.changes`: the table of the change feed, made by the Delta JAR's own SQL.

Half of the rows that its feed gives are inserted, the others are updated (each is two: before and after) and deleted;
change files record some of these changes, deletion vectors the others. Each statement touches all files.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from benchmarks.questions import Setting, Side
from benchmarks.session import start_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

INSERTS = 5

ROWS_A_FILE = 250_000
"""The most rows of a file. The JAR's stream fails ("encoded string too long") where the rows that a deletion vector
removes from a file need more than 64 KB, as those of a file with twice as many rows do here."""

_VECTORS = "spark.databricks.delta.{}.deletionVectors.persistent"


def change_counts(inserted: int) -> dict[tuple[str], int]:
    """Gives how many changes of each type the feed of a table has into which `inserted` rows were inserted.

    `inserted` is a multiple of 20 rows for each of the insertions, so that each twentieth of the ids is as large.
    """
    twentieth = inserted // 20
    return {
        ("insert",): inserted,
        ("update_preimage",): 6 * twentieth,
        ("update_postimage",): 6 * twentieth,
        ("delete",): 8 * twentieth,
    }


def make_in_a_process(table: Path, *, inserted: int, jars: Path) -> None:
    """Makes the table in a process of its own. Raises SystemExit with its last words where it fails."""
    command = [sys.executable, "-m", "benchmarks.changes", str(table), "--inserted", str(inserted)]
    ended = subprocess.run([*command, "--peer-jars", str(jars)], capture_output=True, text=True, check=False)
    if ended.returncode:
        raise SystemExit(f"the table of changes could not be made:\n{ended.stderr[-4000:]}")


def make(spark: SparkSession, table: Path, inserted: int) -> None:
    """Makes the table: rows are inserted, updated and deleted, first by copies of files and then by vectors."""
    properties = "'delta.enableChangeDataFeed' = 'true', 'delta.enableDeletionVectors' = 'true'"
    spark.conf.set("spark.sql.files.maxRecordsPerFile", ROWS_A_FILE)
    columns = "id BIGINT, key BIGINT, value DOUBLE, name STRING"
    spark.sql(f"CREATE TABLE delta.`{table}` ({columns}) USING delta TBLPROPERTIES ({properties})")
    each = inserted // INSERTS
    for number in range(INSERTS):
        rows = spark.range(number * each, (number + 1) * each, numPartitions=2).selectExpr(
            "id", "xxhash64(id) AS key", "xxhash64(id, 1) / 1e6 AS value", "substr(sha1(string(id)), 1, 20) AS name"
        )
        rows.write.format("delta").mode("append").save(str(table))
    for vectors, updated, deleted in (("false", "1, 2, 3", "7, 8, 9, 10"), ("true", "4, 5, 6", "11, 12, 13, 14")):
        for statement in ("update", "delete"):
            spark.conf.set(_VECTORS.format(statement), vectors)
        spark.sql(f"UPDATE delta.`{table}` SET value = value + 1 WHERE id % 20 IN ({updated})")  # noqa: S608
        spark.sql(f"DELETE FROM delta.`{table}` WHERE id % 20 IN ({deleted})")  # noqa: S608


def main() -> None:
    """Makes the table that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table", type=Path)
    parser.add_argument("--inserted", type=int, required=True)
    parser.add_argument("--peer-jars", type=Path, required=True)
    given = parser.parse_args()
    with TemporaryDirectory(prefix="tablefeed-bench-", dir=given.table.parent) as scratch:
        spark = start_session(Side.JAR, Setting.DEFAULT, scratch=Path(scratch), jars=given.peer_jars)
        make(spark, given.table.resolve(), given.inserted)
        spark.stop()


if __name__ == "__main__":
    main()
