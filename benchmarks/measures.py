"""The session of one side, in a process of its own: a line names a measurement and a round, a line of JSON answers.

Times of batches are Spark's own (`durationMs` of each batch's progress), so that both sides are measured by the same
clock. What was written is counted by delta-rs: a number for rows that are not there is none.
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
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks import backlogs, idle, questions, ready, workloads
from benchmarks.bench import (
    Bench,
    batches_s,
    counted_ms,
    drain,
    expect,
    median_ms,
    own_ms,
    parts_ms,
    percentile,
    run_now,
    wait,
)
from benchmarks.cold import cold
from benchmarks.questions import Measurement, Setting, Side
from benchmarks.session import FORMATS, READY, start_session
from benchmarks.sink_task import sink_task

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

LATENCY_WARM_UP = 3
"""Commits that are not counted in each round: the query has just begun."""


def source_rows(bench: Bench) -> dict[str, float]:
    """Reads the bulk table to `noop` in one batch. In our session also the same rows from two other sources."""
    batches = drain(bench, bench.stream(workloads.bulk_table(bench.tables)))
    numbers = {
        questions.SOURCE.key: batches_s(batches),
        questions.SOURCE_ADD_BATCH.key: batches_s(batches, "addBatch"),
    }
    if bench.side is Side.OURS:
        times = bench.workload.bulk_rows // workloads.READY_ROWS
        beside = {
            "ready": bench.ready(workloads.ready_bulk(bench.tables), batches=str(times)),
            "parquet": _parquet(bench),
        }
        for name, stream in beside.items():
            batches = drain(bench, stream)
            numbers |= {f"{name}_s": batches_s(batches), f"{name}_add_batch_s": batches_s(batches, "addBatch")}
    return numbers


def source_batches(bench: Bench) -> dict[str, float]:
    """Reads one file a batch to `noop`."""
    batches = drain(bench, _small_commits(bench))
    numbers = {
        questions.SOURCE_BATCH.key: median_ms(batches),
        questions.SOURCE_BATCH_OWN.key: statistics.median(own_ms(batches)),
        **parts_ms("source", batches),
    }
    if bench.side is Side.OURS:
        batches = drain(bench, bench.ready(workloads.ready_files(bench.tables), most="1"))
        numbers |= {"ready_batch_own_ms": statistics.median(own_ms(batches)), **parts_ms("ready", batches)}
    return numbers


def sink_batches(bench: Bench) -> dict[str, float]:
    """Copies one file a batch to a table, by one query; a checkpoint falls due at each tenth."""
    copy = bench.fresh("copy")
    batches = drain(bench, _small_commits(bench), into=copy)
    _expect_rows(copy, bench.workload.commit_count * bench.workload.commit_rows)
    p50_ms, p99_ms = median_ms(batches), percentile(sorted(counted_ms(batches)), 99)
    return {
        questions.SINK_BATCH.key: p50_ms,
        questions.SINK_BATCH_OWN.key: statistics.median(own_ms(batches)),
        questions.SINK_SPREAD.key: p99_ms / p50_ms,
        **parts_ms("sink", batches),
    }


def sink_rows(bench: Bench) -> dict[str, float]:
    """Copies the bulk table in one batch."""
    seconds = _copy_bulk(bench, bench.stream(workloads.bulk_table(bench.tables)))
    return {questions.SINK_ROWS.key: bench.workload.bulk_rows / seconds}


def sink_rows_of_parquet(bench: Bench) -> dict[str, float]:
    """Writes the rows of the bulk table's files, which Spark's own Parquet source reads on both sides."""
    return {questions.SINK_ROWS_OF_PARQUET.key: bench.workload.bulk_rows / _copy_bulk(bench, _parquet(bench))}


def latency(bench: Bench) -> dict[str, float]:
    """Times commits by another process until their rows are in `foreachBatch`.

    A commit's time is its log file's modification time, which is set just before the file gets its name. In our
    session also the same with files of the source that does nothing: what is left is ours.
    """
    table = bench.fresh("appended")
    workloads.start_appended(table)
    stream = bench.stream(table, startingVersion="0")
    p50 = _latency_ms(bench, stream, table, lambda v: table / "_delta_log" / f"{v:020d}.json")
    if bench.side is Side.JAR:
        return {questions.LATENCY.key: p50}
    folder = bench.fresh("appended-ready")
    folder.mkdir()
    workloads.put_ready(folder, 0, workloads.first_row())
    of_ready = _latency_ms(bench, bench.ready(folder), folder, lambda n: folder / f"{n}.arrow", "--ready")
    return {questions.LATENCY.key: p50, "ready_latency_ms": of_ready, questions.LATENCY_OWN.key: p50 - of_ready}


def _latency_ms(bench: Bench, stream: DataFrame, table: Path, committed: Callable[[int], Path], *options: str) -> float:
    size = bench.workload
    seen_ns: dict[int, int] = {}

    def note(batch: DataFrame, _: int) -> None:
        versions = {row.id for row in batch.select("id").collect()}
        now_ns = time.time_ns()
        for version in versions:
            seen_ns.setdefault(version, now_ns)

    writer = stream.writeStream.foreachBatch(note).option("checkpointLocation", str(bench.fresh("checkpoint")))
    query = writer.trigger(processingTime="0 seconds").start()
    wait(query, lambda: 0 in seen_ns)
    sizes = ["--count", str(size.appended_commits), "--rows", str(size.appended_rows)]
    pace = ["--interval-s", str(size.append_interval_s), *options]
    subprocess.run([sys.executable, "-m", "benchmarks.workloads", str(table), *sizes, *pace], check=True)
    wait(query, lambda: size.appended_commits in seen_ns)
    query.stop()
    counted = range(1 + min(LATENCY_WARM_UP, size.appended_commits // 3), size.appended_commits + 1)
    return statistics.median((seen_ns[v] - committed(v).stat().st_mtime_ns) / 1e6 for v in counted)


def nothing_new(bench: Bench) -> dict[str, float]:
    """Runs queries that have all their rows already, from `load` to the end. In the first round they get them."""
    commits, files = workloads.commits_table(bench.tables), workloads.ready_files(bench.tables)
    own = FORMATS[bench.side]
    runs = {
        questions.NOTHING_NEW.key: (lambda: bench.stream(commits), "noop"),
        questions.NOTHING_NEW_TO_TABLE.key: (lambda: bench.stream(commits), own),
    }
    if bench.side is Side.OURS:
        runs |= {
            "ready_nothing_new_s": (lambda: bench.ready(files), "noop"),
            "ready_nothing_new_to_ready_s": (lambda: bench.ready(files), READY),
        }
    if bench.is_first:
        for key, (stream, to) in runs.items():
            _run_s(bench, key, stream, to)
    return {key: _run_s(bench, key, stream, to) for key, (stream, to) in runs.items()}


def _run_s(bench: Bench, name: str, stream: Callable[[], DataFrame], to: str) -> float:
    begun = time.perf_counter()
    writer = stream().writeStream.format(to).option("checkpointLocation", str(bench.scratch / f"checkpoint-{name}"))
    run_now(writer, into=None if to == "noop" else bench.scratch / f"written-{name}")
    return time.perf_counter() - begun


MEASURES: Mapping[Measurement, Callable[[Bench], dict[str, float]]] = {
    Measurement.SOURCE_ROWS: source_rows,
    Measurement.SINK_ROWS: sink_rows,
    Measurement.SINK_ROWS_OF_PARQUET: sink_rows_of_parquet,
    Measurement.SINK_TASK: sink_task,
    Measurement.CHANGE_FEED: backlogs.change_feed,
    Measurement.SOURCE_BATCHES: source_batches,
    Measurement.SINK_BATCHES: sink_batches,
    Measurement.LATENCY: latency,
    Measurement.NOTHING_NEW: nothing_new,
    Measurement.IDLE: idle.idle,
    Measurement.COLD: cold,
    Measurement.CATCH_UP: backlogs.catch_up,
    Measurement.OLD_LOG: backlogs.old_log,
}


def _small_commits(bench: Bench) -> DataFrame:
    return bench.stream(workloads.commits_table(bench.tables), startingVersion="0", maxFilesPerTrigger="1")


def _parquet(bench: Bench) -> DataFrame:
    table = str(workloads.bulk_table(bench.tables))
    return bench.spark.readStream.schema(bench.spark.read.parquet(table).schema).parquet(table)


def _copy_bulk(bench: Bench, stream: DataFrame) -> float:
    copy = bench.fresh("copy")
    batches = drain(bench, stream, into=copy)
    _expect_rows(copy, bench.workload.bulk_rows)
    shutil.rmtree(copy)
    return batches_s(batches)


def _expect_rows(copy: Path, rows: int) -> None:
    expect(workloads.row_count(copy), rows, what="rows of the copy")


def main() -> None:
    """Answers one line after the other, until there is none."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--side", type=Side, required=True)
    parser.add_argument("--setting", type=Setting, required=True)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--peer-jars", type=Path, required=True)
    parser.add_argument("--tables", type=Path, required=True)
    parser.add_argument("--scratch", type=Path, required=True)
    given = parser.parse_args()
    spark = start_session(given.side, given.setting, scratch=given.scratch, jars=given.peer_jars)
    spark.dataSource.register(ready.Ready)
    bench = Bench(
        spark=spark,
        side=given.side,
        setting=given.setting,
        workload=workloads.QUICK if given.quick else workloads.FULL,
        tables=given.tables,
        jars=given.peer_jars,
        scratch=given.scratch,
        is_first=True,
    )
    for line in sys.stdin:
        measurement, number = json.loads(line)
        numbers = MEASURES[Measurement(measurement)](replace(bench, is_first=number == 0))
        print(json.dumps(numbers), flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
