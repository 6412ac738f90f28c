from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.source import as_markdown

from benchmarks import writers


def test_each_number_that_is_measured_has_a_line_and_each_line_a_measurement(tmp_path: Path) -> None:
    keys = {figure.key for figure in writers.FIGURES}

    ours = writers.spread("ours", writers.by_tablefeed, tmp_path, batches=10)
    theirs = writers.spread("delta_rs", writers.by_delta_rs, tmp_path, batches=10)
    measured = {**ours, **theirs}

    assert keys >= measured.keys()
    page = as_markdown([measured], rounds=1, told="", title="Writers without Spark", figures=writers.FIGURES)
    assert page.startswith("# Writers without Spark\n")
    assert len([line for line in page.splitlines() if line.startswith(("| tablefeed", "| delta-rs"))]) == 8


@pytest.mark.slow
def test_the_figures_of_writers_that_meet_are_those_that_are_measured(tmp_path: Path) -> None:
    measured = writers.crowd("among", writers.by_tablefeed, tmp_path, peers=1, each=2)

    assert measured.keys() == {figure.key for figure in writers.FIGURES if figure.key.startswith("among")}
    assert measured["among_failed"] == 0
