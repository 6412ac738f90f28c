"""Measurements in processes of their own, one after the other, and the pages that are kept of them. No Spark."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from benchmarks import environment

Sample = dict[str, float]


def measured(module: str, *arguments: str) -> Sample:
    """What a module prints, as JSON in its last line, of one measurement in a process of its own."""
    command = [sys.executable, "-m", module, "--one", *arguments]
    ended = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    sample: Sample = json.loads(ended.stdout.splitlines()[-1])
    print(f"{' '.join(arguments)}: {sample}", file=sys.stderr, flush=True)
    return sample


def by_turns(module: str, sides: Sequence[str], what: str, rounds: int) -> dict[str, list[Sample]]:
    """The samples of each side, which are measured alternately."""
    samples: dict[str, list[Sample]] = {side: [] for side in sides}
    for _ in range(rounds):
        for side in sides:
            samples[side].append(measured(module, side, what))
    return samples


def today() -> str:
    """The date that a page is kept under."""
    return datetime.now(UTC).date().isoformat()


def versions(packages: Sequence[str]) -> dict[str, str]:
    """The version of each package."""
    return {name: environment.version(name) for name in packages}


def facts(packages: Sequence[str]) -> str:
    """The versions and the machine, for the last line of a page."""
    return ", ".join(f"{name} {value}" for name, value in {**versions(packages), **environment.machine()}.items())


def keep(name: str, page: str, results: Path, packages: Sequence[str], **more: object) -> None:
    """Writes the page and what it was made of to `results`, under today's date."""
    document = {"date": today(), "versions": versions(packages), "machine": environment.machine(), **more}
    results.mkdir(parents=True, exist_ok=True)
    (results / f"{today()}-{name}.json").write_text(json.dumps(document, indent=1) + "\n")
    (results / f"{today()}-{name}.md").write_text(page)
