"""What the programs share whose queries are killed: their Spark session, and how a query waits for its death."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession


def wait_at(failpoint: str, batch: int) -> None:
    """Writes the file FAILPOINT_FOLDER/reached-FAILPOINT in the batch FAILPOINT_BATCH, and waits to be killed."""
    if str(batch) != os.environ.get("FAILPOINT_BATCH"):
        return
    Path(os.environ["FAILPOINT_FOLDER"], f"reached-{failpoint}").touch()
    time.sleep(600)
    raise RuntimeError("nobody killed this process at its failpoint")


def session(folder: str) -> SparkSession:
    """The session of queries that live for a few batches."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    spark = (
        SparkSession.builder.master("local[4]")  # a task that waits for its death holds one
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "1g")
        .config("spark.sql.shuffle.partitions", "2")
        # It lives for a few batches: better code is not worth compiling.
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        .config("spark.sql.warehouse.dir", f"{folder}/warehouse")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    return spark
