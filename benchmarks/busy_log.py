"""What a log of many commits a minute costs who plans a stream: processor time and memory, without data and Spark.

    python -m benchmarks.busy_log [--per-minute 1000] [--files 100] [--minutes 3] [--behind 60]

A table gets so many commits a minute, of so many files each, as a sink with as many tasks makes them. First a stream
looks once a second, and finds the commits of that second. Then a stream begins that is some minutes behind. Commits are
made before the clock starts, so nothing waits.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks import environment, logs, planner
from tablefeed.log.plan import Limits
from tablefeed.store import LocalStore


def keeps_up(table: Path, *, per_minute: int, files: int, minutes: int) -> dict[str, float]:
    """The processor time of a minute in which a stream looks every second."""
    stream = planner.Stream(LocalStore(str(table)), starting_version="latest")
    stream.look()
    version, used_s, planned = 0, 0.0, 0
    for second in range(1, minutes * 60 + 1):
        end = second * per_minute // 60
        logs.commits(table, range(version + 1, end + 1), files=files)
        version, begun = end, time.process_time()
        planned += _files_of(stream, Limits())
        used_s += time.process_time() - begun
    _check(planned, version * files)
    return {"keeps_up_cpu_s_a_minute": used_s / minutes, "keeps_up_peak_mb": environment.peak_mb()}


def catches_up(table: Path, *, commits: int, files: int) -> dict[str, float]:
    """The processor time of a stream that has all commits before it, in batches of 1,000 files."""
    stream, planned, batches, begun = (
        planner.Stream(LocalStore(str(table)), starting_version=1),
        0,
        0,
        time.process_time(),
    )
    for found in _batches(stream):
        planned += found
        batches += 1
    _check(planned, commits * files)
    used_s = time.process_time() - begun
    return {
        "behind_commits": commits,
        "behind_cpu_s": used_s,
        "behind_ms_a_commit": used_s / commits * 1000,
        "behind_batches": batches,
        "behind_peak_mb": environment.peak_mb(),
    }


def _batches(stream: planner.Stream) -> Iterator[int]:
    while found := _files_of(stream, Limits(files=planner.SNAPSHOT_BATCH_FILES)):
        yield found


def _files_of(stream: planner.Stream, limits: Limits) -> int:
    return sum(len(task.files) for task in stream.plan(limits))


def _check(planned: int, expected: int) -> None:
    if planned != expected:
        raise SystemExit(f"{planned} files were planned and not {expected}: their time would say nothing")


def main() -> None:
    """Makes the log, measures and prints."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.busy_log", description=__doc__)
    parser.add_argument("--per-minute", type=int, default=1_000)
    parser.add_argument("--files", type=int, default=100)
    parser.add_argument("--minutes", type=int, default=3)
    parser.add_argument("--behind", type=int, default=60, help="minutes that the second stream is behind")
    given = parser.parse_args()
    with TemporaryDirectory() as folder:
        near, behind = Path(folder, "near"), Path(folder, "behind")
        logs.begin(near)
        found = keeps_up(near, per_minute=given.per_minute, files=given.files, minutes=given.minutes)
        logs.begin(behind)
        commits = given.behind * given.per_minute
        logs.commits(behind, range(1, commits + 1), files=given.files)
        found |= catches_up(behind, commits=commits, files=given.files)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
