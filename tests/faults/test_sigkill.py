from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

PROGRAM = Path(__file__).with_name("copy_query.py")
PATIENCE_S = 120

COMMITS_LEFT = {
    "before-first-file": 0,
    "between-data-write-and-log-commit": 0,
    "between-log-commit-and-sparks-commit-log": 1,
}
"""The version of the table at the death of a query at each of the failpoints: -1 is no table."""


def processes_of_session(leader: int) -> list[int]:
    """All living processes of the driver's session: itself, its JVM, the Python daemon and its workers."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it ended while we looked
        if int(fields[3]) == leader and fields[0] != "Z":
            found.append(int(stat.parent.name))
    return found


def kill_session(leader: int) -> None:
    """Kills what lives of the session until nothing does: one that was being forked is there at the next look."""
    deadline = time.monotonic() + PATIENCE_S
    while (living := processes_of_session(leader)) and time.monotonic() < deadline:
        for pid in living:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        time.sleep(0.01)


def run_to_failpoints(arguments: list[str], batch: int, folder: Path) -> int:
    """Runs the queries until each waits at its failpoint, and kills all there; gives the driver's exit code."""
    with (folder / "first.log").open("wb") as log:
        driver = subprocess.Popen(
            [sys.executable, str(PROGRAM), *arguments, str(batch)], stdout=log, stderr=log, start_new_session=True
        )
    try:
        deadline = time.monotonic() + PATIENCE_S
        while (reached := reached_in(folder)) != set(COMMITS_LEFT) and time.monotonic() < deadline:
            assert driver.poll() is None, (folder / "first.log").read_text()[-4000:]
            time.sleep(0.05)
        assert reached == set(COMMITS_LEFT), (folder / "first.log").read_text()[-4000:]
        assert len(processes_of_session(driver.pid)) >= 3, "a driver, its JVM and at least one worker"
    finally:
        kill_session(driver.pid)
        code = driver.wait()
    assert processes_of_session(driver.pid) == []
    return code


def reached_in(folder: Path) -> set[str]:
    return {path.name.removeprefix("reached-") for path in folder.glob("reached-*")}


def run_to_end(arguments: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, str(PROGRAM), *arguments], capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]


def log_version(table: Path) -> int:
    return max((int(f.stem) for f in (table / "_delta_log").glob("*.json")), default=-1)


@pytest.mark.spark
def test_a_batch_whose_query_is_killed_is_there_once_after_the_restart(tmp_path: Path) -> None:
    source, killed_batch = tmp_path / "source", 1
    for start in range(0, 40, 10):
        write_deltalake(str(source), pa.table({"id": range(start, start + 10)}), mode="append")
    arguments = [str(source), str(tmp_path)]

    assert run_to_failpoints(arguments, killed_batch, tmp_path) == -signal.SIGKILL

    for failpoint, left in COMMITS_LEFT.items():
        assert log_version(tmp_path / failpoint) == left, f"{failpoint}: batch 0 is version 0"
        noted = tmp_path / f"checkpoint-{failpoint}" / "commits" / str(killed_batch)
        assert not noted.exists(), f"{failpoint}: Spark does not know that the batch is done"

    run_to_end(arguments)

    for failpoint in COMMITS_LEFT:
        assert log_version(tmp_path / failpoint) == 3, f"{failpoint}: four batches, each is one version"
        copy = DeltaTable(str(tmp_path / failpoint))
        assert sorted(copy.to_pyarrow_table()["id"].to_pylist()) == list(range(40)), failpoint
        query_id = next(a["operationParameters"]["queryId"] for a in copy.history())
        assert copy.transaction_version(query_id) == 3, failpoint
