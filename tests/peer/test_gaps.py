"""Log files that are gone before a stream read them: the same class of error, or the same rows, as the JAR's stream."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from spark.streams import drained

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CLASS = re.compile(r"\[(DELTA_\w+)")


def grow(table: Path, *ids: int) -> None:
    for number in ids:
        write_deltalake(str(table), pa.table({"id": pa.array([number], pa.int64())}), mode="append")


def outcome(spark: SparkSession, form: str, table: Path, checkpoint: Path, **options: str) -> list[list[int]] | str:
    """The ids of each batch, or the first of Delta-Spark's classes in what ended the query."""
    try:
        return drained(spark.readStream.format(form).options(**options).load(str(table)), checkpoint)
    except (PySparkException, Py4JJavaError) as error:
        named = CLASS.search(str(error))
        return named[1] if named else str(error)


def commit_file(table: Path, version: int) -> Path:
    return table / "_delta_log" / f"{version:020d}.json"


def lose(table: Path, versions: Sequence[int], *, checkpoint: bool) -> None:
    for version in versions:
        commit_file(table, version).unlink()
    for file in (table / "_delta_log").glob("*.checkpoint*.parquet") if checkpoint else ():
        file.unlink()


@pytest.fixture(scope="module")
def begun(delta_spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """For each format a table of which a stream of that format has read the first version, and not the three others."""
    folder = tmp_path_factory.mktemp("begun")
    for form in ("delta", "tablefeed"):
        table = folder / form / "t"
        grow(table, 0)
        assert outcome(delta_spark, form, table, folder / form / "checkpoint") == [[0]]
        grow(table, 1, 2, 3)
        DeltaTable(str(table)).create_checkpoint()
    return folder


@pytest.mark.parametrize("lossy", [False, True], ids=["failOnDataLoss", "failOnDataLoss=false"])
@pytest.mark.parametrize("lost", [(1,), (2,), (1, 2)], ids=str)
def test_a_stream_that_comes_to_a_hole_behind_a_checkpoint_does_as_the_jars(
    delta_spark: SparkSession,
    tmp_path: Path,
    begun: Path,
    lost: tuple[int, ...],
    lossy: bool,  # noqa: FBT001 (a parameter)
) -> None:
    found = []
    for form in ("delta", "tablefeed"):
        here = shutil.copytree(begun / form, tmp_path / form)
        lose(here / "t", lost, checkpoint=False)
        options = {"failOnDataLoss": "false"} if lossy else {}
        found.append(outcome(delta_spark, form, here / "t", here / "checkpoint", **options))

    rest = [number for number in (1, 2, 3) if number not in lost]
    assert found == [[rest] if lossy else "DELTA_MISSING_FILES_UNEXPECTED_VERSION"] * 2


@pytest.mark.parametrize("lost", [0, 1])
def test_a_table_whose_checkpoint_is_gone_with_a_commit_is_refused_as_by_the_jar(
    delta_spark: SparkSession, tmp_path: Path, lost: int
) -> None:
    table, twin = tmp_path / "t", tmp_path / "twin"
    grow(table, 0, 1, 2, 3)
    DeltaTable(str(table)).create_checkpoint()
    lose(table, [lost], checkpoint=True)
    shutil.copytree(table, twin)

    found = [
        outcome(delta_spark, form, where, tmp_path / form) for form, where in (("delta", table), ("tablefeed", twin))
    ]

    assert found == ["DELTA_MISSING_PART_FILES"] * 2


@pytest.mark.parametrize(
    ("options", "theirs"),
    [
        pytest.param({}, "DELTA_STREAMING_TRAILING_COMMIT_MISSING", id="appends"),
        pytest.param({"readChangeFeed": "true"}, "Trying to load a non-existent version 2", id="changes"),
    ],
)
def test_a_log_that_lost_its_newest_commits_stops_a_restart_as_the_jars(
    delta_spark: SparkSession, tmp_path: Path, options: dict[str, str], theirs: str
) -> None:
    found = []
    for form in ("delta", "tablefeed"):
        table, checkpoint = tmp_path / form / "t", tmp_path / form / "checkpoint"
        recorded = {"delta.enableChangeDataFeed": "true"}
        write_deltalake(str(table), pa.table({"id": pa.array([0], pa.int64())}), configuration=recorded)
        grow(table, 1)
        assert outcome(delta_spark, form, table, checkpoint, **options) == [[0, 1]]
        grow(table, 2, 3)
        assert outcome(delta_spark, form, table, checkpoint, **options) == [[2, 3]]
        lose(table, [2, 3], checkpoint=False)
        found.append(outcome(delta_spark, form, table, checkpoint, **options))

    assert theirs in found[0]
    assert found[1] == "DELTA_STREAMING_TRAILING_COMMIT_MISSING"
