"""Tables whose statistics are easily told wrong: rows, properties and partitioning, for any writer to write."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa

MAX = "\U0010ffff"
FACE = "\U0001f600"


@dataclass(frozen=True, slots=True, kw_only=True)
class ATable:
    """What a writer is given to make a table with one file."""

    rows: pa.Table
    properties: Mapping[str, str] = field(default_factory=dict)
    partition_by: tuple[str, ...] = ()


def _column(kind: pa.DataType, **columns: list[object]) -> pa.Table:
    return pa.table({name: pa.array(values, kind) for name, values in columns.items()})


_INNER = pa.struct([("x", pa.int64()), ("deep", pa.struct([("day", pa.date32()), ("flags", pa.list_(pa.bool_()))]))])
NESTED = pa.table(
    {
        "id": [1, 2, 3],
        "st": pa.array([{"x": 5, "deep": None}, None, {"x": None, "deep": {"day": None, "flags": [True]}}], _INNER),
        "list": pa.array([[1], [], None], pa.list_(pa.int64())),
        "map": pa.array([[("a", 1)], None, []], pa.map_(pa.string(), pa.int64())),
        "name": ["a", None, "c"],
    }
)
WIDE = pa.table({f"c{number:02d}": [number, -number] for number in range(40)})
TEXTS = pa.table(
    {
        name: [text, text]
        for name, text in {
            "exact": "z" * 32,
            "ascii": "z" * 33,
            "del": "z" * 32 + "\x7f",
            "umlaut": "ü" * 40,
            "faces": FACE * 40,
            "odd_pair": "z" * 31 + FACE + "bc",
            "max_at_cut": "z" * 32 + MAX + "b",
            "all_max": MAX * 33,
            "most_max": MAX * 32,
            "escaped": 'q"\\\n\x01',
            "empty": "",
        }.items()
    }
)
NULLS = pa.table(
    {
        str(kind): pa.nulls(2, kind)
        for kind in (
            *(pa.bool_(), pa.int8(), pa.int64(), pa.float32(), pa.float64(), pa.decimal128(9, 2), pa.string()),
            *(pa.binary(), pa.date32(), pa.timestamp("us", "UTC"), pa.timestamp("us")),
        )
    }
).rename_columns([f"c{number}" for number in range(11)])
DOUBLES = [
    _column(
        kind,
        some_nan=[math.nan, 1.5, None],
        only_nan=[math.nan, math.nan, None],
        infinite=[math.inf, -math.inf, None],
        negative_zero=[-0.0, -0.0, None],
        both_zeros=[0.0, -0.0, 0.0],
        halves=[0.5, -0.25, None],
    )
    for kind in (pa.float64(), pa.float32())
]
MOMENTS = [
    datetime(2024, 2, 29, 23, 59, 59, 120_000, tzinfo=UTC),
    datetime(1969, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC),
    datetime(1900, 1, 1, tzinfo=UTC),
]

TABLES: Mapping[str, ATable] = {
    "nested": ATable(rows=NESTED),
    "wide": ATable(rows=WIDE),
    "all of the wide": ATable(rows=WIDE, properties={"delta.dataSkippingNumIndexedCols": "-1"}),
    "none": ATable(rows=NESTED, properties={"delta.dataSkippingNumIndexedCols": "0"}),
    "up to a member": ATable(rows=NESTED, properties={"delta.dataSkippingNumIndexedCols": "3"}),
    "named": ATable(rows=NESTED, properties={"delta.dataSkippingStatsColumns": "NAME, st.X"}),
    "named struct": ATable(rows=NESTED, properties={"delta.dataSkippingStatsColumns": "st"}),
    "named, and mapped": ATable(
        rows=NESTED, properties={"delta.dataSkippingStatsColumns": "st.deep, name", "delta.columnMapping.mode": "name"}
    ),
    "no name": ATable(rows=NESTED, properties={"delta.dataSkippingStatsColumns": ""}),
    "quoted": ATable(
        rows=pa.table({"a.b": [1], "`c`,d": [2], "e": [3]}),
        properties={"delta.dataSkippingStatsColumns": "`a.b`,```c``,d`", "delta.columnMapping.mode": "name"},
    ),
    "mapped by id": ATable(rows=NESTED, properties={"delta.columnMapping.mode": "id"}),
    "deletion vectors": ATable(rows=NESTED, properties={"delta.enableDeletionVectors": "true"}),
    "texts": ATable(rows=TEXTS),
    "short prefixes": ATable(rows=TEXTS, properties={"delta.dataSkippingStringPrefixLength": "5"}),
    "no prefixes": ATable(rows=TEXTS, properties={"delta.dataSkippingStringPrefixLength": "0"}),
    "nulls": ATable(rows=NULLS),
    "no order": ATable(rows=pa.table({"flag": [True, None], "bytes": [b"\xff", None], "list": [[1], None]})),
    "doubles": ATable(rows=DOUBLES[0]),
    "floats": ATable(rows=DOUBLES[1]),
    "decimals": ATable(
        rows=pa.table(
            {
                "small": pa.array([Decimal("-0.01"), Decimal("1.50")], pa.decimal128(9, 2)),
                "zero": pa.array([Decimal(0), None], pa.decimal128(38, 18)),
                "large": pa.array([Decimal(10**38 - 1), Decimal(-(10**38) + 1)], pa.decimal128(38, 0)),
                "fine": pa.array([Decimal("1e-30"), Decimal("0.1")], pa.decimal128(38, 30)),
            }
        )
    ),
    "whole numbers": ATable(
        rows=pa.table(
            {
                f"i{bits}": pa.array([-(1 << bits - 1), (1 << bits - 1) - 1], kind)
                for bits, kind in ((8, pa.int8()), (16, pa.int16()), (32, pa.int32()), (64, pa.int64()))
            }
        )
    ),
    "days": ATable(rows=pa.table({"day": [date(1, 1, 1), date(1582, 10, 4), date(9999, 12, 31), None]})),
    "moments": ATable(
        rows=pa.table(
            {
                "moment": pa.array(MOMENTS, pa.timestamp("us", "UTC")),
                "clock": pa.array([each.replace(tzinfo=None) for each in MOMENTS], pa.timestamp("us")),
            }
        )
    ),
    "partitioned": ATable(
        rows=pa.table({"p": ["a/ü", "a/ü"], "id": [1, 2], "q": pa.array([date(2024, 2, 29)] * 2)}),
        partition_by=("q", "p"),
    ),
    "partitioned, and mapped": ATable(
        rows=pa.table({"p": ["a", "a"], "id": [1, 2], "c": [True, False]}),
        partition_by=("p",),
        properties={"delta.columnMapping.mode": "name", "delta.dataSkippingNumIndexedCols": "1"},
    ),
}
"""Each with one partition, so with one file; its timestamps are of whole milliseconds and its floats of few digits."""
