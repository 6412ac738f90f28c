"""Columns of a stream that only Spark can ask for: those of `_metadata`, and what is inside a variant."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from scenarios.tables import Table
from spark.streams import PATIENCE_S, reader, refusal
from support.logs import Action, add, metadata, protocol
from support.recorded import log, schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

VARIANT: Action = protocol(3, 7, readerFeatures=["variantType"], writerFeatures=["variantType"])
NO_KEYS = b"\x01\x00\x00"
"""The metadata of a variant that has no object in it."""


def tracking_rows(mapping: str) -> Action:
    features = ["rowTracking", "domainMetadata", "changeDataFeed", "appendOnly", "invariants"]
    return protocol(2 if mapping else 1, 7, writerFeatures=features + (["columnMapping"] if mapping else []))


@pytest.mark.parametrize(
    ("mapping", "options"),
    [
        pytest.param("", {}, id="rows"),
        pytest.param("", {"readChangeFeed": "true", "startingVersion": "0"}, id="changes"),
        pytest.param("name", {"readChangeFeed": "true", "startingVersion": "0"}, id="changes of mapped columns"),
    ],
)
def test_the_id_of_a_row_is_no_column_of_a_stream(
    spark: SparkSession, tmp_path: Path, mapping: str, options: dict[str, str]
) -> None:
    configuration = {"enableRowTracking": "true", "enableChangeDataFeed": "true"}
    table = Table(tmp_path / "table").create("id", "name", mapping=mapping, **configuration)
    table.commit(tracking_rows(mapping))

    text = refusal(lambda: reader(spark, table.path, **options).selectExpr("id", "_metadata.row_id").schema)

    assert "row_id" in text


def test_a_variant_is_a_variant_to_the_query_on_a_stream(spark: SparkSession, tmp_path: Path) -> None:
    values = [b"\x0c" + bytes([number]) for number in range(100)]  # each a whole number of one byte
    column = pa.array([{"value": value, "metadata": NO_KEYS} for value in values])
    pq.write_table(pa.table({"v": column}), tmp_path / "a.parquet")
    table = log(tmp_path, v0=[VARIANT, metadata(schema(("v", "variant"))), add("a.parquet")])
    found: list[int] = []

    def keep(batch: DataFrame, _batch_id: int) -> None:
        found.extend(row[0] for row in batch.collect())

    writer = reader(spark, table).selectExpr("v::int").writeStream.foreachBatch(keep)
    query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start()

    assert query.awaitTermination(PATIENCE_S)
    assert sorted(found) == list(range(100))
