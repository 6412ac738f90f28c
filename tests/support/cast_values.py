"""Values of every type at the edges of what casts do with them: what ours are held against Spark's on."""

from __future__ import annotations

import datetime
import struct
from decimal import Decimal
from typing import Any

import pyarrow as pa

_INFINITY = float("inf")
_FLOATS = [0.0, -0.0, 1.0, -1.5, 0.5, 2.5, 0.1, 1e-3, 9.999e-4, 1e7, 12345678.9, 1e10, 1.5e300, -1e300, 127.9, -128.9]
_FLOATS += [128.0, 32767.5, 2147483647.0, 2147483648.0, -2147483648.9, 9.007199254740993e15, 9.2e18, 1e19, 1e38, 5e-324]
_FLOATS += [123456.789, 0.05, 99999.995, 1 / 3, _INFINITY, -_INFINITY, float("nan")]
_DECIMALS = ["0.000", "1.255", "-1.255", "0.005", "-0.005", "127.999", "128.000", "-128.999", "32768.000", "99999.995"]
_DECIMALS += ["99999.994", "1234567.891", "-9999999.999", "9999999.999"]
_WIDE = ["0", "5.999999999999999999", "-5.999999999999999999", "2147483647.999999999999999999", "0.000000000000000001"]
_WIDE += ["2147483646.999999999", "12345678901234567890.123456789012345678", "99999999999999999999.999999999999999999"]
_WIDE += [
    "9223372036854775807.9",
    "9223372036854775808",
    "-9223372036854775808.5",
    "16777217.000000000000000001",
    "18446744073709551615.5",
    "-36893488147419103231.4",
]
_TEXTS = [
    "",
    " ",
    "0",
    "1",
    "-1",
    "+7",
    " 12 ",
    "\t12\n",
    "\x0012",
    "\xa012",
    "12\xa0",
    "1.0",
    "1.",
    ".5",
    "1e3",
    "1E3",
]
_TEXTS += [
    "1_0",
    "0x10",
    "\u0661",
    "127",
    "128",
    "-129",
    "32768",
    "2147483647",
    "2147483648",
    "9223372036854775807",
    "+-1",
]
_TEXTS += ["9223372036854775808", "00000000000000000000012", "99999.995", "99999.994", "1.255", "1e400", "-1e400", "-"]
_TEXTS += [
    "1e-400",
    "0.1",
    "16777217",
    "16777216.999999999",
    "1.0d",
    "1.0F",
    "1.0x",
    "NaN",
    "nan",
    " NaN ",
    "Infinity",
    "-NaN",
]
_TEXTS += [
    "-inf",
    "+Infinity",
    "inf",
    "infinit",
    "true",
    "null",
    "1" * 39,
    "1e39",
    "0." + "0" * 40 + "1",
    "0x1p3",
    "- 1",
]
_TEXTS += [
    "2024",
    "2024-2",
    "2024-02-29",
    "2023-02-29",
    "2024-2-9",
    " 2024-02-29 ",
    "2024-02-29T",
    "2024-02-29 ",
    "24-02-29",
]
_TEXTS += [
    "2024-02-29T12",
    "2024-02-29 12:30",
    "2024-02-29 1:2:3",
    "2024-02-29 12:30:45.",
    "2024-02-29 12:30:45.123456789",
]
_TEXTS += [
    "2024-02-29 12:30:45Z",
    "2024-02-29T12:30:45.5+02:00",
    "2024-02-29 12:30:45 Europe/Berlin",
    "2024-02-29 24:00:00",
]
_TEXTS += [
    "2024-02-29 12:30:45+2:3",
    "2024-02-29 12:30:45-1800",
    "2024-02-29 12:30:45+19:00",
    "2024-02-29 12:30:45UTC+1",
]
_TEXTS += [
    "2024-03-10 02:30:00",
    "2024-11-03 01:30:00",
    "1850-01-01 00:00:00",
    "0001-01-01",
    "-0001-01-01",
    "10000-01-01",
]
_TEXTS += [
    "2024-02-29x",
    "2024-02-29 x",
    "2024-02-29 12:30Z",
    "2024-02-29 12:30:60",
    "12:30:45",
    "T12:30",
    "2024-13-01",
]
_TEXTS += [
    "2024-02-29 12:30:45.5 UTC",
    "2024-02-29 12:30:45 ",
    "2024/02/29",
    "20240229",
    "5874897-01-01",
    "epoch",
    "now",
]
_TEXTS += [
    ".",
    "-.",
    "+.7",
    "1.9",
    "-1.9",
    "1.5.",
    "2147483648.9",
    "-129.9",
    "1e00000000001",
    "1e99999999999",
    "2024-02-29 12:30:45+123",
    "2024-02-29 12:30:45+02:3:15",
    "2024-02-29 12:30:45+2:30:15",
    "2024-02-29 12:30:45 PST",
    "2024-02-29 12:30:45 Nowhere/Land",
    "2024-02-29 12:30:45 x",
    "T12",
    "T12x",
]
_DAYS = [
    datetime.date(*d) for d in [(1, 1, 1), (1582, 10, 15), (1883, 11, 18), (1970, 1, 1), (2024, 3, 10), (9999, 12, 31)]
]
_MOMENTS = [-62135596800000000, -2717650800000001, -1, 0, 1, 1_500_000, 1710054000000000, 1710055800000000]
_MOMENTS += [1730611800000000, 1730615400000000, 1709209845123456, 253402300799000000]


def _singles() -> list[float]:
    near = [16777217.0, 33554432.0, 3.4028234663852886e38, 1.17549435e-38, 1.4e-45, 1e10, 0.3, 2147483647.0]
    return [
        struct.unpack("f", struct.pack("f", v))[0]
        for v in [*near, *(f for f in _FLOATS if not 1e39 < abs(f) < _INFINITY)]
    ]


VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "byte": (pa.int8(), [0, 1, -1, 127, -128]),
    "short": (pa.int16(), [0, -1, 127, 128, -129, 32767, -32768]),
    "integer": (pa.int32(), [0, -1, 128, 32768, 16777217, 2147483647, -2147483648]),
    "long": (pa.int64(), [0, -1, 128, -32769, 2147483648, 9007199254740993, 9223372036854775807, -9223372036854775808]),
    "float": (pa.float32(), _singles()),
    "double": (pa.float64(), _FLOATS),
    "decimal(10,3)": (pa.decimal128(10, 3), [Decimal(d) for d in _DECIMALS]),
    "decimal(38,18)": (pa.decimal128(38, 18), [Decimal(d) for d in _WIDE]),
    "boolean": (pa.bool_(), [True, False]),
    "string": (pa.string(), _TEXTS),
    "binary": (pa.binary(), [b"", b"abc", "ü".encode()]),
    "date": (pa.date32(), _DAYS),
    "timestamp": (pa.timestamp("us", "UTC"), _MOMENTS),
    "timestamp_ntz": (pa.timestamp("us"), _MOMENTS),
}
"""By the type's name in a schema: it in Arrow, and its values, moments as microseconds."""

TARGETS: dict[str, pa.DataType] = {
    **{name: kind for name, (kind, _) in VALUES.items()},
    "decimal(5,2)": pa.decimal128(5, 2),
    "decimal(38,0)": pa.decimal128(38, 0),
}
"""What they are cast to."""


def column(name: str) -> pa.Array:
    """The values of a type, and a null."""
    kind, values = VALUES[name]
    return pa.array([*values, None], kind)


def comparable(array: pa.Array) -> list[str]:
    """Values as text that tells zeros and NaN apart, days and moments as numbers."""
    if pa.types.is_date(array.type):
        array = array.cast(pa.int32())
    elif pa.types.is_timestamp(array.type):
        array = array.cast(pa.timestamp("us", array.type.tz)).cast(pa.int64())
    return [repr(value) for value in array.to_pylist()]
