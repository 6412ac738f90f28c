"""What becomes of a query on Spark whose source's column is widened: the queries of Delta-Spark's own tests of that.

What a query computes with, Spark decides; that it is asked to with the wider rows is ours.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from scenarios.tables import Column, Table
from spark.streams import PATIENCE_S, reader, refusal
from support.logs import protocol

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

Row = tuple[Any, ...]
WIDENING = protocol(3, 7, readerFeatures=["typeWidening"], writerFeatures=["typeWidening"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Downstream:
    """A query on the stream. `last`: the rows of its last batch; None: Spark refuses its state of before."""

    query: Callable[[DataFrame], DataFrame]
    last: list[Row] | None
    mode: str = "append"
    partition_columns: tuple[str, ...] = ()


QUERIES = {
    "filter": Downstream(query=lambda s: s.where("widened > 10"), last=[(123456789, 2)]),
    "projection of a partition column": Downstream(
        query=lambda s: s.selectExpr("*", "widened + other AS add"),
        last=[(123456789, 2, 123456791)],
        partition_columns=("widened",),
    ),
    "grouping key": Downstream(
        query=lambda s: s.groupBy("widened").agg({"other": "count"}), last=None, mode="complete"
    ),
    "aggregated column": Downstream(
        query=lambda s: s.groupBy("other").agg({"widened": "count"}), last=[(1, 1), (2, 1)], mode="complete"
    ),
}


@pytest.mark.parametrize(
    ("name", "tracks"),
    [*((name, False) for name in QUERIES), pytest.param("filter", True, marks=pytest.mark.one_spark)],
)
def test_a_query_goes_on_with_the_wider_column_or_is_told_by_spark_that_its_state_is_of_the_narrower(
    spark: SparkSession,
    tmp_path: Path,
    name: str,
    tracks: bool,  # noqa: FBT001
) -> None:
    downstream, checkpoint = QUERIES[name], tmp_path / "checkpoint"
    table = Table(
        tmp_path / "table",
        columns=(Column(name="widened", kind="byte"), Column(name="other", kind="byte")),
        configuration={"delta.enableTypeWidening": "true"},
        partition_columns=downstream.partition_columns,
    )
    table.commit(WIDENING, table.metadata)
    last: list[Row] = []

    def keep(batch: DataFrame, _batch_id: int) -> None:
        last[:] = sorted(tuple(row) for row in batch.collect())

    def run(**options: object) -> None:
        tracking = {"schemaTrackingLocation": checkpoint / "tracked"} if tracks else {}
        stream = downstream.query(reader(spark, table.path, **tracking, **options))
        writer = stream.writeStream.foreachBatch(keep).outputMode(downstream.mode)
        query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
        assert query.awaitTermination(PATIENCE_S)

    table.append((1, 1))
    run()
    table.widen("widened", "integer")
    if tracks:
        assert "[DELTA_STREAMING_METADATA_EVOLUTION]" in refusal(run)
    table.append((123456789, 2))

    if downstream.last is None:
        assert "[STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE]" in refusal(lambda: run(allowSourceColumnTypeChange="always"))
    else:
        run(allowSourceColumnTypeChange="always")
        assert last == downstream.last
