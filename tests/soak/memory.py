"""The memory of a program's Python processes while it lives, and whether it grows."""

from __future__ import annotations

import os
import statistics
import time
from dataclasses import dataclass, field
from pathlib import Path

_EVERY_S, _WARM_UP_S = 5, 60
"""The seconds between two looks, and before the first one that counts."""

_LEAST, _LONG = 24, 60
"""How many looks show how memory changes, and how many show whether it grows for ever."""


@dataclass(slots=True)
class Memory:
    """Resident MB of a program (`driver`), and of the largest other Python process of its session (`worker`)."""

    name: str
    leader: int
    began: float = field(default_factory=time.monotonic)
    driver: list[float] = field(default_factory=list)
    worker: list[float] = field(default_factory=list)
    _looked: float = 0.0

    def look(self, session: list[int]) -> None:
        """Notes a sample where it is time for one."""
        now = time.monotonic()
        if now < max(self._looked + _EVERY_S, self.began + _WARM_UP_S):
            return
        self._looked = now
        self.driver.append(_resident_mb(self.leader))
        others = [pid for pid in session if pid != self.leader and _is_python(pid)]
        self.worker.append(max(map(_resident_mb, others), default=0.0))

    @property
    def is_long(self) -> bool:
        """Whether the program lived long enough to say that its memory grows."""
        return len(self.driver) >= _LONG

    def growth(self) -> list[tuple[str, float, float]]:
        """What its samples say, if they are enough: whose, MB in the first quarter, MB in the last quarter."""
        quarter = len(self.driver) // 4
        if len(self.driver) < _LEAST:
            return []
        return [
            (f"{self.name}' {what}", statistics.median(each[:quarter]), statistics.median(each[-quarter:]))
            for what, each in (("driver", self.driver), ("largest worker", self.worker))
            if any(each)
        ]

    def __str__(self) -> str:
        if not self.driver:
            return f"{self.name} warm up"
        return f"{self.name}: driver {self.driver[-1]:.0f} MB, largest worker {self.worker[-1]:.0f} MB"


def _resident_mb(pid: int) -> float:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
    except OSError:
        return 0.0  # it ended while we looked


def _is_python(pid: int) -> bool:
    try:
        return "python" in Path(f"/proc/{pid}/cmdline").read_text(errors="replace").split("\0")[0]
    except OSError:
        return False
