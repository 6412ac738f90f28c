"""What Spark tells a Python source, which bounds what a source can do: docs/how-to/migrating*.md depend on it."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from spark.streams import PATIENCE_S, grow, reader, refusal
from tablefeed.spark.worker import PLANNING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/proc is Linux's")
def test_the_process_that_plans_a_stream_loads_no_pandas(spark: SparkSession, tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    grow(tmp_path / "table", [1], [2])
    writer = reader(spark, tmp_path / "table").writeStream.format("noop")

    query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    try:
        query.processAllAvailable()
        loaded = [_text(process / "maps") for process in processes_of_this_jvm() if is_planner(process)]
    finally:
        query.stop()

    assert [libraries for libraries in loaded if "/pyarrow/" in libraries]
    assert not [libraries for libraries in loaded if "/pandas/" in libraries]


def processes_of_this_jvm() -> list[Path]:
    """The folders in /proc of the processes that a child of this process started."""
    parents = {process.name: parent_of(process) for process in Path("/proc").glob("[0-9]*")}
    return [Path("/proc", pid) for pid, parent in parents.items() if parents.get(parent) == str(os.getpid())]


def parent_of(process: Path) -> str:
    lines = [line.split() for line in _text(process / "status").splitlines() if line.startswith("PPid:")]
    return lines[0][1] if lines else ""


def is_planner(process: Path) -> bool:
    return PLANNING in _text(process / "cmdline")


def _text(file: Path) -> str:
    try:
        return file.read_text()
    except OSError:  # it ended just now
        return ""
