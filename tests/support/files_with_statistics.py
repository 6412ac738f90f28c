"""Random files of a table with columns of every type: their rows, partition values and any writer's statistics."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from support.statistics_writers import WRITERS, Spelt, text_of
from tablefeed.delta.partition_values import serialise
from tablefeed.delta.schema.arrow_schema import to_arrow
from tablefeed.feed.scan.delta_task import DeltaColumns
from tablefeed.feed.scan.task import PartitionColumn
from tablefeed.model import schema as model
from tablefeed.model.schema import DataType, Field, Primitive, Struct

SMALL, LARGE, HUGE = model.Decimal(10, 2), model.Decimal(38, 18), model.Decimal(38, 0)
LEAVES: Mapping[str, DataType] = {
    **{name: Primitive(name) for name in ("long", "short", "double", "float", "string", "date", "timestamp")},
    **{name: Primitive(name) for name in ("timestamp_ntz", "boolean", "binary")},
    "small": SMALL,
    "large": LARGE,
    "huge": HUGE,
}
MEMBERS = Struct((Field("long", Primitive("long"), nullable=True), Field("string", Primitive("string"), nullable=True)))
SCHEMA = Struct(
    (
        *(Field(name, kind, nullable=True) for name, kind in LEAVES.items()),
        *(Field(f"p_{name}", kind, nullable=True) for name, kind in LEAVES.items()),
        Field("s", MEMBERS, nullable=True),
    )
)
ARROW = to_arrow(SCHEMA)


def in_log(name: str, *, mapped: bool) -> str:
    """What the log calls a column or a member."""
    return f"col-{name}" if mapped else name


def with_physical_names(schema: Struct) -> Struct:
    return Struct(
        tuple(
            replace(
                field,
                type=with_physical_names(field.type) if isinstance(field.type, Struct) else field.type,
                metadata={"delta.columnMapping.physicalName": in_log(field.name, mapped=True)},
            )
            for field in schema
        )
    )


def columns(*, mapped: bool) -> DeltaColumns:
    partitions = {f"p_{name}": kind for name, kind in LEAVES.items()}
    return DeltaColumns(
        partitions={
            name: PartitionColumn(physical_name=in_log(name, mapped=mapped), type=kind)
            for name, kind in partitions.items()
        },
        stored={field.name: field.with_name(in_log(field.name, mapped=True)) for field in ARROW} if mapped else None,
    )


def near(values: Sequence[Any], step: Any) -> list[Any]:
    return [v + i * step for v in values for i in (-1, 0, 1)]


def single(value: float) -> float:
    return float(struct.unpack("f", struct.pack("f", value))[0])


MOMENT = datetime(2024, 1, 1, 12, 0, 0, 123_000)  # noqa: DTZ001 - wall clocks too
MOMENTS = [MOMENT + timedelta(microseconds=us) for us in (-1000, -1, 0, 1, 999, 1000)]
MOMENTS += [datetime(1969, 12, 31, 23, 59, 59, 999_999), datetime(1, 1, 1), datetime(1582, 10, 14)]  # noqa: DTZ001
A = "a" * 15
TEXTS = [
    *("", "a", "b", "é", A, A + "a", A + "b", A + "aa", A * 3, A * 3 + "b", "\U0001f600" * 40, A * 2 + "aa\U0001f600"),
    *("\U0010ffff" * 70, A * 2 + "aa\ufffd", A * 5, "x" * 31 + "\U0010ffff" * 40),
]
FLOATS = [0.0, -0.0, 1.5, 0.1, -0.1, math.nan, math.inf, -math.inf, 5e-324, 1e308, 16777217.0, 2.0**53]
VALUES: Mapping[str, Sequence[Any]] = {
    "long": [*near([0, 5, 2**53], 1), 2**63 - 1, -(2**63)],
    "short": near([0, 5], 1),
    "double": [*FLOATS, 1.0, -1.0],
    "float": [single(v) for v in FLOATS if v != 1e308],
    "string": TEXTS,
    "date": [date(2024, 1, d) for d in (1, 2, 3)] + [date(1, 1, 1), date(1500, 1, 1), date(9999, 12, 31)],
    "timestamp": [m.replace(tzinfo=UTC) for m in MOMENTS],
    "timestamp_ntz": MOMENTS,
    "boolean": [True, False],
    "binary": [b"", b"a", b"b", b"\xff"],
    "small": [Decimal(t) for t in ("0.00", "0.01", "-0.01", "99999999.99", "1.50", "-99999999.99")],
    "large": [Decimal(t) for t in ("12345678901234567890.123456789012345678", "0.1", "0.100000000000000001", "-3")],
    "huge": [Decimal(n) for n in (0, 2**53 + 1, 2**63 - 1, -(2**63), 2**63, 10**38 - 1, 1 - 10**38)],
}

Row = Mapping[str, Any]


def value_of(name: str) -> st.SearchStrategy[Any]:
    return st.none() | st.sampled_from(VALUES[name])


ROW = st.fixed_dictionaries(
    {name: value_of(name) for name in LEAVES}
    | {"s": st.none() | st.fixed_dictionaries({name: value_of(name) for name in MEMBERS.names})}
)


@st.composite
def spellings(draw: st.DrawFn, values: list[Any], kind: str) -> Spelt:
    present = [v for v in values if v is not None]
    if not present or draw(st.integers(0, 9)) == 0:
        return None, None
    low, high = draw(st.sampled_from(WRITERS))(present, kind)
    return low if draw(st.integers(0, 9)) else None, high if draw(st.integers(0, 9)) else None


@st.composite
def statistics(draw: st.DrawFn, rows: Sequence[Row], *, mapped: bool) -> str | None:
    """What one writer tells of `rows` and of others that were deleted since, or does not."""
    deleted = draw(st.lists(ROW, max_size=1))
    if draw(st.integers(0, 19)) == 0:
        return draw(st.sampled_from([None, "", "{", "[]", "null", '{"minValues":[]}', '{"numRecords":1}']))
    physical = [*rows, *deleted]
    tree: dict[str, Any] = {"numRecords": len(physical), "minValues": {}, "maxValues": {}, "nullCount": {}}
    leaves: dict[tuple[str, ...], list[Any]] = {(name,): [row[name] for row in physical] for name in LEAVES}
    leaves |= {("s", name): [row["s"] and row["s"][name] for row in physical] for name in MEMBERS.names}
    for path, values in leaves.items():
        low, high = draw(spellings(values, path[-1]))
        found = {"minValues": low, "maxValues": high}
        if draw(st.integers(0, 9)):
            found["nullCount"] = draw(st.just(values.count(None)) | st.sampled_from(["0", 1.5, None, True]))
        for group, value in found.items():
            if value is not None or draw(st.booleans()):
                *above, name = (in_log(part, mapped=mapped) for part in path)
                inner = tree[group].setdefault(above[0], {}) if above else tree[group]
                inner[name] = value
    for group in draw(st.lists(st.sampled_from(["minValues", "maxValues", "nullCount", "numRecords"]), max_size=1)):
        if draw(st.booleans()):
            tree.pop(group)
    return text_of(tree)


@dataclass(frozen=True, slots=True)
class File:
    """A data file and what the log tells of it, with a text of its own: pyarrow's cannot show every text."""

    rows: pa.Table
    partition: Mapping[str, str | None]
    stats: str | None

    def __repr__(self) -> str:
        return f"{self.rows.to_pylist()}\n{self.partition}\n{self.stats}"


PARTITION = st.fixed_dictionaries({f"p_{name}": value_of(name) for name in LEAVES})


@st.composite
def a_file(draw: st.DrawFn, *, mapped: bool) -> File:
    rows = draw(st.lists(ROW, min_size=1, max_size=3))
    values = draw(PARTITION)
    partition: dict[str, str | None] = {}
    for name, kind in LEAVES.items():
        column = pa.array([values[f"p_{name}"]], type=ARROW.field(f"p_{name}").type)
        physical = column.cast(_AS_INTEGERS[name])[0].as_py() if name in _AS_INTEGERS else column[0].as_py()
        text = serialise(physical, kind)
        partition[in_log(f"p_{name}", mapped=mapped)] = text
        if text is None:
            values[f"p_{name}"] = None  # the log has no empty text
    table = pa.Table.from_pylist([{**row, **values} for row in rows], schema=ARROW)
    return File(table, partition, draw(statistics(rows, mapped=mapped)))


_AS_INTEGERS = {"date": pa.int32(), "timestamp": pa.int64(), "timestamp_ntz": pa.int64()}
