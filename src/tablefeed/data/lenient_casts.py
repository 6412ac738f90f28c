"""Converts arrays of one type to another, as Spark's CAST does with ANSI off.

The policy `legacy` uses these: integers lose their high bits, floats are limited to the bounds of an int or a long,
decimals of too many digits and texts that are no value of the wanted type become null. A text that Spark may read and
spark_texts.py cannot raises CastError, because it may not be null in Spark. casts.py does all other casts.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import tzinfo
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tablefeed.data import casts
from tablefeed.data.casts import INVALID_INPUT, OVERFLOW, CastError, by_value
from tablefeed.data.retype import Conversion
from tablefeed.model import spark_texts


def lenient_cast(found: pa.DataType, wanted: pa.DataType, zone: tzinfo | None) -> Conversion:
    """Gives the conversion from `found` to `wanted`. Texts, dates and timestamps without zone are read in `zone`.

    Raises LossyConversionError for a pair that has no cast here.
    """
    is_a = pa.types
    if casts.is_text(found):
        return _from_text(found, wanted, zone)
    if is_a.is_string(wanted) and is_a.is_decimal(found):
        return by_value(found, wanted, str, INVALID_INPUT)  # as Java's toString: 1E-7 for what is smaller than 0.000001
    if is_a.is_integer(wanted) and is_a.is_integer(found):
        return lambda array: array.cast(wanted, safe=False)
    if is_a.is_integer(wanted) and is_a.is_floating(found):
        return lambda array: _saturated(array, wanted).cast(wanted, safe=False)
    if is_a.is_integer(wanted) and is_a.is_decimal(found):
        return by_value(found, wanted, lambda number: _low_bits(int(number), wanted.bit_width), OVERFLOW)
    if is_a.is_decimal(wanted) and not is_a.is_integer(found):
        return _to_decimal(found, wanted)
    if is_a.is_decimal(wanted):
        long = pa.decimal128(19, 0)
        rescaled = _to_decimal(long, wanted)
        return lambda array: rescaled(array.cast(pa.int64()).cast(long))
    return casts.cast(found, wanted, zone)


def _from_text(found: pa.DataType, wanted: pa.DataType, zone: tzinfo | None) -> Conversion:
    is_a = pa.types
    if is_a.is_integer(wanted):
        bits = wanted.bit_width
        return _or_null(found, wanted, lambda text: spark_texts.read_integer(text, bits, cuts_fraction=True))
    if is_a.is_floating(wanted):
        return _or_null(found, wanted, spark_texts.read_double if is_a.is_float64(wanted) else spark_texts.read_float)
    if is_a.is_decimal(wanted):
        return _or_null(found, wanted, lambda text: casts.as_decimal(spark_texts.read_decimal(text), wanted))
    if is_a.is_date(wanted):
        days = _or_null(found, pa.int32(), spark_texts.read_date)
        return lambda array: days(array).view(wanted)
    if is_a.is_timestamp(wanted):
        micros = _or_null(found, pa.int64(), casts.reader_of_moments(wanted, zone))
        return lambda array: micros(array).view(wanted)
    return casts.cast(found, wanted, zone)


def _or_null(found: pa.DataType, wanted: pa.DataType, read: Callable[[str], object]) -> Conversion:
    def one(text: Any) -> object:
        try:
            return read(text)
        except spark_texts.UnreadTextError:
            raise
        except (ValueError, ArithmeticError):
            return None

    return by_value(found, wanted, one, INVALID_INPUT)


def _low_bits(number: int, bits: int) -> int:
    """The signed integer of `bits` bits made of the low bits of `number`."""
    half = 1 << bits - 1
    return (number + half) % (2 * half) - half


def _saturated(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Floats as Java casts them to int (to long for a long): cut at the point, limited to the bounds; NaN is 0."""
    limit = 1 << (63 if pa.types.is_int64(wanted) else 31)
    whole = pc.trunc(array.cast(pa.float64()))
    above, below = pc.greater_equal(whole, float(limit)), pc.less(whole, float(-limit))
    outside = pc.or_(pc.or_(above, below), pc.is_nan(whole))
    inside = pc.if_else(outside, 0.0, whole).cast(pa.int64())
    return pc.if_else(above, limit - 1, pc.if_else(below, -limit, inside))


def _to_decimal(found: pa.DataType, wanted: pa.Decimal128Type) -> Conversion:
    """Uses the strict cast; where a value does not fit, casts value by value, with null for such values."""
    strict = casts.cast(found, wanted, None)
    is_float = pa.types.is_floating(found)

    def one(number: Any) -> Decimal | None:
        try:
            return casts.float_as_decimal(number, wanted) if is_float else casts.as_decimal(number, wanted)
        except OverflowError:
            return None

    slow = by_value(found, wanted, one, OVERFLOW)

    def convert(array: pa.Array) -> pa.Array:
        try:
            return strict(array)
        except CastError:
            return slow(array)

    return convert
