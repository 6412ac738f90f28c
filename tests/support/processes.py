"""The processes of a program that runs in a session of its own, such as a driver with its JVM and workers."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

PATIENCE_S = 120


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


def kill_session(leader: int, *, spare: int | None = None) -> None:
    """Kills what lives of the session, but `spare`, until nothing does.

    A process that is being forked is there at the next look.
    """
    deadline = time.monotonic() + PATIENCE_S
    while (living := [pid for pid in processes_of_session(leader) if pid != spare]) and time.monotonic() < deadline:
        for pid in living:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        time.sleep(0.01)
