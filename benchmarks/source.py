"""`python -m benchmarks.source`: what the source costs without Spark, in absolute numbers.

Each measurement runs in its own process, once in each round; the measurements alternate. There is no peer: the limits
are those that the README promises. No Spark.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.questions import AtMost, Goal
from benchmarks.report import number
from benchmarks.turns import facts, keep, measured

RESULTS = Path(__file__).parent / "results"
ROUNDS = 5
PACKAGES = ("tablefeed", "pyarrow")


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One number of a measurement, and its bound, if there is a goal."""

    key: str
    text: str
    unit: str
    goal: Goal | None = None


FIGURES = (
    Figure(key="idle_look_us", text="a look of an idle stream, local disk", unit="us"),
    Figure(key="idle_look_requests", text="its questions to the disk", unit="calls", goal=AtMost(bound=1)),
    Figure(key="idle_look_remote_us", text="a look of an idle stream, objects in memory", unit="us"),
    Figure(key="idle_look_remote_requests", text="its requests to the store", unit="calls", goal=AtMost(bound=1)),
    Figure(key="old_log_batch_ms", text="a one-file batch at version 20,000, planned and read", unit="ms"),
    Figure(key="old_log_growth", text="the same over one at version 20", unit="times", goal=AtMost(bound=1.1)),
    Figure(key="follow_p50_ms", text="from a local commit to `follow`, p50", unit="ms", goal=AtMost(bound=3)),
    Figure(key="follow_p95_ms", text="from a local commit to `follow`, p95", unit="ms", goal=AtMost(bound=8)),
    Figure(
        key="relay_p50_ms",
        text="from a local commit to an append of its rows to another table, p50",
        unit="ms",
        goal=AtMost(bound=20),
    ),
    Figure(key="relay_p95_ms", text="the same, p95", unit="ms"),
    Figure(
        key="old_relay_p50_ms", text="the same out of a log of 20,000 versions, p50", unit="ms", goal=AtMost(bound=20)
    ),
    Figure(key="old_relay_p95_ms", text="the same, p95", unit="ms"),
    Figure(
        key="snapshot_peak_mb",
        text="a snapshot of many files in batches of 1,000, peak memory of the planner",
        unit="MB",
        goal=AtMost(bound=1_024),
    ),
    Figure(key="snapshot_files", text="its files", unit="files"),
    Figure(key="snapshot_first_batch_cpu_s", text="its first batch, processor time", unit="s"),
    Figure(key="snapshot_first_batch_ms", text="its first batch, planned", unit="ms"),
    Figure(key="snapshot_batch_ms", text="each later batch, planned", unit="ms"),
    Figure(
        key="task_peak_mb",
        text="one task of a file of 2 GB in row groups of 128 MB, peak memory",
        unit="MB",
        goal=AtMost(bound=512),
    ),
    Figure(key="task_rows_per_s", text="its rows", unit="rows/s"),
)

Sample = Mapping[str, float]


def main() -> None:
    """Makes the tables, measures alternating and writes the report; a quick run is printed and not kept."""
    from benchmarks import logs, planner  # imports delta-rs, whose memory is none of those who only write a page

    parser = argparse.ArgumentParser(prog="python -m benchmarks.source", description=__doc__)
    parser.add_argument("--rounds", type=int, help=f"runs of each measurement ({ROUNDS})")
    parser.add_argument("--quick", action="store_true", help="each once; nothing is written")
    parser.add_argument("--measurement", choices=planner.MEASURES, action="append", help="only this; may be repeated")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where the report goes")
    parser.add_argument("--scratch", type=Path, help="where tables are made and removed: some 3 GB (the system's)")
    logs.add_arguments(parser)
    given = parser.parse_args()
    made = partial(planner.make_snapshot, files=given.files, form=given.form)
    makes: Mapping[str, Callable[[Path], None]] = {**planner.MAKES, "snapshot": made}
    named = given.measurement or list(planner.MEASURES)
    rounds = given.rounds or (1 if given.quick else ROUNDS)
    with TemporaryDirectory(prefix="tablefeed-bench-", dir=given.scratch) as scratch:
        for make in dict.fromkeys(makes[name] for name in named):
            make(Path(scratch))
        samples = [measured("benchmarks.planner", name, scratch) for _ in range(rounds) for name in named]
    page = as_markdown(samples, rounds=rounds, told=facts(PACKAGES))
    if not given.quick:
        keep("source", page, given.results, PACKAGES, samples=samples)
    print(page)


def as_markdown(
    samples: Sequence[Sample],
    *,
    rounds: int,
    told: str,
    title: str = "The source without Spark",
    figures: Sequence[Figure] = FIGURES,
) -> str:
    """Gives the report as a page: each figure's median, what it went between, and its goal."""
    lines = [
        f"# {title}",
        "",
        "| what | unit | median | of one run | goal | |",
        "| --- | --- | --- | --- | --- | --- |",
        *(
            _row(figure, values)
            for figure in figures
            if (values := [s[figure.key] for s in samples if figure.key in s])
        ),
        "",
        f"Medians of {rounds} runs. {told}.",
        "",
    ]
    return "\n".join(lines)


def _row(figure: Figure, values: Sequence[float]) -> str:
    median = statistics.median(values)
    goal, verdict = "", ""
    if figure.goal is not None:
        goal, verdict = str(figure.goal), "met" if figure.goal.is_met_by(median) else "missed"
    span = f"{number(min(values))}-{number(max(values))}"
    return f"| {' | '.join((figure.text, figure.unit, number(median), span, goal, verdict))} |"


if __name__ == "__main__":
    main()
