"""What happens in a run of a schedule: each call of a store, each error, and each byte that is left.

`python -m simulation.course FIRST COUNT` prints it for so many seeds, one a line, as another process sees it.
"""

from __future__ import annotations

import hashlib
import logging
import sys

from simulation.kinds import schedule_indexed, schedule_of
from simulation.schedule import Run, Schedule


def courses(seed: int) -> list[str]:
    """The course of the plain schedule of a seed, and of every tenth seed also that with IndexTables tables."""
    return [course(schedule_of(seed)), *([] if seed % 10 else [course(schedule_indexed(seed))])]


def course(schedule: Schedule) -> str:
    """The seed, how many calls and errors there were, and a digest of these and of all files with their times."""
    run = Run(schedule)
    run.run()
    digest = hashlib.sha256("\n".join(run.world.trace).encode())
    for name, disk in sorted(run.world.disks.items()):
        for path, found in sorted(disk._objects.items()):
            digest.update(f"{name} {path} {found.modified_ms} ".encode() + found.data)
    return f"{schedule.seed} {len(run.world.trace)} {digest.hexdigest()}"


if __name__ == "__main__":
    logging.disable()
    first, count = map(int, sys.argv[1:])
    for each in range(first, first + count):
        print(*courses(each), sep="\n")  # noqa: T201
