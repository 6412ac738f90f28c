"""Timestamps and time zones as users write them: the texts that Spark casts to a timestamp, and ISO 8601.

This module only reads texts. The caller decides which instant a timestamp without a zone means.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

# Spark's forms, including months and days of one digit. A time alone is not read; Spark takes it as today's.
_SPARKS = re.compile(
    r"(\d{4})(?:-(\d{1,2})(?:-(\d{1,2})(?:[ T](\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d*))?)?\s*(\S.*)?)?)?)?",
    re.ASCII,
)
_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{2})(?::?(\d{2}))?)?", re.ASCII)
_MOST_OFFSET = timedelta(hours=18)
"""The largest offset in Java."""


def read_timestamp(text: str) -> datetime | None:
    """Gives the timestamp or date in `text`, with a zone only where `text` names one; None where it has neither."""
    parts = _SPARKS.fullmatch(text.strip())
    try:
        if parts is None:
            return datetime.fromisoformat(text.strip())
        *fields, fraction, zone_text = parts.groups()
        zone = None if zone_text is None else read_zone(zone_text)
        if zone_text is not None and zone is None:
            return None
        year, month, day, hour, minute, second = (
            int(f or least) for f, least in zip(fields, (0, 1, 1, 0, 0, 0), strict=True)
        )
        microsecond = int((fraction or "")[:6].ljust(6, "0"))
        return datetime(year, month, day, hour, minute, second, microsecond, tzinfo=zone)
    except ValueError:
        return None


def in_zone(text: str, zone: tzinfo) -> str | datetime:
    """Gives the timestamp in `text` as one in `zone` where it names no zone. Gives any other `text` unchanged."""
    read = read_timestamp(text)
    return text if read is None or read.tzinfo is not None else read.replace(tzinfo=zone)


def zone_text(zone: tzinfo) -> str:
    """Gives the name or the offset of a zone that `read_zone` gave."""
    if isinstance(zone, ZoneInfo):
        return zone.key
    return "UTC" if zone is UTC else str(zone).removeprefix("UTC")  # str() of such a zone is "UTC+01:00"


def read_zone(text: str) -> tzinfo | None:
    """Gives the zone of an offset ('+01:00', 'UTC-3') or of a name ('Europe/Berlin'); None for any other text."""
    if text in ("Z", "UTC", "GMT", "UT"):
        return UTC
    offset = _OFFSET.fullmatch(text)
    if offset is None:
        try:
            return ZoneInfo(text)
        except (KeyError, ValueError, OSError):  # an unknown name, an impossible one, a folder's name
            return None
    hours, minutes, seconds = (int(part or 0) for part in offset.groups()[1:])
    distance = timedelta(hours=hours, minutes=minutes, seconds=seconds)
    if minutes > 59 or seconds > 59 or distance > _MOST_OFFSET:
        return None
    return timezone(-distance if offset[1] == "-" else distance)
