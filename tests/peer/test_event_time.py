"""A snapshot by event time is ours alone: the JAR refuses to go on within it, and goes on well behind it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import tablefeed
from peer.checkpoints import copied, drain, offsets

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JAR, OURS = "delta", "tablefeed"
BY_TIME = {"withEventTimeOrder": "true", "eventTimeColumn": "at"}


def grow(table: Path, *hours: int) -> None:
    """Commits a version for each of `hours` of a day: a file of one row, whose id it is."""
    for hour in hours:
        rows = {"id": [hour], "at": [datetime(2024, 1, 1, hour, tzinfo=UTC)]}
        types = pa.schema([("id", pa.int64()), ("at", pa.timestamp("us", "UTC"))])
        tablefeed.append(table, pa.table(rows, schema=types))


def test_the_jar_refuses_a_checkpoint_within_such_a_snapshot_and_goes_on_behind_it(
    delta_spark: SparkSession, tmp_path: Path
) -> None:
    table, ours = tmp_path / "table", tmp_path / "ours"
    grow(table, 12, 10, 8)
    assert drain(delta_spark, OURS, table, ours, **BY_TIME) == {0: [8], 1: [10], 2: [12]}
    grow(table, 7)
    assert drain(delta_spark, OURS, table, ours, **BY_TIME) == {3: [7]}
    grow(table, 6)
    assert [offset["sourceVersion"] for offset in offsets(ours)] == [1001, 1001, 1, 1]

    # On a start it plans the last batch once more, done or not: it reads where that began, too.
    for done, planned in ((-1, 0), (0, 0), (0, 1), (1, 2), (2, 2)):
        within = copied(ours, tmp_path / f"within-{done}-{planned}", committed=done, planned=planned)
        with pytest.raises(Exception, match="DELTA_INVALID_FORMAT_FROM_SOURCE_VERSION"):
            drain(delta_spark, JAR, table, within)

    assert drain(delta_spark, JAR, table, ours) == {4: [6]}


def test_within_the_snapshot_the_order_that_the_jar_began_with_is_kept(
    delta_spark: SparkSession, tmp_path: Path
) -> None:
    table, theirs = tmp_path / "table", tmp_path / "theirs"
    grow(table, 12, 10, 8)
    assert drain(delta_spark, JAR, table, theirs) == {0: [12], 1: [10], 2: [8]}

    within = copied(theirs, tmp_path / "within", committed=0)
    with pytest.raises(Exception, match="Set withEventTimeOrder=false until the snapshot is done"):
        drain(delta_spark, OURS, table, within, **BY_TIME)
    assert drain(delta_spark, OURS, table, within) == {1: [10], 2: [8]}
