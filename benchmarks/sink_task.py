"""`python -m benchmarks.sink_task TABLE`: one task of the sink beside `pyarrow.dataset.write_dataset`, on one core.

The same rows are in memory, in batches of 10,000 as Spark gives them. Both write Snappy, statistics in the footer and
row groups of the same size. Ours also computes the statistics for the log and makes the file durable.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from benchmarks import questions, workloads
from benchmarks.bench import Bench, percentile
from benchmarks.questions import Side

if TYPE_CHECKING:
    import pyarrow as pa

FILES = 15
"""Files of the bulk table: 3,000,000 rows."""

SPARK_ROWS = 10_000

PASSES = 3


def sink_task(bench: Bench) -> dict[str, float]:
    """Times both by a process of its own."""
    if bench.side is Side.JAR:
        return {}
    command = [sys.executable, "-m", "benchmarks.sink_task", str(workloads.bulk_table(bench.tables))]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise SystemExit(f"the tasks of the sink failed:\n{ended.stderr[-4000:]}")
    numbers: dict[str, float] = json.loads(ended.stdout)
    return numbers


def main() -> None:
    """Writes by turns, some times each, and prints the rows a second of each side's median."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table", type=Path)
    given = parser.parse_args()
    os.sched_setaffinity(0, {0})  # before pyarrow has threads: they inherit it

    import pyarrow.parquet as pq

    paths = sorted(given.table.glob("*.parquet"))[:FILES]
    batches = [batch for path in paths for batch in pq.read_table(path).to_batches(max_chunksize=SPARK_ROWS)]
    taken: dict[str, list[float]] = {questions.SINK_TASK.key: [], str(questions.SINK_TASK.beside): []}
    writers: list[Callable[[list[pa.RecordBatch], Path], None]] = [by_tablefeed, by_pyarrow]
    with TemporaryDirectory(dir=given.table.parent) as scratch:
        for _ in range(PASSES):
            for times, write in zip(taken.values(), writers, strict=True):
                os.sync()
                begun = time.perf_counter()
                write(batches, Path(scratch))
                times.append(time.perf_counter() - begun)
                shutil.rmtree(Path(scratch) / "written", ignore_errors=True)
    rows = sum(batch.num_rows for batch in batches)
    print(json.dumps({key: rows / percentile(sorted(times), 50) for key, times in taken.items()}))


def by_tablefeed(batches: list[pa.RecordBatch], folder: Path) -> None:
    """Writes them as a task does, to files that no commit will name."""
    from tablefeed.feed.snapshot.open_log import open_log
    from tablefeed.feed.write.sink import plan_write, write_task
    from tablefeed.log.conflicts import WriteKind

    log = open_log(str(folder / "written"))
    plan = plan_write(log, None, batches[0].schema, partition_by=(), kind=WriteKind.APPEND)
    write_task(plan, iter(batches), task=0, now_ms=0)


def by_pyarrow(batches: list[pa.RecordBatch], folder: Path) -> None:
    """Writes them as pyarrow does."""
    import pyarrow.dataset as ds

    kind = ds.ParquetFileFormat()
    ds.write_dataset(
        iter(batches),
        folder / "written",
        format=kind,
        schema=batches[0].schema,
        file_options=kind.make_write_options(compression="snappy", write_statistics=True),
        min_rows_per_group=1 << 20,
        max_rows_per_group=1 << 20,
        use_threads=False,
    )


if __name__ == "__main__":
    main()
