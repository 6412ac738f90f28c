"""Decodes many documents at once, one value of each per step: columns without Python code for each row.

A document is stored as the number of its values, then for each value the number of its field, a type code and the bytes
of the value. Values keep their stored types here; row_columns.py converts them to Spark's types.

In one step, the values with the same name and type code become one piece of a column. The values inside objects and
arrays are decoded in the same way at every depth, and become columns within columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from tablefeed.indextables.split.damage import DamagedSplitError, UnsupportedSplitError, damage_by_name
from tablefeed.indextables.split.doc_store import Documents
from tablefeed.indextables.split.gather import Places, counting, expect_at_most
from tablefeed.indextables.split.json_column import json_column
from tablefeed.indextables.split.nested import MOST_LEVELS, Code, value_at
from tablefeed.indextables.split.pieces import Level, Piece, Pieces
from tablefeed.indextables.split.shapes import JSON, NAME, DocumentShape, Key, Shape, Wanted, shape_of
from tablefeed.indextables.split.typed import RAW, document_json, json_text

_FIXED: Mapping[Code, pa.DataType] = {
    Code.U64: pa.uint64(),
    Code.I64: pa.int64(),
    Code.DATE: pa.int64(),
    Code.F64: pa.uint64(),
    Code.BOOL: pa.uint8(),
    Code.IP: pa.binary(16),
}
_TEXTS = frozenset({Code.STR, Code.BYTES})
_NESTED = frozenset({Code.ARRAY, Code.OBJECT})
_MOST_HEADS = 256
"""With more different heads than this in one step, values have too little in common and are read one by one."""


def read_pieces(
    documents: Documents, *, field_count: int, wanted: Mapping[int, Wanted], units_a_us: int = 1000
) -> Pieces:
    """The values of the fields `wanted` in `documents`; other fields are skipped.

    `units_a_us`: how many units of the store's dates make a microsecond. An object in a string column becomes JSON
    text. Raises DamagedSplitError where the bytes are not documents of an index with `field_count` fields, and
    UnsupportedSplitError for an unknown type code.
    """
    count = len(documents.ends)
    if not count:
        return {}
    walk = _Walk(documents.data, units_a_us=units_a_us)
    limits = pa.Array.from_buffers(pa.int64(), count, [None, pa.py_buffer(documents.ends)])
    begins = pa.concat_arrays([pa.array([0], pa.int64()), limits.slice(0, count - 1)])
    shape = DocumentShape(field_count, wanted)
    pieces, ends = walk.counted(shape, begins, limits, counting(count))
    if pc.any(pc.not_equal(ends, limits)).as_py():
        raise DamagedSplitError("has a document that ends before its place")
    return pieces


class _Walk:
    """Decodes values in `data`. Raises as `read_pieces`."""

    def __init__(self, data: bytes, *, units_a_us: int) -> None:
        self._data, self._places, self._units_a_us = data, Places(data), units_a_us

    def counted(
        self, shape: Shape, begins: pa.Int64Array, limits: pa.Int64Array, ids: pa.Int64Array
    ) -> tuple[Pieces, pa.Int64Array]:
        """The values after the counts at `begins`, and where they end. `ids`: the place of the first value of each."""
        left, at = self._places.vints(begins, limits)
        return self._run(shape, _Values(counting(len(left)), ids, left, at, limits), MOST_LEVELS)

    def _run(self, shape: Shape, values: _Values, levels: int) -> tuple[dict[Key, list[Piece]], pa.Int64Array]:
        pieces: dict[Key, list[Piece]] = {}
        done: list[tuple[pa.Int64Array, pa.Int64Array]] = []
        while True:
            going = pc.greater(values.left, 0)
            if not pc.all(going).as_py():
                done.append(values.ends_of(pc.invert(going)))
                values = values.filter(going)
            if not len(values.items):
                return pieces, _in_order(done)
            ends = None if len(values.items) < shape.few else self._step(shape, values, pieces, levels)
            if ends is None:
                done.append((values.items, self._one_by_one(shape, values, pieces, levels)))
                return pieces, _in_order(done)
            values = values.after(ends, shape.id_step)

    def _step(self, shape: Shape, values: _Values, pieces: dict[Key, list[Piece]], levels: int) -> pa.Int64Array | None:
        """Decodes the next value of each and gives where it ends; does nothing and gives None for too many heads."""
        found = shape.heads(self._places, values.at, values.limits)
        # Most often all are alike, and to find that out takes a third of the time of an encoding.
        is_one = pc.all(pc.equal(found.heads, found.heads[0])).as_py()
        heads = None if is_one else found.heads.dictionary_encode()
        kinds = [found.heads[0].as_py()] if heads is None else heads.dictionary.to_pylist()
        if shape.few and len(kinds) > _MOST_HEADS:
            return None
        if found.names is not None:
            pieces.setdefault(NAME, []).append(Piece(code=Code.STR, rows=values.ids, values=found.names))
        ends = found.bodies
        for index, head in enumerate(kinds):
            key, number = shape.parse(head)
            code = _known(number)
            kind = shape.child(key, code)
            columns = (values.ids, found.bodies, values.limits)
            if heads is None:
                piece, ends = self._values(_Group(code, kind, *columns), levels)
            else:
                mask = pc.equal(heads.indices, index)
                piece, ends_here = self._values(_Group(code, kind, *(c.filter(mask) for c in columns)), levels)
                ends = pc.replace_with_mask(ends, mask, ends_here)
            if kind is not None:
                pieces.setdefault(key, []).append(piece)
        return ends

    def _values(self, group: _Group, levels: int) -> tuple[Piece, pa.Int64Array]:
        """The values of `group`, and where they end, which is never beyond their limits."""
        code, kind, rows, begins, limits = group
        values: Any = None  # Any: as of Piece
        if code in _NESTED:
            return self._nested(group, levels)
        if code in _TEXTS:
            lengths, begins = self._places.vints(begins, limits)
            ends = pc.add(begins, lengths)
            expect_at_most(ends, limits)
            values = None if kind is None else self._places.slices(begins, ends)
        elif code in _FIXED:
            ends = pc.add(begins, _FIXED[code].bit_width // 8)
            expect_at_most(ends, limits)
            values = None if kind is None else self._places.fixed(begins, _FIXED[code])
        else:
            values, ends = pa.nulls(len(rows)), begins
        return Piece(code=code, rows=rows, values=values), ends

    def _nested(self, group: _Group, levels: int) -> tuple[Piece, pa.Int64Array]:
        code, kind, rows, begins, limits = group
        shape = shape_of(code, kind)
        if shape is None:
            return self._as_it_is(group, levels)
        if levels <= 1:
            raise UnsupportedSplitError(f"has values nested more than {MOST_LEVELS} deep", feature="nesting")
        counts, at = self._places.vints(begins, limits)
        if code is Code.OBJECT:
            if pc.any(pc.not_equal(pc.bit_wise_and(counts, 1), 0)).as_py():
                raise DamagedSplitError("has an object with a name and no value")
            counts = pc.shift_right(counts, 1)
        expect_at_most(pc.add(at, counts), limits)  # a value has at least one byte, which bounds the count
        items = counting(len(counts))
        ids = pc.subtract(pc.cumulative_sum(counts), counts) if shape.id_step else items
        pieces, ends = self._run(shape, _Values(items, ids, counts, at, limits), levels - 1)
        level = Level(counts=counts, pieces=pieces)
        if kind != JSON:
            return Piece(code=code, rows=rows, values=level), ends
        texts = json_column(code, level, self._units_a_us)
        if texts is None:
            return self._as_it_is(group, levels)
        if levels == MOST_LEVELS:
            texts = self._without_raw(texts, group)
        return Piece(code=code, rows=rows, values=texts), ends

    def _without_raw(self, texts: pa.BinaryArray, group: _Group) -> pa.BinaryArray:
        """The JSON texts of documents, where those that may be {"_raw": text} are read one by one."""
        may_be_raw = pc.starts_with(texts, f'{{"{RAW}":"')
        if not pc.any(may_be_raw).as_py():
            return texts
        columns = (column.filter(may_be_raw) for column in (group.rows, group.begins, group.limits))
        piece, _ = self._as_it_is(_Group(group.code, group.kind, *columns), MOST_LEVELS)
        return pc.replace_with_mask(texts, may_be_raw, piece.values)

    def _as_it_is(self, group: _Group, levels: int) -> tuple[Piece, pa.Int64Array]:
        values: list[object] = []
        ends = []
        to_text = document_json if levels == MOST_LEVELS else json_text
        with damage_by_name("a document"):
            for begin in group.begins.to_pylist():
                value, end = value_at(self._data, begin, group.code, levels)
                values.append(to_text(value, self._units_a_us) if group.kind == JSON else value)
                ends.append(end)
        all_ends = pa.array(ends, pa.int64())
        expect_at_most(all_ends, group.limits)
        if group.kind == JSON:
            return Piece(code=group.code, rows=group.rows, values=pa.array(values, pa.binary())), all_ends
        return Piece(code=None, rows=group.rows, values=values), all_ends

    def _one_by_one(self, shape: Shape, values: _Values, pieces: dict[Key, list[Piece]], levels: int) -> pa.Int64Array:
        """Decodes all values that are left, one by one, and gives where those of each document or object end."""
        plain: dict[Key, tuple[list[int], list[object]]] = {}
        ends = []
        each = zip(*(column.to_pylist() for column in (values.ids, values.left, values.at)), strict=True)
        for place, count, begin in each:
            with damage_by_name("a document"):
                found, end = shape.plain(self._data, begin, count, levels)
            ends.append(end)
            ids = dict.fromkeys((key for key, _ in found), place)
            for key, value in found:
                rows, of_key = plain.setdefault(key, ([], []))
                rows.append(ids[key])
                of_key.append(value)
                ids[key] += shape.id_step
        for key, (rows, of_key) in plain.items():
            pieces.setdefault(key, []).append(Piece(code=None, rows=pa.array(rows, pa.int64()), values=of_key))
        ends_of_all = pa.array(ends, pa.int64())
        expect_at_most(ends_of_all, values.limits)
        return ends_of_all


class _Group(NamedTuple):
    """Values with one type code that are wanted as `kind` (None: not), where each begins, and its place and limit."""

    code: Code
    kind: pa.DataType | None
    rows: pa.Int64Array
    begins: pa.Int64Array
    limits: pa.Int64Array


@dataclass(frozen=True, slots=True)
class _Values:
    """Documents, objects or arrays to decode, by their numbers `items`: in each, `left` values are still to be read.

    `ids` is the place of the next value, `at` is where it begins, and `limits` is where the document ends.
    """

    items: pa.Int64Array
    ids: pa.Int64Array
    left: pa.Int64Array
    at: pa.Int64Array
    limits: pa.Int64Array

    def filter(self, mask: pa.BooleanArray) -> _Values:
        columns = (self.items, self.ids, self.left, self.at, self.limits)
        return _Values(*(column.filter(mask) for column in columns))

    def after(self, ends: pa.Int64Array, id_step: int) -> _Values:
        ids = pc.add(self.ids, id_step) if id_step else self.ids
        return _Values(self.items, ids, pc.subtract(self.left, 1), ends, self.limits)

    def ends_of(self, mask: pa.BooleanArray) -> tuple[pa.Int64Array, pa.Int64Array]:
        return self.items.filter(mask), self.at.filter(mask)


def _in_order(done: Iterable[tuple[pa.Int64Array, pa.Int64Array]]) -> pa.Int64Array:
    """The ends of all items, in the order of the items' numbers."""
    items, ends = zip(*done, strict=True) if done else ((), ())
    if not items:
        return pa.array([], pa.int64())
    if len(items) == 1:
        return ends[0]
    return pa.concat_arrays(ends).take(pc.array_sort_indices(pa.concat_arrays(items)))


def _known(number: int) -> Code:
    try:
        return Code(number)
    except ValueError as error:
        raise UnsupportedSplitError(f"has a value of type code {number}", feature=f"typeCode{number}") from error
