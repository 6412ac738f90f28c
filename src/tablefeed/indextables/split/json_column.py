"""Writes objects and arrays as JSON texts, a column at a time: exactly the texts that orjson writes of each value.

There are no spaces, and members are in the order of the index, not of the writer. The bytes of stored texts are only
quoted, not checked: the caller checks that the results are UTF-8.
"""

from __future__ import annotations

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from tablefeed.indextables.split.damage import DamagedSplitError, UnfitValueError
from tablefeed.indextables.split.nested import Code
from tablefeed.indextables.split.pieces import Level, Piece, addresses, booleans, doubles, in_places, is_repeated, plain
from tablefeed.indextables.split.shapes import ENTRY, NAME
from tablefeed.indextables.split.typed import json_text


def json_column(code: Code, level: Level, units_a_us: int) -> pa.BinaryArray | None:
    """The JSON texts of the objects or arrays of `level`; None where an object has two members of one name.

    `units_a_us`: how many units of the store's dates make a microsecond. Raises DamagedSplitError for a value that JSON
    cannot hold, such as bytes.
    """
    try:
        return _column(code, level, units_a_us)
    except (UnfitValueError, pa.ArrowException) as error:
        raise DamagedSplitError(f"has a value that JSON cannot hold: {error}") from error


def _column(code: Code, level: Level, units_a_us: int) -> pa.BinaryArray | None:
    values = level.pieces.get(ENTRY, [])
    items = in_places(values, [_texts(piece, units_a_us) for piece in values], pa.binary(), level.value_count)
    lists = pa.ListArray.from_arrays(level.offsets, items)
    if code is Code.ARRAY:
        return _joined(b"[", lists, b"]")
    found = level.pieces.get(NAME, [])
    names = in_places(found, [_names(piece) for piece in found], pa.binary(), level.value_count).dictionary_encode()
    objects = pc.multiply(pc.list_parent_indices(lists).cast(pa.int64()), len(names.dictionary))
    if is_repeated(pc.add(objects, names.indices)):
        return None
    members = pc.binary_join_element_wise(_quoted(names.dictionary, b'":').take(names.indices), items, b"")
    return _joined(b"{", pa.ListArray.from_arrays(level.offsets, members), b"}")


def _joined(begin: bytes, lists: pa.ListArray, end: bytes) -> pa.BinaryArray:
    return pc.binary_join_element_wise(begin, pc.binary_join(lists, b","), end, b"")


def _names(piece: Piece) -> pa.BinaryArray:
    return pa.array(piece.values, pa.string()).cast(pa.binary()) if piece.code is None else piece.values


def _texts(piece: Piece, units_a_us: int) -> pa.BinaryArray:
    """The JSON texts of the values of `piece`."""
    values = piece.values
    match piece.code:
        case Code.OBJECT | Code.ARRAY:
            return values
        case Code.STR:
            return _quoted(values, b'"')
        case Code.IP:
            return _quoted(addresses(values).cast(pa.binary()), b'"')
        case Code.I64 | Code.U64:
            return values.cast(pa.string()).cast(pa.binary())
        case Code.NULL:
            return pa.repeat(pa.scalar(b"null"), len(values))
        case Code.BOOL:
            return pc.if_else(booleans(values), b"true", b"false")
        case Code.F64 if len(values):
            return pa.array(orjson.dumps(doubles(values).to_pylist())[1:-1].split(b","), pa.binary())
        case Code.DATE if units_a_us == 1000:  # so that every year has four digits
            return _quoted(_moments(values), b'"')
    return pa.array([json_text(value, units_a_us) for value in plain(piece)], pa.binary())


def _moments(nanos: pa.Int64Array) -> pa.BinaryArray:
    """The texts of moments as Tantivy writes them: in UTC, with as many digits of a second as needed."""
    texts = pc.strftime(nanos.cast(pa.timestamp("ns")), format="%Y-%m-%dT%H:%M:%S")
    return pc.binary_join_element_wise(pc.replace_substring_regex(texts, r"\.?0+$", ""), "Z", "").cast(pa.binary())


_ESCAPES = {char.encode(): orjson.dumps(char)[1:-1] for char in ("\\", '"', *map(chr, range(32)))}
"""The characters that are not written as they are. The backslash is first: it is in what is written for the others."""


def _quoted(texts: pa.BinaryArray, end: bytes) -> pa.BinaryArray:
    data = texts.buffers()[2]
    stored = b"" if data is None else data.to_pybytes()
    for char, escape in _ESCAPES.items():
        if char in stored:
            texts = pc.replace_substring(texts, char, escape)
    return pc.binary_join_element_wise(b'"', texts, end, b"")
