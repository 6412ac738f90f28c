"""`python -m benchmarks.writers`: what a commit costs as the log grows and as writers meet, delta-rs beside us.

No Spark. Each measurement runs in a process of its own, the two sides alternating, on the local disk. The cost of a
commit there is mostly that of its fsyncs, so a disk that is busy with other work distorts the result.
"""

from __future__ import annotations

import argparse
import json
import logging
import math
import multiprocessing
import shutil
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures.process import ProcessPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
from deltalake import write_deltalake
from deltalake.exceptions import CommitFailedError

import tablefeed
from benchmarks import environment, large_writes, logs
from benchmarks.questions import AtMost
from benchmarks.source import Figure, Sample, as_markdown
from benchmarks.turns import facts, keep, measured
from tablefeed.feed.snapshot import known_state
from tablefeed.feed.upkeep.background import wait_until_done

RESULTS = Path(__file__).parent / "results"
ROUNDS = 5
PACKAGES = ("tablefeed", "pyarrow", "deltalake")
WRITERS = 8
PEERS = 2
EACH = 50
SHORT, LONG = 30, 4_980
BLOCK, BLOCKS = 10, 4
"""Commits to one table before the turn of the other: in each block one checkpoint falls due."""

APPENDS, EDGE, EDGES = 5_000, 50, 6
"""How many appends one process makes back to back; then so many to each table in turn, so many times."""

BATCHES = 200
ROWS = pa.table({"id": pa.array(range(100), pa.int64()), "name": pa.array([f"name {n}" for n in range(100)])})

Append = Callable[[Path], object]


def _figures(who: str, name: str, *, goals: bool) -> list[Figure]:
    def most(bound: float) -> AtMost | None:
        return AtMost(bound=bound) if goals else None

    return [
        Figure(key=f"{who}_50th_ms", text=f"{name}: the 50th commit of one process", unit="ms"),
        Figure(key=f"{who}_5000th_ms", text=f"{name}: its 5,000th", unit="ms"),
        Figure(key=f"{who}_growth", text=f"{name}: the 5,000th over the 50th", unit="times", goal=most(1.1)),
        Figure(key=f"{who}_p50_ms", text=f"{name}: 200 commits of one file, p50", unit="ms"),
        Figure(key=f"{who}_p99_ms", text=f"{name}: their p99", unit="ms"),
        Figure(key=f"{who}_spread", text=f"{name}: p99 over p50", unit="times", goal=most(2)),
        Figure(key=f"{who}_tenth", text=f"{name}: each tenth of them over the others", unit="times"),
        *_crowd_figures(who, f"{name}: 8 processes of 50 commits each", goals=goals),
    ]


def _crowd_figures(who: str, name: str, *, goals: bool) -> list[Figure]:
    slowest, none = (AtMost(bound=1_000), AtMost(bound=0)) if goals else (None, None)
    return [
        Figure(key=f"{who}_commits_per_s", text=name, unit="commits/s"),
        Figure(key=f"{who}_failed", text=f"{name}: failed", unit="commits", goal=none),
        Figure(key=f"{who}_crowd_p50_ms", text=f"{name}: p50", unit="ms"),
        Figure(key=f"{who}_crowd_p99_ms", text=f"{name}: p99", unit="ms", goal=slowest),
        Figure(key=f"{who}_crowd_most_ms", text=f"{name}: the longest", unit="ms"),
        Figure(key=f"{who}_crowd_lost", text=f"{name}: versions lost before a commit, mean", unit="versions"),
    ]


FIGURES = (
    *_figures("ours", "tablefeed", goals=True),
    Figure(key="anew_50th_ms", text="tablefeed: the 50th commit, the log opened anew each time", unit="ms"),
    Figure(key="anew_5000th_ms", text="tablefeed: the 5,000th commit, likewise", unit="ms"),
    Figure(key="anew_growth", text="tablefeed: the one over the other", unit="times", goal=AtMost(bound=1.1)),
    Figure(key="process_50th_ms", text="tablefeed: a process that makes the 50th commit, start to end", unit="ms"),
    Figure(key="process_5000th_ms", text="tablefeed: one that makes the 5,000th, likewise", unit="ms"),
    Figure(key="process_growth", text="tablefeed: the one over the other", unit="times", goal=AtMost(bound=1.1)),
    Figure(key="young_ms", text="tablefeed: an append to a new table, back to back, median", unit="ms"),
    Figure(key="old_ms", text="the same, to a table that had 5,000 from this process", unit="ms"),
    Figure(key="old_growth", text="the old over the new", unit="times", goal=AtMost(bound=1.1)),
    Figure(key="young_cpu_ms", text="processor time of an append and its background work, new table", unit="ms"),
    Figure(key="old_cpu_ms", text="the same, old table", unit="ms"),
    Figure(key="old_cpu_growth", text="the old over the new", unit="times", goal=AtMost(bound=1.1)),
    Figure(
        key="old_thread_growth", text="the same of the appending thread alone", unit="times", goal=AtMost(bound=1.1)
    ),
    Figure(key="resident_500_mb", text="memory after 500 appends", unit="MB"),
    Figure(key="resident_mb", text="memory after 5,000 appends", unit="MB"),
    Figure(key="resident_growth", text="the one over the other", unit="times", goal=AtMost(bound=1.1)),
    *_crowd_figures("among", "tablefeed: 8 processes of 50 commits each beside 2 of delta-rs", goals=True),
    *_figures("delta_rs", "delta-rs", goals=False),
    *large_writes.FIGURES,
)


def main() -> None:
    """Measures both sides alternating and writes the report; a quick run is printed and not kept."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.writers", description=__doc__)
    parser.add_argument("--rounds", type=int, help=f"runs of each measurement ({ROUNDS})")
    parser.add_argument("--quick", action="store_true", help="each once; nothing is written")
    parser.add_argument("--measurement", choices=MEASURES, action="append", help="only this; may be repeated")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where the report goes")
    parser.add_argument("--scratch", type=Path, help="where tables are made and removed (the system's)")
    parser.add_argument("--one", nargs=2, metavar=("NAME", "FOLDER"), help=argparse.SUPPRESS)
    logs.add_arguments(parser)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(MEASURES[given.one[0]](Path(given.one[1]))))
        return
    rounds = given.rounds or (1 if given.quick else ROUNDS)
    with TemporaryDirectory(prefix="tablefeed-bench-", dir=given.scratch) as scratch:
        named = given.measurement or list(MEASURES)
        if any(name.startswith("removes") for name in named):
            large_writes.make_removes(Path(scratch), given.files, given.form)
        samples = [measured("benchmarks.writers", name, scratch) for _ in range(rounds) for name in named]
    page = as_markdown(samples, rounds=rounds, told=facts(PACKAGES), title="Writers without Spark", figures=FIGURES)
    if not given.quick:
        keep("writers", page, given.results, PACKAGES, samples=samples)
    print(page)


def by_tablefeed(table: Path) -> object:
    """One commit of one small file by a process that goes on."""
    return tablefeed.append(table, ROWS)


def anew(table: Path) -> object:
    """The same by a process that forgets what it saw of the table."""
    known_state._known.clear()  # noqa: SLF001 - as a process that was just started; nobody else needs to forget
    return tablefeed.append(table, ROWS)


def in_a_process(table: Path) -> object:
    """The same by a process of its own, from its start to its end."""
    return subprocess.run([sys.executable, "-c", _PROGRAM, str(table)], check=True)


_PROGRAM = """
import sys
import pyarrow as pa
import tablefeed
tablefeed.append(sys.argv[1], pa.table({"id": range(100), "name": [f"name {n}" for n in range(100)]}))
"""


def by_delta_rs(table: Path) -> object:
    """The same by delta-rs."""
    return write_deltalake(str(table), ROWS, mode="append")


def growth(who: str, append: Append, folder: Path) -> Sample:
    """A commit to a table of some 50 versions and one to a table of some 5,000, alternating."""
    long = folder / "long"
    if not long.exists():
        _make(long, LONG)
    short, copy = folder / "short", folder / "copy"
    _make(short, SHORT)
    shutil.copytree(long, copy)
    times: dict[Path, list[float]] = {short: [], copy: []}
    for table in times:
        append(table)
    for _ in range(BLOCKS):
        for table, taken in times.items():
            wait_until_done()
            taken += [_timed(append, table) for _ in range(BLOCK)]
    wait_until_done()
    shutil.rmtree(short)
    shutil.rmtree(copy)
    early, late = (statistics.median(taken) for taken in times.values())
    return {f"{who}_50th_ms": early, f"{who}_5000th_ms": late, f"{who}_growth": late / early}


def back_to_back(folder: Path) -> Sample:
    """5,000 appends by this process; then in turn to this table and to a new one, background work included."""
    old, young, resident = folder / "old", folder / "young", list[float]()
    for count in (APPENDS // 10, APPENDS - APPENDS // 10):
        _make(old, count)
        resident.append(environment.resident_mb())
    _make(young, BLOCK)
    taken: dict[Path, list[list[float]]] = {young: [], old: []}
    for _ in range(EDGES):
        for table, edges in taken.items():
            begun, begun_own = time.process_time(), time.thread_time()
            times = [_timed(by_tablefeed, table) for _ in range(EDGE)]
            own_s = time.thread_time() - begun_own
            wait_until_done()
            all_s = time.process_time() - begun
            edges.append([statistics.median(times), *(1000 * s / EDGE for s in (all_s, own_s))])
    (young_ms, young_all, young_own), (old_ms, old_all, old_own) = (
        [statistics.mean(each) for each in zip(*edges, strict=True)] for edges in taken.values()
    )
    shutil.rmtree(old)
    shutil.rmtree(young)
    return {
        "young_ms": young_ms,
        "old_ms": old_ms,
        "old_growth": old_ms / young_ms,
        "young_cpu_ms": young_all,
        "old_cpu_ms": old_all,
        "old_cpu_growth": old_all / young_all,
        "old_thread_growth": old_own / young_own,
        "resident_500_mb": resident[0],
        "resident_mb": resident[1],
        "resident_growth": resident[1] / resident[0],
    }


def spread(who: str, append: Append, folder: Path, *, batches: int = BATCHES) -> Sample:
    """The times of `batches` commits, one after the other; at each tenth version a checkpoint falls due."""
    table = folder / "batches"
    _make(table, 10)
    append(table)  # version 10
    taken = [_timed(append, table) for _ in range(batches)]
    wait_until_done()
    shutil.rmtree(table)
    p50, p99 = statistics.median(taken), sorted(taken)[math.ceil(0.99 * batches) - 1]
    tenth = statistics.median(taken[9::10])
    others = statistics.median(t for n, t in enumerate(taken) if n % 10 != 9)
    return {f"{who}_p50_ms": p50, f"{who}_p99_ms": p99, f"{who}_spread": p99 / p50, f"{who}_tenth": tenth / others}


def crowd(who: str, append: Append, folder: Path, *, peers: int = 0, each: int = EACH) -> Sample:
    """Eight processes that begin at the same moment, each with its commits, beside `peers` of delta-rs."""
    table = folder / "crowd"
    _make(table, 1)
    spawn = multiprocessing.get_context("spawn")
    together = spawn.Barrier(WRITERS + peers)
    with ProcessPoolExecutor(WRITERS + peers, spawn, initializer=_ready, initargs=(together, folder)) as pool:
        beside = [pool.submit(_commits, by_delta_rs, table, each) for _ in range(peers)]
        ended = [future.result() for future in [pool.submit(_commits, append, table, each) for _ in range(WRITERS)]]
        for future in beside:
            future.result()
    shutil.rmtree(table)
    taken = sorted(t for times, _, _, _ in ended for t in times)
    seconds = max(end for _, _, _, end in ended) - min(begin for _, _, begin, _ in ended)
    return {
        f"{who}_commits_per_s": len(taken) / seconds,
        f"{who}_failed": WRITERS * each - len(taken),
        f"{who}_crowd_p50_ms": statistics.median(taken),
        f"{who}_crowd_p99_ms": taken[math.ceil(0.99 * len(taken)) - 1],
        f"{who}_crowd_most_ms": taken[-1],
        f"{who}_crowd_lost": sum(lost for _, lost, _, _ in ended) / len(taken),
    }


def _ready(together: threading.Barrier, folder: Path) -> None:
    """Appends to a table that nobody else writes, so that everything is imported, and waits for the others."""
    for append in (by_tablefeed, by_delta_rs):
        with TemporaryDirectory(dir=folder) as table:
            append(Path(table))
    wait_until_done()
    together.wait()


class _Lost(logging.Handler):
    """Counts the versions that this process lost before its commits, as their log lines say."""

    count = 0

    def emit(self, record: logging.LogRecord) -> None:
        if record.msg.startswith("commit ") and isinstance(record.args, tuple) and isinstance(record.args[-1], int):
            self.count += record.args[-1]


def _commits(append: Append, table: Path, each: int) -> tuple[list[float], int, float, float]:
    lost, logger = _Lost(), logging.getLogger("tablefeed.feed.commit.loop")
    logger.setLevel(logging.INFO)
    logger.addHandler(lost)
    taken, begin = list[float](), time.monotonic()
    for _ in range(each):
        try:
            taken.append(_timed(append, table))
        except (tablefeed.TablefeedError, CommitFailedError):
            continue
    logger.removeHandler(lost)
    return taken, lost.count, begin, time.monotonic()


def _make(table: Path, commits: int) -> None:
    for _ in range(commits):
        by_tablefeed(table)
    wait_until_done()


def _timed(append: Append, table: Path) -> float:
    begin = time.perf_counter()
    append(table)
    return (time.perf_counter() - begin) * 1000


MEASURES: dict[str, Callable[[Path], Sample]] = {
    "growth": lambda folder: growth("ours", by_tablefeed, folder),
    "growth-anew": lambda folder: growth("anew", anew, folder),
    "growth-process": lambda folder: growth("process", in_a_process, folder),
    "back-to-back": back_to_back,
    "growth-delta-rs": lambda folder: growth("delta_rs", by_delta_rs, folder),
    "spread": lambda folder: spread("ours", by_tablefeed, folder),
    "spread-delta-rs": lambda folder: spread("delta_rs", by_delta_rs, folder),
    "crowd": lambda folder: crowd("ours", by_tablefeed, folder),
    "crowd-among-delta-rs": lambda folder: crowd("among", by_tablefeed, folder, peers=PEERS),
    "crowd-delta-rs": lambda folder: crowd("delta_rs", by_delta_rs, folder),
    "task": large_writes.task,
    "removes": lambda folder: large_writes.removes("ours", large_writes.by_tablefeed, folder),
    "removes-delta-rs": lambda folder: large_writes.removes("delta_rs", large_writes.by_delta_rs, folder),
}


if __name__ == "__main__":
    main()
