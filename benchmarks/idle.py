"""What a query costs that has nothing to do: the processor time of all its processes."""

from __future__ import annotations

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
    """A process's parent, and the ticks of processor time that it and its ended children took."""

    parent: int
    ticks: int


def idle(bench: Bench) -> dict[str, float]:
    """Measures a query that waits for a table's next commit, without a pause between its looks."""
    stream = bench.stream(workloads.commits_table(bench.tables), startingVersion="latest")
    writer = stream.writeStream.format("noop").option("checkpointLocation", str(bench.fresh("checkpoint")))
    query = writer.trigger(processingTime="0 seconds").start()
    wait(query, lambda: "Waiting" in query.status["message"])
    time.sleep(min(SETTLE_S, bench.workload.idle_s))
    before, begun = _tree_s(), time.perf_counter()
    time.sleep(bench.workload.idle_s)
    used, seconds = _tree_s() - before, time.perf_counter() - begun
    query.stop()
    return {questions.IDLE.key: 60 * used / seconds}


def parse_stat(text: str) -> ProcessTimes:
    """Gives what `/proc/PID/stat` says; the process's name, in brackets, may hold anything."""
    fields = text.rpartition(")")[2].split()
    return ProcessTimes(parent=int(fields[1]), ticks=sum(map(int, fields[11:15])))


def tree_ticks(processes: Mapping[int, ProcessTimes], root: int) -> int:
    """Gives the ticks of `root` and of all that it started, by process id."""
    children = [pid for pid, process in processes.items() if process.parent == root]
    return processes[root].ticks + sum(tree_ticks(processes, child) for child in children)


def _tree_s() -> float:
    processes: dict[int, ProcessTimes] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            processes[int(stat.parent.name)] = parse_stat(stat.read_text())
        except OSError:
            continue  # it ended just now: its time is its parent's
    return tree_ticks(processes, os.getpid()) / os.sysconf("SC_CLK_TCK")
