"""`python -m benchmarks.cold`: a new session of one side, one `availableNow` run of a table to `noop`, and its end."""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks import questions, workloads
from benchmarks.bench import Bench
from benchmarks.questions import Setting, Side
from benchmarks.session import FORMATS, start_session


def cold(bench: Bench) -> dict[str, float]:
    """Times such a process from its start to its end."""
    table = str(workloads.cold_table(bench.tables))
    arguments = ["--side", bench.side, "--setting", bench.setting, "--peer-jars", str(bench.jars)]
    begun = time.perf_counter()
    ended = subprocess.run(
        [sys.executable, "-m", "benchmarks.cold", table, *arguments], capture_output=True, text=True, check=False
    )
    seconds = time.perf_counter() - begun
    if ended.returncode:
        raise SystemExit(f"a cold run failed:\n{ended.stderr[-4000:]}")
    return {questions.COLD.key: seconds}


def main() -> None:
    """Runs it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table")
    parser.add_argument("--side", type=Side, required=True)
    parser.add_argument("--setting", type=Setting, required=True)
    parser.add_argument("--peer-jars", type=Path, required=True)
    given = parser.parse_args()
    with TemporaryDirectory(prefix="tablefeed-bench-", dir=Path(given.table).parent) as scratch:
        spark = start_session(given.side, given.setting, scratch=Path(scratch), jars=given.peer_jars)
        rows = spark.readStream.format(FORMATS[given.side]).load(given.table)
        writer = rows.writeStream.format("noop").option("checkpointLocation", f"{scratch}/checkpoint")
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        read = sum(progress.numInputRows for progress in query.recentProgress)
        spark.stop()
    if read != workloads.COLD_FILES * workloads.COLD_ROWS:
        raise SystemExit(f"{read} rows were read")


if __name__ == "__main__":
    main()
