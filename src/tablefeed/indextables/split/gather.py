"""Reads values at many positions of one run of bytes at once: a column from rows, without Python code for each row.

Positions are in ascending order, and the value at one ends before the next begins or where it begins. They are 64-bit
integers; the bytes are fewer than 2 GiB.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tablefeed.indextables.split.damage import DamagedSplitError


class Places:
    """Reads values at positions of `data`. For a position outside of `data` the result is undefined."""

    def __init__(self, data: bytes) -> None:
        self._data = pa.py_buffer(data)

    def slices(self, begins: pa.Int64Array, ends: pa.Int64Array) -> pa.BinaryArray:
        """The bytes from each of `begins` to before the corresponding one of `ends`."""
        # The wanted bytes and the bytes between them are the elements of one array over `data`, without a copy. Begin
        # and end are two 32-bit offsets, written as one 64-bit number. Every other element is a wanted one.
        count = len(begins)
        if not count:
            return pa.array([], pa.binary())
        offsets = pc.add(begins, pc.shift_left(ends, 32)).buffers()[1]
        both = pa.Array.from_buffers(pa.binary(), 2 * count - 1, [None, offsets, self._data])
        return both.take(pc.multiply(counting(count), 2))

    def fixed(self, begins: pa.Int64Array, kind: pa.DataType) -> pa.Array:
        """The values of `kind`, a little-endian number or bytes of a fixed width, at `begins`."""
        found = self.slices(begins, pc.add(begins, kind.bit_width // 8))
        return pa.Array.from_buffers(kind, len(found), [None, _contiguous(found)])

    def vints(self, begins: pa.Int64Array, limits: pa.Int64Array) -> tuple[pa.Int64Array, pa.Int64Array]:
        """The number at each of `begins`, and where it ends. A byte has seven bits; the last byte has its top bit set.

        Raises DamagedSplitError where a number goes beyond its limit in `limits`, or has more than 35 bits.
        """
        value = pa.repeat(pa.scalar(0, pa.int64()), len(begins))
        going, ends = begins, begins
        unfinished = None  # mask of the numbers that have more bytes; None: all have
        for shift in range(0, 35, 7):
            expect_at_most(pc.add(going, 1), limits if unfinished is None else limits.filter(unfinished))
            byte = self.fixed(going, pa.uint8()).cast(pa.int64())
            part = pc.shift_left(pc.bit_wise_and(byte, 127), shift)
            going = pc.add(going, 1)
            value, ends = _onto(value, part, unfinished), _replaced(ends, going, unfinished)
            more = pc.less(byte, 128)
            if not pc.any(more).as_py():
                return value, ends
            unfinished = more if unfinished is None else pc.replace_with_mask(unfinished, unfinished, more)
            going = going.filter(more)
        raise DamagedSplitError("has a length of more than 35 bits")


def expect_at_most(values: pa.Int64Array, limits: pa.Int64Array) -> None:
    """Raises DamagedSplitError where one of `values` is greater than the corresponding one of `limits`."""
    if pc.any(pc.greater(values, limits)).as_py():
        raise DamagedSplitError("has a document that is cut, or longer than its place")


def counting(count: int) -> pa.Int64Array:
    """The numbers from 0 to `count - 1`."""
    return pc.subtract(pc.cumulative_sum(pa.repeat(pa.scalar(1, pa.int64()), count)), 1)


def _onto(values: pa.Array, parts: pa.Array, where: pa.Array | None) -> pa.Array:
    return pc.add(values, parts if where is None else _replaced(pc.multiply(values, 0), parts, where))


def _replaced(values: pa.Array, new: pa.Array, where: pa.Array | None) -> pa.Array:
    return new if where is None else pc.replace_with_mask(values, where, new)


def _contiguous(found: pa.BinaryArray) -> Any:  # Any: pa.Buffer, of which no types are published
    # `take` copies, so the buffer begins with the bytes of the first element.
    data = found.buffers()[2]
    return data if data is not None else pa.py_buffer(b"")
