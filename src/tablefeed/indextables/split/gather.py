"""Values at many places of one run of bytes at once: a column out of rows, without a step of Python per row.

Places never fall, and what is at one ends no later than the next begins. They are 64 bits wide, the bytes fewer
than 2 GiB.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tablefeed.indextables.split.damage import DamagedSplitError


class Places:
    """Bytes, and what can be read at places of them. Where a place lies outside, what is read is not defined."""

    def __init__(self, data: bytes) -> None:
        self._data = pa.py_buffer(data)

    def slices(self, begins: pa.Int64Array, ends: pa.Int64Array) -> pa.BinaryArray:
        """The bytes from each of `begins` to before the same of `ends`."""
        # What is wanted and what lies between are the elements of one array over the bytes as they are: a pair of
        # 32 bits each, written as one number of 64. Every other element is one that is wanted.
        count = len(begins)
        if not count:
            return pa.array([], pa.binary())
        offsets = pc.add(begins, pc.shift_left(ends, 32)).buffers()[1]
        both = pa.Array.from_buffers(pa.binary(), 2 * count - 1, [None, offsets, self._data])
        return both.take(_evens(count))

    def fixed(self, begins: pa.Int64Array, kind: pa.DataType) -> pa.Array:
        """The value of `kind`, a little-endian number or bytes of one width, at each of `begins`."""
        found = self.slices(begins, pc.add(begins, kind.bit_width // 8))
        return pa.Array.from_buffers(kind, len(found), [None, _contiguous(found)])

    def vints(self, begins: pa.Int64Array, limits: pa.Int64Array) -> tuple[pa.Int64Array, pa.Int64Array]:
        """The number at each of `begins`, seven bits a byte with the top bit set in the last, and where it ends.

        Raises DamagedSplitError where one does not end before the same of `limits`, or is of more than 35 bits.
        """
        value = pa.repeat(pa.scalar(0, pa.int64()), len(begins))
        going, ends = begins, begins
        unfinished = None  # which of all still go on; None: all
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
    """Raises DamagedSplitError where one of `values` is beyond the same of `limits`."""
    if pc.any(pc.greater(values, limits)).as_py():
        raise DamagedSplitError("has a document that is cut, or longer than its place")


def counting(count: int) -> pa.Int64Array:
    """The numbers from 0 to before `count`."""
    return pc.subtract(pc.cumulative_sum(pa.repeat(pa.scalar(1, pa.int64()), count)), 1)


def _onto(values: pa.Array, parts: pa.Array, where: pa.Array | None) -> pa.Array:
    return pc.add(values, parts if where is None else _replaced(pc.multiply(values, 0), parts, where))


def _replaced(values: pa.Array, new: pa.Array, where: pa.Array | None) -> pa.Array:
    return new if where is None else pc.replace_with_mask(values, where, new)


def _contiguous(found: pa.BinaryArray) -> Any:  # Any: pa.Buffer, of which no types are published
    # `take` gives an array of its own, whose bytes begin with those of its first element.
    data = found.buffers()[2]
    return data if data is not None else pa.py_buffer(b"")


def _evens(count: int) -> pa.Array:
    return pc.multiply(counting(count), 2)
