"""`python -m benchmarks --peer-jars=FOLDER`: makes the tables, runs both sides alternating, writes the report."""

from __future__ import annotations

import argparse
import json
import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks import changes, environment, workloads
from benchmarks.questions import Measurement, Setting
from benchmarks.report import Report, Sample, as_json, as_markdown
from benchmarks.rounds import Plan, run

RESULTS = Path(__file__).parent / "results"

ROUNDS = 5

ASKED_ALWAYS = [m for m in Measurement if m not in (Measurement.CATCH_UP, Measurement.OLD_LOG)]
"""What reads long logs takes long, and is asked when that is the question."""

QUIET_LOAD = 1.0
"""A machine that is busier than this while nothing of ours runs measures its other work."""


def main() -> None:
    """Measures what the command line asks for; a quick run is printed and not kept."""
    given = _arguments()
    workload = workloads.QUICK if given.quick else workloads.FULL
    if os.getloadavg()[0] > QUIET_LOAD:
        print(f"the machine is busy (load {os.getloadavg()[0]:.1f}): its numbers will say so", file=sys.stderr)
    with TemporaryDirectory(prefix="tablefeed-bench-", dir=given.scratch) as scratch:
        tables = Path(scratch) / "tables"
        plan = Plan(
            rounds=given.rounds or (1 if given.quick else ROUNDS),
            settings=given.setting or list(Setting),
            measurements=given.measurement or ASKED_ALWAYS,
            jars=given.peer_jars.resolve(),
            tables=tables,
            quick=given.quick,
        )
        described = _made(plan, workload)
        samples: list[Sample] = []
        for sample in run(plan):
            samples.append(sample)
            if not given.quick:
                _keep(_report(plan, described, samples), given.results, given.name)
    print(as_markdown(_report(plan, described, samples)))


def _made(plan: Plan, workload: workloads.Workload) -> list[str]:
    """Makes the tables that the plan reads; gives the workload in words."""
    workloads.make_tables(plan.tables, workload, plan.measurements)
    if Measurement.CHANGE_FEED in plan.measurements:
        table = workloads.changes_table(plan.tables)
        changes.make_in_a_process(table, inserted=workload.inserted_rows, jars=plan.jars)
    if not workloads.bulk_table(plan.tables).exists():
        return workload.describe()
    row_bytes = workloads.bytes_a_row(plan.tables, workload)
    return [*workload.describe(), f"on disk: {row_bytes:.0f} bytes a row of the bulk table"]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--peer-jars", type=Path, required=True, help="the Delta JAR and what it needs")
    parser.add_argument("--quick", action="store_true", help="a small run, to see that all works; nothing is written")
    parser.add_argument("--rounds", type=int, help=f"that count, after one that does not ({ROUNDS})")
    parser.add_argument("--setting", type=Setting, action="append", help="only this one; may be repeated")
    parser.add_argument("--measurement", type=Measurement, action="append", help="only this one; may be repeated")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where the report goes")
    parser.add_argument("--name", help="added to the names of the report's files, after the date")
    parser.add_argument("--scratch", type=Path, help="where tables are made and removed: some 5 GB (the system's)")
    return parser.parse_args()


def _report(plan: Plan, workload: list[str], samples: list[Sample]) -> Report:
    return Report(
        date=datetime.now(UTC).date().isoformat(),
        workload=workload,
        versions=environment.versions(plan.jars),
        machine=environment.machine(),
        samples=samples,
    )


def _keep(report: Report, folder: Path, name: str | None) -> None:
    """Writes what is known so far: an hour's run that is broken off is not lost."""
    folder.mkdir(parents=True, exist_ok=True)
    stem = f"{report.date}-{name}" if name else report.date
    (folder / f"{stem}.json").write_text(json.dumps(as_json(report), indent=1) + "\n")
    (folder / f"{stem}.md").write_text(as_markdown(report))


if __name__ == "__main__":
    main()
