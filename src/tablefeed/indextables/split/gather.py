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
    """Reads values at positions of `data`.

    For a position outside of `data` the result is undefined, or an error of Arrow.
    """

    def __init__(self, data: bytes) -> None:
        self._data = pa.py_buffer(data)
        self._bytes = pa.Array.from_buffers(pa.uint8(), len(data), [None, self._data])
        self._even = counting(0, step=2)

    def bytes(self, begins: pa.Int64Array) -> pa.UInt8Array:
        """The bytes at `begins`."""
        return self._bytes.take(begins)

    def slices(self, begins: pa.Int64Array, ends: pa.Int64Array) -> pa.BinaryArray:
        """The bytes from each of `begins` to before the corresponding one of `ends`."""
        # The wanted bytes and the bytes between them are the elements of one array over `data`, without a copy. Begin
        # and end are two 32-bit offsets, written as one 64-bit number. Every other element is a wanted one.
        count = len(begins)
        if not count:
            return pa.array([], pa.binary())
        offsets = pc.add(begins, pc.shift_left(ends, 32)).buffers()[1]
        both = pa.Array.from_buffers(pa.binary(), 2 * count - 1, [None, offsets, self._data])
        if len(self._even) < count:
            self._even = counting(count, step=2)
        return both.take(self._even.slice(0, count))

    def fixed(self, begins: pa.Int64Array, kind: pa.DataType) -> pa.Array:
        """The values of `kind`, a little-endian number or bytes of a fixed width, at `begins`."""
        if kind.bit_width == 8:
            return self.bytes(begins).view(kind)
        found = self.slices(begins, pc.add(begins, kind.bit_width // 8))
        return pa.Array.from_buffers(kind, len(found), [None, _contiguous(found)])

    def vints(self, begins: pa.Int64Array, limits: pa.Int64Array) -> tuple[pa.Int64Array, pa.Int64Array]:
        """The number at each of `begins`, and where it ends. A byte has seven bits; the last byte has its top bit set.

        Raises DamagedSplitError where a number goes beyond its limit in `limits`, or has more than 35 bits.
        """
        value, ends, unfinished = self._vint_part(begins, limits)
        shift = 7
        while unfinished is not None:
            if shift == 35:
                raise DamagedSplitError("has a length of more than 35 bits")
            part, part_ends, more = self._vint_part(ends.filter(unfinished), limits.filter(unfinished))
            sums = pc.add(value.filter(unfinished), pc.shift_left(part, shift))
            value = pc.replace_with_mask(value, unfinished, sums)
            ends = pc.replace_with_mask(ends, unfinished, part_ends)
            unfinished = None if more is None else pc.replace_with_mask(unfinished, unfinished, more)
            shift += 7
        return value, ends

    def _vint_part(
        self, begins: pa.Int64Array, limits: pa.Int64Array
    ) -> tuple[pa.Int64Array, pa.Int64Array, pa.BooleanArray | None]:
        """The seven bits at each of `begins`, where they end, and whose number goes on; None: no number does."""
        ends = pc.add(begins, 1)
        expect_at_most(ends, limits)
        byte = self.bytes(begins)
        more = pc.less(byte, _TOP_BIT)
        value = pc.bit_wise_and(byte, _LOW_BITS).cast(pa.int64())
        return value, ends, more if pc.any(more).as_py() else None


_LOW_BITS, _TOP_BIT = pa.scalar(127, pa.uint8()), pa.scalar(128, pa.uint8())


def expect_at_most(values: pa.Int64Array, limits: pa.Int64Array) -> None:
    """Raises DamagedSplitError where one of `values` is greater than the corresponding one of `limits`."""
    if pc.any(pc.greater(values, limits)).as_py():
        raise DamagedSplitError("has a document that is cut, or longer than its place")


def counting(count: int, *, step: int = 1) -> pa.Int64Array:
    """The first `count` multiples of `step`, from 0 on."""
    return pc.cumulative_sum(pa.repeat(pa.scalar(step, pa.int64()), count), start=-step)


def _contiguous(found: pa.BinaryArray) -> Any:  # Any: pa.Buffer, of which no types are published
    # `take` copies, so the buffer begins with the bytes of the first element.
    data = found.buffers()[2]
    return data if data is not None else pa.py_buffer(b"")
