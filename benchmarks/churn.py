"""`python -m benchmarks.churn`: whether batch after batch of row changes on one table stays as quick and as small.

No Spark. The table folds its small files behind the batches and gets its checkpoints, as any table with
`delta.autoOptimize.autoCompact` does. Its rows are counted at the end.

No tombstone and no commit of the log expires meanwhile. With a batch a minute, 10,000 batches are the week for which a
table keeps its tombstones, so a checkpoint has no more of them later.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import time
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa

import tablefeed
from benchmarks import environment, row_tables
from benchmarks.questions import AtMost
from benchmarks.row_tables import ARGUMENTS, VECTORS, Size
from benchmarks.source import Figure, as_markdown
from benchmarks.turns import Sample, facts, keep, measured
from tablefeed.feed.upkeep.background import wait_until_done

RESULTS = Path(__file__).parent / "results"
PACKAGES = ("tablefeed", "pyarrow")
EDGE, WARM_UP = 50, 10
"""How many batches are compared at the beginning and at the end, and how many come before them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Churn:
    """How many rows the table has at first, how many batches come, and how many events each has."""

    rows: int
    batches: int
    events: int


FULL, QUICK = Churn(rows=100_000, batches=10_000, events=100), Churn(rows=5_000, batches=2 * EDGE, events=20)

FIGURES = (
    Figure(key="batches", text="batches", unit="batches"),
    Figure(key="first_ms", text="a batch among the first 50, median", unit="ms"),
    Figure(key="last_ms", text="a batch among the last 50, median", unit="ms"),
    Figure(key="growth", text="the last over the first", unit="times", goal=AtMost(bound=1.1)),
    Figure(key="first_own_ms", text="processor time of their thread, first 50, median", unit="ms"),
    Figure(key="last_own_ms", text="processor time of their thread, last 50, median", unit="ms"),
    Figure(key="own_growth", text="the last over the first", unit="times", goal=AtMost(bound=1.1)),
    Figure(key="first_cpu_ms", text="processor time of a batch and of the work behind it, first 50, mean", unit="ms"),
    Figure(key="last_cpu_ms", text="processor time of a batch and of the work behind it, last 50, mean", unit="ms"),
    Figure(key="resident", text="memory at the end over that after the first 50", unit="times", goal=AtMost(bound=1.1)),
    Figure(key="peak_mb", text="peak memory", unit="MB"),
)


def main() -> None:
    """Measures and writes the report; a quick run is small and not kept."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.churn", description=__doc__)
    parser.add_argument("--batches", type=int, help=f"how many ({FULL.batches:,})")
    parser.add_argument("--quick", action="store_true", help="a small table and few batches; nothing is written")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where the report goes")
    parser.add_argument("--scratch", type=Path, help="where the table is made and removed: 1 GB (the system's)")
    parser.add_argument("--one", nargs=4, metavar=("ROWS", "BATCHES", "EVENTS", "FOLDER"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        rows, batches, events = map(int, given.one[:3])
        print(json.dumps(churn(Churn(rows=rows, batches=batches, events=events), Path(given.one[3]))))
        return
    size = QUICK if given.quick else FULL
    with TemporaryDirectory(prefix="tablefeed-bench-", dir=given.scratch) as scratch:
        sizes = (size.rows, given.batches or size.batches, size.events)
        samples = [measured("benchmarks.churn", *map(str, sizes), scratch)]
    page = as_markdown(samples, rounds=1, told=facts(PACKAGES), title="Batch after batch", figures=FIGURES)
    if not given.quick:
        keep("churn", page, given.results, PACKAGES, samples=samples)
    print(page)


def churn(size: Churn, folder: Path) -> Sample:
    """Updates, deletes and inserts, batch after batch."""
    table, random = folder / "churn", np.random.default_rng(3)
    made = Size(rows=size.rows, files=1, updates=0, deletes=0, inserts=0)
    row_tables.make(table, made, {**VECTORS, "delta.autoOptimize.autoCompact": "true"}, "shuffled")
    there = np.arange(size.rows + size.rows // 5) < size.rows
    how: dict[str, Any] = ARGUMENTS  # Any: each argument has its own type
    taken, own, used, resident = list[float](), list[float](), [_cpu_ms()], list[float]()
    for number in range(WARM_UP + size.batches):
        ids = random.choice(len(there), size.events, replace=False)
        goes = random.random(size.events) < 0.2
        there[ids] = ~goes
        rows = row_tables.rows_of(ids, number + 1, random)
        begun, begun_own = time.perf_counter(), time.thread_time()
        tablefeed.apply_changes(table, rows.append_column("op", pa.array(np.where(goes, "d", "u"))), **how)
        taken.append((time.perf_counter() - begun) * 1000)
        own.append((time.thread_time() - begun_own) * 1000)
        used.append(_cpu_ms())
        if number + 1 in (WARM_UP + EDGE, WARM_UP + size.batches):
            wait_until_done()
            resident.append(_resident_mb())
    peak_mb = environment.peak_mb()
    found = tablefeed.open_table(table).to_arrow(columns=["id"]).num_rows
    if found != there.sum():
        raise SystemExit(f"the table has {found} rows instead of {there.sum()}: its times would say nothing")
    ends = slice(WARM_UP, WARM_UP + EDGE), slice(-EDGE, None)
    (first_ms, last_ms), (first_own, last_own) = (
        [statistics.median(each[end]) for end in ends] for each in (taken, own)
    )
    return {
        "batches": size.batches,
        "first_ms": first_ms,
        "last_ms": last_ms,
        "growth": last_ms / first_ms,
        "first_own_ms": first_own,
        "last_own_ms": last_own,
        "own_growth": last_own / first_own,
        "first_cpu_ms": (used[WARM_UP + EDGE] - used[WARM_UP]) / EDGE,
        "last_cpu_ms": (used[-1] - used[-1 - EDGE]) / EDGE,
        "resident": resident[1] / resident[0],
        "peak_mb": peak_mb,
    }


def _cpu_ms() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return (used.ru_utime + used.ru_stime) * 1000


def _resident_mb() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


if __name__ == "__main__":
    main()
