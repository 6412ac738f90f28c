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
from spark.streams import PATIENCE_S, finish, reader, refusal
from support.logs import protocol

if TYPE_CHECKING:
    from _pytest.mark import ParameterSet
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter

pytestmark = pytest.mark.usefixtures("few_rows")

Row = tuple[Any, ...]
WIDENING = protocol(3, 7, readerFeatures=["typeWidening"], writerFeatures=["typeWidening"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Downstream:
    """A query on the stream. `last`: the rows of its last batch; None: Spark refuses its state of before."""

    query: Callable[[DataFrame], DataFrame]
    last: list[Row] | None
    mode: str = "append"
    partition_columns: tuple[str, ...] = ()


def projected(stream: DataFrame) -> DataFrame:
    return stream.selectExpr("*", "widened + other AS add")


def counted(stream: DataFrame) -> DataFrame:
    return stream.groupBy("other").agg({"widened": "count"})


def once_each_within_a_watermark(stream: DataFrame) -> DataFrame:
    timed = stream.selectExpr("widened", "timestamp '2025-02-04' AS watermark")
    return timed.withWatermark("watermark", "0 seconds").dropDuplicatesWithinWatermark()


QUERIES = {
    "filter": Downstream(query=lambda s: s.where("widened > 10"), last=[(123456789, 2)]),
    "projection": Downstream(query=projected, last=[(123456789, 2, 123456791)]),
    "projection partition column": Downstream(
        query=projected, last=[(123456789, 2, 123456791)], partition_columns=("widened",)
    ),
    "widen aggregation grouping key": Downstream(
        query=lambda s: s.groupBy("widened").agg({"other": "count"}), last=None, mode="complete"
    ),
    "widen aggregation expression": Downstream(query=counted, last=[(1, 1), (2, 1)], mode="complete"),
    "widen aggregation expression partition column": Downstream(
        query=counted, last=[(1, 1), (2, 1)], mode="complete", partition_columns=("widened",)
    ),
    "widen aggregation expression after projection": Downstream(
        query=lambda s: (
            s.selectExpr("widened + cast(1 AS byte) AS key", "other").groupBy("key").agg({"other": "count"})
        ),
        last=None,
        mode="complete",
    ),
    "widen limit": Downstream(query=lambda s: s.select("widened").limit(1), last=[]),
    "widen distinct": Downstream(query=lambda s: s.select("widened").distinct(), last=None),
    "widen drop duplicates": Downstream(query=lambda s: s.select("widened").dropDuplicates(), last=None, mode="update"),
    "widen drop duplicates with watermark": Downstream(query=once_each_within_a_watermark, last=None, mode="update"),
}


IN_EACH_RUN = {
    "untracked": (
        "filter",
        "projection partition column",
        "widen aggregation grouping key",
        "widen aggregation expression partition column",
    ),
    "tracked": ("filter", "widen aggregation grouping key"),
}
"""A query without a state, and with one that Spark can and one that it cannot go on with."""


def a_case(name: str, tracking: str) -> ParameterSet:
    marks = [] if name in IN_EACH_RUN[tracking] else [pytest.mark.every_stream]
    if tracking == "tracked":
        marks.append(pytest.mark.one_spark)  # Spark's state is as it is without
    return pytest.param(name, tracking == "tracked", id=f"{name}-{tracking}", marks=marks)


@pytest.mark.parametrize(("name", "tracks"), [a_case(name, tracking) for name in QUERIES for tracking in IN_EACH_RUN])
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
    batches: list[list[Row]] = []

    def keep(batch: DataFrame, _batch_id: int) -> None:
        batches.append(sorted(tuple(row) for row in batch.collect()))

    def written(**options: object) -> DataStreamWriter:
        tracking = {"schemaTrackingLocation": checkpoint / "tracked"} if tracks else {}
        stream = downstream.query(reader(spark, table.path, **tracking, **options))
        return stream.writeStream.outputMode(downstream.mode).option("checkpointLocation", str(checkpoint))

    table.append((1, 1))
    if tracks:
        query = written().format("noop").start()
        query.processAllAvailable()
        table.widen("widened", "integer")
        assert "[DELTA_STREAMING_METADATA_EVOLUTION]" in refusal(lambda: query.awaitTermination(PATIENCE_S))
    else:
        finish(written().format("noop"))
        table.widen("widened", "integer")
    table.append((123456789, 2))
    wider = written(allowSourceColumnTypeChange="always")

    if downstream.last is None:
        assert "[STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE]" in refusal(lambda: finish(wider.format("noop")))
    else:
        finish(wider.foreachBatch(keep))
        assert batches[-1] == downstream.last
