"""Runs the two sides by turns, each time in a process of its own, so that what slows the machine slows both."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.questions import Measurement, Setting, Side
from benchmarks.report import Sample


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is run: `rounds` times each setting and in it each side, with the tables in `tables`."""

    rounds: int
    settings: Sequence[Setting]
    measurements: Sequence[Measurement]
    jars: Path
    tables: Path
    quick: bool


def run(plan: Plan) -> Iterator[Sample]:
    """Yields a sample for each process as it ends: ours, the JAR's, ours, the JAR's.

    Raises SystemExit with the process's last words where one fails: a round with a side missing compares nothing.
    """
    for number in range(plan.rounds):
        for setting in plan.settings:
            for side in Side:
                _say(f"round {number + 1} of {plan.rounds}, {setting}, {side}; load {os.getloadavg()[0]:.1f}")
                numbers = _measured(plan, side, setting)
                yield Sample(round=number, setting=setting, side=side, numbers=numbers)


def _measured(plan: Plan, side: Side, setting: Setting) -> dict[str, float]:
    with TemporaryDirectory(prefix="tablefeed-bench-", dir=plan.tables.parent) as scratch:
        arguments = [*plan.measurements, "--side", side, "--setting", setting]
        folders = ["--peer-jars", str(plan.jars), "--tables", str(plan.tables), "--scratch", scratch]
        command = [sys.executable, "-m", "benchmarks.measures", *arguments, *folders]
        if plan.quick:
            command.append("--quick")
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = ended.stdout.splitlines()
    if ended.returncode or not lines:
        raise SystemExit(f"{side} ({setting}) ended with {ended.returncode}:\n{ended.stderr[-4000:]}")
    numbers: dict[str, float] = json.loads(lines[-1])
    return numbers


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
