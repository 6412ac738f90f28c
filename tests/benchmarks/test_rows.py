"""The quick runs of `python -m benchmarks.rows`: each number that a figure promises is measured."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path

import pytest
from benchmarks.questions import Side

from benchmarks import micro_batches, rows
from support.session import environment

ROOT = Path(__file__).parents[2]


def quick(*arguments: str, **given: str) -> Collection[str]:
    """What the page of a quick run has figures of."""
    path = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    ended = subprocess.run(
        [sys.executable, "-m", "benchmarks.rows", "--quick", *arguments],
        cwd=ROOT,
        env={**os.environ, **given, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return [line.split(" | ")[0].removeprefix("| ") for line in ended.stdout.splitlines() if line.startswith("| ")][2:]


@pytest.mark.slow
def test_a_run_without_spark_has_each_figure_that_needs_no_spark() -> None:
    expected = [figure.text for figure in rows.FIGURES if figure not in micro_batches.FIGURES]
    assert quick() == expected


@pytest.mark.peer
@pytest.mark.in_turn
@pytest.mark.timeout(900)  # two JVMs, one after the other: on a loaded machine more than 300 s
@pytest.mark.parametrize("large", [False, True])
def test_a_run_with_the_jar_has_each_figure_of_spark(
    pytestconfig: pytest.Config, tmp_path: Path, *, large: bool
) -> None:
    # The JAR's large batch is its MERGE of the micro-batches, on the cluster of ours.
    names = ["large"] if large else ["micro-batches", "micro-batches-jar"]
    of_large = [figure for figure in micro_batches.FIGURES if f"{Side.OURS}_large_" in figure.key]
    of_batches = [figure for figure in micro_batches.FIGURES if "_large_" not in figure.key]
    jars = pytestconfig.getoption("--peer-jars").resolve()
    # No time is judged here: the JVMs need not compile for one that lasts.
    measured = quick(*(f"--measurement={name}" for name in names), f"--peer-jars={jars}", **environment(tmp_path))
    assert measured == [figure.text for figure in (of_large if large else of_batches)]
