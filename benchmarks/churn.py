"""`python -m benchmarks.churn`: whether batch after batch of row changes on one table stays as quick and as small.

No Spark. The table folds its small files behind the batches and gets its checkpoints, as any table with
`delta.autoOptimize.autoCompact` does. At the end 50 more batches alternate with those of a new table, so that a machine
that became slower meanwhile says nothing. The rows of both are counted.

No tombstone and no commit of the log expires meanwhile. With a batch a minute, 10,000 batches are the week for which a
table keeps its tombstones, so a checkpoint has no more of them later.
"""

from __future__ import annotations

import argparse
import json
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
"""How many batches are compared, and how many come before them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Churn:
    """How many rows the table has at first, how many batches come, and how many events each has."""

    rows: int
    batches: int
    events: int


FULL, QUICK = Churn(rows=100_000, batches=10_000, events=100), Churn(rows=5_000, batches=2 * EDGE, events=20)

FIGURES = (
    Figure(key="batches", text="batches before", unit="batches"),
    Figure(key="young_ms", text="a batch on the young table, median", unit="ms"),
    Figure(key="old_ms", text="a batch on the old table, median", unit="ms"),
    Figure(key="growth", text="the old over the young", unit="times", goal=AtMost(bound=1.1)),
    Figure(key="young_own_ms", text="processor time of its thread, young table, median", unit="ms"),
    Figure(key="old_own_ms", text="processor time of its thread, old table, median", unit="ms"),
    Figure(key="own_growth", text="the old over the young", unit="times", goal=AtMost(bound=1.1)),
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
    """Updates, deletes and inserts, batch after batch; then in turn on this table and on one that had few of them."""
    random = np.random.default_rng(3)
    old, resident = _Churned(folder / "old", size, random), list[float]()
    for number in range(WARM_UP + size.batches):
        old.change()
        if number + 1 in (WARM_UP + EDGE, WARM_UP + size.batches):
            wait_until_done()
            resident.append(environment.resident_mb())
    peak_mb = environment.peak_mb()
    young = _Churned(folder / "young", size, random)
    for _ in range(WARM_UP):
        young.change()
    both = [(young.change(), old.change()) for _ in range(EDGE)]
    old.check()
    young.check()
    (young_ms, young_own), (old_ms, old_own) = (
        [statistics.median(each) for each in zip(*taken, strict=True)] for taken in zip(*both, strict=True)
    )
    return {
        "batches": size.batches,
        "young_ms": young_ms,
        "old_ms": old_ms,
        "growth": old_ms / young_ms,
        "young_own_ms": young_own,
        "old_own_ms": old_own,
        "own_growth": old_own / young_own,
        "resident": resident[1] / resident[0],
        "peak_mb": peak_mb,
    }


class _Churned:
    """A table, and which ids it must have."""

    def __init__(self, table: Path, size: Churn, random: np.random.Generator) -> None:
        made = Size(rows=size.rows, files=1, updates=0, deletes=0, inserts=0)
        row_tables.make(table, made, {**VECTORS, "delta.autoOptimize.autoCompact": "true"}, "shuffled")
        self._table, self._events, self._random, self._number = table, size.events, random, 0
        self._there = np.arange(size.rows + size.rows // 5) < size.rows

    def change(self) -> tuple[float, float]:
        """Applies a batch; gives its milliseconds, by the clock and of its thread's processor time."""
        self._number += 1
        ids = self._random.choice(len(self._there), self._events, replace=False)
        goes = self._random.random(self._events) < 0.2
        self._there[ids] = ~goes
        rows = row_tables.rows_of(ids, self._number, self._random)
        rows = rows.append_column("op", pa.array(np.where(goes, "d", "u")))
        how: dict[str, Any] = ARGUMENTS  # Any: each argument has its own type
        begun, begun_own = time.perf_counter(), time.thread_time()
        tablefeed.apply_changes(self._table, rows, **how)
        return (time.perf_counter() - begun) * 1000, (time.thread_time() - begun_own) * 1000

    def check(self) -> None:
        """Raises SystemExit where the table does not have the rows that the events make."""
        found = tablefeed.open_table(self._table).to_arrow(columns=["id"]).num_rows
        if found != self._there.sum():
            raise SystemExit(f"a table has {found} rows instead of {self._there.sum()}: its times would say nothing")


if __name__ == "__main__":
    main()
