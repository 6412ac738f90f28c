"""A stream of a table: where it begins, how far a batch goes, and where it goes on after a restart."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from deltalake import DeltaTable

from spark.streams import (
    PATIENCE_S,
    drain,
    drained,
    finish,
    grow,
    ids_of,
    offsets,
    reader,
    tailing,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def test_the_table_as_it_is_comes_first_and_then_each_commit_as_it_lands(spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "t"
    grow(table, [1, 2], [3])

    with tailing(reader(spark, table), tmp_path / "checkpoint") as (_, batches):
        assert batches.get(timeout=PATIENCE_S) == [1, 2, 3]
        grow(table, [4])
        assert batches.get(timeout=PATIENCE_S) == [4]
        grow(table, [5, 6])
        assert batches.get(timeout=PATIENCE_S) == [5, 6]


def test_what_was_committed_before_process_all_available_is_delivered_by_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = tmp_path / "t"
    grow(table, [0])

    with tailing(reader(spark, table), tmp_path / "checkpoint") as (query, batches):
        for number in range(10):
            query.processAllAvailable()
            assert batches.get_nowait() == [number]
            grow(table, [number + 1])


def test_a_query_that_fails_in_the_snapshot_goes_on_from_there_and_its_offsets_are_delta_sparks(
    spark: SparkSession, tmp_path: Path
) -> None:
    table, checkpoint = tmp_path / "t", tmp_path / "checkpoint"
    grow(table, [1], [2], [3], [4, 5])
    table_id = str(DeltaTable(str(table)).metadata().id)

    assert drained(reader(spark, table, maxFilesPerTrigger=3), checkpoint, fail_in=1) == [[1, 2, 3]]
    grow(table, [6], [7])
    assert drain(spark, table, checkpoint, maxFilesPerTrigger=1) == [[4, 5], [6], [7]]

    def offset(version: int, index: int, *, in_snapshot: bool) -> list[tuple[str, object]]:
        return [
            ("sourceVersion", 1),
            ("reservoirId", table_id),
            ("reservoirVersion", version),
            ("index", index),
            ("isStartingVersion", in_snapshot),
        ]

    assert [list(found.items()) for found in offsets(checkpoint)] == [
        offset(3, 2, in_snapshot=True),
        offset(4, -1, in_snapshot=False),
        offset(5, -1, in_snapshot=False),
        offset(6, -1, in_snapshot=False),
    ]


def test_a_checkpoint_in_delta_sparks_text_that_finds_nothing_new_makes_no_batch(
    spark: SparkSession, tmp_path: Path
) -> None:
    table, checkpoint = tmp_path / "t", tmp_path / "checkpoint"
    grow(table, [1], [2])
    table_id = str(DeltaTable(str(table)).metadata().id)
    assert drain(spark, table, checkpoint) == [[1, 2]]
    logged = checkpoint / "offsets" / "0"
    *head, text = logged.read_text().splitlines()
    by_delta_spark = (
        f'{{"sourceVersion":1,"reservoirId":"{table_id}","reservoirVersion":2,"index":-1,"isStartingVersion":false}}'
    )
    logged.write_text("\n".join([*head, by_delta_spark]))
    logged.with_name(".0.crc").unlink()

    assert drain(spark, table, checkpoint) == []
    assert text == by_delta_spark
    assert sorted(file.name for file in (checkpoint / "commits").glob("[0-9]*")) == ["0"]

    grow(table, [3])
    assert drain(spark, table, checkpoint) == [[3]]
    assert len(offsets(checkpoint)) == 2


@pytest.mark.parametrize(
    ("options", "first"), [({"startingVersion": "latest"}, []), ({}, [[1, 2]])], ids=["latest", "the whole table"]
)
def test_a_first_batch_that_failed_is_run_again_with_its_rows_and_what_came_since_is_the_next(
    spark: SparkSession, tmp_path: Path, options: dict[str, str], first: list[list[int]]
) -> None:
    table, checkpoint = tmp_path / "t", tmp_path / "checkpoint"
    grow(table, [1], [2])
    assert drained(reader(spark, table, **options), checkpoint, fail_in=0) == []
    grow(table, [3])

    assert drain(spark, table, checkpoint, **options) == [*first, [3]]
    assert [offset["reservoirVersion"] for offset in offsets(checkpoint)] == [2, 3]


def test_available_now_ends_with_what_was_there_when_it_began(spark: SparkSession, tmp_path: Path) -> None:
    table, checkpoint = tmp_path / "t", tmp_path / "checkpoint"
    grow(table, [1], [2])
    batches: list[list[int]] = []

    def keep_and_grow(rows: DataFrame, _batch_id: int) -> None:
        batches.append(ids_of(rows))
        grow(table, [len(batches) + 10])

    stream = reader(spark, table, maxFilesPerTrigger=1)
    finish(stream.writeStream.foreachBatch(keep_and_grow).option("checkpointLocation", str(checkpoint)))
    assert batches == [[1], [2]]

    assert drain(spark, table, checkpoint) == [[11, 12]]
