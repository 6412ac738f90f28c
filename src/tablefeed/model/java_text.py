"""Formats numbers, dates and times as Java and Spark do, also outside Python's years 1 to 9999.

A floating-point number has the fewest digits that distinguish it from its neighbours, as in Java 19 and newer. Older
Java versions write one digit more for a few numbers.
"""

from __future__ import annotations

import datetime
import decimal
import math
import struct


def java_double(value: float) -> str:
    """Formats a double as Java does."""
    return _java_text(value, repr(value))


def java_float(value: float) -> str:
    """Formats a float, widened to the double `value`, as Java does: with the fewest digits that identify the float."""
    shortest = next((text for digits in range(9) if _as_single(text := f"{value:.{digits}e}") == value), repr(value))
    return _java_text(value, shortest)


def _as_single(text: str) -> float:
    try:
        (single,) = struct.unpack("f", struct.pack("f", float(text)))
    except OverflowError:  # rounded up beyond the largest
        return math.inf
    return float(single)


def _java_text(value: float, shortest: str) -> str:
    """Double.toString: plain from 1e-3 to 1e7, else d.dE±n, always with a digit after the point."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    number = decimal.Decimal(shortest).normalize()
    exponent = number.adjusted()
    if value == 0 or -3 <= exponent < 7:
        text = format(number, "f")
        return text if "." in text else f"{text}.0"
    sign, digits, _ = number.as_tuple()
    if len(digits) == 1 and float(two := f"{value:.1e}") == value:
        # Where one digit would do, Java writes the nearest number with two: 4.9E-324.
        _, digits, _ = decimal.Decimal(two).as_tuple()
    first, rest = digits[0], "".join(map(str, digits[1:])) or "0"
    return f"{'-' if sign else ''}{first}.{rest}E{exponent}"


_DAYS_IN_400_YEARS = 146_097  # after which the calendar repeats
_EPOCH = datetime.date(1970, 1, 1).toordinal()
DAY_US = 86_400_000_000
"""Microseconds of a day."""


def days_of(year: int, month: int, day: int) -> int:
    """Days since 1970-01-01 in the proleptic Gregorian calendar, of any year. Raises ValueError for no such day."""
    cycles, year_of_cycle = divmod(year - 1, 400)
    return datetime.date(year_of_cycle + 1, month, day).toordinal() + cycles * _DAYS_IN_400_YEARS - _EPOCH


def date_text(days: int) -> str:
    """The day that is `days` after 1970-01-01, as SQL writes it; years beyond 9999 have a sign."""
    cycles, day_of_cycle = divmod(days + _EPOCH - 1, _DAYS_IN_400_YEARS)
    date = datetime.date.fromordinal(day_of_cycle + 1)
    year = date.year + 400 * cycles
    # Java's text of a year: four digits, and a sign beyond them.
    shown = f"+{year}" if year > 9999 else f"{'-' if year < 0 else ''}{abs(year):04d}"
    return f"{shown}-{date.month:02d}-{date.day:02d}"


def timestamp_text(micros: int) -> str:
    """The date and time `micros` after the start of 1970, as SQL writes them, without zeros at the end."""
    days, of_day_us = divmod(micros, DAY_US)
    fraction = f".{of_day_us % 1_000_000:06d}".rstrip("0").rstrip(".")
    return f"{date_text(days)} {time_text(of_day_us)}{fraction}"


def time_text(of_day_us: int) -> str:
    """The hour, minute and second of the microsecond `of_day_us` of a day."""
    minutes, second = divmod(of_day_us // 1_000_000, 60)
    return f"{minutes // 60:02d}:{minutes % 60:02d}:{second:02d}"
