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
@pytest.mark.timeout(900)  # three JVMs, one after the other: on a loaded machine more than 300 s
def test_a_run_with_the_jar_has_each_figure_of_spark(pytestconfig: pytest.Config, tmp_path: Path) -> None:
    # The JAR's large batch is its MERGE of the micro-batches, on the cluster of ours.
    measurements = [part for name in rows.ON_SPARK if name != "large-jar" for part in ("--measurement", name)]
    expected = [figure.text for figure in micro_batches.FIGURES if not figure.key.startswith(f"{Side.JAR}_large_")]
    jars = pytestconfig.getoption("--peer-jars").resolve()
    # No time is judged here: the JVMs need not compile for one that lasts.
    assert quick(*measurements, f"--peer-jars={jars}", **environment(tmp_path)) == expected
