"""One table that both write to: each reads what the other left, and goes on from there."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

import tablefeed
from peer.every_type import awkward_rows, nested_rows
from peer.tables import any_retention, commit_actions, run
from tablefeed import Committed
from tablefeed.model.actions import Version

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

PLACES = ["a%b c/ü:", None, "", "plain"]


def rows(first: int, count: int = 4) -> pa.Table:
    ids = range(first, first + count)
    return pa.table({"id": pa.array(ids, pa.int64()), "place": [PLACES[i % 4] for i in ids]})


def ours(table: Path) -> list[tuple[int, str | None]]:
    found = tablefeed.open_table(table).to_arrow().to_pylist()
    return sorted((row["id"], row["place"]) for row in found)


def theirs(session: SparkSession, table: Path) -> list[tuple[int, str | None]]:
    found = session.read.format("delta").load(str(table)).collect()
    return sorted((row["id"], row["place"]) for row in found)


def expected(*first_ids: int) -> list[tuple[int, str | None]]:
    # '' as a partition value is null ("Partition Value Serialization").
    return sorted((i, PLACES[i % 4] or None) for first in first_ids for i in range(first, first + 4))


def history(session: SparkSession, table: Path) -> list[Row]:
    return session.sql(f"DESCRIBE HISTORY delta.`{table}`").orderBy("version").collect()


def test_the_jar_reads_rows_of_every_type_that_our_stream_copied(delta_spark: SparkSession, tmp_path: Path) -> None:
    for name, written in (("awkward", awkward_rows()), ("nested", nested_rows())):
        source, copy = tmp_path / name, tmp_path / f"{name}-copy"
        tablefeed.append(source, written)
        stream = delta_spark.readStream.format("tablefeed").load(str(source))
        writer = stream.writeStream.format("tablefeed").option("checkpointLocation", str(tmp_path / f"{name}-state"))
        writer.trigger(availableNow=True).start(str(copy)).awaitTermination()

        found = delta_spark.read.format("delta").load(str(copy)).toArrow().sort_by("id")

        assert repr(found.to_pylist()) == repr(written.to_pylist())


def test_the_jar_tells_our_commits_as_its_own(delta_spark: SparkSession, tmp_path: Path) -> None:
    table, copy = tmp_path / "table", tmp_path / "copy"
    tablefeed.append(table, rows(0), partition_by=["place"])
    tablefeed.append(table, rows(4), mode="overwrite")
    stream = delta_spark.readStream.format("tablefeed").load(str(table))
    writer = stream.writeStream.format("tablefeed").option("checkpointLocation", str(tmp_path / "state"))
    query = writer.trigger(availableNow=True).start(str(copy))
    query.awaitTermination()

    created, replaced = history(delta_spark, table)
    (copied,) = history(delta_spark, copy)

    assert (created["operation"], created["isBlindAppend"], created["readVersion"]) == ("WRITE", True, None)
    assert created["operationParameters"] == {"mode": "Append", "partitionBy": '["place"]'}
    assert created["operationMetrics"]["numOutputRows"] == "4"
    assert (replaced["operation"], replaced["isBlindAppend"], replaced["readVersion"]) == ("WRITE", False, 0)
    assert replaced["operationParameters"]["mode"] == "Overwrite"
    assert copied["operation"] == "STREAMING UPDATE"
    assert copied["operationParameters"] == {"outputMode": "Append", "queryId": query.id, "epochId": "0"}
    assert created["engineInfo"].startswith("tablefeed/")


def test_both_append_to_overwrite_and_delete_from_one_table(delta_spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "table"
    location = f"delta.`{table}`"
    tablefeed.append(table, rows(0), partition_by=["place"])
    delta_spark.createDataFrame(rows(4)).write.format("delta").mode("append").save(str(table))
    assert ours(table) == theirs(delta_spark, table) == expected(0, 4)

    delta_spark.createDataFrame(rows(8)).write.format("delta").mode("overwrite").save(str(table))
    tablefeed.append(table, rows(12))
    assert ours(table) == theirs(delta_spark, table) == expected(8, 12)

    tablefeed.append(table, rows(16), mode="overwrite")
    tablefeed.append(table, rows(20))
    assert ours(table) == theirs(delta_spark, table) == expected(16, 20)

    delta_spark.sql(f"DELETE FROM {location} WHERE id = 16 OR place = 'plain'")  # noqa: S608 (a path of this test)
    left = [row for row in expected(16, 20) if row[0] != 16 and row[1] != "plain"]
    assert ours(table) == theirs(delta_spark, table) == left

    delta_spark.sql(f"OPTIMIZE {location}")
    assert ours(table) == theirs(delta_spark, table) == left

    tablefeed.append(table, rows(24))
    assert ours(table) == theirs(delta_spark, table) == sorted(left + expected(24), key=lambda row: row[0])


def test_vacuum_by_the_jar_spares_what_is_live_and_finds_what_our_overwrite_replaced(
    delta_spark: SparkSession, tmp_path: Path
) -> None:
    table = tmp_path / "table"
    tablefeed.append(table, rows(0), partition_by=["place"])
    replaced = paths(table)
    tablefeed.append(table, rows(4), mode="overwrite")

    with any_retention(delta_spark):
        found = run(delta_spark, table, "VACUUM {t} RETAIN 0 HOURS DRY RUN")

    assert {row["path"].removeprefix(f"file:{table}/") for row in found} == replaced
    assert run(delta_spark, table, "VACUUM {t} DRY RUN") == []


def paths(table: Path) -> set[str]:
    return {path.as_py() for batch in tablefeed.open_table(table).files() for path in batch["path"]}


def test_both_go_on_after_the_jar_has_written_a_checkpoint(delta_spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "table"
    for index in range(10):
        tablefeed.append(table, rows(4 * index), partition_by=["place"], app_id="loader", txn_version=index)
    delta_spark.createDataFrame(rows(40)).write.format("delta").mode("append").save(str(table))
    assert (table / "_delta_log" / "00000000000000000010.checkpoint.parquet").exists()

    for version in range(10):  # only the checkpoint tells of them now
        (table / "_delta_log" / f"{version:020d}.json").unlink()
    assert ours(table) == expected(*range(0, 44, 4))
    again = tablefeed.append(table, rows(36), app_id="loader", txn_version=9)
    assert isinstance(again, tablefeed.AlreadyApplied)
    assert tablefeed.append(table, rows(44)) == Committed(version=Version(11))

    assert ours(table) == theirs(delta_spark, table) == expected(*range(0, 48, 4))
    assert [kind for kind, _ in commit_actions(table, 11)].count("add") == 3
