"""Stored values as columns of Spark's types, in Arrow: the table's schema says what a value is, the index does not.

An index has one integer, one floating point number, one moment, and texts for what it has no type of; arrays, maps,
structs and JSON are objects, in other shapes by each of the two writers. Whatever does not fit the column's type is
refused, never rounded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tablefeed.indextables.damage import DamagedSplitError, UnfitValueError
from tablefeed.indextables.documents import Piece
from tablefeed.indextables.gather import counting
from tablefeed.indextables.nested import Code, ip_text
from tablefeed.indextables.typed import array_column, json_text, typed


def column(name: str, pieces: Sequence[Piece], kind: pa.DataType, *, row_count: int, units_a_us: int) -> pa.Array:
    """The column `name` of `row_count` documents, of type `kind`: null where a document has no value of it.

    `units_a_us`: how many units of the store's dates are a microsecond, 1000 or 1.
    Raises DamagedSplitError, naming the column, where a value is none of `kind`, or a document has several of it; an
    array column takes several as its elements.
    """
    try:
        if _is_array(kind):
            values, rows = array_column(name, pieces, kind, units_a_us)
        else:
            values, rows = _scalars(pieces, kind, units_a_us)
        if len(rows) == row_count and len(pieces) <= 1:
            return values
        _refuse_several(rows)
        places = pc.index_in(counting(row_count), value_set=rows)
        return values.take(places)
    except (pa.ArrowException, ValueError, TypeError, ArithmeticError) as error:
        raise DamagedSplitError(f"has a value in column {name} that is no {kind}: {error}") from error


def _scalars(pieces: Sequence[Piece], kind: pa.DataType, units_a_us: int) -> tuple[pa.Array, pa.Int64Array]:
    """Values of `kind`, and of which document each is."""
    arrays = [_converted(piece, kind, units_a_us) for piece in pieces]
    if len(pieces) == 1:
        return arrays[0], pieces[0].rows
    empty = pa.array([], pa.int64())
    return pa.concat_arrays([pa.array([], kind), *arrays]), pa.concat_arrays([empty, *(p.rows for p in pieces)])


def _refuse_several(rows: pa.Int64Array) -> None:
    if pc.count_distinct(rows).as_py() != len(rows):
        raise UnfitValueError("a document has several")


def _is_array(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind))


def _converted(piece: Piece, kind: pa.DataType, units_a_us: int) -> pa.Array:
    code, values = piece.code, piece.values
    if code is Code.NULL:
        return pa.nulls(len(piece.rows), kind)
    if code in (Code.ARRAY, Code.OBJECT):
        if pa.types.is_string(kind):
            return pa.array([json_text(value, units_a_us) for value in values], kind)
        to_value = typed(kind, units_a_us)
        return pa.array([to_value(value) for value in values], kind)
    if code is Code.DATE:
        return _from_moments(values, kind, units_a_us)
    if kind in _FROM_TEXT and code is Code.STR:
        return _FROM_TEXT[kind](values.cast(pa.string()))
    if pa.types.is_decimal(kind) and code is Code.STR:
        return values.cast(pa.string()).cast(kind)
    convert = _FROM.get((code, kind))
    if convert is None:
        raise UnfitValueError(f"it is stored as {code.name}")
    return convert(values)


# --- from numbers ----------------------------------------------------------------------------------------------------

_TOP = pa.scalar(1 << 63, pa.uint64())


def _doubles(ordered: pa.UInt64Array) -> pa.DoubleArray:
    """The numbers that are stored as unsigned ones of the same order."""
    is_positive = pc.greater_equal(ordered, _TOP)
    bits = pc.if_else(is_positive, pc.bit_wise_xor(ordered, _TOP), pc.bit_wise_not(ordered))
    return bits.view(pa.float64())


def _floats(ordered: pa.UInt64Array) -> pa.FloatArray:
    doubles = _doubles(ordered)
    floats = doubles.cast(pa.float32())
    same = pc.or_(pc.equal(floats.cast(pa.float64()), doubles), pc.is_nan(doubles))
    if not pc.all(same).as_py():
        raise UnfitValueError("it has more digits than a float")
    return floats


def _booleans(bytes_: pa.UInt8Array) -> pa.BooleanArray:
    if pc.any(pc.greater(bytes_, 1)).as_py():
        raise UnfitValueError("it is neither true nor false")
    return bytes_.cast(pa.bool_())


def _addresses(addresses: pa.FixedSizeBinaryArray) -> pa.StringArray:
    distinct = addresses.dictionary_encode()
    texts = pa.array([ip_text(address) for address in distinct.dictionary.to_pylist()], pa.string())
    return texts.take(distinct.indices)


def _from_moments(units: pa.Int64Array, kind: pa.DataType, units_a_us: int) -> pa.Array:
    moments = units.cast(pa.timestamp("us" if units_a_us == 1 else "ns"))
    if pa.types.is_date(kind):
        # To the day before where it is no midnight: 1969 is before 1970.
        return pc.floor_temporal(moments, unit="day").cast(kind)
    if pa.types.is_timestamp(kind):
        return moments.cast(pa.timestamp("us")).cast(pa.int64()).cast(kind)
    raise UnfitValueError("it is stored as a moment")


# --- from texts ------------------------------------------------------------------------------------------------------


def _integers(kind: pa.DataType) -> Callable[[pa.StringArray], pa.Array]:
    return lambda texts: texts.cast(kind)


def _without_zone(texts: pa.StringArray) -> pa.Array:
    # The writer by Arrow has Spark's own number, microseconds; a text of a moment is what SQL has.
    kind = pa.timestamp("us")
    if pc.all(pc.match_substring_regex(texts, r"^-?[0-9]+$")).as_py():
        return texts.cast(pa.int64()).cast(kind)
    return texts.cast(kind)


_FROM_TEXT: Mapping[pa.DataType, Callable[[pa.StringArray], pa.Array]] = {
    pa.string(): lambda texts: texts,
    pa.int8(): _integers(pa.int8()),
    pa.int16(): _integers(pa.int16()),
    pa.timestamp("us"): _without_zone,
}
_INTEGERS = (pa.int8(), pa.int16(), pa.int32(), pa.int64())
_FROM: Mapping[tuple[Code, pa.DataType], Callable[[Any], pa.Array]] = {  # Any: an array of the code's own type
    **{(code, kind): _integers(kind) for code in (Code.I64, Code.U64) for kind in _INTEGERS},
    (Code.F64, pa.float64()): _doubles,
    (Code.F64, pa.float32()): _floats,
    (Code.BOOL, pa.bool_()): _booleans,
    (Code.BYTES, pa.binary()): lambda values: values,
    (Code.IP, pa.string()): _addresses,
}
