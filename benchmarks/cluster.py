"""`PYTHONPATH=src:tests python -m benchmarks.cluster`: rows/s and planning time on 1, 2 and 4 workers of one core.

A standalone cluster on this machine, started anew for each number of workers; the tables are on its disk, which all
workers share. A batch is read to `noop`, and copied. The goal is 0.8 of linear up to the machine's cores: beyond them
workers share cores, and the number only says that they do no harm. Times are Spark's own, of the last of some batches.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks import workloads
from benchmarks.questions import AtLeast
from benchmarks.source import Figure, as_markdown
from benchmarks.turns import Sample, facts, keep, measured
from cluster.drivers import ran
from cluster.machines import standalone_cluster
from cluster.packages import Packages, Way

RESULTS = Path(__file__).parent / "results"
PACKAGES = ("tablefeed", "pyspark", "pyarrow")
WORKERS = (1, 2, 4)
CORES = 2
"""Of the machine for which the goal is set."""

PASSES = 3
"""How often each batch runs in one session; the last counts, when the JVMs have compiled."""

COMPILED = {"spark.executor.extraJavaOptions": "-XX:+UseSerialGC"}
"""The tests' executors compile less, because they live for seconds."""

FILES, ROWS = 16, 2_000_000
TASKS = 8

_PLANNING = ("latestOffset", "getBatch", "queryPlanning")
"""The parts of a batch in which the driver plans."""

FIGURES = (
    *(
        Figure(key=f"{what}_rows_per_s_{count}", text=f"{text}, {count} workers", unit="rows/s")
        for what, text in (("source", "a batch to `noop`"), ("sink", "a batch into the sink"))
        for count in WORKERS
    ),
    *(
        Figure(
            key=f"{what}_share_{count}",
            text=f"{text}, {count} workers over {count} times one worker",
            unit="times",
            goal=AtLeast(bound=0.8) if count <= CORES else None,
        )
        for what, text in (("source", "source"), ("sink", "sink"))
        for count in WORKERS[1:]
    ),
    *(Figure(key=f"planning_ms_{count}", text=f"planning a batch, {count} workers", unit="ms") for count in WORKERS),
)


def main() -> None:
    """Measures and writes the report; a quick run is small and not kept."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cluster", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="runs with each number of workers (3)")
    parser.add_argument("--quick", action="store_true", help="one round on a small table; nothing is written")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where the report goes")
    parser.add_argument("--scratch", type=Path, help="where tables are made and removed: 1 GB (the system's)")
    parser.add_argument("--one", nargs=4, metavar=("WORKERS", "ROWS", "FOLDER", "PYTHON"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        count, rows, folder, python = given.one
        print(json.dumps(on_workers(int(count), int(rows), Path(folder), Way(python=python))))
        return
    rows = ROWS // 20 if given.quick else ROWS
    samples: list[Sample] = []
    with TemporaryDirectory(prefix="tablefeed-bench-", dir=given.scratch) as scratch:
        workloads.write(Path(scratch) / "bulk", FILES, rows // FILES)
        way = Packages(folder=Path(scratch) / "packages").installed
        for _ in range(1 if given.quick else given.rounds):
            found = [measured("benchmarks.cluster", str(count), str(rows), scratch, way.python) for count in WORKERS]
            samples.append(_with_shares({key: value for each in found for key, value in each.items()}))
    page = as_markdown(samples, rounds=len(samples), told=facts(PACKAGES), title="Workers", figures=FIGURES)
    if not given.quick:
        keep("cluster", page, given.results, PACKAGES, samples=samples)
    print(page)


def on_workers(count: int, rows: int, folder: Path, way: Way) -> Sample:
    """Reads and copies the bulk table on a new cluster with so many workers."""
    with TemporaryDirectory(dir=folder) as made, standalone_cluster(Path(made), workers=count, pinned=True) as cluster:
        targets = [Path(made) / f"copy-{number}" for number in range(PASSES)]
        jobs = [_job(folder, Path(made) / f"read-{number}", None) for number in range(PASSES)]
        jobs += [_job(folder, Path(made) / f"checkpoint-{target.name}", target) for target in targets]
        told = ran(cluster, way, jobs, COMPILED)
        for each in told:
            if "error" in each:
                raise SystemExit(each["error"])
        for target in targets:
            if (found := workloads.row_count(target)) != rows:
                raise SystemExit(f"a copy has {found} rows instead of {rows}: its times would say nothing")
    source, sink = told[PASSES - 1], told[-1]
    planning = [_ms(each, *_PLANNING) for each in told[1:]]
    return {
        f"source_rows_per_s_{count}": 1000 * rows / _ms(source, "triggerExecution"),
        f"sink_rows_per_s_{count}": 1000 * rows / _ms(sink, "triggerExecution"),
        f"planning_ms_{count}": statistics.median(planning),
    }


def _job(folder: Path, checkpoint: Path, target: Path | None) -> Mapping[str, Any]:
    """A query that reads the bulk table in one batch; a target of None is `noop`."""
    job = {
        "do": "run",
        "source": str(folder / "bulk"),
        "storage": {},
        "reads": {"minPartitions": str(TASKS)},
        "checkpoint": checkpoint.as_uri(),
        "target": None if target is None else str(target),
    }
    return job if target is not None else {**job, "to": "noop"}


def _ms(told: Mapping[str, Any], *parts: str) -> float:
    """The milliseconds that parts of the query's only batch with rows took."""
    [batch] = [batch for batch in told["batches"] if batch["rows"]]
    return float(sum(batch["ms"].get(part, 0) for part in parts))


def _with_shares(sample: Sample) -> Sample:
    """The sample with each speed over that of as many times one worker."""
    shares = {
        f"{what}_share_{count}": sample[f"{what}_rows_per_s_{count}"] / (count * sample[f"{what}_rows_per_s_1"])
        for what in ("source", "sink")
        for count in WORKERS[1:]
    }
    return {**sample, **shares}


if __name__ == "__main__":
    main()
