"""What a text is worth as a number, a day or a moment, by the rules of Spark's CAST.

One text, one value: ValueError where Spark refuses the text or, with ANSI off, makes null of it. UnreadTextError where
it may read the text: digits of other scripts than ours, hexadecimal floats, exponents of ten digits and more, a time
without a day (Spark takes today's), zones that are known here by no name.
Days are counted since 1970-01-01, moments in microseconds since then.
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
"""What Spark strips of a text: ASCII's control characters and the space (UTF8String.trimAll, by bytes)."""
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
"""What Java's ZoneId takes for the name of a region."""
_MOST_OFFSET = timedelta(hours=18)
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - in the zone of what is counted from it
_EPOCH_UTC = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class UnreadTextError(ValueError):
    """A text that is not read here, though Spark may read it."""


def read_integer(text: str, bits: int, *, cuts_fraction: bool = False) -> int:
    """A whole number of `bits`; nothing after a point, not even zeros, but to be cut off."""
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


def read_double(text: str) -> float:
    """The double nearest to a number, or one of the words for what is none."""
    number = _floating(text)
    return float(number)


def read_float(text: str) -> float:
    """The 32-bit float nearest to a number, as a double, or one of the words for what is none."""
    number = _floating(text)
    return float(number) if number.lstrip("+-") in ("inf", "nan") else nearest_single(Decimal(number))


def nearest_single(number: Decimal) -> float:
    """The 32-bit float that is nearest to `number`, the even one of two: not by way of a double, which may differ."""
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
    """The day of a date, or of a timestamp's beginning: what comes after a blank or a T is not looked at."""
    found = _DATE.fullmatch(text.strip(_BLANKS))
    if found is None:
        raise ValueError
    days = _days(found)
    if not -(1 << 31) <= days < 1 << 31:
        raise ValueError
    return days


def read_timestamp(text: str, zone: tzinfo) -> int:
    """The moment of a timestamp or date, in its own zone, or else in `zone`."""
    try:
        found = _timestamp(text)
    except ValueError:
        raise UnreadTextError if _TIME_ALONE.fullmatch(text.strip(_BLANKS)) else ValueError from None
    own = found["zone"]
    return to_utc(_local_micros(found), zone if own is None else _zone(own.strip(_JAVA_BLANKS)))


def read_timestamp_ntz(text: str) -> int:
    """What clock and calendar show at a timestamp or date; a zone must be one, and does not count."""
    found = _timestamp(text)
    if found["zone"] is not None:
        _zone(found["zone"].strip(_JAVA_BLANKS))
    return _within_64_bits(_local_micros(found))


def to_utc(local_us: int, zone: tzinfo) -> int:
    """The moment at which clock and calendar in `zone` show `local_us`.

    As in Java: the earlier one where they show it twice; where they jump over it, as far after the jump as it is
    after its begin. ValueError where that is no 64-bit number.
    """
    offset = zone.utcoffset(None)
    if offset is None:
        offset = (_EPOCH + timedelta(microseconds=_in_calendar(local_us))).replace(tzinfo=zone).utcoffset()
    return _within_64_bits(local_us - (offset or timedelta()) // _MICROSECOND)


def to_local(moment_us: int, zone: tzinfo) -> int:
    """What clock and calendar in `zone` show at a moment. ValueError as `to_utc`."""
    offset = zone.utcoffset(None)
    if offset is None:
        offset = (_EPOCH_UTC + timedelta(microseconds=_in_calendar(moment_us))).astimezone(zone).utcoffset()
    return _within_64_bits(moment_us + (offset or timedelta()) // _MICROSECOND)


_CYCLE_US = 146_097 * DAY_US  # 400 years, after which days of the week and the rules of zones repeat
_FIRST_US, _LAST_US = (days_of(year, 1, 2) * DAY_US for year in (1, 9999))


def _in_calendar(micros: int) -> int:
    """A time at which zones have the same offset, and that Python's calendar has."""
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


def _zone(text: str) -> tzinfo:
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
