"""How long a user of the command line waits: for its help, and for a commit to be shown by `tablefeed tail`.

python -m benchmarks.terminal
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pyarrow as pa

import tablefeed

COMMITS = 60
HELPS = 20
PAUSE_S = 0.3
"""Between two commits, so that the command waits when one is made."""


def help_ms() -> list[float]:
    """Gives how long each of `HELPS` calls of `tablefeed --help` took."""
    found = []
    for _ in range(HELPS):
        begun = time.perf_counter()
        subprocess.run([sys.executable, "-m", "tablefeed", "--help"], check=True, capture_output=True)
        found.append(1000 * (time.perf_counter() - begun))
    return found


def tail_ms(table: Path) -> list[float]:
    """Gives how long after each of `COMMITS` commits its line was read: from when its file had its name in the log."""
    tablefeed.append(table, pa.table({"id": [0]}))
    command = [sys.executable, "-m", "tablefeed", "tail", str(table), "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env={**os.environ, "PYTHONUNBUFFERED": "1"}) as process:
        assert process.stdout is not None  # noqa: S101  # a pipe was asked for
        time.sleep(3)
        found = []
        for version in range(1, COMMITS + 1):
            time.sleep(PAUSE_S)
            tablefeed.append(table, pa.table({"id": [version]}))
            process.stdout.readline()
            read_ns = time.time_ns()
            named_ns = (table / "_delta_log" / f"{version:020d}.json").stat().st_ctime_ns
            found.append((read_ns - named_ns) / 1_000_000)
        process.terminate()
    return found


def report(name: str, times_ms: list[float]) -> None:
    """Prints the median and the slowest twentieth."""
    late = sorted(times_ms)[int(0.95 * len(times_ms))]
    print(f"{name}: p50 {statistics.median(times_ms):.0f} ms, p95 {late:.0f} ms, of {len(times_ms)}")


if __name__ == "__main__":
    report("tablefeed --help", help_ms())
    with tempfile.TemporaryDirectory() as folder:
        report("from a commit to its line of tablefeed tail", tail_ms(Path(folder) / "t"))
