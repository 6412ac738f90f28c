"""Tables with the features that bind writers: each of the two makes them, and both write them in turn."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import tablefeed
from peer.jar_log import JarLog
from peer.tables import commit_actions
from support.logs import said
from tablefeed.feed.commit.loop import commit
from tablefeed.feed.commit.transaction import Surroundings, Transaction, batch_write
from tablefeed.feed.snapshot.open_log import open_log
from tablefeed.feed.upkeep.after_commit import after_commit
from tablefeed.feed.write.sink import plan_write, write_task
from tablefeed.log.conflicts import WriteKind

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLES: Mapping[str, str] = {
    "inCommitTimestamp": "TBLPROPERTIES ('delta.enableInCommitTimestamps' = 'true')",
    "rowTracking": "TBLPROPERTIES ('delta.enableRowTracking' = 'true')",
    "rowTracking, listed alone": "TBLPROPERTIES ('delta.feature.rowTracking' = 'supported')",
    "clustering": "CLUSTER BY (name)",
    "icebergCompatV2": "TBLPROPERTIES ('delta.enableIcebergCompatV2' = 'true')",
    "icebergCompatV2, partitioned": "PARTITIONED BY (name) TBLPROPERTIES ('delta.enableIcebergCompatV2' = 'true')",
    "materializePartitionColumns": (
        "PARTITIONED BY (name) TBLPROPERTIES ('delta.feature.materializePartitionColumns' = 'supported')"
    ),
    "rowTracking, mapped, with its own times": (
        "TBLPROPERTIES ('delta.enableRowTracking' = 'true', 'delta.columnMapping.mode' = 'name', "
        "'delta.enableInCommitTimestamps' = 'true')"
    ),
}


def rows_of(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "name": [f"n{number}" for number in ids]})


def insert(session: SparkSession, table: Path, *ids: int) -> None:
    """Has the JAR append the rows `ids`, in one file."""
    session.createDataFrame([(number, f"n{number}") for number in ids], "id LONG, name STRING").coalesce(
        1
    ).write.format("delta").mode("append").save(str(table))


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def append_after_a_rival(session: SparkSession, table: Path, ours: pa.Table, *, rival: tuple[int, ...]) -> None:
    """Plans and writes `ours`, lets the JAR commit the rows `rival`, and commits ours behind it."""
    log = open_log(str(table))
    state = log.load()
    plan = plan_write(log, state, ours.schema, partition_by=(), kind=WriteKind.APPEND)
    files = write_task(plan, ours.to_batches(), task=0, now_ms=now_ms())
    insert(session, table, *rival)
    commit(
        log,
        state,
        Transaction(plan=plan, files=files, kind=WriteKind.APPEND, operation=batch_write(WriteKind.APPEND, ())),
        Surroundings(now_ms=now_ms, sleep=time.sleep, on_committed=after_commit),
    )


def written_in_turn(session: SparkSession, table: Path, made: str) -> str:
    """A table of seven versions: 1, 4 and 6 are the JAR's, 2, 3 and 5 ours, 5 planned before 4."""
    name = f"delta.`{table}`"
    session.sql(f"CREATE TABLE {name} (id LONG, name STRING) USING delta {made}")
    insert(session, table, 0, 1)
    tablefeed.append(table, rows_of(2, 3, 4))
    tablefeed.append(table, rows_of(5))
    append_after_a_rival(session, table, rows_of(8, 9), rival=(6, 7))
    insert(session, table, 10)
    return name


@pytest.mark.in_turn
@pytest.mark.parametrize("made", TABLES.values(), ids=TABLES)
def test_both_write_a_table_with_the_feature_in_turn(delta_spark: SparkSession, tmp_path: Path, made: str) -> None:
    table = tmp_path / "table"
    name = written_in_turn(delta_spark, table, made)

    assert sorted(row["id"] for row in delta_spark.table(name).collect()) == [*range(11)]
    assert sorted(tablefeed.open_table(table).to_arrow()["id"].to_pylist()) == [*range(11)]
    history = delta_spark.sql(f"DESCRIBE HISTORY {name}").collect()
    assert [row["operation"] for row in history] == ["WRITE"] * 6 + ["CREATE TABLE"]
    times = [row["timestamp"] for row in history]
    assert times == sorted(times, reverse=True)
    log = JarLog(delta_spark, table)
    assert {n: faults for n in range(7) if (faults := log.checksum_faults(n))} == {}


def test_the_jar_finds_the_ids_of_our_rows_as_its_own(delta_spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "table"
    name = written_in_turn(delta_spark, table, TABLES["rowTracking"])
    delta_spark.sql(f"UPDATE {name} SET name = 'changed' WHERE id = 3")  # noqa: S608 - a path of this test

    of_rows = ("id", "_metadata.row_id AS row", "_metadata.row_commit_version AS version")
    found = delta_spark.table(name).selectExpr(*of_rows).collect()

    assert len({row["row"] for row in found}) == 11
    versions = {0: 1, 1: 1, 2: 2, 3: 7, 4: 2, 5: 3, 6: 4, 7: 4, 8: 5, 9: 5, 10: 6}
    assert {row["id"]: row["version"] for row in found} == versions
    assert {row["id"]: row["row"] for row in found if row["id"] in (2, 3, 4, 5, 8, 9)} == {
        2: 2,
        3: 3,
        4: 4,
        5: 5,
        8: 8,
        9: 9,
    }


CREATED: Mapping[str, Mapping[str, str]] = {
    "none": {},
    "inCommitTimestamp": {"delta.enableInCommitTimestamps": "true"},
    "rowTracking": {"delta.enableRowTracking": "true"},
    "changeDataFeed": {"delta.enableChangeDataFeed": "true"},
    "deletionVectors": {"delta.enableDeletionVectors": "true"},
    "columnMapping": {"delta.columnMapping.mode": "name"},
    "typeWidening": {"delta.enableTypeWidening": "true"},
    "v2Checkpoint": {"delta.checkpointPolicy": "v2"},
    "appendOnly": {"delta.appendOnly": "true"},
    "listed": {"delta.feature.vacuumProtocolCheck": "supported", "delta.feature.domainMetadata": "supported"},
    "icebergCompatV2": {"delta.enableIcebergCompatV2": "true"},
    "numbers": {"delta.minReaderVersion": "1", "delta.minWriterVersion": "4"},
    "numbers, and more": {
        "delta.minReaderVersion": "2",
        "delta.minWriterVersion": "5",
        "delta.enableInCommitTimestamps": "true",
    },
    "two": {"delta.enableChangeDataFeed": "true", "delta.columnMapping.mode": "id"},
}


def drawn(properties: Mapping[str, str]) -> dict[str, str]:
    """Properties, of those whose values are drawn at random the names alone."""
    return {name: "" if name.endswith("ColumnName") else value for name, value in properties.items()}


@pytest.mark.in_turn
@pytest.mark.parametrize("properties", CREATED.values(), ids=CREATED)
def test_a_table_that_we_create_has_the_protocol_and_the_properties_that_the_jar_gives_it(
    delta_spark: SparkSession, tmp_path: Path, properties: Mapping[str, str]
) -> None:
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    tablefeed.append(ours, rows_of(1), properties=properties)
    listed = ", ".join(f"'{name}' = '{value}'" for name, value in properties.items())
    made = f"TBLPROPERTIES ({listed})" if listed else ""
    delta_spark.sql(f"CREATE TABLE delta.`{theirs}` (id LONG, name STRING) USING delta {made}")

    ours_is, theirs_is = (dict(commit_actions(table, 0)) for table in (ours, theirs))

    for protocol in (ours_is["protocol"], theirs_is["protocol"]):
        for features in ("readerFeatures", "writerFeatures"):
            protocol[features] = sorted(protocol.get(features) or [])
    assert ours_is["protocol"] == theirs_is["protocol"]
    assert drawn(ours_is["metaData"]["configuration"]) == drawn(theirs_is["metaData"]["configuration"])
    insert(delta_spark, ours, 2)
    tablefeed.append(ours, rows_of(3))
    assert delta_spark.read.format("delta").load(str(ours)).count() == 3


def test_the_jar_finds_the_clustering_columns_of_a_table_that_we_made_and_clusters_it(
    delta_spark: SparkSession, tmp_path: Path
) -> None:
    rows = delta_spark.sql("SELECT id, named_struct('city', CAST(id AS STRING)) AS place FROM range(4)")

    for name, mapping in {"plain": {}, "mapped": {"delta.columnMapping.mode": "name"}}.items():
        table = tmp_path / name
        writer = rows.write.format("tablefeed").mode("append").option("clusterBy", "id, Place.city")
        writer.options(**mapping).save(str(table))
        rows.write.format("tablefeed").mode("append").option("clusterBy", "id, place.city").save(str(table))
        found = delta_spark.sql(f"DESCRIBE DETAIL delta.`{table}`").collect()[0]
        assert found["clusteringColumns"] == ["id", "place.city"]
        assert {"clustering", "domainMetadata"} <= set(found["tableFeatures"])

        delta_spark.sql(f"OPTIMIZE delta.`{table}`")

        assert [each["clusteringProvider"] for each in said(table, 2, "add")] == ["liquid"]
        assert tablefeed.open_table(table).to_arrow().num_rows == 8
