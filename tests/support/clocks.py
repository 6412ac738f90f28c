"""Clocks that stand until a test moves them."""

from __future__ import annotations


class Clock:
    """Seconds; they pass by sleeping too."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now_s

    def sleep(self, duration_s: float) -> None:
        self.slept.append(duration_s)
        self.now_s += duration_s


class StoreClock:
    """What time a store says it is."""

    def __init__(self, ms: int = 0) -> None:
        self.ms = ms

    def now_ms(self) -> int:
        return self.ms
