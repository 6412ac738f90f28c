"""The measurements of one side in one process: prints one line of JSON with its numbers.

Times are Spark's own (`durationMs` of each batch's progress), so that both sides are measured by the same clock, and
what was written is counted by delta-rs: a number for rows that are not there is none.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks import backlogs, idle, questions, workloads
from benchmarks.bench import (
    WARM_UP_BATCHES,
    Bench,
    batches_s,
    counted_ms,
    drain,
    expect,
    median_ms,
    parts_ms,
    percentile,
    wait,
)
from benchmarks.questions import Measurement, Setting, Side
from benchmarks.session import start_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

BULK_PASSES = 3
"""How often a bulk table is read; the last time counts. The JAR's second pass is still twice as slow as its third."""


def source_rows(bench: Bench) -> dict[str, float]:
    """Reads the bulk table to `noop` in one batch."""
    for _ in range(BULK_PASSES):
        batches = drain(bench, bench.stream(workloads.bulk_table(bench.tables)))
    return {questions.SOURCE_ROWS.key: bench.workload.bulk_rows / batches_s(batches)}


def source_batches(bench: Bench) -> dict[str, float]:
    """Reads one file a batch to `noop`."""
    batches = drain(bench, _small_commits(bench))
    return {questions.SOURCE_BATCH.key: median_ms(batches), **parts_ms("source", batches)}


def sink_batches(bench: Bench) -> dict[str, float]:
    """Copies one file a batch to a table, by one query; a checkpoint falls due at each tenth."""
    copy = bench.fresh("copy")
    batches = drain(bench, _small_commits(bench), into=copy)
    _expect_rows(copy, bench.workload.commit_count * bench.workload.commit_rows)
    p50_ms, p99_ms = median_ms(batches), percentile(sorted(counted_ms(batches)), 99)
    return {
        questions.SINK_BATCH.key: p50_ms,
        questions.SINK_BATCH_P99.key: p99_ms,
        questions.SINK_SPREAD.key: p99_ms / p50_ms,
        **parts_ms("sink", batches),
    }


def sink_rows(bench: Bench) -> dict[str, float]:
    """Copies the bulk table in one batch."""
    seconds = _copy_bulk(bench, lambda: bench.stream(workloads.bulk_table(bench.tables)))
    return {questions.SINK_ROWS.key: bench.workload.bulk_rows / seconds}


def sink_rows_of_parquet(bench: Bench) -> dict[str, float]:
    """Writes the rows of the bulk table's files, which Spark's own Parquet source reads on both sides."""
    table = str(workloads.bulk_table(bench.tables))
    schema = bench.spark.read.parquet(table).schema
    seconds = _copy_bulk(bench, lambda: bench.spark.readStream.schema(schema).parquet(table))
    return {questions.SINK_ROWS_OF_PARQUET.key: bench.workload.bulk_rows / seconds}


def latency(bench: Bench) -> dict[str, float]:
    """Times commits by another process until their rows are in `foreachBatch`.

    A commit's time is its log file's modification time, which is set just before the file gets its name.
    """
    size, table = bench.workload, bench.fresh("appended")
    workloads.start_appended(table)
    seen_ns: dict[int, int] = {}

    def note(batch: DataFrame, _: int) -> None:
        versions = {row.id for row in batch.select("id").collect()}
        now_ns = time.time_ns()
        for version in versions:
            seen_ns.setdefault(version, now_ns)

    stream = bench.stream(table, startingVersion="0")
    writer = stream.writeStream.foreachBatch(note).option("checkpointLocation", str(bench.fresh("checkpoint")))
    query = writer.trigger(processingTime="0 seconds").start()
    wait(query, lambda: 0 in seen_ns)
    sizes = ["--count", str(size.appended_commits), "--rows", str(size.appended_rows)]
    pace = ["--interval-s", str(size.append_interval_s)]
    subprocess.run([sys.executable, "-m", "benchmarks.workloads", str(table), *sizes, *pace], check=True)
    wait(query, lambda: size.appended_commits in seen_ns)
    query.stop()
    counted = range(1 + min(WARM_UP_BATCHES, size.appended_commits // 3), size.appended_commits + 1)
    took_ms = sorted((seen_ns[version] - _committed_ns(table, version)) / 1e6 for version in counted)
    return {
        questions.LATENCY_P50.key: statistics.median(took_ms),
        questions.LATENCY_P95.key: percentile(took_ms, 95),
    }


MEASURES: Mapping[Measurement, Callable[[Bench], dict[str, float]]] = {
    Measurement.SOURCE_ROWS: source_rows,
    Measurement.SOURCE_BATCHES: source_batches,
    Measurement.SINK_BATCHES: sink_batches,
    Measurement.SINK_ROWS: sink_rows,
    Measurement.SINK_ROWS_OF_PARQUET: sink_rows_of_parquet,
    Measurement.LATENCY: latency,
    Measurement.CATCH_UP: backlogs.catch_up,
    Measurement.CHANGE_FEED: backlogs.change_feed,
    Measurement.OLD_LOG: backlogs.old_log,
    Measurement.IDLE: idle.idle,
}


def _small_commits(bench: Bench) -> DataFrame:
    return bench.stream(workloads.commits_table(bench.tables), startingVersion="0", maxFilesPerTrigger="1")


def _copy_bulk(bench: Bench, stream: Callable[[], DataFrame]) -> float:
    for _ in range(BULK_PASSES):
        copy = bench.fresh("copy")
        batches = drain(bench, stream(), into=copy)
        _expect_rows(copy, bench.workload.bulk_rows)
    shutil.rmtree(copy)
    return batches_s(batches)


def _expect_rows(copy: Path, rows: int) -> None:
    expect(workloads.row_count(copy), rows, what="rows of the copy")


def _committed_ns(table: Path, version: int) -> int:
    return (table / "_delta_log" / f"{version:020d}.json").stat().st_mtime_ns


def main() -> None:
    """Runs the measurements named on the command line and prints their numbers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("measurements", nargs="+", type=Measurement)
    parser.add_argument("--side", type=Side, required=True)
    parser.add_argument("--setting", type=Setting, required=True)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--peer-jars", type=Path, required=True)
    parser.add_argument("--tables", type=Path, required=True)
    parser.add_argument("--scratch", type=Path, required=True)
    given = parser.parse_args()
    spark = start_session(given.side, given.setting, scratch=given.scratch, jars=given.peer_jars)
    bench = Bench(
        spark=spark,
        side=given.side,
        workload=workloads.QUICK if given.quick else workloads.FULL,
        tables=given.tables,
        scratch=given.scratch,
    )
    sample: dict[str, float] = {}
    for measurement in given.measurements:
        sample |= MEASURES[measurement](bench)
    spark.stop()
    print(json.dumps(sample))


if __name__ == "__main__":
    main()
