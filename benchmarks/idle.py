"""What a query costs that has nothing to do: the processor time of all its processes."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks import questions, workloads
from benchmarks.bench import Bench, wait

SETTLE_S = 3.0
"""How long the query is idle before it is measured: what it began with is done, and compiled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessTimes:
    """A process's parent, and the ticks of processor time that it took itself."""

    parent: int
    ticks: int


def idle(bench: Bench) -> dict[str, float]:
    """Measures a query that waits for a table's next commit, without a pause between its looks."""
    stream = bench.stream(workloads.commits_table(bench.tables), startingVersion="latest")
    writer = stream.writeStream.format("noop").option("checkpointLocation", str(bench.fresh("checkpoint")))
    query = writer.trigger(processingTime="0 seconds").start()
    wait(query, lambda: "Waiting" in query.status["message"])
    time.sleep(min(SETTLE_S, bench.workload.idle_s))
    before, begun = _tree(), time.perf_counter()
    time.sleep(bench.workload.idle_s)
    used, seconds = ticks_since(before, _tree()), time.perf_counter() - begun
    query.stop()
    return {questions.IDLE.key: 60 * used / os.sysconf("SC_CLK_TCK") / seconds}


def parse_stat(text: str) -> ProcessTimes:
    """Gives what `/proc/PID/stat` says; the process's name, in brackets, may hold anything."""
    fields = text.rpartition(")")[2].split()
    return ProcessTimes(parent=int(fields[1]), ticks=int(fields[11]) + int(fields[12]))


def tree(processes: Mapping[int, ProcessTimes], root: int) -> dict[int, int]:
    """Gives the ticks of `root` and of each process that it started, directly or not, by process id."""
    found = {root: processes[root].ticks}
    for pid, process in processes.items():
        if process.parent == root:
            found |= tree(processes, pid)
    return found


def ticks_since(before: Mapping[int, int], now: Mapping[int, int]) -> int:
    """Gives the ticks that the processes of `now` took since `before`.

    Of a process that has ended nothing counts: it may be a worker of an earlier query, with all that it ever took.
    """
    return sum(ticks - before.get(pid, 0) for pid, ticks in now.items())


def _tree() -> dict[int, int]:
    processes: dict[int, ProcessTimes] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it ended just now
            processes[int(stat.parent.name)] = parse_stat(stat.read_text())
    return tree(processes, os.getpid())
