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

FAILPOINTS = {
    "before-first-file": 0,
    "between-data-write-and-log-commit": 0,
    "between-log-commit-and-sparks-commit-log": 1,
}
"""How many commits the killed batch leaves behind at each point."""


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


def run_to_failpoint(arguments: list[str], failpoint: str, batch: int, folder: Path) -> int:
    """Runs the query until it stands at its failpoint and kills all of it there; gives the driver's exit code."""
    marker = folder / "reached"
    with (folder / "first.log").open("wb") as log:
        query = subprocess.Popen(
            [sys.executable, str(PROGRAM), *arguments, failpoint, str(batch), str(marker)],
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        deadline = time.monotonic() + PATIENCE_S
        while not marker.exists() and query.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
        assert marker.exists(), (folder / "first.log").read_text()[-4000:]
        assert marker.read_text() == failpoint
        assert len(processes_of_session(query.pid)) >= 3, "a driver, its JVM and at least one worker"
    finally:
        kill_session(query.pid)
        code = query.wait()
    assert processes_of_session(query.pid) == []
    return code


def run_to_end(arguments: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, str(PROGRAM), *arguments], capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]


def log_version(table: Path) -> int:
    return max((int(f.stem) for f in (table / "_delta_log").glob("*.json")), default=-1)


@pytest.mark.spark
@pytest.mark.parametrize("failpoint", FAILPOINTS)
def test_a_batch_whose_query_is_killed_stands_once_after_the_restart(tmp_path: Path, failpoint: str) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    for start in range(0, 40, 10):
        write_deltalake(str(source), pa.table({"id": range(start, start + 10)}), mode="append")
    killed_batch = 1
    arguments = [str(source), str(target), str(tmp_path / "checkpoint")]

    code = run_to_failpoint(arguments, failpoint, killed_batch, tmp_path)

    assert code == -signal.SIGKILL
    assert log_version(target) == FAILPOINTS[failpoint], "batch 0 is version 0; the killed one stands or does not"
    assert not (tmp_path / "checkpoint" / "commits" / str(killed_batch)).exists(), "Spark does not know the batch done"

    run_to_end(arguments)

    assert log_version(target) == 3, "four batches, a version each: the replayed one has one, not two"
    copy = DeltaTable(str(target))
    assert sorted(copy.to_pyarrow_table()["id"].to_pylist()) == list(range(40))
    query_id = next(a["operationParameters"]["queryId"] for a in copy.history())
    assert copy.transaction_version(query_id) == 3
