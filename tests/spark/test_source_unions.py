"""Several sources in one query, and columns that only the JAR's own files have."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from spark.streams import drained, grow, reader

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def ends_of(checkpoint: Path, batch: int) -> list[tuple[int, int]]:
    """Version and index of each source's end of a batch."""
    lines = (checkpoint / "offsets" / str(batch)).read_text().splitlines()[2:]
    return [(end["reservoirVersion"], end["index"]) for end in map(json.loads, lines)]


def test_a_union_of_a_table_with_itself_delivers_its_rows_twice(spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "t"
    grow(table, [0, 1, 2])
    stream = reader(spark, table)

    assert drained(stream.union(stream), tmp_path / "checkpoint") == [[0, 0, 1, 1, 2, 2]]


def test_of_two_sources_the_idle_one_is_not_asked_for_a_version_that_does_not_exist(
    spark: SparkSession, tmp_path: Path
) -> None:
    one, other, checkpoint = tmp_path / "1", tmp_path / "2", tmp_path / "checkpoint"

    def run(*, fail_in: int | None = None) -> list[list[int]]:
        return drained(reader(spark, one).union(reader(spark, other)), checkpoint, fail_in=fail_in)

    grow(one, [1])
    grow(other, [2])
    assert run() == [[1, 2]]
    grow(one, [3])
    grow(other, [4])
    assert run() == [[3, 4]]
    grow(other, [5])
    assert run(fail_in=2) == []

    assert run() == [[5]]  # a batch in which the first stands still, run again
    assert ends_of(checkpoint, 2) == [(2, -1), (3, -1)]
    assert run() == []
