"""A table that we optimised and vacuumed, as the JAR sees it: the same rows, no change, and a history it can read."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import tablefeed
from peer.tables import any_retention, read, rows, run
from tablefeed.feed.snapshot.open_log import open_maintained
from tablefeed.feed.upkeep.background import wait_until_done
from tablefeed.feed.upkeep.vacuum import vacuumed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PROPERTIES = "delta.enableDeletionVectors = true, delta.enableChangeDataFeed = true"


CREATE = (
    "CREATE TABLE {t} (id LONG, s STRING, ts TIMESTAMP, p STRING) USING delta PARTITIONED BY (p) "
    "TBLPROPERTIES ({properties})"
)
INSERT = (
    "INSERT INTO {t} SELECT id + {n}, 'jar', TIMESTAMP'2024-01-01 00:00:00.123456', IF(id % 2 = 0, 'a b', NULL) "
    "FROM range(0, 10)"
)


def a_table_of_both(session: SparkSession, path: Path, properties: str = PROPERTIES) -> None:
    """Rows of the JAR's and of ours, some deleted by vectors."""
    run(session, path, CREATE, properties=properties)
    for n in range(3):
        run(session, path, INSERT, n=10 * n)
        moments = pa.array([1_700_000_000_000_001] * 2, pa.timestamp("us", tz="UTC"))
        ours = {"id": [100 + n, 200 + n], "s": ["ours", None], "ts": moments, "p": ["a b", "ü/%"]}
        tablefeed.append(path, pa.table(ours))
    run(session, path, "DELETE FROM {t} WHERE id IN (1, 2, 13)")


def ours(path: Path) -> list[str]:
    return rows(tablefeed.open_table(path).to_arrow())


def jars(session: SparkSession, path: Path) -> list[str]:
    return rows(read(session, path))


def files_on_disk(path: Path) -> set[str]:
    return {str(each.relative_to(path)) for each in path.rglob("*.parquet") if "_delta_log" not in each.parts}


@pytest.mark.parametrize("mapping", ["none", "name"])
def test_the_jar_reads_the_same_rows_and_its_stream_sees_no_change(
    delta_spark: SparkSession, tmp_path: Path, mapping: str
) -> None:
    table, out, checkpoint = tmp_path / "table", tmp_path / "out", tmp_path / "checkpoint"
    a_table_of_both(delta_spark, table, f"{PROPERTIES}, delta.columnMapping.mode = '{mapping}'")
    before = jars(delta_spark, table)

    def stream() -> None:
        source = delta_spark.readStream.format("delta").load(str(table))
        sink = source.writeStream.format("delta").option("checkpointLocation", str(checkpoint))
        sink.trigger(availableNow=True).start(str(out)).awaitTermination()

    stream()
    read_so_far = jars(delta_spark, out)

    outcome = tablefeed.optimize(table)
    later_ms = time.time_ns() // 1_000_000 + 60_000  # so that everything is older than a retention of nothing
    gone = vacuumed(open_maintained(str(table)), retention_ms=0, allow_short=True, dry_run=False, now_ms=later_ms)
    wait_until_done()

    assert outcome.deletion_vectors_removed > 0
    assert outcome.files_added == len(files_on_disk(table)) == 3
    assert gone.file_count > outcome.files_removed, "deletion vectors too"
    assert ours(table) == jars(delta_spark, table) == before
    stream()
    assert jars(delta_spark, out) == read_so_far
    feed = delta_spark.read.format("delta").option("readChangeFeed", "true")
    assert feed.option("startingVersion", str(outcome.version)).load(str(table)).count() == 0


def test_the_jars_history_tells_of_it_and_the_jar_goes_on_from_there(delta_spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "table"
    a_table_of_both(delta_spark, table)

    outcome = tablefeed.optimize(table, where="p = 'a b'")

    newest: Any = run(delta_spark, table, "DESCRIBE HISTORY {t} LIMIT 1")[0]
    assert (newest["version"], newest["operation"]) == (outcome.version, "OPTIMIZE")
    assert newest["operationParameters"]["predicate"] == "[\"p = 'a b'\"]"
    assert newest["operationParameters"]["auto"] == "false"
    assert int(newest["operationMetrics"]["numRemovedFiles"]) == outcome.files_removed
    assert (newest["isBlindAppend"], newest["isolationLevel"]) == (False, "SnapshotIsolation")
    before = ours(table)
    run(delta_spark, table, "OPTIMIZE {t}")
    assert ours(table) == jars(delta_spark, table) == before
    run(delta_spark, table, "DELETE FROM {t} WHERE s = 'ours'")
    assert ours(table) == jars(delta_spark, table)


def test_what_we_would_vacuum_is_what_the_jar_would(delta_spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "table"
    a_table_of_both(delta_spark, table)
    tablefeed.optimize(table)
    tablefeed.append(table, pa.table({"id": [1], "s": ["x"], "p": ["q"]}), mode="overwrite")
    for name in ("orphan.parquet", "p=x/orphan", "_hidden/x", ".hidden", "_change_data/orphan", "a b/c"):
        (table / name).parent.mkdir(exist_ok=True)
        (table / name).write_bytes(b"x")
    later_ms = time.time_ns() // 1_000_000 + 60_000

    found = vacuumed(open_maintained(str(table)), retention_ms=0, allow_short=True, dry_run=True, now_ms=later_ms)
    with any_retention(delta_spark):
        theirs = run(delta_spark, table, "VACUUM {t} RETAIN 0 HOURS DRY RUN")

    their_files = {str(Path(row["path"].removeprefix("file:")).relative_to(table)) for row in theirs}
    assert {name for name in their_files if (table / name).is_file()} == set(found.paths.to_pylist())
