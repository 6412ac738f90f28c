"""A segment's documents as columns of what they store: for each field of the index, its values and whose they are.

A document is a count of values, and each value the number of its field, a type code and what the code says. All
documents of a run are walked together, one value of each at a time: those that have the same field and code there
are one slice of a column. Types of the index only; what Spark calls them is row_columns.py's.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tablefeed.indextables.damage import DamagedSplitError, UnsupportedSplitError
from tablefeed.indextables.doc_store import Documents
from tablefeed.indextables.gather import Places, counting, expect_at_most
from tablefeed.indextables.nested import Code, nested_value


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Values of one field and one type code: `values[i]` is of document `rows[i]`. Rows rise strictly.

    `values` is an Arrow array of the code's own type (see `_FIXED`; texts are binary, not yet known to be UTF-8), a
    list of plain values where the code is a nested one, and nulls where it is null.
    """

    code: Code
    rows: pa.Int64Array
    values: Any  # Any: an array, or a list


Pieces = Mapping[int, list[Piece]]
"""By the number of the field, in the order in which documents have them; a field that no document has is absent."""


def read_pieces(documents: Documents, *, field_count: int, wanted: Collection[int]) -> Pieces:
    """The values of the fields `wanted` in `documents`; the others are stepped over.

    Raises DamagedSplitError where the bytes are no documents of an index with so many fields, and UnsupportedSplitError
    for a type code that is not known.
    """
    pieces: dict[int, list[Piece]] = {}
    for field, piece in _Walk(documents, field_count, wanted).run():
        if field in wanted:
            pieces.setdefault(field, []).append(piece)
    return pieces


_HEAD = struct.Struct("<IB")
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


class _Walk:
    """All documents, each at its next value."""

    def __init__(self, documents: Documents, field_count: int, wanted: Collection[int]) -> None:
        self._data, self._places = documents.data, Places(documents.data)
        self._field_count, self._wanted = field_count, wanted
        count = len(documents.ends)
        self._limits = pa.Array.from_buffers(pa.int64(), count, [None, pa.py_buffer(documents.ends)])
        self._rows = counting(count)

    def run(self) -> Iterator[tuple[int, Piece]]:
        """Yield each slice with its field, in the order of the documents' values."""
        if not len(self._rows):
            return
        begins = pa.concat_arrays([pa.array([0], pa.int64()), self._limits.slice(0, len(self._limits) - 1)])
        left, at = self._places.vints(begins, self._limits)
        while True:
            going = pc.greater(left, 0)
            if not pc.all(going).as_py():
                done = pc.invert(going)
                if pc.any(pc.not_equal(at.filter(done), self._limits.filter(done))).as_py():
                    raise DamagedSplitError("has a document that ends before its place")
                self._rows, self._limits = self._rows.filter(going), self._limits.filter(going)
                left, at = left.filter(going), at.filter(going)
            if not len(self._rows):
                return
            yield from self._step(at)
            left, at = pc.subtract(left, 1), self._ends

    def _step(self, at: pa.Int64Array) -> Iterator[tuple[int, Piece]]:
        """Yield the slices of the values at `at`; leaves in `_ends` where each of these ends."""
        bodies = pc.add(at, _HEAD.size)
        expect_at_most(bodies, self._limits)
        heads = self._places.slices(at, bodies).dictionary_encode()
        self._ends = bodies
        for index, head in enumerate(heads.dictionary.to_pylist()):
            field, number = _HEAD.unpack(head)
            code = _known(number)
            if field >= self._field_count:
                raise DamagedSplitError(f"has a document with a value of field {field}, of {self._field_count}")
            if len(heads.dictionary) == 1:
                piece, self._ends = self._values(field, code, self._rows, bodies, self._limits)
            else:
                mask = pc.equal(heads.indices, index)
                of_these = [column.filter(mask) for column in (self._rows, bodies, self._limits)]
                piece, ends = self._values(field, code, *of_these)
                self._ends = pc.replace_with_mask(self._ends, mask, ends)
            yield field, piece

    def _values(
        self, field: int, code: Code, rows: pa.Int64Array, begins: pa.Int64Array, limits: pa.Int64Array
    ) -> tuple[Piece, pa.Int64Array]:
        """The values of one code at `begins`, and where they end, which is not beyond `limits`."""
        values: Any  # Any: as of Piece
        if code in _TEXTS:
            lengths, begins = self._places.vints(begins, limits)
            ends = pc.add(begins, lengths)
            expect_at_most(ends, limits)
            values = self._places.slices(begins, ends) if field in self._wanted else None
        elif code in _FIXED:
            kind = _FIXED[code]
            ends = pc.add(begins, kind.bit_width // 8)
            expect_at_most(ends, limits)
            values = self._places.fixed(begins, kind) if field in self._wanted else None
        elif code in _NESTED:
            values, ends = self._nested(code, begins)
            expect_at_most(ends, limits)
        else:
            values, ends = pa.nulls(len(rows)), begins
        return Piece(code=code, rows=rows, values=values), ends

    def _nested(self, code: Code, begins: pa.Int64Array) -> tuple[list[object], pa.Int64Array]:
        found = [nested_value(self._data, begin, code) for begin in begins.to_pylist()]
        return [value for value, _ in found], pa.array([end for _, end in found], pa.int64())


def _known(number: int) -> Code:
    try:
        return Code(number)
    except ValueError as error:
        raise UnsupportedSplitError(f"has a value of type code {number}", feature=f"typeCode{number}") from error
