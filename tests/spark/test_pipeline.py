"""A declarative pipeline, run as users run it, on a Spark Connect server: it applies change events."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from feed.rows.test_apply_changes import a_target, rows
from spark.test_apply_changes import feed, txns

PIPELINE = Path(__file__).parents[2] / "examples" / "pipeline"


def run_pipeline(connect_url: str, folder: Path) -> None:
    """Runs the pipeline of `folder` once, as `spark-pipelines run` does, on the server."""
    command = [sys.executable, "-m", "pyspark.pipelines.cli", "run", "--spec", str(folder / "spark-pipeline.yml")]
    subprocess.run(command, env={**os.environ, "SPARK_REMOTE": connect_url}, check=True, capture_output=True)


@pytest.mark.one_spark
@pytest.mark.slow
def test_a_declarative_pipeline_applies_change_events_run_after_run(connect_url: str, tmp_path: Path) -> None:
    pipeline = tmp_path / "pipeline"
    shutil.copytree(PIPELINE, pipeline)
    spec = pipeline / "spark-pipeline.yml"
    spec.write_text(spec.read_text().replace("/lake", str(tmp_path)))
    Path(a_target(tmp_path)).rename(tmp_path / "orders")
    feed(tmp_path / "order_events", [(1, "a", 1, "u"), (2, "b", 1, "u")], [(2, None, 3, "d")])
    run_pipeline(connect_url, pipeline)
    assert rows(str(tmp_path / "orders")) == [(1, "a", 1)]
    feed(tmp_path / "order_events", [(1, "A", 5, "u"), (2, "late", 2, "u")])
    run_pipeline(connect_url, pipeline)
    assert rows(str(tmp_path / "orders")) == [(1, "A", 5)]
    (first, _), (second, _) = txns(str(tmp_path / "orders"))
    assert first == second
