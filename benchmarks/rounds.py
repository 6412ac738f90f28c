"""Keeps a session of each side open, each in its own process, and lets them measure by turns, one at a time.

So both sides are as warm as each other in a round, and what slows the machine for a while slows both.
"""

from __future__ import annotations

import compileall
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import tablefeed
from benchmarks.questions import Measurement, Setting, Side
from benchmarks.report import Sample


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is run: `rounds` rounds of each measurement, after one that is not counted, with the tables in `tables`."""

    rounds: int
    settings: Sequence[Setting]
    measurements: Sequence[Measurement]
    jars: Path
    tables: Path
    quick: bool


def run(plan: Plan) -> Iterator[Sample]:
    """Yields the samples of each measurement, round by round; round 0 is the warm-up, in which counts are checked.

    The JAR has one session, with the advised settings, and is held against us in each setting: it has no Python worker,
    but `collect` in `foreachBatch` is faster with the Unix socket.

    Raises SystemExit with a session's last words where one fails: a round with a side missing compares nothing.
    """
    with ExitStack() as running:
        jar = running.enter_context(_Session(plan, Side.JAR, Setting.ADVISED))
        ours = [running.enter_context(_Session(plan, Side.OURS, setting)) for setting in plan.settings]
        for measurement in plan.measurements:
            for number in range(plan.rounds + 1):
                _say(f"{measurement}, round {number} of {plan.rounds}; load {os.getloadavg()[0]:.1f}")
                of_jar = jar.measured(measurement, number)
                for session in ours:
                    yield session.measured(measurement, number)
                    yield replace(of_jar, setting=session.setting)


class _Session:
    """A process of `benchmarks.measures`: a measurement's name in, a line of JSON out."""

    def __init__(self, plan: Plan, side: Side, setting: Setting) -> None:
        self.setting, self._side = setting, side
        self._scratch = TemporaryDirectory(prefix="tablefeed-bench-", dir=plan.tables.parent)
        folders = ["--peer-jars", str(plan.jars), "--tables", str(plan.tables), "--scratch", self._scratch.name]
        command = [sys.executable, "-m", "benchmarks.measures", "--side", side, "--setting", setting, *folders]
        self._errors = Path(self._scratch.name, "errors")
        with self._errors.open("w") as errors:
            self._process = subprocess.Popen(
                [*command, "--quick"] if plan.quick else command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env=as_installed(),
            )

    def measured(self, measurement: Measurement, number: int) -> Sample:
        """Gives what this session measures in a round."""
        if self._process.stdin is None or self._process.stdout is None:
            raise RuntimeError("a session has pipes")
        self._process.stdin.write(json.dumps([measurement, number]) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            said = self._errors.read_text()[-4000:]
            raise SystemExit(f"{self._side} ({self.setting}) ended with {self._process.wait()}:\n{said}")
        return Sample(round=number, setting=self.setting, side=self._side, numbers=json.loads(line))

    def __enter__(self) -> _Session:
        return self

    def __exit__(self, *_error: object) -> None:
        self._process.communicate()  # it ends where its input does
        self._scratch.cleanup()


def as_installed() -> dict[str, str]:
    """Compiles tablefeed, as an installation does, and gives an environment in which Python uses that.

    Otherwise each new Python process of a query would compile some hundred modules, for 0.2 s and more.
    """
    compileall.compile_dir(Path(tablefeed.__file__).parent, quiet=1)
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
