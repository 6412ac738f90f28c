"""`python -m benchmarks.files`: what it costs to open a table and list its live files, delta-rs beside us.

Three logs without data: 300,000 adds in five JSON commits, a checkpoint of 1,000,000 files, and 10,000 commits with a
checkpoint near the end. The two sides alternate, each in its own process. A side's clock starts when
it has been imported; its peak is that of the process, imports included. No Spark.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks import environment, logs
from benchmarks.turns import Sample, by_turns, facts, keep, today

RESULTS = Path(__file__).parent / "results"
ROUNDS = 5
SIDES = ("tablefeed", "deltalake")
PACKAGES = ("tablefeed", "pyarrow", "deltalake")
GOALS = {"seconds": 1.0, "cpu_seconds": None, "peak_mb": 0.6}
"""The most that our median may be of delta-rs's; None: no goal."""
WITHOUT_A_GOAL = {("many commits", "peak_mb")}
"""Of 10,000 files the peak of both is their imports."""


def main() -> None:
    """Makes the logs, measures both sides alternating and writes the report."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.files", description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--results", type=Path, default=RESULTS, help="where the report goes")
    parser.add_argument("--scratch", type=Path, help="where the logs are made and removed: some 700 MB (the system's)")
    parser.add_argument("--log", choices=logs.LOGS, help="only this")
    parser.add_argument("--side", choices=SIDES, help="only this")
    logs.add_arguments(parser)
    parser.add_argument("--one", nargs=2, metavar=("SIDE", "TABLE"), help="measure one side once and print it")
    given = parser.parse_args()
    if given.one:
        side, table = given.one
        print(json.dumps(_measured(side, table)))
        return
    with TemporaryDirectory(prefix="tablefeed-bench-", dir=given.scratch) as scratch:
        makes = {**logs.LOGS, "one checkpoint": partial(logs.large_checkpoint, files=given.files, form=given.form)}
        named = [given.log] if given.log else makes
        tables = {name: makes[name](Path(scratch) / name) for name in named} | ({} if given.log else logs.of_corpus())
        sides = (given.side,) if given.side else SIDES
        samples = {name: _samples(str(table), given.rounds, sides) for name, table in tables.items()}
    _write(samples, given.results)


def _samples(table: str, rounds: int, sides: Sequence[str]) -> dict[str, list[Sample]]:
    samples = by_turns("benchmarks.files", sides, table, rounds)
    if len({sample["files"] for of_side in samples.values() for sample in of_side}) != 1:
        raise SystemExit(f"the two sides do not see the same number of files: {samples}")
    return samples


def _measured(side: str, table: str) -> Sample:
    count = _COUNTS[side]()
    begun, begun_cpu = time.perf_counter(), time.process_time()
    files = count(table)
    seconds, cpu_seconds = time.perf_counter() - begun, time.process_time() - begun_cpu
    return {"seconds": seconds, "cpu_seconds": cpu_seconds, "peak_mb": environment.peak_mb(), "files": files}


def _ours() -> Callable[[str], int]:
    # Imported before the clock starts, as deltalake imports all of itself: tablefeed imports these where it needs them.

    import tablefeed
    import tablefeed.delta.checkpoint.reading
    import tablefeed.feed.snapshot.files
    import tablefeed.feed.snapshot.live_files
    import tablefeed.log.replay

    open_table = tablefeed.open_table
    return lambda table: sum(batch.num_rows for batch in open_table(table).files())


def _delta_rs() -> Callable[[str], int]:
    import deltalake
    import pyarrow as pa

    # This gives the same facts of each file as ours: path, size, time, partition values and the number of its rows.
    return lambda table: pa.table(deltalake.DeltaTable(table).get_add_actions()).num_rows


_COUNTS: Mapping[str, Callable[[], Callable[[str], int]]] = {"tablefeed": _ours, "deltalake": _delta_rs}


def _write(samples: Mapping[str, Mapping[str, Sequence[Sample]]], results: Path) -> None:
    rounds = len(next(iter(next(iter(samples.values())).values())))
    lines = [
        f"# Opening a table and listing its files, {today()}",
        "",
        *(f"- {text}" for text in logs.DESCRIPTIONS.values()),
        "",
        "| log | what | tablefeed | deltalake | ratio | goal | |",
        "| --- | --- | --- | --- | --- | --- | --- |",
        *(_row(log, measure, of_log) for log, of_log in samples.items() for measure in GOALS),
        "",
        f"Medians of {rounds} alternating runs. {facts(PACKAGES)}.",
        "",
    ]
    page = "\n".join(lines)
    keep("files", page, results, PACKAGES, logs=logs.DESCRIPTIONS, samples=samples)
    print(page)


def _row(log: str, measure: str, samples: Mapping[str, Sequence[Sample]]) -> str:
    medians = {side: statistics.median(sample[measure] for sample in of_side) for side, of_side in samples.items()}
    numbers = [f"{medians[side]:.3g}" if side in medians else "" for side in SIDES]
    ratio = goal = verdict = ""
    if len(medians) == len(SIDES):
        ratio, most = medians[SIDES[0]] / medians[SIDES[1]], GOALS[measure]
        if most is not None and (log, measure) not in WITHOUT_A_GOAL:
            goal, verdict = f"<= {most}", "met" if ratio <= most else "missed"
        ratio = f"{ratio:.2f}"
    return f"| {' | '.join((log, measure, *numbers, ratio, goal, verdict))} |"


if __name__ == "__main__":
    main()
