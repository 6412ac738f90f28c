"""Arrow scalars from Python values, without pandas.

`pyarrow.scalar` imports pandas wherever that is installed, to see whether the value is a series: about 200 ms in each
process that reads a partition value. The usual kinds of values are made from their bytes instead.
"""

from __future__ import annotations

import struct

import pyarrow as pa


def scalar_of(value: object, kind: pa.DataType) -> pa.Scalar:
    """Gives what `pa.scalar(value, kind)` does. For a date `value` may be days, for a timestamp microseconds."""
    if value is None:
        return pa.nulls(1, kind)[0]
    if isinstance(value, str) and kind == pa.string():
        text = value.encode()
        ends = struct.pack("<ii", 0, len(text))
        return pa.Array.from_buffers(kind, 1, [None, pa.py_buffer(ends), pa.py_buffer(text)])[0]
    is_a = pa.types
    if type(value) is int and (is_a.is_signed_integer(kind) or is_a.is_date32(kind) or is_a.is_timestamp(kind)):
        width = kind.bit_width
        if -(1 << width - 1) <= value < 1 << width - 1:
            whole = value.to_bytes(width // 8, "little", signed=True)
            return pa.Array.from_buffers(kind, 1, [None, pa.py_buffer(whole)])[0]
    return pa.scalar(value, kind)
