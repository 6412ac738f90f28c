"""What we leave beside the commits: the JAR finds our checksums right, reads our checkpoints, and goes on from both."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tablefeed
from peer.jar_log import JarLog
from peer.tables import read, rows, run
from tablefeed.feed.snapshot.open_log import open_maintained
from tablefeed.feed.upkeep.background import wait_until_done
from tablefeed.feed.upkeep.delta_checkpoint import write_checkpoint

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EVERY_BOUND = (
    "CREATE TABLE {t} (id LONG, n INT, sh SHORT, by BYTE, d DOUBLE, f FLOAT, dec DECIMAL(10,2), wide DECIMAL(38,18), "
    "s STRING, b BOOLEAN, bin BINARY, dt DATE, ts TIMESTAMP, tn TIMESTAMP_NTZ, st STRUCT<x: INT, y: ARRAY<INT>>, "
    "m MAP<STRING, INT>, p DATE, q STRING, r TIMESTAMP) USING delta PARTITIONED BY (p, q, r) "
    "TBLPROPERTIES ({properties})",
    "INSERT INTO {t} SELECT id, CAST(id AS INT), 1, 2, id / 3.0, CAST(1.1 AS FLOAT), 1.25, "
    "12345678901234567890.123456789012345678, 'it''s \"q\"', true, CAST('x' AS BINARY), DATE'2024-01-01', "
    "TIMESTAMP'2024-01-01 00:00:00.123456', TIMESTAMP_NTZ'1999-01-01 00:00:00.123456', "
    "named_struct('x', 1, 'y', array(1)), map('a', 1), DATE'2024-02-03', IF(id = 0, NULL, 'q r/%'), "
    "TIMESTAMP'2024-02-03 04:05:06.7' FROM range(0, 6)",
    "INSERT INTO {t} SELECT id, NULL, NULL, NULL, CAST('NaN' AS DOUBLE), CAST('-Infinity' AS FLOAT), NULL, NULL, "
    "NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '', NULL FROM range(10, 12)",
    "DELETE FROM {t} WHERE id IN (2, 3)",
    "DELETE FROM {t} WHERE id = 0",
)


def test_the_jar_finds_the_checksums_along_200_commits_right(delta_spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "table"
    for n in range(200):
        rows = pa.table({"id": [n, n + 1], "p": [str(n % 3), "b c"]})
        mode: Any = "overwrite" if n % 60 == 59 else "append"
        tablefeed.append(table, rows, mode=mode, partition_by="p", app_id=f"app-{n % 120}", txn_version=n)
    wait_until_done()

    log = JarLog(delta_spark, table)

    # The JAR computes a whole state for each. A checksum counts on from the one before it, so a fault that these leave
    # out is in the next of them. Each overwrite, which begins anew, is among them, as is the version after it.
    judged = {*range(2, 200, 7), 59, 60, 119, 120, 179, 180, 199}
    assert {n: faults for n in sorted(judged) if (faults := log.checksum_faults(n))} == {}
    assert log.checkpoint_files(199) == [f"{190:020d}.checkpoint.parquet"]


SHAPES: Mapping[str, tuple[str, int | None, int]] = {
    "classic": ("classic", None, 1),
    "parts": ("classic", 3, 4),
    "v2": ("v2", 4, 1),
}


@pytest.mark.parametrize(("policy", "part_actions", "file_count"), SHAPES.values(), ids=SHAPES)
def test_the_jar_reads_a_checkpoint_of_ours_without_the_commits_before_it_and_skips_by_its_statistics(
    delta_spark: SparkSession, tmp_path: Path, policy: str, part_actions: int | None, file_count: int
) -> None:
    table = tmp_path / "table"
    for n in range(10):
        rows = pa.table({"id": [10 * n, 10 * n + 9]})
        tablefeed.append(table, rows, properties={"delta.checkpointPolicy": policy, "delta.checkpointInterval": "100"})
    snapshot = open_maintained(str(table)).load()
    write_checkpoint(snapshot, part_actions=part_actions)
    for version in range(10):
        (table / "_delta_log" / f"{version:020d}.json").unlink()
    tablefeed.append(table, pa.table({"id": [100]}))

    files = JarLog(delta_spark, table).checkpoint_files(10)
    assert [name for name in files if name.startswith(f"{9:020d}.checkpoint")] == files
    assert len(files) == file_count
    assert sorted(row["id"] for row in delta_spark.read.format("delta").load(str(table)).collect()) == sorted(
        [*range(0, 100, 10), *range(9, 100, 10), 100]
    )
    for path in snapshot_paths(snapshot.log.url, holding=30):
        path.unlink()  # what is skipped need not be there
    assert delta_spark.read.format("delta").load(str(table)).where("id = 30").count() == 1


def snapshot_paths(table: str, *, holding: int) -> list[Path]:
    """The data files that do not hold the id `holding`."""
    paths = sorted(Path(table).glob("*.parquet"))
    return [path for path in paths if holding not in pq.read_table(path)["id"].to_pylist()]


def test_each_goes_on_from_the_others_checksums_and_checkpoints(delta_spark: SparkSession, tmp_path: Path) -> None:
    table, every_fifth = tmp_path / "table", {"delta.checkpointInterval": "5"}
    for n in range(7):
        tablefeed.append(table, pa.table({"id": [n]}), properties=every_fifth)
    for n in range(7, 12):
        run(delta_spark, table, "INSERT INTO {t} VALUES ({n})", n=n)
    run(delta_spark, table, "DELETE FROM {t} WHERE id = 3")
    wait_until_done()
    for n in range(13, 18):
        tablefeed.append(table, pa.table({"id": [n]}))
    wait_until_done()

    log = JarLog(delta_spark, table)
    assert {n: faults for n in range(18) if (faults := log.checksum_faults(n))} == {}
    found = sorted(path.name for path in (table / "_delta_log").glob("*.checkpoint.parquet"))
    assert found == [f"{version:020d}.checkpoint.parquet" for version in (5, 10, 15)]
    assert rows(read(delta_spark, table)) == rows(tablefeed.open_table(table).to_arrow())


@pytest.mark.parametrize(
    "properties",
    [
        "'delta.enableDeletionVectors' = 'false'",
        "'delta.enableDeletionVectors' = 'true'",
        "'delta.columnMapping.mode' = 'name'",
        "'delta.checkpoint.writeStatsAsJson' = 'false'",
        "'delta.checkpoint.writeStatsAsStruct' = 'false'",
        "'delta.dataSkippingStatsColumns' = 'n,st.x'",
        "'delta.dataSkippingNumIndexedCols' = '3'",
    ],
)
def test_our_checkpoint_of_a_table_says_what_the_jars_says(
    delta_spark: SparkSession, tmp_path: Path, properties: str
) -> None:
    table, copy = tmp_path / "table", tmp_path / "copy"
    run(delta_spark, table, *EVERY_BOUND, properties=f"{properties}, 'delta.checkpointInterval' = '100'")
    shutil.copytree(table, copy)

    JarLog(delta_spark, table).write_checkpoint()
    write_checkpoint(open_maintained(str(copy)).load())

    theirs, ours = (checkpoint_rows(path) for path in (table, copy))
    assert ours.keys() == theirs.keys()
    for key, row in theirs.items():
        assert ours[key] == row
    assert members(copy) == members(table)


def checkpoint_rows(table: Path) -> dict[str, Any]:
    """The actions of the one checkpoint, by what they are about; absent and null alike."""
    (path,) = (table / "_delta_log").glob("*.checkpoint.parquet")
    found: dict[str, Any] = {}
    for row in pq.read_table(path, coerce_int96_timestamp_unit="us").to_pylist():
        ((kind, action),) = [(kind, action) for kind, action in row.items() if action is not None]
        found[f"{kind} {action.get('path')}"] = plain(action)
    return found


def plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: plain(member) for name, member in value.items() if member is not None}
    if isinstance(value, list):  # a map or a set
        return sorted((plain(element) for element in value), key=str)
    if hasattr(value, "tzinfo"):
        return value.replace(tzinfo=None)
    return str(value) if value != value else value


def members(table: Path) -> dict[str, list[str]]:
    """The members of each column of the checkpoint, but for one of the JAR's own that the protocol does not know."""
    (path,) = (table / "_delta_log").glob("*.checkpoint.parquet")
    schema = pq.read_schema(path)
    return {field.name: [name for member in field.type if (name := member.name)] for field in schema}
