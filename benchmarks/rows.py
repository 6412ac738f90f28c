"""`python -m benchmarks.rows`: what it takes to apply change events to a large table, delta-rs's merge beside us.

No Spark. Each measurement runs in a process of its own, the two sides alternating, on a copy of a table. Before the
clock starts, a process applies events to a small table, so that everything is imported.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import tablefeed
from benchmarks import environment
from benchmarks.questions import AtMost
from benchmarks.source import Figure, Sample, as_markdown
from benchmarks.turns import facts, keep, measured
from tablefeed.feed.upkeep.background import wait_until_done

RESULTS = Path(__file__).parent / "results"
ROUNDS = 5
PACKAGES = ("tablefeed", "pyarrow", "deltalake")
NEEDED = {"delta.feature.domainMetadata": "supported"}
VECTORS = {**NEEDED, "delta.enableDeletionVectors": "true"}
FED = {**VECTORS, "delta.enableChangeDataFeed": "true"}
TABLES: Mapping[str, Mapping[str, str]] = {"vectors": VECTORS, "fed": FED, "plain": {}}
"""The tables by name, and their properties; delta-rs cannot write those with vectors or domains."""

CHURN = {**VECTORS, "delta.autoOptimize.autoCompact": "true"}
EDGE = 50
"""How many batches of the churn are compared at its beginning and at its end."""

Order = Literal["shuffled", "ordered"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How much is changed: `churn` is the number of rows, of batches and of events in a batch."""

    rows: int
    files: int
    updates: int
    deletes: int
    inserts: int
    churn: tuple[int, int, int]


FULL = Size(rows=5_000_000, files=20, updates=8_000, deletes=1_000, inserts=1_000, churn=(100_000, 1_000, 100))
QUICK = Size(rows=100_000, files=20, updates=800, deletes=100, inserts=100, churn=(5_000, 2 * EDGE, 20))


def _figures(key: str, text: str) -> list[Figure]:
    return [
        Figure(key=f"{key}_s", text=text, unit="s", goal=AtMost(bound=0.4) if key == "ours_ordered" else None),
        Figure(key=f"{key}_cpu_s", text=f"{text}: processor time", unit="s"),
        Figure(key=f"{key}_peak_mb", text=f"{text}: peak memory", unit="MB"),
    ]


FIGURES = (
    *_figures("ours_shuffled", "tablefeed: events for keys in all files"),
    *_figures("fed_shuffled", "tablefeed: the same, with the change feed"),
    *_figures("delta_rs_shuffled", "delta-rs: the same, by copies"),
    Figure(key="shuffled_s", text="seconds, tablefeed over delta-rs", unit="times", goal=AtMost(bound=0.5)),
    Figure(key="shuffled_peak", text="peak memory, tablefeed over delta-rs", unit="times", goal=AtMost(bound=0.4)),
    Figure(
        key="recording", text="seconds with the change feed over those without", unit="times", goal=AtMost(bound=1.5)
    ),
    *_figures("ours_ordered", "tablefeed: events for keys in one file"),
    *_figures("delta_rs_ordered", "delta-rs: the same, by copies"),
    Figure(key="churn_first_ms", text="tablefeed: a batch among the first 50 of 1,000", unit="ms"),
    Figure(key="churn_last_ms", text="tablefeed: a batch among the last 50", unit="ms"),
    Figure(key="churn_growth", text="the last 50 over the first 50", unit="times", goal=AtMost(bound=1.1)),
    Figure(
        key="churn_memory",
        text="memory after the last 50 over that after the first",
        unit="times",
        goal=AtMost(bound=1.1),
    ),
)


def main() -> None:
    """Makes the tables, measures alternately and writes the report; a quick run is small and not kept."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rows", description=__doc__)
    parser.add_argument("--rounds", type=int, help=f"runs of each measurement ({ROUNDS})")
    parser.add_argument("--quick", action="store_true", help="small tables, each once; nothing is written")
    parser.add_argument("--measurement", choices=MEASURES, action="append", help="only this; may be repeated")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where the report goes")
    parser.add_argument("--scratch", type=Path, help="where tables are made and removed: 2 GB (the system's)")
    parser.add_argument("--one", nargs=3, metavar=("NAME", "SIZE", "FOLDER"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        name, size, folder = given.one
        print(json.dumps(MEASURES[name](SIZES[size], Path(folder))))
        return
    rounds, size = given.rounds or (1 if given.quick else ROUNDS), "quick" if given.quick else "full"
    named = given.measurement or list(MEASURES)
    with TemporaryDirectory(prefix="tablefeed-bench-", dir=given.scratch) as scratch:
        _make_tables(SIZES[size], Path(scratch))
        samples = [_round(named, size, scratch) for _ in range(rounds)]
    page = as_markdown(samples, rounds=rounds, told=facts(PACKAGES), title="Changes of rows", figures=FIGURES)
    if not given.quick:
        keep("rows", page, given.results, PACKAGES, samples=samples)
    print(page)


def _round(named: list[str], size: str, scratch: str) -> Sample:
    """What one round measures, and the ratios of it."""
    sample: Sample = {}
    for name in named:
        sample |= measured("benchmarks.rows", name, size, scratch)
    ratios = {
        "shuffled_s": ("ours_shuffled_s", "delta_rs_shuffled_s"),
        "shuffled_peak": ("ours_shuffled_peak_mb", "delta_rs_shuffled_peak_mb"),
        "recording": ("fed_shuffled_s", "ours_shuffled_s"),
    }
    return sample | {
        key: sample[one] / sample[other] for key, (one, other) in ratios.items() if {one, other} <= {*sample}
    }


# --- the tables and the events --------------------------------------------------------------------------------------


def _make_tables(size: Size, folder: Path) -> None:
    for name, properties in TABLES.items():
        _make(folder / name / "shuffled", size.rows, size.files, properties, shuffled=True)
        if name != "fed":
            _make(folder / name / "ordered", size.rows, size.files, properties, shuffled=False)


def _make(table: Path, rows: int, files: int, properties: Mapping[str, str], *, shuffled: bool) -> None:
    """A table with the ids from 0 on and the key 0 in each row."""
    random = np.random.default_rng(1)
    ids = random.permutation(rows) if shuffled else np.arange(rows)
    for part in np.array_split(ids, files):
        tablefeed.append(table, _rows(part, 0, random), properties=dict(properties))


def _rows(ids: np.ndarray, key: int, random: np.random.Generator) -> pa.Table:
    letters = pa.array(random.integers(0, 10**15, len(ids))).cast(pa.string())
    names = pc.utf8_slice_codeunits(pc.utf8_lpad(letters, 20, "n"), 0, 20)
    keys = np.full(len(ids), key, np.int64)
    return pa.table({"id": ids.astype(np.int64), "key": keys, "value": random.random(len(ids)), "name": names})


def _events(size: Size, order: Order) -> pa.Table:
    """Events with the key 1: updates and deletes of rows of all files, or of the first; inserts of new ids."""
    random = np.random.default_rng(2)
    among = size.rows if order == "shuffled" else size.rows // size.files
    ids = random.choice(among, size.updates + size.deletes, replace=False)
    ids = np.concatenate([ids, size.rows + np.arange(size.inserts)])
    ops = ["u"] * size.updates + ["d"] * size.deletes + ["u"] * size.inserts
    return _rows(ids, 1, random).append_column("op", pa.array(ops))


# --- the two sides --------------------------------------------------------------------------------------------------


def by_tablefeed(table: Path, events: pa.Table) -> object:
    """One batch of events; their key is their sequence."""
    how = {"keys": "id", "sequence_by": "key", "except_column_list": ["op"]}
    return tablefeed.apply_changes(table, events, apply_as_deletes="op = 'd'", **how)


def by_delta_rs(table: Path, events: pa.Table) -> object:
    """The same as a merge, which may use the bounds of the events to leave files alone."""
    from deltalake import DeltaTable  # its memory is none of ours

    merge = DeltaTable(table).merge(events, "t.id = s.id", source_alias="s", target_alias="t", streamed_exec=False)
    columns = {name: f"s.{name}" for name in events.column_names if name != "op"}
    merge = merge.when_matched_delete("s.op = 'd'").when_matched_update(columns)
    return merge.when_not_matched_insert(columns).execute()


def changed(
    key: str, apply: Callable[[Path, pa.Table], object], made: str, order: Order, size: Size, folder: Path
) -> Sample:
    """One batch on a copy of a table."""
    small, copy = folder / "small", folder / "copy"
    _make(small, 100, 2, TABLES[made], shuffled=True)
    apply(small, _events(Size(rows=100, files=2, updates=8, deletes=1, inserts=1, churn=(0, 0, 0)), order))
    shutil.copytree(folder / made / order, copy, copy_function=os.link)  # nobody writes into a file that is there
    events = _events(size, order)
    begun, begun_cpu = time.perf_counter(), _cpu_s()
    apply(copy, events)
    seconds, cpu_s, peak_mb = time.perf_counter() - begun, _cpu_s() - begun_cpu, environment.peak_mb()
    wait_until_done()
    keys = tablefeed.open_table(copy).to_arrow(columns=["key"])["key"]
    found = (len(keys), pc.sum(keys).as_py())
    if found != (size.rows - size.deletes + size.inserts, size.updates + size.inserts):
        raise SystemExit(f"{key}: {found} are not the rows that the events make")
    shutil.rmtree(small)
    shutil.rmtree(copy)
    return {f"{key}_s": seconds, f"{key}_cpu_s": cpu_s, f"{key}_peak_mb": peak_mb}


def churn(size: Size, folder: Path) -> Sample:
    """Batch after batch of updates to one table, whose small files are folded behind them."""
    table, (rows, batches, events) = folder / "churn", size.churn
    _make(table, rows, 1, CHURN, shuffled=True)
    random, taken, resident = np.random.default_rng(3), [], []
    for number in range(batches + 10):  # the first ten do not count
        ids = random.choice(rows, events, replace=False)
        batch = _rows(ids, number + 1, random).append_column("op", pa.repeat("u", events))
        begun = time.perf_counter()
        by_tablefeed(table, batch)
        taken.append((time.perf_counter() - begun) * 1000)
        if number + 1 in (10 + EDGE, 10 + batches):
            wait_until_done()
            resident.append(_resident_mb())
    shutil.rmtree(table)
    first, last = statistics.fmean(taken[10 : 10 + EDGE]), statistics.fmean(taken[-EDGE:])
    return {
        "churn_first_ms": first,
        "churn_last_ms": last,
        "churn_growth": last / first,
        "churn_memory": resident[1] / resident[0],
    }


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _resident_mb() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


SIZES = {"full": FULL, "quick": QUICK}
MEASURES: dict[str, Callable[[Size, Path], Sample]] = {
    "shuffled": partial(changed, "ours_shuffled", by_tablefeed, "vectors", "shuffled"),
    "shuffled-delta-rs": partial(changed, "delta_rs_shuffled", by_delta_rs, "plain", "shuffled"),
    "shuffled-fed": partial(changed, "fed_shuffled", by_tablefeed, "fed", "shuffled"),
    "ordered": partial(changed, "ours_ordered", by_tablefeed, "vectors", "ordered"),
    "ordered-delta-rs": partial(changed, "delta_rs_ordered", by_delta_rs, "plain", "ordered"),
    "churn": churn,
}


if __name__ == "__main__":
    main()
