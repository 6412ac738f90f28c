"""Rows of every type that both writers know, with what is awkward in each: extremes, NaN, nulls, texts to escape."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

NESTED = pa.schema(
    [
        pa.field("id", pa.int64()),
        pa.field("list", pa.list_(pa.int32())),
        pa.field("map", pa.map_(pa.string(), pa.int64())),
        pa.field(
            "struct", pa.struct([("a", pa.int32()), ("b", pa.string()), ("deep", pa.struct([("c", pa.date32())]))])
        ),
        pa.field("structs", pa.list_(pa.struct([("x", pa.float64()), ("y", pa.binary())]))),
    ]
)

AWKWARD: dict[str, tuple[pa.DataType, Sequence[Any]]] = {
    "flag": (pa.bool_(), [True, False]),
    "tiny": (pa.int8(), [-128, 127, 0]),
    "small": (pa.int16(), [-32768, 32767, 0]),
    "whole": (pa.int32(), [-(1 << 31), (1 << 31) - 1, 0]),
    "big": (pa.int64(), [-(1 << 63), (1 << 63) - 1, 0]),
    "single": (pa.float32(), [float("nan"), float("inf"), 1.5, 0.1, 1e10, 1e-5, 3.4028235e38, -0.0]),
    "double": (pa.float64(), [float("nan"), float("-inf"), 0.1, 1e7, 123456789.125, 1e-3, 1e-4, 5e-324, -0.0]),
    "price": (
        pa.decimal128(20, 4),
        [Decimal("1.5000"), Decimal("-0.0001"), Decimal("9999999999999999.9999"), Decimal(0)],
    ),
    "huge": (pa.decimal128(38, 0), [Decimal(10**38 - 1), Decimal(-(10**38) + 1)]),
    "text": (
        pa.string(),
        [
            "a%b c/ü:",
            "=",
            "a=b",
            "%20",
            "x\\y",
            "q\"'",
            "#?*",
            "[{^}]",
            "tab\tnew\nline\r",
            "\x7f\x01",
            "😀",
            "A",
            "a",
            " ",
            "é",
        ],
    ),
    "bytes": (pa.binary(), [b"plain", b"\x01", "ü/%".encode(), b"\xff\xfe"]),
    "day": (pa.date32(), [date(1, 1, 1), date(1582, 10, 4), date(1970, 1, 1), date(9999, 12, 31)]),
    "moment": (
        pa.timestamp("us", tz="UTC"),
        [
            datetime(2024, 2, 29, 12, 0, 0, 500000, tzinfo=UTC),
            datetime(2024, 2, 29, 23, 59, 59, 999999, tzinfo=UTC),
            datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC),
            datetime(1900, 1, 1, tzinfo=UTC),
            datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
        ],
    ),
    "local": (
        pa.timestamp("us"),
        [datetime(2024, 2, 29, 12, 0, 0, 500000), datetime(1500, 1, 1, 0, 0, 1), datetime(9999, 12, 31)],  # noqa: DTZ001
    ),
}
"""Per type that may partition a table: its Arrow type and values, to each of which null comes on top."""


def awkward_rows(*, leave_out: bytes = b"") -> pa.Table:
    """A row for the longest list of values, each column going round its own and null; `id` tells them apart."""
    count = max(len(values) for _, values in AWKWARD.values()) + 1
    columns = {
        name: pa.array(_going_round([value for value in values if value != leave_out], count), type=kind)
        for name, (kind, values) in AWKWARD.items()
    }
    return pa.table({"id": pa.array(range(count), pa.int64()), **columns})


def nested_rows() -> pa.Table:
    """Rows of lists, maps and structs, with nulls and empties at each level."""
    rows: list[dict[str, Any]] = [
        {
            "id": 0,
            "list": [1, None],
            "map": [("ü", 1), ("null", None)],
            "struct": {"a": 1, "b": "x", "deep": {"c": date(2024, 2, 29)}},
            "structs": [{"x": 0.5, "y": b"\x00"}, None],
        },
        {"id": 1, "list": [], "map": [], "struct": {"a": None, "b": None, "deep": None}, "structs": []},
        {"id": 2, "list": None, "map": None, "struct": None, "structs": None},
    ]
    return pa.Table.from_pylist(rows, NESTED)


def _going_round(values: Sequence[Any], count: int) -> list[Any]:
    each = [*values, None]
    return [each[index % len(each)] for index in range(count)]
