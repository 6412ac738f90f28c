"""Partitioned tables: who says what they are partitioned by, and which values make the round trip."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from spark.streams import action, actions, copy

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

AWKWARD = ["a%b c/ü:", "plain", "x=y", "50%25", ".", "'q\"", None]


def rows(days: list[str | None]) -> pa.Table:
    return pa.table({"id": pa.array(range(len(days)), pa.int64()), "day": pa.array(days, pa.string())})


def by_delta_rs(table: Path) -> list[dict[str, object]]:
    found: list[dict[str, object]] = DeltaTable(str(table)).to_pyarrow_table().sort_by("id").to_pylist()
    return found


def test_the_first_batch_makes_a_partitioned_table_and_every_value_comes_back(
    spark: SparkSession, tmp_path: Path
) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    write_deltalake(str(source), rows(AWKWARD))

    copy(spark, source, target, tmp_path / "checkpoint", partitionBy="day")

    assert action(target, 0, "metaData")["partitionColumns"] == ["day"]
    adds = [a for kind, a in actions(target, 0) if kind == "add"]
    assert {a["partitionValues"]["day"] for a in adds} == set(AWKWARD)
    assert len(adds) == len(AWKWARD)
    assert by_delta_rs(target) == rows(AWKWARD).to_pylist()
    ours = spark.read.format("tablefeed").load(str(target)).toArrow().sort_by("id")
    assert ours.to_pylist() == rows(AWKWARD).to_pylist()
