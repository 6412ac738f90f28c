"""examples/project, as who copies it would use it: its tests pass, and its command works on real folders."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pyarrow as pa
import pytest

import tablefeed

EXAMPLE = Path(__file__).parents[1] / "examples" / "project"
SRC = Path(__file__).parents[1] / "src"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return Path(shutil.copytree(EXAMPLE, tmp_path / "project"))


def ran(project: Path, *command: str) -> str:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(project / "src"), str(SRC)])}
    done = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_its_tests_pass_where_it_is_copied(project: Path) -> None:
    assert "2 passed" in ran(project, sys.executable, "-m", "pytest", "-q")


def test_its_command_applies_events_once(project: Path, tmp_path: Path) -> None:
    scripts = tomllib.loads((project / "pyproject.toml").read_text(encoding="utf-8"))["project"]["scripts"]
    module, _, function = scripts["orders-pipeline"].partition(":")
    create = f"from {module} import create_orders; create_orders({str(tmp_path / 'orders')!r})"
    ran(project, sys.executable, "-c", create)
    schema = tablefeed.open_table(tmp_path / "orders").schema
    rows = [{"id": 1, "state": "new", "at": 0}, {"id": 1, "state": "paid", "at": 1}]
    tablefeed.append(tmp_path / "events", pa.Table.from_pylist(rows, schema=schema))
    once = f"from {module} import {function}; {function}()"
    command = [sys.executable, "-c", once, str(tmp_path / "events"), str(tmp_path / "orders")]

    assert [ran(project, *command).partition(" of ")[0] for _ in range(2)] == ["applied 1 commits", "applied 0 commits"]
    assert tablefeed.open_table(tmp_path / "orders").to_arrow()["state"].to_pylist() == ["paid"]
