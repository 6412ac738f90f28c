"""Each decoder withstands damaged input: it answers or refuses, in bounded memory and time.

Each run tries the same changes of the seeds. `make fuzz` goes on from there.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parents[1]


def test_a_decoder_answers_or_refuses_whatever_it_is_given_in_bounded_memory_and_time(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "fuzzing", "--cases=200", "--seed=1"]
    path = [str(TESTS), str(TESTS.parent / "src")]

    run = subprocess.run(
        command, cwd=tmp_path, env={"PYTHONPATH": ":".join(path)}, capture_output=True, text=True, check=False
    )

    assert run.returncode == 0, run.stdout + run.stderr
