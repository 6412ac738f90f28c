"""Row ids and row commit versions: the JAR reads those that our changes kept, and keeps them itself."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import tablefeed
from peer.tables import commit_actions, run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KINDS: Mapping[str, str] = {
    "copied": "'delta.enableDeletionVectors' = 'false'",
    "vectors, mapped by name, fed": (
        "'delta.enableDeletionVectors' = 'true', 'delta.columnMapping.mode' = 'name', "
        "'delta.enableChangeDataFeed' = 'true'"
    ),
    "copied, mapped by id": "'delta.enableDeletionVectors' = 'false', 'delta.columnMapping.mode' = 'id'",
}
Ids = dict[int, tuple[int, int]]


def ids(session: SparkSession, table: Path) -> Ids:
    """The row id and the row commit version of each row, by its column `id`."""
    asked = ("id", "_metadata.row_id AS row", "_metadata.row_commit_version AS version")
    rows = session.read.format("delta").load(str(table)).selectExpr(*asked).collect()
    found = {row["id"]: (row["row"], row["version"]) for row in rows}
    assert len(found) == len(rows) == len({row for row, _ in found.values()})
    return found


def split(found: Ids) -> tuple[Ids, list[tuple[int, int]]]:
    """The rows that were there at first, and of the new ones only the column `id` and the version."""
    old = {row: each for row, each in found.items() if row < 20}
    return old, sorted((row, version) for row, (_, version) in found.items() if row >= 20)


@pytest.mark.in_turn
@pytest.mark.parametrize("properties", KINDS.values(), ids=KINDS)
def test_the_jar_reads_the_ids_that_our_changes_kept(
    delta_spark: SparkSession, tmp_path: Path, properties: str
) -> None:
    """Of two copies of a table the JAR changes one, and we the other in the same way."""
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    set_on = f"'delta.enableRowTracking' = 'true', {properties}"
    run(delta_spark, theirs, f"CREATE TABLE {{t}} (id LONG, v LONG) USING delta TBLPROPERTIES ({set_on})")
    for first, last in ((0, 10), (10, 20)):
        one_file = "INSERT INTO {t} SELECT /*+ REPARTITION(1) */ id, 0 FROM range({first}, {last})"
        run(delta_spark, theirs, one_file, first=first, last=last)
    shutil.copytree(theirs, ours)
    assert split(ids(delta_spark, ours)) == split(ids(delta_spark, theirs))

    run(delta_spark, theirs, "UPDATE {t} SET v = 1 WHERE id IN (3, 12)")
    tablefeed.update(ours, {"v": "1"}, "id IN (3, 12)")
    run(delta_spark, theirs, "DELETE FROM {t} WHERE id IN (4, 5)")
    tablefeed.delete(ours, "id IN (4, 5)")
    source = "SELECT id, 5 AS v FROM VALUES (3L), (13L), (20L) AS r(id)"
    clauses = "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    run(delta_spark, theirs, f"MERGE INTO {{t}} target USING ({source}) s ON target.id = s.id {clauses}")
    tablefeed.apply_changes(ours, pa.table({"id": [3, 13, 20], "v": [5, 5, 5]}), keys="id", sequence_by="v")
    assert split(ids(delta_spark, ours)) == split(ids(delta_spark, theirs))

    before = ids(delta_spark, ours)
    run(delta_spark, theirs, "OPTIMIZE {t}")
    assert tablefeed.optimize(ours).files_added == 1
    assert ids(delta_spark, ours) == before
    assert split(before) == split(ids(delta_spark, theirs))

    run(delta_spark, ours, "UPDATE {t} SET v = 6 WHERE id = 14")
    tablefeed.optimize(ours)
    after = ids(delta_spark, ours)
    row, _ = before[14]
    assert after == before | {14: (row, after[14][1])}


@pytest.mark.in_turn
def test_files_from_before_row_tracking_come_back_with_the_jars_ids(delta_spark: SparkSession, tmp_path: Path) -> None:
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    run(
        delta_spark,
        theirs,
        "CREATE TABLE {t} (id LONG) USING delta TBLPROPERTIES ('delta.enableDeletionVectors'='false')",
    )
    one_file = "INSERT INTO {t} SELECT /*+ REPARTITION(1) */ id FROM range({first}, {last})"
    run(delta_spark, theirs, one_file, first=0, last=10)
    run(delta_spark, theirs, one_file, first=10, last=20)
    run(delta_spark, theirs, "DELETE FROM {t}")
    run(delta_spark, theirs, "ALTER TABLE {t} SET TBLPROPERTIES ('delta.feature.rowTracking' = 'supported')")
    run(delta_spark, theirs, one_file, first=20, last=30)
    shutil.copytree(theirs, ours)

    run(delta_spark, theirs, "RESTORE TABLE {t} TO VERSION AS OF 2")
    restored = tablefeed.restore(ours, version=2).version

    for table in (ours, theirs):
        actions = commit_actions(table, restored)
        given = [(a["baseRowId"], a["defaultRowCommitVersion"]) for kind, a in actions if kind == "add"]
        assert sorted(given) == [(10, restored), (20, restored)]
        (domain,) = (action for kind, action in actions if kind == "domainMetadata")
        assert json.loads(domain["configuration"])["rowIdHighWaterMark"] == 29
    run(delta_spark, ours, "ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableRowTracking' = 'true')")
    assert sorted(row for row, _ in ids(delta_spark, ours).values()) == [*range(10, 30)]
