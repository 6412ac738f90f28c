"""Converts stored values to Arrow columns of the table's types. Only the table's schema has the exact type of a column.

An index has one integer type, one floating point type and one date type; a type that it lacks is stored as text.
Arrays, maps, structs and JSON are stored as objects, in a different form by each of the two writers. A value that does
not fit the column's type is refused. Only floats inside other values are rounded, as IndexTables rounds them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tablefeed.indextables.split.damage import DamagedSplitError, UnfitValueError
from tablefeed.indextables.split.nested import Code
from tablefeed.indextables.split.pieces import (
    Level,
    Piece,
    addresses,
    booleans,
    doubles,
    in_places,
    offsets_of,
    plain,
)
from tablefeed.indextables.split.shapes import ENTRY, NAME, WRAPPED
from tablefeed.indextables.split.typed import typed, typed_key
from tablefeed.model.spark_texts import DAY_US


def column(name: str, pieces: Sequence[Piece], kind: pa.DataType, *, row_count: int, units_a_us: int) -> pa.Array:
    """The column `name` of `row_count` documents, of type `kind`: null where a document has no value for it.

    `units_a_us`: how many units of the store's dates make a microsecond, 1000 or 1.
    Raises DamagedSplitError, with the column's name, where a value does not fit `kind`, or a document has several
    values. Several values of an array column are the elements of its array.
    """
    try:
        if pa.types.is_list(kind) and any(piece.code not in _WHOLE for piece in pieces):
            pieces = [_several(pieces)]
        return _Columns(units_a_us, name).merged(pieces, kind, row_count)
    except (pa.ArrowException, ValueError, TypeError, ArithmeticError) as error:
        raise DamagedSplitError(f"has a value in column {name} that is not of type {kind}: {error}") from error


_WHOLE = frozenset({Code.OBJECT, Code.ARRAY, Code.NULL})
"""The codes under which a whole array is stored. A value with another code is one element."""


def _several(pieces: Sequence[Piece]) -> Piece:
    """The arrays of a field whose elements are stored as separate values of the field, in their order.

    A null that is the only value of a document is no array, as where no document has separate values.
    """
    arrays: dict[int, list[object]] = {}
    for piece in pieces:
        for row, value in zip(piece.rows.to_pylist(), plain(piece), strict=True):
            arrays.setdefault(row, []).append(value)
    places = sorted(row for row, values in arrays.items() if values != [None])  # the pieces may come in any order
    return Piece(code=None, rows=pa.array(places, pa.int64()), values=[arrays[row] for row in places])


class _Columns:
    """Converts the columns of one store, of documents or inside another column.

    `wrapped_as`: the name of the documents' column, under which an array may be stored. None inside another column,
    where a stored number, text or date may represent more types than in a document.
    """

    def __init__(self, units_a_us: int, wrapped_as: str | None) -> None:
        self._units_a_us, self._wrapped_as = units_a_us, wrapped_as

    def merged(self, pieces: Sequence[Piece], kind: pa.DataType, count: int) -> pa.Array:
        """The column of `count` places that has these values; places without a value are null."""
        return in_places(pieces, [self._converted(piece, kind) for piece in pieces], kind, count)

    def _converted(self, piece: Piece, kind: pa.DataType) -> pa.Array:
        code, values = piece.code, piece.values
        if code is Code.NULL:
            return pa.nulls(len(piece.rows), kind)
        if isinstance(values, Level):
            return self._from_level(code, values, kind)
        if code is not None and (convert := self._conversion(code, kind)) is not None:
            return convert(values)
        if code is not None and self._wrapped_as is not None:
            raise UnfitValueError(f"it is stored as {code.name}")
        to_value = typed(kind, self._units_a_us)
        return pa.array([to_value(value) for value in plain(piece)], kind)

    def _conversion(self, code: Code, kind: pa.DataType) -> Callable[[Any], pa.Array] | None:  # Any: as of _FROM
        if code is Code.DATE and pa.types.is_temporal(kind):
            return lambda units: _from_moments(units, kind, self._units_a_us)
        if code is Code.STR and pa.types.is_decimal(kind):
            return lambda texts: _decimals(texts.cast(pa.string()), kind, typed(kind, self._units_a_us))
        if self._wrapped_as is None:
            return _FROM_INSIDE.get((code, kind))
        return _FROM.get((code, kind))

    def _from_level(self, code: Code | None, level: Level, kind: pa.DataType) -> pa.Array:
        count = len(level.counts)
        inside = _Columns(self._units_a_us, None)
        if pa.types.is_list(kind) and code is Code.OBJECT:
            return self._unwrapped(level, kind)
        if pa.types.is_struct(kind):
            if not len(kind):
                return pa.array([{}] * count, kind)
            members = [inside.merged(level.pieces.get(f.name, []), f.type, count) for f in kind]
            return pa.StructArray.from_arrays(members, fields=list(kind))
        entries, offsets = level.value_count, level.offsets
        value_type = kind.value_type if pa.types.is_list(kind) else kind.item_type
        values = inside.merged(level.pieces.get(ENTRY, []), value_type, entries)
        if pa.types.is_list(kind):
            return pa.ListArray.from_arrays(offsets, values, type=kind)
        names = inside.merged(level.pieces.get(NAME, []), pa.string(), entries)
        return pa.MapArray.from_arrays(offsets, _keys(names, kind.key_type, self._units_a_us), values, type=kind)

    def _unwrapped(self, level: Level, kind: pa.DataType) -> pa.Array:
        """The arrays in objects that hold one each, under either writer's name; an empty object is an empty array."""
        inside = _Columns(self._units_a_us, None)
        of_each = [level.pieces.get(name, []) for name in {WRAPPED, self._wrapped_as or WRAPPED}]
        lists = inside.merged([piece for pieces in of_each for piece in pieces], kind, len(level.counts))
        empty = pc.equal(level.counts, 0)
        if pc.any(pc.greater(level.counts, 1)).as_py() or not lists.is_null().equals(empty):
            raise UnfitValueError("an array is stored as an object with other members")
        if not lists.null_count:
            return lists
        lengths = pc.fill_null(pc.list_value_length(lists), 0).cast(pa.int64())
        return pa.ListArray.from_arrays(offsets_of(lengths), lists.flatten(), type=kind)


def _keys(names: pa.StringArray, kind: pa.DataType, units_a_us: int) -> pa.Array:
    if pa.types.is_string(kind):
        return names
    to_key = typed_key(kind, units_a_us)
    return pa.array([to_key(name) for name in names.to_pylist()], kind)


# --- from numbers ----------------------------------------------------------------------------------------------------


def _floats(ordered: pa.UInt64Array) -> pa.FloatArray:
    numbers = doubles(ordered)
    floats = numbers.cast(pa.float32())
    same = pc.or_(pc.equal(floats.cast(pa.float64()), numbers), pc.is_nan(numbers))
    if not pc.all(same).as_py():
        raise UnfitValueError("it has more digits than a float")
    return floats


def _nearest_floats(ordered: pa.UInt64Array) -> pa.FloatArray:
    # One writer stores a float inside another value as its shortest text in JSON, which is another double.
    numbers = doubles(ordered)
    floats = numbers.cast(pa.float32())
    if not pc.all(pc.or_(pc.invert(pc.is_inf(floats)), pc.is_inf(numbers))).as_py():
        raise UnfitValueError("it does not fit in a float")
    return floats


def _decimals(texts: pa.StringArray, kind: pa.DataType, to_value: Callable[[object], object]) -> pa.Array:
    """By Arrow only where no text has over 38 fraction digits more than `kind`: see `exact_decimal`."""
    longest = pc.max(pc.utf8_length(texts)).as_py() or 0
    if longest <= 39 + kind.scale and not pc.any(pc.match_substring(texts, "e", ignore_case=True)).as_py():
        return texts.cast(kind)
    return pa.array([to_value(text) for text in texts.to_pylist()], kind)


def _from_moments(units: pa.Int64Array, kind: pa.DataType, units_a_us: int) -> pa.Array:
    if pa.types.is_date(kind):
        # Not by `floor_temporal`: the first moment of 64 bits would become the last day.
        days = pc.divide(units, units_a_us * DAY_US)  # rounded towards 1970
        is_later = pc.greater(pc.multiply(days, units_a_us * DAY_US), units)
        return pc.subtract(days, is_later.cast(pa.int64())).cast(pa.int32()).cast(kind)
    if pa.types.is_timestamp(kind):
        moments = units.cast(pa.timestamp("us" if units_a_us == 1 else "ns"))
        return moments.cast(pa.timestamp("us")).cast(pa.int64()).cast(kind)
    raise UnfitValueError("it is stored as a time")


# --- from texts ------------------------------------------------------------------------------------------------------


def _to(kind: pa.DataType) -> Callable[[Any], pa.Array]:
    return lambda values: values.cast(kind)


def _parsed(kind: pa.DataType) -> Callable[[pa.BinaryArray], pa.Array]:
    return lambda texts: texts.cast(pa.string()).cast(kind)


def _without_zone(texts: pa.BinaryArray) -> pa.Array:
    # The newer writer (`Style.ARROW`) stores Spark's microseconds, as digits. Any other text is an SQL timestamp. A
    # merge of splits may bring both together.
    kind = pa.timestamp("us")
    texts = texts.cast(pa.string())
    is_number = pc.match_substring_regex(texts, r"^-?[0-9]+$")
    none = pa.scalar(None, pa.string())
    micros = pc.if_else(is_number, texts, none).cast(pa.int64()).cast(kind)
    return pc.coalesce(micros, pc.if_else(is_number, none, texts).cast(kind))


_Conversions = Mapping[tuple[Code, pa.DataType], Callable[[Any], pa.Array]]  # Any: an array of the code's own type
_INTEGERS = (pa.int8(), pa.int16(), pa.int32(), pa.int64())
_ANYWHERE: _Conversions = {
    **{(code, kind): _to(kind) for code in (Code.I64, Code.U64) for kind in _INTEGERS},
    (Code.F64, pa.float64()): doubles,
    (Code.F64, pa.float32()): _floats,
    (Code.BOOL, pa.bool_()): booleans,
    (Code.STR, pa.string()): _to(pa.string()),
    (Code.BYTES, pa.binary()): lambda values: values,
    (Code.IP, pa.string()): addresses,
}
_FROM: _Conversions = {
    **_ANYWHERE,
    (Code.STR, pa.int8()): _parsed(pa.int8()),
    (Code.STR, pa.int16()): _parsed(pa.int16()),
    (Code.STR, pa.timestamp("us")): _without_zone,
    (Code.OBJECT, pa.string()): _to(pa.string()),
    (Code.ARRAY, pa.string()): _to(pa.string()),
}
_FROM_INSIDE: _Conversions = {
    **_ANYWHERE,
    (Code.F64, pa.float32()): _nearest_floats,
    (Code.I64, pa.timestamp("us", "UTC")): _to(pa.timestamp("us", "UTC")),
}
"""The usual conversions. typed.py converts all other values, one by one."""
