"""What Spark tells a Python source, which bounds what a source can do: docs/how-to/migrating*.md depend on it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from spark.streams import PATIENCE_S, refusal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def register_teller(spark: SparkSession) -> None:
    """Registers the source `teller`, which fails with all that it was told."""

    class Reader(DataSourceStreamReader):
        def __init__(self, told: str) -> None:
            self.told = told

        def initialOffset(self) -> dict[str, object]:  # noqa: N802 - Spark's name
            raise RuntimeError(f"told: {self.told}")

        def read(self, partition: InputPartition) -> Iterator[tuple[int]]:  # noqa: ARG002 - Spark's signature
            raise AssertionError("nothing is planned")

    class Teller(DataSource):
        @classmethod
        def name(cls) -> str:
            return "teller"

        def schema(self) -> str:
            return "id long"

        def streamReader(self, schema: object) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
            return Reader(json.dumps([dict(self.options), str(schema)]))

    spark.dataSource.register(Teller)


def test_a_source_is_told_its_own_options_and_schema_and_neither_its_checkpoint_nor_the_sources_beside_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    register_teller(spark)
    one, two = (spark.readStream.format("teller").option("which", which).load() for which in ("one", "two"))

    def run() -> None:
        writer = one.union(two).writeStream.format("noop").option("checkpointLocation", str(tmp_path / "checkpoint"))
        query = writer.trigger(availableNow=True).start()
        assert query.awaitTermination(PATIENCE_S)

    text = refusal(run)

    options, schema = json.loads(text.split("RuntimeError: told: ")[1].splitlines()[0])
    assert options in ({"which": "one"}, {"which": "two"})
    assert schema == "StructType([StructField('id', LongType(), True)])"
