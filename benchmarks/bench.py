"""What every measurement of a stream needs: a session of one side, its tables, and a stream run to its end."""

from __future__ import annotations

import json
import shutil
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.questions import Setting, Side
from benchmarks.session import FORMATS, READY
from benchmarks.workloads import Workload

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

WARM_UP_BATCHES = 10
"""Batches of a query that are not counted: the JVM compiles what it runs often."""

LOG_WRITES = ("walCommit", "commitOffsets")
"""The parts of a batch in which Spark writes its own two logs, whatever source and sink are."""

PATIENCE_S = 60.0
"""How long is waited for what should come at once."""

Progress = Mapping[str, Any]
# Any: Spark's progress as JSON.


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """What every measurement needs: a session of one side, the tables to read and a folder to write to.

    `is_first`: this is the measurement's first round in this session, which is not counted.
    """

    spark: SparkSession
    side: Side
    setting: Setting
    workload: Workload
    tables: Path
    jars: Path
    scratch: Path
    is_first: bool

    def stream(self, table: Path, **options: str) -> DataFrame:
        """Reads `table` with this side's source."""
        return self.spark.readStream.format(FORMATS[self.side]).options(**options).load(str(table))

    def ready(self, folder: Path, **options: str) -> DataFrame:
        """Reads a folder with the source that does nothing."""
        return self.spark.readStream.format(READY).options(folder=str(folder), **options).load()

    def fresh(self, name: str) -> Path:
        """Gives a folder that does not exist."""
        path = self.scratch / name
        shutil.rmtree(path, ignore_errors=True)
        return path


def drain(bench: Bench, stream: DataFrame, *, into: Path | None = None) -> list[Progress]:
    """Runs the stream to the end of what is there now, to `noop` or into a table; gives the batches that had rows."""
    writer = stream.writeStream.format(FORMATS[bench.side] if into else "noop")
    query = run_now(writer.option("checkpointLocation", str(bench.fresh("checkpoint"))), into=into)
    progress = [json.loads(p.json) for p in query.recentProgress]
    return [p for p in progress if "addBatch" in p["durationMs"]]


def run_now(writer: DataStreamWriter, *, into: Path | None) -> StreamingQuery:
    """Runs a query to the end of what is there now, and gives it."""
    writer = writer.trigger(availableNow=True)
    query = writer.start(str(into)) if into else writer.start()
    query.awaitTermination()
    return query


def whole_s(bench: Bench, stream: DataFrame) -> float:
    """Gives the seconds from the start of a query to its end, with all that is there now to `noop`.

    All that it takes, as the two sides plan ahead at different times: one within the first batch, the other before.
    """
    begun = time.perf_counter()
    drain(bench, stream)
    return time.perf_counter() - begun


def counts(bench: Bench, stream: DataFrame, *columns: str) -> dict[tuple[Any, ...], int]:
    """Gives how many rows a stream delivers of what is there now, by what they have in `columns`."""
    found: dict[tuple[Any, ...], int] = {}

    def count(batch: DataFrame, _: int) -> None:
        for row in batch.groupBy(*columns).count().collect():
            *key, rows = row
            found[tuple(key)] = found.get(tuple(key), 0) + rows

    writer = stream.writeStream.foreachBatch(count).option("checkpointLocation", str(bench.fresh("checkpoint")))
    writer.trigger(availableNow=True).start().awaitTermination()
    return found


def expect(found: object, expected: object, *, what: str) -> None:
    """Raises SystemExit where they differ: the time of what is not what it should be says nothing."""
    if found != expected:
        raise SystemExit(f"{what}: {found} instead of {expected}: its time would say nothing")


def wait(query: StreamingQuery, is_done: Callable[[], bool]) -> None:
    """Waits until `is_done`; raises what ends the query, and SystemExit where nothing comes of it."""
    patience_ends = time.monotonic() + PATIENCE_S
    while not is_done():
        error = query.exception()
        if error is not None:
            raise error
        if time.monotonic() > patience_ends:
            raise SystemExit(f"what was waited for did not come within {PATIENCE_S:g} s")
        time.sleep(0.05)


def batches_s(batches: Iterable[Progress], part: str = "triggerExecution") -> float:
    """Gives the seconds of a part of all `batches` by Spark's clock."""
    return sum(float(p["durationMs"][part]) for p in batches) / 1000


def median_ms(batches: Sequence[Progress], part: str = "triggerExecution") -> float:
    """Gives the median of a part of a batch's time, without the first batches."""
    return statistics.median(counted_ms(batches, part))


def counted_ms(batches: Sequence[Progress], part: str = "triggerExecution") -> list[float]:
    """Gives a part of each batch's time, without the first batches."""
    counted = batches[min(WARM_UP_BATCHES, len(batches) // 3) :]
    return [float(p["durationMs"].get(part, 0)) for p in counted]


def own_ms(batches: Sequence[Progress]) -> list[float]:
    """Gives the time of each batch less Spark's two log writes, without the first batches."""
    whole, *logs = (counted_ms(batches, part) for part in ("triggerExecution", *LOG_WRITES))
    return [all_of_it - sum(log) for all_of_it, *log in zip(whole, *logs, strict=True)]


def parts_ms(prefix: str, batches: Sequence[Progress]) -> dict[str, float]:
    """Gives the median of each of Spark's own parts of a batch's time."""
    parts = sorted({part for p in batches for part in p["durationMs"]} - {"triggerExecution"})
    return {f"{prefix}_batch_{part}_ms": median_ms(batches, part) for part in parts}


def percentile(sorted_values: Sequence[float], percent: int) -> float:
    """Gives the value that `percent` of all do not exceed."""
    return sorted_values[-(-len(sorted_values) * percent // 100) - 1]
