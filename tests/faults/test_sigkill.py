from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

import tablefeed
from feed.rows.test_apply_changes import FED, NEEDED, VECTORS, Event, apply, events, rows
from spark.test_apply_changes import txns
from support.processes import kill_session, processes_of_session
from support.session import environment

HERE = Path(__file__).parent
PATIENCE_S = 120

COPIES_LEFT = {
    "before-first-file": 0,
    "between-data-write-and-log-commit": 0,
    "between-log-commit-and-sparks-commit-log": 1,
}
"""The version of the table at the death of a query at each of the failpoints: -1 is no table."""

CHANGES_LEFT = {
    "before-a-task-writes": 1,
    "between-a-tasks-write-and-its-end": 1,
    "between-the-tasks-and-the-log-commit": 1,
    "between-log-commit-and-sparks-commit-log": 2,
}
"""The same of the tables that a query applies changes to: each had one version before."""


def started(program: str, *arguments: str, folder: Path, log: IO[bytes]) -> subprocess.Popen[bytes]:
    """Starts the program, in a session of its own; Spark's files go to `folder`."""
    paths = os.pathsep.join([str(HERE.parent), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, str(HERE / program), *arguments]
    given = {**os.environ, **environment(folder), "PYTHONPATH": paths}
    return subprocess.Popen(command, stdout=log, stderr=log, env=given, start_new_session=True)


def run_to_failpoints(program: str, arguments: list[str], batch: int, folder: Path, failpoints: Iterable[str]) -> int:
    """Runs the queries until each waits at its failpoint, and kills all there; gives the driver's exit code."""
    with (folder / "first.log").open("wb") as log:
        driver = started(program, *arguments, str(batch), folder=folder, log=log)
    try:
        deadline = time.monotonic() + PATIENCE_S
        while (reached := reached_in(folder)) != {*failpoints} and time.monotonic() < deadline:
            assert driver.poll() is None, (folder / "first.log").read_text()[:8000]
            time.sleep(0.05)
        assert reached == {*failpoints}, (folder / "first.log").read_text()[:8000]
        assert len(processes_of_session(driver.pid)) >= 3, "a driver, its JVM and at least one worker"
    finally:
        kill_session(driver.pid)
        code = driver.wait()
    assert processes_of_session(driver.pid) == []
    return code


def reached_in(folder: Path) -> set[str]:
    return {path.name.removeprefix("reached-") for path in folder.glob("reached-*")}


def run_to_end(program: str, arguments: list[str], folder: Path) -> None:
    with (folder / "second.log").open("wb") as log:
        driver = started(program, *arguments, folder=folder, log=log)
    try:
        code = driver.wait(PATIENCE_S)
    finally:
        kill_session(driver.pid)
    assert code == 0, (folder / "second.log").read_text()[:8000]


def log_version(table: Path) -> int:
    return max((int(f.stem) for f in (table / "_delta_log").glob("*.json")), default=-1)


@pytest.mark.spark
@pytest.mark.one_spark
@pytest.mark.slow
def test_a_batch_whose_query_is_killed_is_there_once_after_the_restart(tmp_path: Path) -> None:
    source, killed_batch = tmp_path / "source", 1
    for start in range(0, 40, 10):
        write_deltalake(str(source), pa.table({"id": range(start, start + 10)}), mode="append")
    arguments = [str(source), str(tmp_path)]

    code = run_to_failpoints("copy_query.py", arguments, killed_batch, tmp_path, COPIES_LEFT)
    assert code == -signal.SIGKILL

    for failpoint, left in COPIES_LEFT.items():
        assert log_version(tmp_path / failpoint) == left, f"{failpoint}: batch 0 is version 0"
        noted = tmp_path / f"checkpoint-{failpoint}" / "commits" / str(killed_batch)
        assert not noted.exists(), f"{failpoint}: Spark does not know that the batch is done"

    run_to_end("copy_query.py", arguments, tmp_path)

    for failpoint in COPIES_LEFT:
        assert log_version(tmp_path / failpoint) == 3, f"{failpoint}: four batches, each is one version"
        copy = DeltaTable(str(tmp_path / failpoint))
        assert sorted(copy.to_pyarrow_table()["id"].to_pylist()) == list(range(40)), failpoint
        query_id = next(a["operationParameters"]["queryId"] for a in copy.history())
        assert copy.transaction_version(query_id) == 3, failpoint


@pytest.mark.spark
@pytest.mark.slow
def test_changes_of_a_batch_whose_query_is_killed_are_applied_once_after_the_restart(tmp_path: Path) -> None:
    commits: list[list[Event]] = [
        [(key, "a", 10, "u") for key in range(20)],
        [(key, None, 20, "d") if key % 3 else (key, "b", 20, "u") for key in range(25)],
        [(key, "late", 15, "u") for key in range(30)],
        [(key, "c", 30, "u") for key in range(0, 30, 4)],
    ]
    source, killed_batch = tmp_path / "source", 1
    for commit in commits:
        tablefeed.append(source, events(*commit))
    expected = tmp_path / "expected"
    for table in (expected, *(tmp_path / failpoint for failpoint in CHANGES_LEFT)):
        schema = pa.schema([("id", pa.int64()), ("v", pa.string()), ("ts", pa.int64())])
        tablefeed.create(table, schema, properties={**NEEDED, **VECTORS, **FED})
    apply(str(expected), *(event for commit in commits for event in commit))
    arguments = [str(source), str(tmp_path)]

    code = run_to_failpoints("apply_query.py", arguments, killed_batch, tmp_path, CHANGES_LEFT)
    assert code == -signal.SIGKILL

    for failpoint, left in CHANGES_LEFT.items():
        assert log_version(tmp_path / failpoint) == left, failpoint
        noted = tmp_path / f"checkpoint-{failpoint}" / "commits" / str(killed_batch)
        assert not noted.exists(), f"{failpoint}: Spark does not know that the batch is done"

    run_to_end("apply_query.py", arguments, tmp_path)

    for failpoint in CHANGES_LEFT:
        table = tmp_path / failpoint
        assert rows(str(table)) == rows(str(expected)), failpoint
        assert log_version(table) == 4, f"{failpoint}: four batches, each is one version"
        (query_id,) = {app_id for app_id, _ in txns(str(table))}
        assert txns(str(table)) == [(query_id, 0), (query_id, 1), (query_id, 2), (query_id, 3)], failpoint
        assert replayed(table) == Counter(rows(str(expected))), f"{failpoint}: each row changed once"


def replayed(table: Path) -> Counter[tuple[Any, ...]]:
    """What all rows that changed make, one after the other."""
    found: Counter[tuple[Any, ...]] = Counter()
    for row in tablefeed.changes(table, start_version=0).read_all().to_pylist():
        sign = 1 if row["_change_type"] in ("insert", "update_postimage") else -1
        found[(row["id"], row["v"], row["ts"])] += sign
    return Counter({row: count for row, count in found.items() if count})
