"""Spark's calendar intervals ("interval 1 week", "36 hours"), in which properties name durations.

Where one cannot be parsed, or has months, whose length varies, it lasts for ever: nothing is dropped or cleaned up.
"""

from __future__ import annotations

import re
from decimal import Decimal

DAY_MS = 86_400_000
FOREVER_MS = 2**62


def duration_ms(text: str) -> int:
    """The milliseconds of the interval `text`; `FOREVER_MS` where it has no certain length."""
    parsed = parse_interval(text)
    return FOREVER_MS if parsed is None else parsed


def parse_interval(text: str) -> int | None:
    """The milliseconds of a calendar interval, rounded down; None where it is malformed, negative or has months.

    As in Spark, the word `interval` may be left out, units may be plural, and a number may have a sign.
    """
    words = text.strip().lower()
    words = words.removeprefix("interval").strip()
    if not _INTERVAL.fullmatch(words):
        return None
    total_us = Decimal(0)
    for sign, number, unit in _TERM.findall(words):
        scale = _UNITS_US.get(unit.removesuffix("s"))
        if scale is None or ("." in number and unit.removesuffix("s") != "second"):
            return None
        total_us += Decimal(f"{sign}{number}") * scale
    milliseconds = int(total_us // 1000) if total_us >= 0 else -1
    return milliseconds if 0 <= milliseconds < FOREVER_MS else None


_TERM = re.compile(r"([+-]?)\s*([0-9]{1,18}(?:\.[0-9]{1,9})?)\s+([a-z]+)")
_INTERVAL = re.compile(rf"{_TERM.pattern}(?:\s+{_TERM.pattern})*")
_UNITS_US = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 1_000 * DAY_MS,
    "week": 7_000 * DAY_MS,
}
