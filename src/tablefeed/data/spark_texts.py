"""Reads a text as a number, a date or a timestamp, by the rules of Spark's CAST.

ValueError is raised where Spark refuses the text or, with ANSI off, gives null. UnreadTextError is raised where Spark
may read the text but this module does not: non-ASCII digits, hexadecimal floats, exponents of ten or more digits, a
time without a date (Spark uses today's), zones with an unknown name. Dates are days, and timestamps microseconds, since
1970-01-01.
"""

from __future__ import annotations

import re
import struct
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from decimal import Decimal
from fractions import Fraction
from zoneinfo import ZoneInfo

from tablefeed.model.java_text import DAY_US, days_of

_BLANKS = "".join(map(chr, (*range(0x21), 0x7F)))
"""What Spark strips from a text: ASCII control characters and the space (UTF8String.trimAll, by bytes)."""
_JAVA_BLANKS = "".join(map(chr, range(0x21)))
"""What Java's own parsers strip: String.trim."""

_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)
_CUT_INTEGER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]*)", re.ASCII)
_NUMBER = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,9})?"
_DECIMAL = re.compile(_NUMBER, re.ASCII)
_FLOATING = re.compile(rf"({_NUMBER})[dDfF]?", re.ASCII)
_LONG_EXPONENT = re.compile(r"[+-]?[0-9.]+[eE][+-]?[0-9]{10,}[dDfF]?", re.ASCII)
_HEXADECIMAL = re.compile(r"[+-]?0[xX].*[pP].*", re.DOTALL)
_INFINITIES = {"inf": "inf", "+inf": "inf", "infinity": "inf", "+infinity": "inf", "-inf": "-inf", "-infinity": "-inf"}
_WORDS = {**_INFINITIES, "nan": "nan"}
_TRUE, _FALSE = ("t", "true", "y", "yes", "1"), ("f", "false", "n", "no", "0")
_JAVA_WORDS = re.compile(r"[+-]?(?:NaN|Infinity)")

_DAY = r"(?P<sign>[+-]?)(?P<year>[0-9]{4,%d})(?:-(?P<month>[0-9]{1,2})(?:-(?P<day>[0-9]{1,2})%s)?)?"
_DATE = re.compile(_DAY % (7, r"(?:[ T].*)?"), re.ASCII | re.DOTALL)
_TIME = (
    r"(?:[ T](?P<hour>[0-9]{1,2})(?::(?P<minute>[0-9]{1,2})(?::(?P<second>[0-9]{1,2})"
    r"(?:\.(?P<fraction>[0-9]*))?(?P<zone>[^0-9.].*)?)?)?)?"
)
_TIMESTAMP = re.compile(_DAY % (6, _TIME), re.ASCII | re.DOTALL)
_TIME_ALONE = re.compile(r"(?:T[0-9]{1,2}|[0-9]{1,2}:).*", re.ASCII | re.DOTALL)
_OFFSET = re.compile(
    r"(?:UTC|GMT|UT)?([+-])(?:(\d{1,2})(?::(\d{1,2}(?!:)|\d{2}(?=:))(?::(\d{2}))?)?|(\d{2})(\d{2})(\d{2})?)", re.ASCII
)
_JAVA_ZONE = re.compile(r"[A-Za-z][A-Za-z0-9~/._+-]+", re.ASCII)
"""What Java's ZoneId accepts as the name of a region."""
_MOST_OFFSET = timedelta(hours=18)
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - in the zone of what is counted from it
_EPOCH_UTC = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class UnreadTextError(ValueError):
    """A text that is not read here, though Spark may read it."""


def read_integer(text: str, bits: int, *, cuts_fraction: bool = False) -> int:
    """A signed integer of `bits` bits. A fraction, even of zeros, is refused; with `cuts_fraction` it is cut off."""
    stripped = text.strip(_BLANKS)
    if not (_CUT_INTEGER if cuts_fraction else _INTEGER).fullmatch(stripped):
        raise ValueError
    digits = stripped.partition(".")[0].lstrip("+-").lstrip("0")
    number = int(digits or "0") if len(digits) < 20 else 1 << 64
    number = -number if stripped.startswith("-") else number
    if not -(1 << bits - 1) <= number < 1 << bits - 1:
        raise ValueError
    return number


def read_decimal(text: str) -> Decimal:
    """A number of any scale and size."""
    stripped = text.strip(_JAVA_BLANKS)
    if not _DECIMAL.fullmatch(stripped):
        has_other_digits = any(char.isdecimal() and not char.isascii() for char in stripped)
        raise UnreadTextError if has_other_digits or _LONG_EXPONENT.fullmatch(stripped) else ValueError
    return Decimal(stripped)


def read_boolean(text: str) -> bool:
    """A boolean by its words, their first letters or digits."""
    word = text.strip(_BLANKS).lower()
    if word not in _TRUE and word not in _FALSE:
        raise ValueError
    return word in _TRUE


def read_double(text: str) -> float:
    """The double nearest to a number; the words for NaN and the infinities are read too."""
    number = _floating(text)
    return float(number)


def read_float(text: str) -> float:
    """As `read_double`, but the nearest 32-bit float, given as a double."""
    number = _floating(text)
    return float(number) if number.lstrip("+-") in ("inf", "nan") else nearest_single(Decimal(number))


def nearest_single(number: Decimal) -> float:
    """The 32-bit float nearest to `number`, the even one of two. Rounding to a double first could give another one."""
    double = float(number)
    try:
        single = float(struct.unpack("<f", struct.pack("<f", double))[0])
    except OverflowError:
        single = float("inf") if double > 0 else float("-inf")
    if single == double or single - single != 0:  # exact, or infinite
        return single
    exact, bits = Fraction(number), struct.unpack("<i", struct.pack("<f", single))[0]
    neighbours = [single, *(_single_of(bits + step) for step in (-1, 1))]
    finite = [candidate for candidate in neighbours if candidate - candidate == 0]
    best = min(abs(Fraction(candidate) - exact) for candidate in finite)
    nearest = [candidate for candidate in finite if abs(Fraction(candidate) - exact) == best]
    return single if single in nearest else nearest[0]


def read_date(text: str) -> int:
    """The day of a date or timestamp; the text after a blank or a T is ignored."""
    found = _DATE.fullmatch(text.strip(_BLANKS))
    if found is None:
        raise ValueError
    days = _days(found)
    if not -(1 << 31) <= days < 1 << 31:
        raise ValueError
    return days


def read_timestamp(text: str, zone: tzinfo) -> int:
    """The instant of a timestamp or date, in the zone that the text names, else in `zone`."""
    try:
        found = _timestamp(text)
    except ValueError:
        raise UnreadTextError if _TIME_ALONE.fullmatch(text.strip(_BLANKS)) else ValueError from None
    own = found["zone"]
    return to_utc(_local_micros(found), zone if own is None else read_zone(own.strip(_JAVA_BLANKS)))


def names_zone(text: str) -> bool:
    """Whether a text is a timestamp with a zone of its own."""
    found = _TIMESTAMP.fullmatch(text.strip(_BLANKS))
    return found is not None and found["zone"] is not None


def read_timestamp_ntz(text: str) -> int:
    """The wall-clock time of a timestamp or date. A zone in the text must be valid, and is ignored."""
    found = _timestamp(text)
    if found["zone"] is not None:
        read_zone(found["zone"].strip(_JAVA_BLANKS))
    return _within_64_bits(_local_micros(found))


def to_utc(local_us: int, zone: tzinfo) -> int:
    """The instant at which the wall clock in `zone` shows `local_us`.

    As in Java: the earlier one where the clock shows it twice; where the clock skips it, the time moved forward by the
    length of the gap. ValueError where the result does not fit in 64 bits.
    """
    offset = zone.utcoffset(None)
    if offset is None:
        offset = (_EPOCH + timedelta(microseconds=_in_calendar(local_us))).replace(tzinfo=zone).utcoffset()
    return _within_64_bits(local_us - (offset or timedelta()) // _MICROSECOND)


def to_local(moment_us: int, zone: tzinfo) -> int:
    """The wall-clock time in `zone` at an instant. Raises ValueError as `to_utc` does."""
    offset = zone.utcoffset(None)
    if offset is None:
        offset = (_EPOCH_UTC + timedelta(microseconds=_in_calendar(moment_us))).astimezone(zone).utcoffset()
    return _within_64_bits(moment_us + (offset or timedelta()) // _MICROSECOND)


def start_of_day(days: int, zone: tzinfo) -> int:
    """The first instant of a day. Raises ValueError where the clock skips midnight from before it to after it."""
    midnight = days * DAY_US
    instant = to_utc(midnight, zone)
    if to_local(instant, zone) != midnight and to_local(instant - 1, zone) != midnight - 1:
        raise ValueError
    return instant


_CYCLE_US = 146_097 * DAY_US  # 400 years, after which days of the week and the rules of zones repeat
_FIRST_US, _LAST_US = (days_of(year, 1, 2) * DAY_US for year in (1, 9999))


def _in_calendar(micros: int) -> int:
    """A time within Python's calendar at which zones have the same offset as at `micros`."""
    if micros < _FIRST_US:
        return micros + -((micros - _FIRST_US) // _CYCLE_US) * _CYCLE_US
    return micros - max(0, -((_LAST_US - micros) // _CYCLE_US)) * _CYCLE_US


def _floating(text: str) -> str:
    stripped = text.strip(_JAVA_BLANKS)
    found = _FLOATING.fullmatch(stripped)
    if found is not None:
        return found[1]
    word = stripped[1:].lower() if _JAVA_WORDS.fullmatch(stripped) and stripped[1:] == "NaN" else stripped.lower()
    if word not in _WORDS:
        unread = _HEXADECIMAL.fullmatch(stripped) or _LONG_EXPONENT.fullmatch(stripped)
        raise UnreadTextError if unread else ValueError
    return _WORDS[word]


def _single_of(bits: int) -> float:
    try:
        return float(struct.unpack("<f", struct.pack("<i", bits))[0])
    except struct.error:
        return float("nan")


def _timestamp(text: str) -> re.Match[str]:
    found = _TIMESTAMP.fullmatch(text.strip(_BLANKS))
    if found is None:
        raise ValueError
    return found


def _days(found: re.Match[str]) -> int:
    year = int(found["year"])
    return days_of(-year if found["sign"] == "-" else year, int(found["month"] or 1), int(found["day"] or 1))


def _local_micros(found: re.Match[str]) -> int:
    hour, minute, second = (int(found[part] or 0) for part in ("hour", "minute", "second"))
    if hour > 23 or minute > 59 or second > 59:
        raise ValueError
    fraction_us = int((found["fraction"] or "")[:6].ljust(6, "0"))
    return _days(found) * DAY_US + ((hour * 60 + minute) * 60 + second) * 1_000_000 + fraction_us


def read_zone(text: str) -> tzinfo:
    """The zone of an offset or of a name."""
    if text in ("Z", "UTC", "GMT", "UT"):
        return UTC
    offset = _OFFSET.fullmatch(text)
    if offset is None:
        if not _JAVA_ZONE.fullmatch(text):
            raise ValueError
        if "/" not in text:
            raise UnreadTextError
        try:
            return ZoneInfo(text)
        except (KeyError, OSError, ValueError):
            raise UnreadTextError from None
    hours, minutes, seconds = (int(offset[one] or offset[other] or 0) for one, other in ((2, 5), (3, 6), (4, 7)))
    distance = timedelta(hours=hours, minutes=minutes, seconds=seconds)
    if minutes > 59 or seconds > 59 or distance > _MOST_OFFSET:
        raise ValueError
    return timezone(-distance if offset[1] == "-" else distance)


def _within_64_bits(micros: int) -> int:
    if not -(1 << 63) <= micros < 1 << 63:
        raise ValueError
    return micros
