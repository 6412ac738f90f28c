"""Texts of numbers, dates and times: read by the rules of Spark's CAST, and written as Java and Spark do.

ValueError is raised where Spark refuses the text or, with ANSI off, gives null. UnreadTextError is raised where Spark
may read the text but this module does not: non-ASCII digits, hexadecimal floats, exponents of ten or more digits, a
time without a date (Spark uses today's), zones with an unknown name. Dates are days, and timestamps microseconds, since
1970-01-01, also outside Python's years 1 to 9999.

A floating-point number is written with the fewest digits that distinguish it from its neighbours, as in Java 19 and
newer. Older Java versions write one digit more for a few numbers.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from decimal import Context, Decimal, DecimalException, Inexact, InvalidOperation
from fractions import Fraction
from zoneinfo import ZoneInfo

from tablefeed.model.merged_zones import rules_at

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
_INFINITIES = dict.fromkeys(("inf", "+inf", "infinity", "+infinity"), "inf")
_WORDS = {**_INFINITIES, **dict.fromkeys(("-inf", "-infinity"), "-inf"), "nan": "nan"}
_MOST_SINGLE, _LEAST_INFINITE_SINGLE = float(2**128 - 2**104), 2**128 - 2**103
"""The largest finite 32-bit float, and the least number that is rounded to infinity instead."""
_TRUE, _FALSE = ("t", "true", "y", "yes", "1"), ("f", "false", "n", "no", "0")
_JAVA_WORDS = re.compile(r"[+-]?(?:NaN|Infinity)")

_DAY = r"(?P<sign>[+-]?)(?P<year>[0-9]{4,%d})(?:-(?P<month>[0-9]{1,2})(?:-(?P<day>[0-9]{1,2})%s)?)?"
_DATE = re.compile(_DAY % (7, r"(?:[ T].*)?"), re.ASCII | re.DOTALL)
_TIME = (
    r"(?:[ T](?P<hour>[0-9]{1,2})(?::(?P<minute>[0-9]{1,2})(?::(?P<second>[0-9]{1,2})"
    r"(?:\.(?P<fraction>[0-9]*))?(?P<zone>[^0-9.].*)?)?)?)?"
)
_TIMESTAMP = re.compile(_DAY % (6, _TIME), re.ASCII | re.DOTALL)
_BELOW_A_MICROSECOND = re.compile(r"\.[0-9]{6}0*[1-9]", re.ASCII)
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
_DAYS_IN_400_YEARS = 146_097  # after which the calendar repeats
_EPOCH_DAY = date(1970, 1, 1).toordinal()
DAY_US = 86_400_000_000
"""Microseconds of a day."""


class UnreadTextError(ValueError):
    """A text that is not read here, though Spark may read it."""


def read_integer(text: str, bits: int, *, cuts_fraction: bool = False) -> int:
    """A signed integer of `bits` bits. A fraction, even of zeros, is refused; with `cuts_fraction` it is cut off."""
    stripped = text.strip(_BLANKS)
    if not (_CUT_INTEGER if cuts_fraction else _INTEGER).fullmatch(stripped):
        raise ValueError
    digits = stripped.partition(".")[0].lstrip("+-").lstrip("0")
    number = int(digits or "0") if len(digits) < 20 else 1 << 64
    return within(-number if stripped.startswith("-") else number, bits)


def within(number: int, bits: int = 64) -> int:
    """`number`. Raises ValueError where a signed integer of `bits` bits does not hold it."""
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


def exact_decimal(number: Decimal, precision: int, scale: int) -> Decimal:
    """`number` with `scale` fraction digits. Raises ValueError where a decimal of that size does not hold it exactly.

    Give Arrow only such decimals. From a number with 1E-50 or the like it makes a wrong one, or it ends the process.
    """
    context = Context(prec=precision, traps=[Inexact, InvalidOperation])
    try:
        held = number.quantize(Decimal(1).scaleb(-scale), context=context)
    except DecimalException:
        raise ValueError("it has more digits") from None
    if not held.is_finite():
        raise ValueError("it is no number")
    return held


def read_boolean(text: str) -> bool:
    """A boolean by its words, their first letters or digits."""
    word = text.strip(_BLANKS).lower()
    if word not in _TRUE and word not in _FALSE:
        raise ValueError
    return word in _TRUE


def read_double(text: str) -> float:
    """The double nearest to a number; the words for NaN and the infinities are read too."""
    return float(_floating(text))


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
        single = math.copysign(math.inf if number.copy_abs() >= _LEAST_INFINITE_SINGLE else _MOST_SINGLE, double)
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
    return within(_days(found), 32)


def read_moment(text: str, zone_of: Callable[[str], tzinfo] | None = None) -> tuple[int, tzinfo | None]:
    """The wall-clock time of a timestamp or date, and the zone that the text names, None where it names none.

    `zone_of` reads the zone, as `read_zone` does by default.
    """
    found = _TIMESTAMP.fullmatch(text.strip(_BLANKS))
    if found is None:
        raise ValueError
    zone = None if found["zone"] is None else (zone_of or read_zone)(found["zone"].strip(_JAVA_BLANKS))
    hour, minute, second = (int(found[part] or 0) for part in ("hour", "minute", "second"))
    if hour > 23 or minute > 59 or second > 59:
        raise ValueError
    fraction_us = int((found["fraction"] or "")[:6].ljust(6, "0"))
    return _days(found) * DAY_US + ((hour * 60 + minute) * 60 + second) * 1_000_000 + fraction_us, zone


def read_timestamp(text: str, zone: tzinfo) -> int:
    """The instant of a timestamp or date, in the zone that the text names, else in `zone`."""
    if _TIME_ALONE.fullmatch(text.strip(_BLANKS)):
        raise UnreadTextError
    local_us, own = read_moment(text)
    return to_utc(local_us, own or zone)


def read_timestamp_ntz(text: str) -> int:
    """The wall-clock time of a timestamp or date. A zone in the text must be valid, and is ignored."""
    return within(read_moment(text)[0])


def names_zone(text: str) -> bool:
    """Whether a text is a timestamp with a zone of its own."""
    try:
        return read_moment(text)[1] is not None
    except ValueError:
        return False


def keeps_moment(text: str, zone: tzinfo | None) -> bool:
    """Whether the timestamp that is read from `text` has all that the text says.

    It has no digit below a microsecond, and no time that the clock of its zone skips. With `zone` None it keeps no
    zone, so the text may name none but UTC.
    """
    local_us, own = read_moment(text)
    if _BELOW_A_MICROSECOND.search(text):
        return False
    if zone is None:
        return own in (None, UTC)
    return to_local(to_utc(local_us, own or zone), own or zone) == local_us


def read_zone(text: str) -> tzinfo:
    """The zone of an offset, or of a region's name. Java gives names without a slash meanings of its own."""
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


def days_of(year: int, month: int, day: int) -> int:
    """Days since 1970-01-01 in the proleptic Gregorian calendar, of any year. Raises ValueError for no such day."""
    cycles, year_of_cycle = divmod(year - 1, 400)
    return date(year_of_cycle + 1, month, day).toordinal() + cycles * _DAYS_IN_400_YEARS - _EPOCH_DAY


def to_utc(local_us: int, zone: tzinfo) -> int:
    """The instant at which the wall clock in `zone` shows `local_us`.

    As in Java: the earlier one where the clock shows it twice; where the clock skips it, the time moved forward by the
    length of the gap. ValueError where the result does not fit in 64 bits.
    """
    offset = zone.utcoffset(None)
    if offset is None:
        rules = rules_at(zone, local_us)
        offset = (_EPOCH + timedelta(microseconds=_in_calendar(local_us))).replace(tzinfo=rules).utcoffset()
    return within(local_us - (offset or timedelta()) // _MICROSECOND)


def to_local(moment_us: int, zone: tzinfo) -> int:
    """The wall-clock time in `zone` at an instant. Raises ValueError as `to_utc` does."""
    offset = zone.utcoffset(None)
    if offset is None:
        rules = rules_at(zone, moment_us)
        offset = (_EPOCH_UTC + timedelta(microseconds=_in_calendar(moment_us))).astimezone(rules).utcoffset()
    return within(moment_us + (offset or timedelta()) // _MICROSECOND)


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


def _days(found: re.Match[str]) -> int:
    year = int(found["year"])
    return days_of(-year if found["sign"] == "-" else year, int(found["month"] or 1), int(found["day"] or 1))


# --- written texts ------------------------------------------------------------------------------------------


def date_text(days: int) -> str:
    """The day that is `days` after 1970-01-01, as SQL writes it; years beyond 9999 have a sign."""
    cycles, day_of_cycle = divmod(days + _EPOCH_DAY - 1, _DAYS_IN_400_YEARS)
    day = date.fromordinal(day_of_cycle + 1)
    year = day.year + 400 * cycles
    # Java's text of a year: four digits, and a sign beyond them.
    shown = f"+{year}" if year > 9999 else f"{'-' if year < 0 else ''}{abs(year):04d}"
    return f"{shown}-{day.month:02d}-{day.day:02d}"


def timestamp_text(micros: int) -> str:
    """The date and time `micros` after the start of 1970, as SQL writes them, without zeros at the end."""
    days, of_day_us = divmod(micros, DAY_US)
    fraction = f".{of_day_us % 1_000_000:06d}".rstrip("0").rstrip(".")
    return f"{date_text(days)} {time_text(of_day_us)}{fraction}"


def time_text(of_day_us: int) -> str:
    """The hour, minute and second of the microsecond `of_day_us` of a day."""
    minutes, second = divmod(of_day_us // 1_000_000, 60)
    return f"{minutes // 60:02d}:{minutes % 60:02d}:{second:02d}"


def java_double(value: float) -> str:
    """Formats a double as Java does."""
    return _java_text(value, repr(value), float)


def java_float(value: float) -> str:
    """Formats a float, widened to the double `value`, as Java does: with the fewest digits that identify the float."""
    shortest = next((text for digits in range(9) if _as_single(text := f"{value:.{digits}e}") == value), repr(value))
    return _java_text(value, shortest, _as_single)


def _as_single(text: str) -> float:
    try:
        (single,) = struct.unpack("f", struct.pack("f", float(text)))
    except OverflowError:  # rounded up beyond the largest
        return math.inf
    return float(single)


def _java_text(value: float, shortest: str, read: Callable[[str], float]) -> str:
    """Double.toString: plain from 1e-3 to 1e7, else d.dE±n, always with a digit after the point.

    `read` gives the number of the type that a text is read as.
    """
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    number = Decimal(shortest).normalize()
    exponent = number.adjusted()
    if value == 0 or -3 <= exponent < 7:
        text = format(number, "f")
        return text if "." in text else f"{text}.0"
    sign, digits, _ = number.as_tuple()
    if len(digits) == 1 and read(two := f"{value:.1e}") == value:
        # Where one digit would do, Java writes the nearest number with two: 4.9E-324.
        _, digits, _ = Decimal(two).as_tuple()
    first, rest = digits[0], "".join(map(str, digits[1:])) or "0"
    return f"{'-' if sign else ''}{first}.{rest}E{exponent}"
