"""Runs the two sides alternating, each time in a new process, so that what slows the machine slows both."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
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
    """Yields a sample for each side and setting of a round as its process ends: ours, the JAR's, ours in the other.

    The JAR runs once a round, in the middle, and is held against us in each setting: how the JVM and Python workers
    talk does not touch it, for it has none. But a row's way to the driver is touched, so that its latency is measured
    in each setting. Raises SystemExit with a process's last words where one fails: a round
    with a side missing compares nothing.
    """
    for number in range(plan.rounds):
        first, *others = plan.settings
        yield _sample(plan, number, Side.OURS, first)
        of_jar = _sample(plan, number, Side.JAR, first)
        yield of_jar
        for setting in others:
            yield _of_jar_in(plan, of_jar, setting)
            yield _sample(plan, number, Side.OURS, setting)


def _of_jar_in(plan: Plan, sample: Sample, setting: Setting) -> Sample:
    if Measurement.LATENCY not in plan.measurements:
        return replace(sample, setting=setting)
    latency = _sample(replace(plan, measurements=[Measurement.LATENCY]), sample.round, Side.JAR, setting)
    return replace(latency, numbers={**sample.numbers, **latency.numbers})


def _sample(plan: Plan, number: int, side: Side, setting: Setting) -> Sample:
    _say(f"round {number + 1} of {plan.rounds}, {setting}, {side}; load {os.getloadavg()[0]:.1f}")
    return Sample(round=number, setting=setting, side=side, numbers=_measured(plan, side, setting))


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
