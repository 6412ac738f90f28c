"""Decoded values before they are columns: pieces of a column, each with the places of its values, and levels of them.

walk.py makes them. row_columns.py turns them into columns of the table's types, json_column.py into JSON texts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tablefeed.indextables.split.damage import UnfitValueError
from tablefeed.indextables.split.nested import Code, Instant, ip_text
from tablefeed.indextables.split.shapes import Key


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Values with one name: `values[i]` is at place `rows[i]` of its column. Places are ascending.

    With a `code`, no place comes twice. `values` is then an Arrow array as the code is stored (texts are binary, not
    yet checked as UTF-8), or for objects and arrays a `Level`, or their JSON texts, also binary. With `code` None it is
    a list of plain values of any type.
    """

    code: Code | None
    rows: pa.Int64Array
    values: Any  # Any: an array, a Level, or a list


Pieces = Mapping[Key, list[Piece]]
"""The values of each field, by the field's number, or of each member. What has no value anywhere is absent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """The values inside objects or arrays: the object or array `i` holds `counts[i]` of them.

    The place of a struct's member is the number of its object. Elements of arrays and entries of maps have consecutive
    places, in the order of their arrays or maps.
    """

    counts: pa.Int64Array
    pieces: Pieces

    @property
    def value_count(self) -> int:
        """How many values all objects or arrays hold."""
        return pc.sum(self.counts).as_py() or 0

    @property
    def offsets(self) -> pa.Int32Array:
        """Where the values of each begin among all values, and where those of the last end."""
        return offsets_of(self.counts)


def offsets_of(counts: pa.Int64Array) -> pa.Int32Array:
    """The offsets of lists that have so many elements each."""
    return pa.concat_arrays([pa.array([0], pa.int64()), pc.cumulative_sum(counts)]).cast(pa.int32())


def in_places(pieces: Sequence[Piece], values: Sequence[pa.Array], kind: pa.DataType, count: int) -> pa.Array:
    """The array of `count` places with the `values` of `pieces`, which are of type `kind`; null where there is none.

    Raises UnfitValueError where two values have one place.
    """
    if not pieces:
        return pa.nulls(count, kind)
    if len(pieces) == 1 and pieces[0].code is not None and len(values[0]) == count:
        return values[0]
    rows = pa.concat_arrays([piece.rows for piece in pieces])
    at = pc.inverse_permutation(rows, max_index=count - 1)
    if count - at.null_count != len(rows):
        raise UnfitValueError("a document has several values")
    return pa.concat_arrays(values).take(at)


def is_repeated(numbers: pa.Int64Array) -> bool:
    """Whether two of `numbers` are equal."""
    if pc.all(pc.greater(*_neighbours(numbers))).as_py():
        return False
    # Sorting costs a fraction of hashing: the numbers are a few ascending runs.
    ordered = numbers.take(pc.array_sort_indices(numbers))
    return bool(pc.any(pc.equal(*_neighbours(ordered))).as_py())


def _neighbours(numbers: pa.Int64Array) -> tuple[pa.Int64Array, pa.Int64Array]:
    """Each number but the first, and the one before it."""
    return numbers.slice(1), numbers.slice(0, max(0, len(numbers) - 1))


# --- the values of a piece -------------------------------------------------------------------------------------------

_TOP = pa.scalar(1 << 63, pa.uint64())


def plain(piece: Piece) -> list[object]:
    """The values of a piece as plain Python values. Raises UnfitValueError for IP addresses, objects and arrays."""
    values = piece.values
    match piece.code:
        case None:
            return list(values)
        case Code.STR:
            return list(values.cast(pa.string()).to_pylist())
        case Code.DATE:
            return [Instant(units) for units in values.to_pylist()]
        case Code.F64:
            return list(doubles(values).to_pylist())
        case Code.BOOL:
            return list(booleans(values).to_pylist())
        case Code.I64 | Code.U64 | Code.BYTES | Code.NULL:
            return list(values.to_pylist())
    raise UnfitValueError(f"it is stored as {piece.code.name}")


def doubles(ordered: pa.UInt64Array) -> pa.DoubleArray:
    """The numbers that are stored as unsigned integers of the same order."""
    is_positive = pc.greater_equal(ordered, _TOP)
    bits = pc.if_else(is_positive, pc.bit_wise_xor(ordered, _TOP), pc.bit_wise_not(ordered))
    return bits.view(pa.float64())


def booleans(bytes_: pa.UInt8Array) -> pa.BooleanArray:
    """The booleans that are stored as 0 and 1. Raises UnfitValueError for another number."""
    if pc.any(pc.greater(bytes_, 1)).as_py():
        raise UnfitValueError("it is neither true nor false")
    return bytes_.cast(pa.bool_())


def addresses(stored: pa.FixedSizeBinaryArray) -> pa.StringArray:
    """The texts of stored IP addresses."""
    distinct = stored.dictionary_encode()
    texts = pa.array([ip_text(address) for address in distinct.dictionary.to_pylist()], pa.string())
    return texts.take(distinct.indices)
