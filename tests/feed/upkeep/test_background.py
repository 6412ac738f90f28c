"""The thread that works in the background: what a program that ends waits for."""

from __future__ import annotations

import subprocess
import sys

_PROGRAM = """
import time
from concurrent.futures import ThreadPoolExecutor
from tablefeed.feed.upkeep.background import ask

def work():
    time.sleep(0.2)  # the program ends meanwhile
    with ThreadPoolExecutor(1) as pool:
        pool.submit(print, "done").result()

ask(("a table",), work)
"""


def test_a_program_that_ends_waits_for_work_that_needs_a_pool_of_threads() -> None:
    done = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True, check=True)

    assert (done.stdout, done.stderr) == ("done\n", "")
