"""Tables of the JAR that we copied, as the JAR sees the copies: rows and their ids, changes, and a table to write."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import tablefeed
from peer.tables import run
from tablefeed.feed.upkeep.background import wait_until_done
from tablefeed.model.actions import Version
from tablefeed.model.outcome import Replicated

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EVERYTHING = (
    "delta.enableDeletionVectors = true, delta.enableChangeDataFeed = true, delta.enableRowTracking = true, "
    "delta.columnMapping.mode = 'name'"
)
HISTORY = (
    "INSERT INTO {t} SELECT id, CONCAT('n', id) FROM range(0, 200)",
    "DELETE FROM {t} WHERE id % 3 = 0",
    "UPDATE {t} SET name = 'changed' WHERE id < 10",
    "ALTER TABLE {t} RENAME COLUMN name TO label",
    "ALTER TABLE {t} SET TBLPROPERTIES (delta.enableInCommitTimestamps = true)",
    "MERGE INTO {t} t USING (SELECT id FROM range(190, 210)) s ON t.id = s.id "
    "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id, label) VALUES (s.id, 'new')",
    "OPTIMIZE {t}",
    "ALTER TABLE {t} ADD COLUMN more INT",
    "INSERT OVERWRITE {t} SELECT id, 'last', 1 FROM range(0, 5)",
    "RESTORE TABLE {t} TO VERSION AS OF 7",
)


def found(session: SparkSession, query: str, table: Path) -> list[str]:
    return sorted(map(str, session.sql(query.format(t=f"delta.`{table}`", p=table)).collect()))


def test_the_jar_finds_the_rows_their_ids_and_the_changes_of_each_version(
    delta_spark: SparkSession, tmp_path: Path
) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    run(
        delta_spark,
        source,
        "CREATE TABLE {t} (id LONG, name STRING) USING delta CLUSTER BY (id) TBLPROPERTIES ({properties})",
        properties=EVERYTHING,
    )
    for statement in HISTORY:
        run(delta_spark, source, statement)

    done = tablefeed.replicate(source, target, starting_version=0, verify=True)
    wait_until_done()

    assert done.version == done.source_version == tablefeed.open_table(source).version
    with_ids = "SELECT *, _metadata.row_id, _metadata.row_commit_version FROM {t} VERSION AS OF "
    for version in (1, 2, 3, 6, 7, done.version):
        assert found(delta_spark, with_ids + str(version), target) == found(
            delta_spark, with_ids + str(version), source
        )
    changes = "SELECT * EXCEPT (_commit_timestamp) FROM table_changes_by_path('{p}', 1, 3)"
    assert found(delta_spark, changes, target) == found(delta_spark, changes, source)
    detail = ("clusteringColumns", "partitionColumns", "numFiles", "sizeInBytes", "tableFeatures")
    described = [delta_spark.sql(f"DESCRIBE DETAIL delta.`{t}`").select(*detail).collect() for t in (source, target)]
    assert described[0] == described[1]


def test_the_jar_writes_a_copy_which_is_then_no_copy_any_more(delta_spark: SparkSession, tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    run(
        delta_spark,
        source,
        "CREATE TABLE {t} (id LONG) USING delta TBLPROPERTIES ({properties})",
        properties=EVERYTHING,
    )
    run(delta_spark, source, "INSERT INTO {t} SELECT id FROM range(0, 100)")
    run(delta_spark, source, "DELETE FROM {t} WHERE id < 50")
    tablefeed.replicate(source, target)
    run(delta_spark, source, "UPDATE {t} SET id = -id WHERE id = 60")
    assert tablefeed.replicate(source, target) == Replicated(
        version=Version(1), source_version=Version(3), commits=1, files=3
    )
    ids = "SELECT id, _metadata.row_id FROM {t}"
    assert found(delta_spark, ids, target) == found(delta_spark, ids, source)

    run(delta_spark, target, "UPDATE {t} SET id = id + 1000 WHERE id = 70")
    run(delta_spark, target, "INSERT INTO {t} VALUES (7)")

    rows = found(delta_spark, ids, target)
    assert len(rows) == 51
    assert len({row.rpartition("=")[2] for row in rows}) == 51  # no id of a row is given twice
    with pytest.raises(tablefeed.TablefeedError, match="TABLEFEED_REPLICA_CHANGED"):
        tablefeed.replicate(source, target)
