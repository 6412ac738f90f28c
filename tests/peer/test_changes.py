"""The change feed of tables that the JAR wrote: its rows are ours, and where it refuses, so do we."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import PySparkException

import tablefeed
from peer.tables import rows, run
from tablefeed.errors import TablefeedError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RECORDED = "'delta.enableChangeDataFeed' = 'true'"

EVERY_STATEMENT = (
    "CREATE TABLE {t} (id LONG, v STRING, p STRING) USING delta PARTITIONED BY (p) TBLPROPERTIES (" + RECORDED + ")",
    "INSERT INTO {t} SELECT id, concat('v', id), CAST(id % 3 AS STRING) FROM range(0, 60, 1, 2)",
    "UPDATE {t} SET v = 'u' WHERE id % 5 = 0",
    "DELETE FROM {t} WHERE id < 7",
    "DELETE FROM {t} WHERE p = '2'",
    "MERGE INTO {t} t USING (SELECT id, 'n' v, '9' p FROM range(50, 70)) s ON t.id = s.id "
    "WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT *",
    "MERGE INTO {t} t USING (SELECT -1L id) s ON t.id = s.id WHEN MATCHED THEN DELETE",
    "OPTIMIZE {t}",
    "ALTER TABLE {t} ADD COLUMNS (n INT)",
    "INSERT INTO {t} VALUES (100, NULL, NULL, 1)",
    "RESTORE TABLE {t} TO VERSION AS OF 3",
    "INSERT OVERWRITE {t} SELECT id, 'o', 'x' FROM range(3)",
    "VACUUM {t}",
    "UPDATE {t} SET p = 'moved'",
)

UNDER_DELETION_VECTORS = (
    "CREATE TABLE {t} (id LONG, v STRING, p STRING) USING delta PARTITIONED BY (p) TBLPROPERTIES ("
    + RECORDED
    + ", 'delta.enableDeletionVectors' = 'true', 'delta.columnMapping.mode' = 'name', "
    "'delta.enableInCommitTimestamps' = 'true')",
    "INSERT INTO {t} SELECT id, concat('v', id), CAST(id % 2 AS STRING) FROM range(0, 90, 1, 1)",
    "DELETE FROM {t} WHERE id % 7 = 0",
    "DELETE FROM {t} WHERE id % 5 = 0",
    "ALTER TABLE {t} ADD COLUMNS (n STRUCT<x: INT>)",
    "UPDATE {t} SET v = 'u' WHERE id < 20",
    "RESTORE TABLE {t} TO VERSION AS OF 2",
    "MERGE INTO {t} t USING (SELECT id, 'n' v, '0' p FROM range(80, 100)) s ON t.id = s.id AND t.p = s.p "
    "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id, v, p) VALUES (s.id, s.v, s.p)",
    "REORG TABLE {t} APPLY (PURGE)",
    "DELETE FROM {t} WHERE p = '1'",
)

RENAMED_AND_REPLACED = (
    "CREATE TABLE {t} (id LONG, v STRING) USING delta TBLPROPERTIES ("
    + RECORDED
    + ", 'delta.columnMapping.mode' = 'name')",
    "INSERT INTO {t} VALUES (1, 'a'), (2, 'b')",
    "ALTER TABLE {t} RENAME COLUMN v TO w",
    "UPDATE {t} SET w = 'c' WHERE id = 1",
    "ALTER TABLE {t} DROP COLUMN w",
    "DELETE FROM {t} WHERE id = 2",
    "CREATE OR REPLACE TABLE {t} USING delta TBLPROPERTIES (" + RECORDED + ") AS SELECT 5 AS id, 'r' AS other",
    "INSERT INTO {t} VALUES (6, 's')",
)

REPLACED_PLAIN = (
    "CREATE TABLE {t} USING delta TBLPROPERTIES (" + RECORDED + ") AS SELECT 1L AS id, 'a' AS v",
    "CREATE OR REPLACE TABLE {t} USING delta TBLPROPERTIES (" + RECORDED + ") AS SELECT 2L AS id, 'b' AS v",
    "CREATE OR REPLACE TABLE {t} USING delta TBLPROPERTIES (" + RECORDED + ") AS SELECT 3L AS id, 3 AS d",
    "INSERT INTO {t} VALUES (4, NULL)",
)

OFF_FOR_A_WHILE = (
    "CREATE TABLE {t} (id LONG) USING delta",
    "INSERT INTO {t} VALUES (1)",
    "ALTER TABLE {t} SET TBLPROPERTIES (" + RECORDED + ")",
    "INSERT INTO {t} VALUES (2)",
    "DELETE FROM {t} WHERE id = 1",
    "ALTER TABLE {t} UNSET TBLPROPERTIES ('delta.enableChangeDataFeed')",
    "INSERT INTO {t} VALUES (3)",
    "ALTER TABLE {t} SET TBLPROPERTIES (" + RECORDED + ")",
    "INSERT INTO {t} VALUES (4)",
)

CLONED = (
    "CREATE TABLE {t_source} (id LONG, v STRING) USING delta",
    "INSERT INTO {t_source} SELECT id, 's' FROM range(0, 9, 1, 1)",
    "CREATE TABLE {t} SHALLOW CLONE {t_source} TBLPROPERTIES (" + RECORDED + ")",
    "UPDATE {t} SET v = 'u' WHERE id > 5",
    "DELETE FROM {t} WHERE id = 0",
)


@pytest.mark.in_turn
@pytest.mark.parametrize(
    "story",
    [
        pytest.param(EVERY_STATEMENT, id="every statement"),
        pytest.param(UNDER_DELETION_VECTORS, id="under deletion vectors"),
        pytest.param(RENAMED_AND_REPLACED, id="renamed and replaced"),
        pytest.param(REPLACED_PLAIN, id="replaced"),
        pytest.param(OFF_FOR_A_WHILE, id="off for a while"),
        pytest.param(CLONED, id="cloned"),
    ],
)
def test_every_range_has_the_jars_changes_or_its_refusal(
    delta_spark: SparkSession, tmp_path: Path, story: Sequence[str]
) -> None:
    table = f"{tmp_path}/t"
    run(delta_spark, Path(table), *story)
    newest = tablefeed.open_table(table).version

    for first, last in ranges(newest):
        assert ours(table, first, last) == in_spark(delta_spark, "delta", table, first, last), (first, last)
        if last == newest and first in (0, newest // 2, newest):  # whose schema a batch read of ours in Spark has
            assert in_spark(delta_spark, "tablefeed", table, first, last) == ours(table, first, last), first


def ranges(newest: int) -> Iterator[tuple[int, int]]:
    """Every version alone, and all from it on."""
    for version in range(newest + 1):
        yield from {(version, version), (version, newest)}


def ours(table: str, first: int, last: int) -> list[str] | str | None:
    """The changed rows as text, sorted; or the class of our refusal."""
    try:
        return rows(tablefeed.changes(table, start_version=first, end_version=last).read_all())
    except TablefeedError as error:
        return error.error_class


def in_spark(spark: SparkSession, name: str, table: str, first: int, last: int) -> list[str] | str | None:
    """The same of a batch read in Spark by the format `name`."""
    reader = spark.read.format(name).option("readChangeFeed", "true")
    try:
        return rows(reader.option("startingVersion", first).option("endingVersion", last).load(table).toArrow())
    except PySparkException as error:
        return str(re.findall(r"DELTA_[A-Z_]+", str(error))[0])
