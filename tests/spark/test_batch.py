"""Batch reads of a version, and batch writes: appended, replaced, or skipped because they were done before."""

from __future__ import annotations

import datetime as dt
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from deltalake import DeltaTable

from spark.streams import action, actions, data_files, grow, ids_by_delta_rs, ids_of, log_file, newest_version, refusal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.readwriter import DataFrameWriter


def ids(spark: SparkSession, *values: int) -> DataFrame:
    return spark.createDataFrame([(value,) for value in values], "id long")


def writer(rows: DataFrame, mode: str = "append", **options: object) -> DataFrameWriter:
    texts = {key: str(value) for key, value in options.items()}
    return rows.write.format("tablefeed").mode(mode).options(**texts)


def test_a_read_gives_the_newest_version_or_the_one_asked_for(session: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "t"
    grow(table, [1], [2], [3])
    for version in range(3):
        at = dt.datetime(2024, 1, 1, version, tzinfo=dt.UTC).timestamp()
        os.utime(log_file(table, version), (at, at))
    read = session.read.format("tablefeed")

    assert ids_of(read.load(str(table))) == [1, 2, 3]
    assert ids_of(session.read.format("tablefeed").option("versionAsOf", 1).load(str(table))) == [1, 2]
    assert ids_of(session.read.format("tablefeed").option("timestampAsOf", "2024-01-01 01:59:59").load(str(table))) == [
        1,
        2,
    ]


def test_a_data_frame_stays_at_the_version_it_was_made_with(spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "t"
    grow(table, [1])
    rows = spark.read.format("tablefeed").load(str(table))
    grow(table, [2])

    assert ids_of(rows) == [1]


@pytest.mark.parametrize("options", [{}, {"readChangeFeed": "true", "startingVersion": "0"}])
def test_a_data_frame_does_not_read_a_table_that_was_made_since_at_the_same_path(
    spark: SparkSession, tmp_path: Path, options: dict[str, str]
) -> None:
    table = tmp_path / "t"
    properties = {"delta.enableChangeDataFeed": "true"}
    writer(ids(spark, 1), **properties).save(str(table))
    rows = spark.read.format("tablefeed").options(**options).load(str(table))
    shutil.rmtree(table)
    writer(ids(spark, 2), **properties).save(str(table))

    assert "DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE" in refusal(rows.collect)


def test_an_append_makes_the_table_and_then_adds_to_it(session: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "t"

    writer(ids(session, 1, 2), userMetadata="first load").save(str(table))
    writer(ids(session, 3)).save(str(table))

    assert ids_by_delta_rs(table) == [1, 2, 3]
    assert newest_version(table) == 1
    info = action(table, 0, "commitInfo")
    assert (info["operation"], info["userMetadata"]) == ("WRITE", "first load")


def test_an_overwrite_replaces_all_rows_in_one_version_and_says_what_it_removed(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = tmp_path / "t"
    grow(table, [1], [2])
    before = {a["path"]: a["size"] for version in (0, 1) for kind, a in actions(table, version) if kind == "add"}

    writer(ids(spark, 3), "overwrite").save(str(table))

    assert newest_version(table) == 2
    assert ids_by_delta_rs(table) == [3]
    removed = [a for kind, a in actions(table, 2) if kind == "remove"]
    assert {a["path"]: a["size"] for a in removed} == before
    assert all(a["dataChange"] and a["extendedFileMetadata"] and a["deletionTimestamp"] > 0 for a in removed)
    assert all(a["partitionValues"] == {} for a in removed)
    assert ids_by_delta_rs_at(table, 1) == [1, 2]


def test_a_write_done_before_is_skipped_and_leaves_nothing_behind(session: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "t"
    writer(ids(session, 1), txnAppId="loader", txnVersion=7).save(str(table))
    files = data_files(table)

    for replayed in (7, 6):
        writer(ids(session, 2), txnAppId="loader", txnVersion=replayed).save(str(table))
    assert newest_version(table) == 0
    assert data_files(table) == files

    writer(ids(session, 3), txnAppId="loader", txnVersion=8).save(str(table))
    assert ids_by_delta_rs(table) == [1, 3]
    assert DeltaTable(str(table)).transaction_version("loader") == 8


@pytest.mark.parametrize("mode", ["ignore", "errorifexists"])
def test_modes_that_ask_whether_the_table_exists_are_refused_by_spark(
    spark: SparkSession, tmp_path: Path, mode: str
) -> None:
    text = refusal(lambda: writer(ids(spark, 1), mode).save(str(tmp_path / "t")))

    assert "UNSUPPORTED_DATA_SOURCE_SAVE_MODE" in text
    assert newest_version(tmp_path / "t") == -1


def ids_by_delta_rs_at(table: Path, version: int) -> list[int]:
    return sorted(DeltaTable(str(table), version=version).to_pyarrow_table()["id"].to_pylist())
