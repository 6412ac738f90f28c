"""How long a table's properties keep what it no longer needs (PROTOCOL.md, "Metadata Cleanup", "Checkpoints").

Durations are Spark's calendar intervals ("interval 1 week", "36 hours"). Where one cannot be parsed, or has months,
whose length varies, everything is kept: nothing is dropped or cleaned up.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal

from tablefeed.delta import names
from tablefeed.model.actions import Metadata, Txn

DEFAULT_CHECKPOINT_INTERVAL = 10
"""Versions from one checkpoint to the next. This is Delta-Spark's default; the protocol names none."""

DAY_MS = 86_400_000
_DELETED_FILES_MS = 7 * DAY_MS
_LOG_MS = 30 * DAY_MS
_FOREVER_MS = 2**62


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """The table's durations in milliseconds. `txns_ms` None: transaction identifiers are kept for ever."""

    deleted_files_ms: int
    txns_ms: int | None
    log_ms: int
    cleans_log: bool

    def keeps_txn(self, txn: Txn, *, now_ms: int) -> bool:
        """Whether `txn` goes into a checkpoint. A txn without a time is dropped where the table has a duration."""
        if self.txns_ms is None:
            return True
        return txn.last_updated_ms is not None and txn.last_updated_ms > now_ms - self.txns_ms

    def log_cutoff_ms(self, *, now_ms: int) -> int:
        """A midnight in UTC, in milliseconds: commits at or before it are old enough to be removed."""
        return (now_ms - self.log_ms) // DAY_MS * DAY_MS


def retention_of(metadata: Metadata) -> Retention:
    """The durations that the properties of `metadata` name, or Delta-Spark's defaults."""
    properties = metadata.configuration
    log_ms = _duration(properties.get(names.LOG_RETENTION), default=_LOG_MS)
    txns = properties.get(names.TXN_RETENTION)
    return Retention(
        deleted_files_ms=_duration(properties.get(names.DELETED_FILE_RETENTION), default=_DELETED_FILES_MS),
        txns_ms=None if txns is None else _duration(txns, default=_FOREVER_MS),
        log_ms=log_ms,
        cleans_log=properties.get(names.ENABLE_LOG_CLEANUP, "true").lower() == "true" and log_ms < _FOREVER_MS,
    )


def checkpoint_interval(metadata: Metadata) -> int:
    """The number of versions from one checkpoint to the next that the table asks for."""
    text = metadata.configuration.get(names.CHECKPOINT_INTERVAL, "")
    return int(text) if re.fullmatch(r"[0-9]{1,9}", text) and int(text) > 0 else DEFAULT_CHECKPOINT_INTERVAL


def protected_before(metadata: Metadata) -> int:
    """The version before which the log may be cleaned up only as a whole ("Checkpoint Protection"); 0 for none."""
    text = metadata.configuration.get(names.CHECKPOINT_PROTECTION_BEFORE, "0")
    return int(text) if re.fullmatch(r"[0-9]{1,19}", text) else 2**63


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
    return milliseconds if 0 <= milliseconds < _FOREVER_MS else None


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


def _duration(text: str | None, *, default: int) -> int:
    if text is None:
        return default
    parsed = parse_interval(text)
    return _FOREVER_MS if parsed is None else parsed
