"""Which casts store arrays of incoming types as a table's types, and for which pairs no cast is needed.

assignment.py decides which pairs of types are allowed, and casts.py converts the values. Under the policy `legacy` they
become what Spark's CAST makes of them with ANSI off: integers lose their high bits, floats are limited to the bounds of
an int or a long, decimals of too many digits and texts that are no value of the wanted type become null. A text that
Spark may read and spark_texts.py cannot raises CastError, because it may not be null in Spark.
"""

from __future__ import annotations

from datetime import tzinfo
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tablefeed.data import casts
from tablefeed.data.assignment import Assignment, Policy
from tablefeed.data.casts import INVALID_INPUT, OVERFLOW, Value, by_value
from tablefeed.data.retype import Conversion, conversion, is_bytes, is_text, lossless, nulls
from tablefeed.model.spark_texts import UnreadTextError, read_integer


def assigned(found: pa.DataType, wanted: pa.DataType, how: Assignment) -> Conversion | None:
    """Gives the conversion that stores arrays of type `found` as `wanted`; None: they are stored as they are.

    Raises LossyConversionError where no cast exists. The conversion raises CastError for a value that `wanted` cannot
    hold. Whether the policy allows the pair is not checked here.
    """
    cast = _lenient_cast if how.policy is Policy.LEGACY else casts.cast

    def leaf(found: pa.DataType, wanted: pa.DataType) -> Conversion:
        if pa.types.is_null(found):
            return lambda array: nulls(len(array), wanted)
        if _logical(found) == _logical(wanted):  # two Arrow forms of one table type: no value changes
            return lossless(found, wanted)
        return cast(found, wanted, how.zone)

    return conversion(found, wanted, leaf=leaf)


def _logical(kind: pa.DataType) -> object:
    """The table's name for all Arrow forms of one type."""
    if is_text(kind):
        return "string"
    if is_bytes(kind):
        return "binary"
    if pa.types.is_date(kind):
        return "date"
    if pa.types.is_timestamp(kind):
        return "timestamp_ntz" if kind.tz is None else "timestamp"
    return kind


def _lenient_cast(found: pa.DataType, wanted: pa.DataType, zone: tzinfo | None) -> Conversion:
    is_a = pa.types
    if is_a.is_string(wanted) and is_a.is_decimal(found):
        return by_value(found, wanted, str, INVALID_INPUT)  # as Java's toString: 1E-7 for what is smaller than 0.000001
    if not is_a.is_integer(wanted):
        return casts.cast(found, wanted, zone, _or_null)
    bits = wanted.bit_width
    if is_text(found):
        return _or_null(found, wanted, lambda text: read_integer(text, bits, cuts_fraction=True), INVALID_INPUT)
    if is_a.is_integer(found):
        return lambda array: array.cast(wanted, safe=False)
    if is_a.is_floating(found):
        return lambda array: _saturated(array, wanted).cast(wanted, safe=False)
    if is_a.is_decimal(found):
        return by_value(found, wanted, lambda number: _low_bits(int(number), bits), OVERFLOW)
    return casts.cast(found, wanted, zone)


def _or_null(found: pa.DataType, wanted: pa.DataType, value_of: Value, error_class: str) -> Conversion:
    """As `by_value`, with null for a value that has none of the wanted type."""

    def one(value: Any) -> object:
        try:
            return value_of(value)
        except UnreadTextError:
            raise
        except (ValueError, ArithmeticError):
            return None

    return by_value(found, wanted, one, error_class)


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
