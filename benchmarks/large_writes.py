"""What writes of many rows, and over many files, take in memory: the task that writes, and the commit that replaces.

No Spark. Each runs in a process of its own (writers.py), for a peak is a process's.
"""

from __future__ import annotations

import random
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
from deltalake import write_deltalake

import tablefeed
from benchmarks import environment, logs, workloads
from benchmarks.questions import AtMost
from benchmarks.source import Figure, Sample
from tablefeed.feed.snapshot.open_log import open_log
from tablefeed.feed.write.sink import plan_write, write_task
from tablefeed.log.conflicts import WriteKind

TASK_ROWS, PARTITIONS = 10_000_000, 64
BATCH_ROWS = 10_000
"""What Spark gives a task at a time."""

MANY = "many-files"
BATCHES_MADE = 16
"""They come again and again: no time and no memory goes into making rows."""

FIGURES = (
    Figure(
        key="task_peak_mb",
        text="one task of 10 M rows into 64 partitions in batches of 10,000, peak memory",
        unit="MB",
        goal=AtMost(bound=512),
    ),
    Figure(key="task_over_imports_mb", text="the same over what the process has before its first row", unit="MB"),
    Figure(key="task_rows_per_s", text="its rows", unit="rows/s"),
    Figure(key="ours_removes", text="tablefeed: the files of an overwritten table", unit="files"),
    Figure(key="ours_removes_s", text="tablefeed: its overwrite", unit="s"),
    Figure(key="ours_removes_cpu_s", text="tablefeed: its processor time", unit="s"),
    Figure(key="ours_removes_peak_mb", text="tablefeed: its peak memory", unit="MB"),
    Figure(key="ours_removes_kb", text="tablefeed: the size of its commit", unit="kB"),
    Figure(key="delta_rs_removes_s", text="delta-rs: the same overwrite", unit="s"),
    Figure(key="delta_rs_removes_cpu_s", text="delta-rs: its processor time", unit="s"),
    Figure(key="delta_rs_removes_peak_mb", text="delta-rs: its peak memory", unit="MB"),
    Figure(key="delta_rs_removes_kb", text="delta-rs: the size of its commit", unit="kB"),
)

Overwrite = Callable[[Path, pa.Table], object]


def task(folder: Path) -> Sample:
    """Writes the rows of one task, as the Spark sink's tasks do; nothing is committed."""
    table = folder / "partitioned"
    batches = _batches(TASK_ROWS // BATCH_ROWS)
    first = next(batches)
    plan = plan_write(open_log(str(table)), None, first.schema, partition_by=("part",), kind=WriteKind.APPEND)
    before_mb, begin = environment.peak_mb(), time.perf_counter()
    written = write_task(plan, batches, task=0, now_ms=0)
    seconds = time.perf_counter() - begin
    if len({tuple(add.partition_values.items()) for add in written}) != PARTITIONS:
        raise SystemExit(f"{len(written)} files are not of {PARTITIONS} partitions")
    peak_mb = environment.peak_mb()
    shutil.rmtree(table)
    return {
        "task_peak_mb": peak_mb,
        "task_over_imports_mb": peak_mb - before_mb,
        "task_rows_per_s": (TASK_ROWS - BATCH_ROWS) / seconds,
    }


def _batches(count: int) -> Iterator[pa.RecordBatch]:
    chance = random.Random(20130101)  # noqa: S311 - the same rows in every run, no secret
    made = []
    for number in range(BATCHES_MADE):
        rows = workloads.rows(number * BATCH_ROWS, BATCH_ROWS, chance)
        parts = pa.array([chance.randrange(PARTITIONS) for _ in range(BATCH_ROWS)], pa.int64())
        made += rows.append_column("part", parts).combine_chunks().to_batches()
    return (made[number % BATCHES_MADE] for number in range(count))


def by_tablefeed(table: Path, rows: pa.Table) -> object:
    """One overwrite of the whole table."""
    return tablefeed.append(table, rows, mode="overwrite")


def by_delta_rs(table: Path, rows: pa.Table) -> object:
    """The same by delta-rs."""
    return write_deltalake(str(table), rows, mode="overwrite")


def make_removes(folder: Path, files: int, form: logs.Form) -> None:
    """A table of many files."""
    # In another process: what making it takes is not what replacing it takes.
    environment.in_a_process("benchmarks.logs", str(folder / MANY), f"--files={files}", f"--form={form}")


def removes(who: str, overwrite: Overwrite, folder: Path) -> Sample:
    """Overwrites a table of many files, whose removes are all in one commit, with a row."""
    made, table = folder / MANY, folder / "overwritten"
    shutil.copytree(made, table)
    columns = {f"c{n}": pa.array([n], pa.int64()) for n in range(logs.COLUMNS)}
    begin, begin_cpu = time.perf_counter(), time.process_time()
    overwrite(table, pa.table({**columns, "day": ["2026-01-01"]}))
    seconds, cpu_s, peak_mb = time.perf_counter() - begin, time.process_time() - begin_cpu, environment.peak_mb()
    commit = table / "_delta_log" / f"{3:020d}.json"
    with commit.open("rb") as lines:
        removed = sum(line.startswith(b'{"remove"') for line in lines)
    if removed != logs.file_count(made):
        raise SystemExit(f"{removed} files were removed: its time would say nothing")
    size_kb = commit.stat().st_size / 1000
    shutil.rmtree(table)
    return {
        f"{who}_removes": removed,
        f"{who}_removes_s": seconds,
        f"{who}_removes_cpu_s": cpu_s,
        f"{who}_removes_peak_mb": peak_mb,
        f"{who}_removes_kb": size_kb,
    }
