"""`python -m benchmarks.rows`: time and memory to apply change events to a large table, beside other writers.

Without Spark delta-rs's merge is beside us; on Spark, with `--peer-jars=FOLDER`, the Delta JAR's (micro_batches.py).
Each measurement runs in a process of its own, the two sides alternating, on a copy of a table. Without Spark, a process
applies events to a small table before the clock starts, so that everything is imported. It has only what its side
imports: another process makes all tables and events before, and flushes them to disk.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import tablefeed
from benchmarks import environment, micro_batches, row_tables
from benchmarks.questions import AtMost, Side
from benchmarks.row_tables import ARGUMENTS, TABLES, Order, Size, Workload
from benchmarks.source import Figure, as_markdown
from benchmarks.turns import Sample, facts, keep, measured
from tablefeed.feed.upkeep.background import wait_until_done

RESULTS = Path(__file__).parent / "results"
ROUNDS = 5
PACKAGES = ("tablefeed", "pyarrow", "deltalake")
FULL = Workload(
    batch=Size(rows=5_000_000, files=20, updates=8_000, deletes=1_000, inserts=1_000),
    micro_batches=3,
    large=Size(rows=20_000_000, files=80, updates=1_600_000, deletes=200_000, inserts=200_000),
)
QUICK = Workload(
    batch=Size(rows=10_000, files=20, updates=80, deletes=10, inserts=10),
    micro_batches=2,
    large=Size(rows=20_000, files=4, updates=1_600, deletes=200, inserts=200),
)
WARM_UP = Size(rows=100, files=2, updates=8, deletes=1, inserts=1)


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
    *micro_batches.FIGURES,
)

RATIOS = {
    "shuffled_s": ("ours_shuffled_s", "delta_rs_shuffled_s"),
    "shuffled_peak": ("ours_shuffled_peak_mb", "delta_rs_shuffled_peak_mb"),
    "recording": ("fed_shuffled_s", "ours_shuffled_s"),
    **micro_batches.RATIOS,
}


def main() -> None:
    """Makes the tables, measures alternately and writes the report; a quick run is small and not kept."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rows", description=__doc__)
    parser.add_argument("--rounds", type=int, help=f"runs of each measurement ({ROUNDS}; of some fewer)")
    parser.add_argument("--quick", action="store_true", help="small tables, each once; nothing is written")
    names = [*MEASURES, *ON_SPARK]
    parser.add_argument("--measurement", choices=names, action="append", help="only this; may be repeated")
    parser.add_argument(
        "--peer-jars", type=Path, help="the Delta JAR and what it needs; without, nothing runs on Spark"
    )
    parser.add_argument("--results", type=Path, default=RESULTS, help="where the report goes")
    parser.add_argument("--scratch", type=Path, help="where tables are made and removed: 4 GB (the system's)")
    parser.add_argument("--one", nargs=3, metavar=("NAME", "SIZE", "FOLDER"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        name, size, folder = given.one
        how = (SIZES[size], Path(folder))
        print(json.dumps(MEASURES[name](*how) if name in MEASURES else ON_SPARK[name](*how, given.peer_jars)))
        return
    rounds, size = given.rounds or (1 if given.quick else ROUNDS), "quick" if given.quick else "full"
    named = given.measurement or (list(MEASURES) if given.peer_jars is None else names)
    if given.peer_jars is None and (on_spark := [name for name in named if name in ON_SPARK]):
        parser.error(f"{', '.join(on_spark)} needs --peer-jars")
    with TemporaryDirectory(prefix="tablefeed-bench-", dir=given.scratch) as scratch:
        for make in {MAKES[name] for name in named}:
            make(SIZES[size], Path(scratch))
        jars = [] if given.peer_jars is None else ["--peer-jars", str(given.peer_jars)]
        samples = [
            _round([name for name in named if number < FEWER.get(name, rounds)], size, scratch, jars)
            for number in range(rounds)
        ]
    told, more = facts(PACKAGES), {}
    if given.peer_jars is not None:
        more["versions"] = environment.versions(given.peer_jars)
        told = ", ".join(f"{name} {value}" for name, value in {**more["versions"], **environment.machine()}.items())
    page = as_markdown(samples, rounds=rounds, told=told, title="Changes of rows", figures=FIGURES)
    if not given.quick:
        keep("rows", page, given.results, PACKAGES, **more, samples=samples)
    print(page)


def _round(named: list[str], size: str, scratch: str, jars: list[str]) -> Sample:
    """What one round measures, and the ratios of it."""
    sample: Sample = {}
    for name in named:
        sample |= measured("benchmarks.rows", name, size, scratch, *jars)
    return sample | {
        key: sample[one] / sample[other] for key, (one, other) in RATIOS.items() if {one, other} <= {*sample}
    }


def _make_tables(workload: Workload, folder: Path) -> None:
    for name, properties in TABLES.items():
        for order in micro_batches.ORDERS:
            row_tables.make(folder / name / order, workload.batch, properties, order)
        row_tables.make(folder / name / "small", WARM_UP, properties, "shuffled")
    (folder / "events").mkdir()
    pq.write_table(row_tables.events(WARM_UP, "shuffled"), folder / "events" / "small.parquet")
    for order in micro_batches.ORDERS:
        events = folder / "events" / order
        events.mkdir()
        for number in range(workload.micro_batches):
            pq.write_table(row_tables.events(workload.batch, order, number), events / f"{number}.parquet")


# --- the two sides without Spark ------------------------------------------------------------------------------------


def by_tablefeed(table: Path, events: pa.Table) -> object:
    """One batch of events."""
    how: dict[str, Any] = ARGUMENTS  # Any: each argument has its own type
    return tablefeed.apply_changes(table, events, **how)


def by_delta_rs(table: Path, events: pa.Table) -> object:
    """The same as a merge, which may use the bounds of the events to leave files alone."""
    from deltalake import DeltaTable  # its memory is none of ours

    merge = DeltaTable(table).merge(events, "t.id = s.id", source_alias="s", target_alias="t", streamed_exec=False)
    columns = {name: f"s.{name}" for name in events.column_names if name != "op"}
    merge = merge.when_matched_delete("s.op = 'd'").when_matched_update(columns)
    return merge.when_not_matched_insert(columns).execute()


def changed(
    key: str, apply: Callable[[Path, pa.Table], object], made: str, order: Order, workload: Workload, folder: Path
) -> Sample:
    """One batch on a copy of a table."""
    small = row_tables.copied(folder / made / "small", folder / "small")
    apply(small, pq.read_table(folder / "events" / "small.parquet"))
    wait_until_done()
    copy = row_tables.copied(folder / made / order, folder / "copy")
    events = pq.read_table(folder / "events" / order / "0.parquet")
    os.sync()  # otherwise a side that waits for the disk also waits for what another process wrote
    begun, begun_cpu = time.perf_counter(), _cpu_s()
    apply(copy, events)
    seconds, cpu_s, peak_mb = time.perf_counter() - begun, _cpu_s() - begun_cpu, environment.peak_mb()
    wait_until_done()
    row_tables.check(copy, workload.batch, 1, what=key)
    shutil.rmtree(small)
    shutil.rmtree(copy)
    return {f"{key}_s": seconds, f"{key}_cpu_s": cpu_s, f"{key}_peak_mb": peak_mb}


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


SIZES = {"full": FULL, "quick": QUICK}
MEASURES: dict[str, Callable[[Workload, Path], Sample]] = {
    "shuffled": partial(changed, "ours_shuffled", by_tablefeed, "vectors", "shuffled"),
    "shuffled-delta-rs": partial(changed, "delta_rs_shuffled", by_delta_rs, "plain", "shuffled"),
    "shuffled-fed": partial(changed, "fed_shuffled", by_tablefeed, "fed", "shuffled"),
    "ordered": partial(changed, "ours_ordered", by_tablefeed, "vectors", "ordered"),
    "ordered-delta-rs": partial(changed, "delta_rs_ordered", by_delta_rs, "plain", "ordered"),
}
ON_SPARK: dict[str, Callable[[Workload, Path, Path], Sample]] = {
    "micro-batches": partial(micro_batches.micro_batches, Side.OURS),
    "micro-batches-jar": partial(micro_batches.micro_batches, Side.JAR),
    "large": partial(micro_batches.large, Side.OURS),
    "large-jar": partial(micro_batches.large, Side.JAR),
}
MAKES: dict[str, Callable[[Workload, Path], None]] = {
    **dict.fromkeys([*MEASURES, *ON_SPARK], _make_tables),
    **dict.fromkeys(["large", "large-jar"], micro_batches.make_large),
}
FEWER = {"large": 1, "large-jar": 1}
"""What is measured in the first rounds only: it takes long, and is compared with itself or with a bound."""


if __name__ == "__main__":
    main()
