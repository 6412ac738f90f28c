"""The main job, short enough to read: tail one Delta table and copy it to another, exactly once.

pip install "tablefeed[spark]" deltalake
python examples/quickstart.py
SPARK_REMOTE=sc://localhost:15002 python examples/quickstart.py   # through a Spark Connect server on this machine
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession


def main(folder: Path) -> None:
    """Copies a table, then what is appended to it, with one query on one checkpoint."""
    orders, copy = str(folder / "orders"), str(folder / "orders_copy")
    write_deltalake(orders, pa.table({"id": [1, 2], "item": ["tea", "cup"]}))

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # where the environment is not activated
    spark = SparkSession.builder.getOrCreate()

    def copy_what_is_new() -> None:
        stream = spark.readStream.format("tablefeed").load(orders)
        query = (
            stream.writeStream.format("tablefeed")
            .option("checkpointLocation", str(folder / "checkpoint"))
            .trigger(availableNow=True)
            .start(copy)
        )
        query.awaitTermination()

    copy_what_is_new()  # the table as it is
    write_deltalake(orders, pa.table({"id": [3], "item": ["pot"]}), mode="append")
    copy_what_is_new()  # what came since, and nothing twice

    rows = DeltaTable(copy).to_pyarrow_table().sort_by("id")
    print(rows.to_pydict())
    if rows["id"].to_pylist() != [1, 2, 3]:
        raise SystemExit("the copy is not the table")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        main(Path(scratch))
