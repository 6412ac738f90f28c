"""scripts/mutants.py ends a run of which nothing works any more, and none that waits for a process that works."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CALL = """
import runpy, subprocess, sys, time
script = runpy.run_path("scripts/mutants.py")
forked = script["forked"]
forked.__globals__["STALLED_SECONDS"] = 0.5
busy = [sys.executable, "-c", "import time\\nwhile time.process_time() < 3: pass"]
work = {"waits for a process that works": lambda: subprocess.run(busy), "waits for nothing": lambda: time.sleep(600)}
print(forked(work[sys.argv[1]], 60, sys.argv[2]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the script needs /proc")
@pytest.mark.parametrize(("work", "code"), [("waits for a process that works", 0), ("waits for nothing", -9)])
def test_a_run_is_stalled_where_neither_it_nor_what_it_started_gets_processor_time(
    work: str, code: int, tmp_path: Path
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CALL, work, str(tmp_path / "log")], cwd=ROOT, capture_output=True, text=True, check=True
    )

    assert int(done.stdout) == code
