"""Converts arrays of one type to another, as Spark's CAST does with ANSI on.

assignment.py decides which pairs of types are allowed, and storing.py which casts are used. A value that the wanted
type cannot hold, or a text that is no value of that type, raises CastError. Nothing is wrapped, cut or made null,
except that NaN and the infinities become null as decimals, as in Spark. Arrow is used where it computes exactly as Java
does; otherwise each distinct value is converted once.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable
from datetime import tzinfo
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tablefeed.data.retype import Conversion, LossyConversionError, is_bytes, is_text, lossless
from tablefeed.model import spark_texts
from tablefeed.model.spark_texts import DAY_US, date_text, java_double, java_float, timestamp_text, within

INVALID_INPUT = "CAST_INVALID_INPUT"
OVERFLOW = "CAST_OVERFLOW_IN_TABLE_INSERT"

_EXACT = decimal.Context(prec=2_000, rounding=decimal.ROUND_HALF_UP)


class CastError(LossyConversionError):
    """A value that the wanted type cannot hold, or a text that is no value of it. `error_class` is Spark's.

    `value` is the first such value. `failed` is true for each such value of the array; None: they are not known.
    """

    def __init__(
        self, found: pa.DataType, wanted: pa.DataType, value: object, error_class: str, failed: pa.Array | None = None
    ) -> None:
        self.value, self.error_class, self.failed = value, error_class, failed
        shown = f"{value!r:.100}" if isinstance(value, str) else f"{value!s:.100}"
        super().__init__(found, wanted, reason=f"the value {shown}")


Value = Callable[[Any], object]  # Any: each takes its own type's value
By = Callable[[pa.DataType, pa.DataType, Value, str], Conversion]
"""How values are cast one by one: `by_value`, or a function with its parameters that does not raise for each."""


def cast(found: pa.DataType, wanted: pa.DataType, zone: tzinfo | None, by: By | None = None) -> Conversion:
    """Gives the conversion from `found` to `wanted`. Texts, dates and timestamps without zone are read in `zone`.

    `by` casts texts, and decimals that Arrow does not cast; None: `by_value`. Raises LossyConversionError for a pair
    that has no cast here.
    """
    is_a, by = pa.types, by or by_value
    if is_text(found):
        return _from_text(found, wanted, zone, by)
    if is_a.is_string(wanted):
        return _to_text(found, wanted, zone)
    if is_a.is_integer(wanted):
        return _to_integer(found, wanted)
    if is_a.is_floating(wanted) and is_a.is_decimal(found):
        nearest = float if is_a.is_float64(wanted) else spark_texts.nearest_single
        return by_value(found, wanted, nearest, INVALID_INPUT)
    if is_a.is_floating(wanted) and (is_a.is_integer(found) or is_a.is_floating(found)):
        return lambda array: array.cast(wanted, safe=False)  # to the nearest, and to infinity, as Java does
    if is_a.is_decimal(wanted):
        return _to_decimal(found, wanted, by)
    if is_a.is_temporal(wanted) and is_a.is_temporal(found):
        return _temporal(found, wanted, zone)
    raise LossyConversionError(found, wanted)


# --- value by value ------------------------------------------------------------------------------------------------


def by_value(found: pa.DataType, wanted: pa.DataType, value_of: Value, error_class: str) -> Conversion:
    """Casts each distinct value once. A ValueError or ArithmeticError of `value_of` becomes a CastError."""

    def convert(array: pa.Array) -> pa.Array:
        places = pa.array(range(len(array)), pa.int64())
        if not pa.types.is_floating(array.type):  # Arrow's dictionaries do not distinguish 0.0 from -0.0
            encoded = array.dictionary_encode()
            array, places = encoded.dictionary, encoded.indices
        try:
            distinct = array.to_pylist()
        except UnicodeDecodeError as error:  # Spark's texts may hold any bytes
            raise CastError(found, wanted, error.object, error_class) from error
        values: list[object] = []
        bad: list[int] = []
        cause: Exception | None = None
        for place, value in enumerate(distinct):
            try:
                values.append(None if value is None else value_of(value))
            except (ValueError, ArithmeticError) as error:
                values.append(None)
                bad.append(place)
                cause = cause or error.with_traceback(None)  # which would keep this frame, and so the values, alive
        if bad:
            failed = pc.is_in(places, value_set=pa.array(bad, places.type))
            raise CastError(found, wanted, distinct[bad[0]], error_class, failed) from cause
        return pa.array(values, wanted).take(places)

    return convert


# --- texts ---------------------------------------------------------------------------------------------------------


def _from_text(found: pa.DataType, wanted: pa.DataType, zone: tzinfo | None, by: By) -> Conversion:
    is_a = pa.types
    if is_a.is_binary(wanted):
        return lambda array: array.cast(wanted)
    if is_a.is_boolean(wanted):
        return by(found, wanted, spark_texts.read_boolean, INVALID_INPUT)
    if is_a.is_integer(wanted):
        bits = wanted.bit_width
        return by(found, wanted, lambda text: spark_texts.read_integer(text, bits), INVALID_INPUT)
    if is_a.is_floating(wanted):
        read = spark_texts.read_double if is_a.is_float64(wanted) else spark_texts.read_float
        return by(found, wanted, read, INVALID_INPUT)
    if is_a.is_decimal(wanted):
        numbers = by(found, pa.string(), lambda text: str(spark_texts.read_decimal(text)), INVALID_INPUT)
        rounded = by(pa.string(), wanted, lambda text: as_decimal(Decimal(text), wanted), OVERFLOW)
        return lambda array: rounded(numbers(array))
    if is_a.is_date(wanted):
        return _seen_as(wanted, by(found, pa.int32(), spark_texts.read_date, INVALID_INPUT))
    if is_a.is_timestamp(wanted):
        return _seen_as(wanted, by(found, pa.int64(), _reader_of_moments(wanted, zone), INVALID_INPUT))
    raise LossyConversionError(found, wanted)


def _seen_as(wanted: pa.DataType, counts: Conversion) -> Conversion:
    """Gives the days or microseconds of `counts` as `wanted`, which its errors name too."""

    def convert(array: pa.Array) -> pa.Array:
        try:
            return counts(array).view(wanted)
        except CastError as error:
            error.wanted = wanted
            raise

    return convert


def _reader_of_moments(wanted: pa.TimestampType, zone: tzinfo | None) -> Callable[[str], int]:
    if wanted.tz is None:
        return spark_texts.read_timestamp_ntz
    given = _given(zone, wanted)
    return lambda text: spark_texts.read_timestamp(text, given)


def _to_text(found: pa.DataType, wanted: pa.DataType, zone: tzinfo | None) -> Conversion:
    is_a = pa.types
    if is_a.is_integer(found) or is_a.is_boolean(found):
        return lambda array: array.cast(wanted)
    if is_bytes(found):
        return lambda array: array.cast(wanted)  # safe: bytes that are no UTF-8 raise
    if is_a.is_floating(found):
        return by_value(found, wanted, java_double if is_a.is_float64(found) else java_float, INVALID_INPUT)
    if is_a.is_decimal(found):
        return by_value(found, wanted, lambda number: format(number, "f"), INVALID_INPUT)
    if is_a.is_date(found) or is_a.is_timestamp(found):
        counts, one = _counts(found), date_text if is_a.is_date(found) else _text_of_moments(found, zone)
        texts = by_value(found, wanted, one, INVALID_INPUT)
        return lambda array: texts(counts(array))
    raise LossyConversionError(found, wanted)


def _text_of_moments(found: pa.TimestampType, zone: tzinfo | None) -> Callable[[int], str]:
    if found.tz is None:
        return timestamp_text
    given = _given(zone, found)
    return lambda moment_us: timestamp_text(spark_texts.to_local(moment_us, given))


# --- numbers -------------------------------------------------------------------------------------------------------


def _to_integer(found: pa.DataType, wanted: pa.DataType) -> Conversion:
    is_a = pa.types
    if is_a.is_integer(found):
        return lambda array: _narrowed(array, array, wanted)
    if is_a.is_floating(found):
        return lambda array: _from_floating(array, wanted)
    if not is_a.is_decimal(found):
        raise LossyConversionError(found, wanted)
    # Spark converts a decimal of many digits to a double first, which may round up to the next whole number.
    by_double = found.precision > 18 and not is_a.is_int64(wanted)
    whole = by_value(found, pa.int64(), lambda number: within(int(float(number) if by_double else number)), OVERFLOW)
    return lambda array: _narrowed(array, whole(array), wanted)


def _from_floating(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    limit = float(1 << wanted.bit_width - 1)
    whole = pc.trunc(array.cast(pa.float64()))
    fits = pc.and_(pc.greater_equal(whole, -limit), pc.less(whole, limit))
    failed = pc.invert(fits).fill_null(False)  # noqa: FBT003  # Arrow's words
    if pc.any(failed).as_py():
        raise CastError(array.type, wanted, array.filter(failed)[0].as_py(), OVERFLOW, failed)
    return whole.cast(pa.int64()).cast(wanted)


def _narrowed(array: pa.Array, whole: pa.Array, wanted: pa.DataType) -> pa.Array:
    try:
        return whole.cast(wanted)
    except pa.ArrowInvalid as error:
        limit = 1 << wanted.bit_width - 1
        failed = pa.array([w is not None and not -limit <= w < limit for w in whole.to_pylist()])
        raise CastError(array.type, wanted, array.filter(failed)[0].as_py(), OVERFLOW, failed) from error


def _to_decimal(found: pa.DataType, wanted: pa.Decimal128Type, by: By) -> Conversion:
    is_a = pa.types
    if is_a.is_integer(found):
        return lambda array: _rescaled(array.cast(pa.int64()).cast(pa.decimal128(19, 0)), wanted, by)
    if is_a.is_floating(found):
        return by(found, wanted, lambda number: _float_as_decimal(number, wanted), OVERFLOW)
    if is_a.is_decimal(found):
        return lambda array: _rescaled(array, wanted, by)
    raise LossyConversionError(found, wanted)


def _rescaled(array: pa.Array, wanted: pa.Decimal128Type, by: By) -> pa.Array:
    """Decimals of another precision and scale, halves rounded away from zero."""
    if array.type.scale <= wanted.scale:
        try:
            return array.cast(pa.decimal256(76, array.type.scale)).cast(wanted)
        except pa.ArrowInvalid:  # a value does not fit; find it below
            pass
    # Not by Arrow: some versions divide decimals beyond 64 bits wrongly (26 rounds 2^64 - 0.5 to a quite different
    # number).
    return by(array.type, wanted, lambda number: as_decimal(number, wanted), OVERFLOW)(array)


def as_decimal(number: Decimal, wanted: pa.Decimal128Type) -> Decimal:
    """`number` at the scale of `wanted`, halves rounded away from zero. Raises OverflowError for too many digits."""
    if number and number.adjusted() > 100:  # too large anyway: do not write out its digits
        raise OverflowError
    rounded = number.quantize(Decimal(1).scaleb(-wanted.scale), context=_EXACT)
    if rounded and rounded.adjusted() >= wanted.precision - wanted.scale:
        raise OverflowError
    return rounded


def _float_as_decimal(number: float, wanted: pa.Decimal128Type) -> Decimal | None:
    """As `as_decimal`, for the shortest decimal that reads back as `number`; None for NaN and the infinities."""
    return as_decimal(Decimal(repr(number)), wanted) if math.isfinite(number) else None


# --- days and moments ----------------------------------------------------------------------------------------------


def _temporal(found: pa.DataType, wanted: pa.DataType, zone: tzinfo | None) -> Conversion:
    counts, count = _counts(found), pa.int32() if pa.types.is_date(wanted) else pa.int64()
    moments = _seen_as(wanted, by_value(found, count, _moved(found, wanted, zone), INVALID_INPUT))
    return lambda array: moments(counts(array))


def _moved(found: pa.DataType, wanted: pa.DataType, zone: tzinfo | None) -> Callable[[int], int]:
    """Gives a function from days or microseconds to days or microseconds."""
    is_date = pa.types.is_date
    into = DAY_US if is_date(found) else 1
    out = DAY_US if is_date(wanted) else 1
    has_zone = [not is_date(kind) and kind.tz is not None for kind in (found, wanted)]
    match has_zone:
        case [True, False]:
            given = _given(zone, wanted)
            return lambda value: spark_texts.to_local(value * into, given) // out
        case [False, True]:
            given = _given(zone, wanted)
            to_utc = spark_texts.start_of_day if is_date(found) else spark_texts.to_utc
            return lambda value: to_utc(value, given)
        case _:
            return lambda value: within(value * into) // out


def _counts(found: pa.DataType) -> Conversion:
    """The conversion of dates to days, and of timestamps of any unit and zone to microseconds, since 1970."""
    is_date = pa.types.is_date(found)
    plain = pa.date32() if is_date else pa.timestamp("us", tz=None if found.tz is None else "UTC")
    convert = lossless(found, plain)
    return lambda array: convert(array).view(pa.int32() if is_date else pa.int64())


def _given(zone: tzinfo | None, wanted: pa.DataType) -> tzinfo:
    if zone is None:
        raise LossyConversionError(wanted, wanted, reason="no time zone was given")
    return zone
