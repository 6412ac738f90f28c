"""No file is pruned that has a row which the filter lets through, whoever wrote its statistics."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import given, note, target
from hypothesis import strategies as st

from support.statistics_writers import WRITERS, Spelt, text_of
from tablefeed.delta.partition_values import serialise
from tablefeed.delta.schema.schema_string import to_arrow
from tablefeed.feed.scan.arrow_filter import read_filter
from tablefeed.feed.scan.pruning import Pruner
from tablefeed.feed.scan.task import PartitionColumn, TableColumns
from tablefeed.model import schema as model
from tablefeed.model.schema import DataType, Field, Primitive, Struct

SMALL, LARGE, HUGE = model.Decimal(10, 2), model.Decimal(38, 18), model.Decimal(38, 0)
LEAVES: Mapping[str, DataType] = {
    "long": Primitive("long"),
    "short": Primitive("short"),
    "double": Primitive("double"),
    "float": Primitive("float"),
    "string": Primitive("string"),
    "date": Primitive("date"),
    "timestamp": Primitive("timestamp"),
    "timestamp_ntz": Primitive("timestamp_ntz"),
    "boolean": Primitive("boolean"),
    "binary": Primitive("binary"),
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


def columns(*, mapped: bool) -> TableColumns:
    partitions = {f"p_{name}": kind for name, kind in LEAVES.items()}
    return TableColumns(
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
    "",
    "a",
    "b",
    "é",
    A,
    A + "a",
    A + "b",
    A + "aa",
    A * 3,
    A * 3 + "b",
    "\U0001f600" * 40,
    A * 2 + "aa\U0001f600",
]
TEXTS += ["\U0010ffff" * 70, A * 2 + "aa\ufffd", A * 5, "x" * 31 + "\U0010ffff" * 40]
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

COMPARISONS: Sequence[Callable[[Any, Any], pc.Expression]] = (
    lambda a, b: a == b,
    lambda a, b: a != b,
    lambda a, b: a < b,
    lambda a, b: a <= b,
    lambda a, b: a > b,
    lambda a, b: a >= b,
    lambda a, b: pc.scalar(b) < a,
    lambda a, b: pc.scalar(b) >= a,
)
OTHER_TYPES: Mapping[str, Sequence[Any]] = {
    "long": [0.5, 5.0, math.nan, Decimal("5.5")],
    "short": [0.5, 70_000, math.nan],
    "double": [5, 2**53, Decimal("0.1")],
    "float": [1, 0.1, 16777217.0],
    "small": [1, 1.5, 0.01],
    "large": [0, Decimal("12345678901234567890.5"), 0.1],
    "huge": [0, 2**63 - 1, 1e37],
    "timestamp": [
        pa.scalar(MOMENT, pa.timestamp("ms", "America/New_York")),
        pa.scalar(MOMENT, pa.timestamp("ns", "UTC")),
    ],
}


class Asked:
    """A filter, with a text of its own: pyarrow's cannot show every text that may be in one."""

    def __init__(self, condition: pc.Expression) -> None:
        self.condition = condition

    def __repr__(self) -> str:
        try:
            return str(self.condition)
        except UnicodeDecodeError:
            return "a filter with a long text"


@st.composite
def a_leaf(draw: st.DrawFn) -> pc.Expression:
    prefix, name = draw(st.sampled_from(["", "p_", "s."])), draw(st.sampled_from(list(LEAVES)))
    if prefix == "s.":
        name = draw(st.sampled_from(MEMBERS.names))
    column = pc.field("s", name) if prefix == "s." else pc.field(prefix + name)
    kind = to_arrow(Struct((Field("c", LEAVES[name], nullable=True),))).field(0).type
    match draw(st.integers(0, 9)):
        case 0:
            return column.is_null(nan_is_null=draw(st.booleans()))
        case 1:
            return column.is_valid()
        case 2 | 3:
            wanted = draw(st.lists(value_of(name), max_size=3))
            return column.isin(pa.array(wanted, type=kind))
        case 4 if name == "string":
            return pc.starts_with(column, draw(st.sampled_from(["", "a", A])))
        case 5 if name == "boolean":
            return column
        case _:
            own = st.sampled_from(VALUES[name]).map(lambda value: pa.scalar(value, kind))
            value = draw(own | st.sampled_from(OTHER_TYPES[name]) if name in OTHER_TYPES else own)
            return draw(st.sampled_from(COMPARISONS))(column, value)


FILTER = st.recursive(
    a_leaf(),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda pair: pair[0] & pair[1]),
        st.tuples(inner, inner).map(lambda pair: pair[0] | pair[1]),
        inner.map(lambda one: ~one),
    ),
    max_leaves=4,
).map(Asked)


@given(st.data(), st.booleans(), FILTER)
def test_a_file_with_a_row_that_the_filter_lets_through_is_never_pruned(
    data: st.DataObject,
    mapped: bool,  # noqa: FBT001
    asked: Asked,
) -> None:
    files = data.draw(st.lists(a_file(mapped=mapped), min_size=1, max_size=3))
    schema = with_physical_names(SCHEMA) if mapped else SCHEMA
    pruner = Pruner(read_filter(asked.condition, ARROW), schema=schema, columns=columns(mapped=mapped))

    chosen = pruner.choose([file.partition for file in files], [file.stats for file in files])

    target(float(sum(not may for may in chosen)))
    for file, may in zip(files, chosen, strict=True):
        note(f"{asked}\n{file}")
        assert may or matching_rows(file.rows, asked.condition) == 0


def matching_rows(rows: pa.Table, condition: pc.Expression) -> int:
    try:
        return int(rows.filter(condition).num_rows)
    except pa.ArrowException:  # a cast in the filter that these rows do not survive: nobody can read them by it
        return 0
