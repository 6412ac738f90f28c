"""Timestamps and time zones as users write them: the texts that Spark casts to a timestamp, and ISO 8601.

This module only reads texts. The caller decides which instant a timestamp without a zone means.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

from tablefeed.model import spark_texts

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001  # in the zone of what is counted from it


def read_timestamp(text: str) -> datetime | None:
    """Gives the timestamp or date in `text`, with a zone only where `text` names one; None where it has neither."""
    try:
        local_us, zone = spark_texts.read_moment(text, _named_zone)
        return (_EPOCH + timedelta(microseconds=local_us)).replace(tzinfo=zone)
    except (ValueError, OverflowError):
        pass  # ISO 8601 has more forms
    text = text.strip()
    try:
        read = datetime.fromisoformat(text)
        if read.tzinfo is not None and not text.endswith("Z"):
            _named_zone(text[max(text.rfind(sign) for sign in "+-") :])  # Python knows larger offsets
    except ValueError:
        return None
    return read


def is_whole_millisecond(value: str | datetime | date | None) -> bool:
    """Says whether `value`, a timestamp or its text, has no part of a millisecond."""
    read = read_timestamp(value) if isinstance(value, str) else value
    return not isinstance(read, datetime) or read.microsecond % 1000 == 0


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
    try:
        return _named_zone(text)
    except ValueError:
        return None


def _named_zone(text: str) -> tzinfo:
    """As in Spark, and by names without a slash, such as 'CET', as the database of zones has them."""
    try:
        return spark_texts.read_zone(text)
    except spark_texts.UnreadTextError:
        try:
            return ZoneInfo(text)
        except (KeyError, OSError) as error:  # an unknown name, a folder's name
            raise ValueError from error
