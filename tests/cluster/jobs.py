"""The program of a driver, started by spark-submit: runs the jobs that its argument names, one after the other.

It takes nothing from the tests, so that it also runs where only Spark and tablefeed are installed.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import SparkSession

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

TOLD = "TOLD "
PATIENCE_S = 150


def stream(spark: SparkSession, job: Mapping[str, Any]) -> DataFrame:
    """The feed of the job's source; its tasks pass the gate, if there is one."""
    rows = spark.readStream.format("tablefeed").options(**job["storage"], **job.get("reads", {})).load(job["source"])
    if "select" in job:
        rows = rows.selectExpr(*job["select"])
    if "shuffled" in job:
        rows = rows.repartition(job["shuffled"])
    return rows.mapInArrow(at_gate(job["gate"], job["hidden"]), rows.schema) if "gate" in job else rows


def run(spark: SparkSession, job: Mapping[str, Any]) -> dict[str, Any]:
    """Delivers what is in the source now to the target. Gives the query's id, or the error that ended it."""
    try:
        writer = stream(spark, job).writeStream.format(job.get("to", "tablefeed"))
        writer = writer.options(**job["storage"], **job.get("writes", {}), checkpointLocation=job["checkpoint"])
        query = writer.trigger(availableNow=True).start(job["target"])
        if not query.awaitTermination(PATIENCE_S):
            query.stop()
            return {"error": "the query did not end"}
    except Exception as error:  # noqa: BLE001 - the test judges it
        return {"error": str(error)}
    batches = [{"rows": batch["numInputRows"], "ms": batch["durationMs"]} for batch in query.recentProgress]
    return {"query": str(query.id), "batches": batches}


def read(spark: SparkSession, job: Mapping[str, Any]) -> dict[str, Any]:
    """Counts the rows of a table in tasks. Gives the number, or the error."""
    try:
        rows = spark.read.format("tablefeed").options(**job["storage"]).load(job["source"])
        return {"rows": rows.count()}
    except Exception as error:  # noqa: BLE001 - the test judges it
        return {"error": str(error)}


def wait_for_executors(spark: SparkSession, job: Mapping[str, Any]) -> dict[str, Any]:
    """Waits until there are at least, or at most, so many executors; gives how many there are."""
    until_s = time.monotonic() + PATIENCE_S
    while True:
        count = spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size() - 1  # one is the driver's
        if job.get("least", 0) <= count <= job.get("most", 1_000) or time.monotonic() > until_s:
            return {"executors": count}
        time.sleep(0.2)


def at_gate(url: str, hidden: str) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Gives a function that gives its rows again, and waits at the gate after the first batch of them."""

    def passing(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import urllib.request

        from pyspark import TaskContext

        import tablefeed

        context = TaskContext.get()
        assert context is not None
        said = {
            "batch": int(context.getLocalProperty("streaming.sql.batchId") or -1),
            "task": context.partitionId(),
            "attempt": context.attemptNumber(),
            "cwd": str(Path.cwd()),
            "home": os.environ.get("HOME", ""),
            "sees_driver": Path(hidden).exists(),
            "package": tablefeed.__file__,
        }
        for number, batch in enumerate(batches):
            yield batch
            if number == 0:
                urllib.request.urlopen(url, json.dumps(said).encode(), timeout=250).close()  # noqa: S310 - http

    return passing


JOBS: Mapping[str, Callable[[SparkSession, Mapping[str, Any]], dict[str, Any]]] = {
    "run": run,
    "read": read,
    "wait_for_executors": wait_for_executors,
}


def main() -> None:
    """Runs the jobs, and prints what came of each."""
    asked = json.loads(sys.argv[1])
    spark = SparkSession.builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    if asked["registers"]:
        from pyspark_tablefeed import DefaultSource

        spark.dataSource.register(DefaultSource)
    told = [JOBS[job["do"]](spark, job) for job in asked["jobs"]]
    print(TOLD + json.dumps(told), flush=True)  # noqa: T201 - its product
    spark.stop()


if __name__ == "__main__":
    main()
