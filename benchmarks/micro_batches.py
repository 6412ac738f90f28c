"""Change events on Spark: `tablefeed.spark.apply_changes` beside a MERGE of the Delta JAR in `foreachBatch`.

A process of its own for each side. Both read the same Parquet files of events by Spark's own source, one file a batch,
and change copies of the same tables, which have deletion vectors. The MERGE is the least that a user could write: it
does not look at the order of the events, and records no txn.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

import tablefeed
import tablefeed.spark
from benchmarks import environment, row_tables
from benchmarks.questions import AtMost, Setting, Side
from benchmarks.row_tables import ARGUMENTS, Order, Workload
from benchmarks.session import CLUSTER, LOCAL, start_session
from benchmarks.source import Figure
from benchmarks.turns import Sample

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ORDERS: Mapping[Order, str] = {"shuffled": "keys in all files", "ordered": "keys in one file"}
MADE: Mapping[str, str] = {"vectors": "", "fed": ", with the change feed"}
EACH: list[tuple[str, Order]] = list(product(MADE, ORDERS))

_PROCESSES = ("python", "jvm", "workers")


def _figures() -> Iterator[Figure]:
    for made, order in EACH:
        key, what = f"{made}_{order}", ORDERS[order] + MADE[made]
        for side in Side:
            yield Figure(key=f"{side}_{key}_s", text=f"{side} on Spark: a micro-batch, {what}", unit="s")
            yield Figure(key=f"{side}_{key}_first_s", text=f"{side}: the first of its query", unit="s")
        goal = AtMost(bound=0.25)
        yield Figure(key=f"micro_{key}", text=f"a micro-batch, tablefeed over jar, {what}", unit="times", goal=goal)
    for side in Side:
        yield Figure(key=f"{side}_cold_s", text=f"{side}: the first micro-batch of the process", unit="s")
    yield Figure(key="micro_cold", text="the first of the process, tablefeed over jar", unit="times")
    for side in Side:
        told = {"python": "the driver's Python", "jvm": "the JVM", "workers": "the Python workers"}
        for process in _PROCESSES:
            text = f"{side}, micro-batches: peak memory of {told[process]}"
            yield Figure(key=f"{side}_{process}_mb", text=text, unit="MB")
    yield Figure(key="micro_memory", text="their sums, tablefeed over jar", unit="times")
    for side in Side:
        yield Figure(key=f"{side}_large_s", text=f"{side} on Spark: 2,000,000 events onto 20,000,000 rows", unit="s")
        goal_mb = AtMost(bound=1024) if side is Side.OURS else None
        text = f"{side}: peak memory of its driver, Python and JVM"
        yield Figure(key=f"{side}_large_driver_mb", text=text, unit="MB", goal=goal_mb)
        text = f"{side}: peak memory of its executor and Python workers"
        yield Figure(key=f"{side}_large_executor_mb", text=text, unit="MB")


FIGURES = tuple(_figures())

RATIOS = {
    **{f"micro_{a}_{b}": (f"{Side.OURS}_{a}_{b}_s", f"{Side.JAR}_{a}_{b}_s") for a, b in EACH},
    "micro_cold": (f"{Side.OURS}_cold_s", f"{Side.JAR}_cold_s"),
    "micro_memory": (f"{Side.OURS}_mb", f"{Side.JAR}_mb"),
}


def micro_batches(side: Side, workload: Workload, folder: Path, jars: Path) -> Sample:
    """Applies some batches to each table. The first of a query is reported by itself, as is the first of all."""
    sample: Sample = {}
    with _session(side, folder, jars, LOCAL) as (spark, scratch):
        for made, order in EACH:
            table = row_tables.copied(folder / made / order, scratch / f"{made}-{order}")
            first, *others = _batches_s(spark, side, folder / "events" / order, table)
            sample.setdefault(f"{side}_cold_s", first)
            sample[f"{side}_{made}_{order}_first_s"] = first
            sample[f"{side}_{made}_{order}_s"] = statistics.median(others)
        peaks = dict(zip(_PROCESSES, environment.peaks_mb(), strict=True))
        for made, order in EACH:
            table, what = scratch / f"{made}-{order}", f"{side}, {made}, {order}"
            row_tables.check(table, workload.batch, workload.micro_batches, what=what)
            _check_kind(table, workload, is_fed=made == "fed", what=what)
    sample[f"{side}_mb"] = sum(peaks.values())
    return sample | {f"{side}_{process}_mb": mb for process, mb in peaks.items()}


def large(side: Side, workload: Workload, folder: Path, jars: Path) -> Sample:
    """Applies one large batch to a larger table. The driver's JVM runs no task: an executor of its own does."""
    with _session(side, folder, jars, CLUSTER) as (spark, scratch):
        table = row_tables.copied(folder / "large", scratch / "large")
        events = spark.read.parquet(str(folder / "large-events"))
        begun = time.perf_counter()
        if side is Side.OURS:
            tablefeed.spark.apply_changes(events, str(table), **_ARGUMENTS)
        else:
            _merge(events, 0, table=table)
        seconds = time.perf_counter() - begun
        python, jvm, executor = environment.peaks_mb()
        row_tables.check(table, workload.large, 1, what=f"{side}, large")
    return {
        f"{side}_large_s": seconds,
        f"{side}_large_driver_mb": python + jvm,
        f"{side}_large_executor_mb": executor,
    }


def make_large(workload: Workload, folder: Path) -> None:
    """Makes what `large` reads."""
    row_tables.make(folder / "large", workload.large, row_tables.VECTORS, "shuffled")
    events = folder / "large-events"
    events.mkdir()
    pq.write_table(row_tables.events(workload.large, "shuffled"), events / "events.parquet", row_group_size=100_000)


_ARGUMENTS: Mapping[str, Any] = ARGUMENTS
# Any: each argument has its own type.


@contextmanager
def _session(side: Side, folder: Path, jars: Path, master: str) -> Iterator[tuple[SparkSession, Path]]:
    with TemporaryDirectory(dir=folder) as scratch:
        spark = start_session(side, Setting.DEFAULT, scratch=Path(scratch), jars=jars, master=master)
        yield spark, Path(scratch)
        spark.stop()


def _batches_s(spark: SparkSession, side: Side, events: Path, table: Path) -> list[float]:
    """Applies the files of events, one a batch; gives the seconds of each."""
    schema = spark.read.parquet(str(events)).schema
    stream = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(events))
    checkpoint = str(table.with_suffix(".checkpoint"))
    query: Any  # Any: of ours mypy does not know that a stream gives a query
    if side is Side.OURS:
        query = tablefeed.spark.apply_changes(
            stream, str(table), **_ARGUMENTS, checkpoint_location=checkpoint, trigger={"availableNow": True}
        )
    else:
        writer = stream.writeStream.foreachBatch(partial(_merge, table=table))
        query = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
    query.awaitTermination()
    took = [json.loads(progress.json)["durationMs"] for progress in query.recentProgress]
    return [batch["triggerExecution"] / 1000 for batch in took if "addBatch" in batch]


def _merge(events: DataFrame, _: int, *, table: Path) -> None:
    events.createOrReplaceTempView("events")
    columns = [name for name in events.columns if name != "op"]
    clauses = [
        "WHEN MATCHED AND s.op = 'd' THEN DELETE",
        f"WHEN MATCHED THEN UPDATE SET {', '.join(f't.{name} = s.{name}' for name in columns)}",
        f"WHEN NOT MATCHED AND s.op <> 'd' THEN INSERT ({', '.join(columns)})",
        f"VALUES ({', '.join(f's.{name}' for name in columns)})",
    ]
    merge = f"MERGE INTO delta.`{table}` t USING events s ON t.id = s.id"
    events.sparkSession.sql(" ".join([merge, *clauses]))


def _check_kind(table: Path, workload: Workload, *, is_fed: bool, what: str) -> None:
    """Raises SystemExit where rows were not taken out by vectors, or their changes not recorded."""
    newest = max((table / "_delta_log").glob("*.json"))
    if '"deletionVector"' not in newest.read_text():
        raise SystemExit(f"{what}: rows were taken out without deletion vectors: its time would say nothing")
    if is_fed:
        size, batches = workload.batch, workload.micro_batches
        begun = int(newest.stem) - batches + 1
        recorded = sum(batch.num_rows for batch in tablefeed.changes(table, start_version=begun))
        if recorded != batches * (2 * size.updates + size.deletes + size.inserts):
            raise SystemExit(f"{what}: {recorded} changes are recorded: its time would say nothing")
