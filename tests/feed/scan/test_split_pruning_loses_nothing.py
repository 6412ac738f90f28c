"""No split is pruned that has a row which the filter lets through, whoever wrote what the log tells of it."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import given, target
from hypothesis import strategies as st

from support.filters import COMPARISONS, filters_of
from support.split_writers import HIVE, WRITERS, Spelt, Values, by_rows, cut, escaped_partition, raw_partition
from tablefeed.data.predicate import COMPARISONS as COMPARISON_NAMES
from tablefeed.data.predicate import Column, arrow
from tablefeed.delta.schema.arrow_schema import to_arrow
from tablefeed.errors import IllegalOptionError
from tablefeed.feed.scan import comparison
from tablefeed.feed.scan.arrow_filter import read_filter
from tablefeed.feed.scan.pruning import Pruner
from tablefeed.feed.scan.split_task import SplitColumns
from tablefeed.feed.snapshot.split_statistics import Told, statistics
from tablefeed.model.schema import DataType, Field, Primitive, Struct

KINDS: Mapping[str, DataType] = {
    **{name: Primitive(name) for name in ("long", "integer", "double", "float", "boolean", "string", "date")},
    "timestamp": Primitive("timestamp"),
    "json": Primitive("string"),
    "ip": Primitive("string"),
}
PARTITIONS = ("long", "double", "string", "date", "timestamp", "ip")
SCHEMA = Struct(
    (
        *(Field(name, kind, nullable=True) for name, kind in KINDS.items()),
        *(Field(f"p_{name}", KINDS[name], nullable=True) for name in PARTITIONS),
    )
)
ARROW = to_arrow(SCHEMA)
COLUMNS = SplitColumns(partitioned_by=frozenset(f"p_{name}" for name in PARTITIONS))

GRIN, X, LAST = "\U0001f600", "x" * 31, "\U0010ffff"
TEXTS = ["", "a", "b", "a b", "a%20b", "a?", "a@", "?", "é", "\ud7ff", "\ue000", "\uffff", GRIN, "9", "10", HIVE]
TEXTS += [X, X + "?", X + "@", X + "x", X + "xx", X + GRIN, X + "\uffff", X + LAST, "x" * 40, LAST * 40, GRIN * 40]
TEXTS += ["\ud7ff" * 40, X + "\ud7ff" * 2, X + "\ud7ffx", X + ">>", X + "x?", X + "y", "x" * 30 + "y", "x" * 32]
FLOATS = [0.0, -0.0, 1.5, -1.5, 0.1, -0.1, math.nan, math.inf, -math.inf, 5e-324, 1e300, -1e300, 1.234e-30, -1.234e-30]
MOMENT = datetime(2024, 1, 1, 12, 0, 0, 123_456, UTC)
MOMENTS = [MOMENT + timedelta(microseconds=us) for us in (-1000, -1, 0, 1, 1000, 876_544)]
MOMENTS += [datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC), datetime(1969, 12, 31, tzinfo=UTC)]
MOMENTS += [datetime(1, 1, 1, tzinfo=UTC), datetime(1500, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC)]


def single(value: float) -> float:
    return float(struct.unpack("f", struct.pack("f", value))[0])


Pair = tuple[Any, Any]  # Any: what was given to a writer, and what its split gives back


def as_it_is(values: Sequence[Any]) -> Sequence[Pair]:
    return [(value, value) for value in values]


VALUES: Mapping[str, Sequence[Pair]] = {
    "long": as_it_is([0, -1, 1, 9, 10, -9, -10, 2**53 + 1, 2**63 - 1, -(2**63)]),
    "integer": as_it_is([0, -1, 9, 10, 2**31 - 1, -(2**31)]),
    "double": as_it_is([*FLOATS, 2.0**53]),
    "float": as_it_is([single(value) for value in FLOATS if abs(value) != 1e300]),
    "boolean": as_it_is([True, False]),
    "string": as_it_is(TEXTS),
    "date": as_it_is([date(1969, 12, 31), date(1970, 1, 1), date(2024, 1, 9), date(2024, 1, 10), date(1, 1, 1)]),
    "timestamp": as_it_is(MOMENTS),
    "json": [('{"b": 1}', '{"b":1}'), ('{"a": [1, 2]}', '{"a":[1,2]}'), ("abc", "abc"), ("{}", "{}")],
    "ip": [("9.0.0.1", "9.0.0.1"), ("::ffff:10.0.0.9", "10.0.0.9"), ("0:0:0:0:0:0:0:1", "::1"), ("95.0.0.1",) * 2],
}


NAMES = (*KINDS, *(f"p_{name}" for name in PARTITIONS))
MAPPED = {"json": False, "ip": False, "string": True}
"""Whether a doc mapping tells of a text that it is stored as it is."""


@dataclass(frozen=True, slots=True)
class File:
    """The one column of a split as it gives it back, and what the log tells of it."""

    rows: pa.Table
    told: Told

    def __repr__(self) -> str:  # pyarrow's own text cannot show every text
        return f"{self.rows.to_pylist()}\n{self.told}"


@st.composite
def a_file(draw: st.DrawFn, name: str) -> File:
    kind, of_rows = name.removeprefix("p_"), draw(st.booleans())
    is_partition, pair = kind != name, draw(given_of(kind))
    pairs = draw(st.lists(given_of(kind), min_size=1, max_size=3))
    texts: dict[str, str] = {}
    if is_partition:
        texts[name] = escaped_partition(pair[0], kind) if of_rows else raw_partition(pair[0], kind)
        # The native writer has partition columns nowhere but in the log.
        pairs = [pair if of_rows else (None, as_read(pair[0], kind))] * len(pairs)
    write = by_rows if of_rows else draw(st.sampled_from(WRITERS))
    low, high = draw(told_of([before for before, _ in pairs if before is not None], kind, write))
    is_mapped = draw(st.integers(0, 9)) > 0
    told = Told(
        row_count=draw(st.sampled_from([None, len(pairs)])),
        lows={} if low is None else {name: low},
        highs={} if high is None else {name: high},
        partition_values=texts,
        plain_texts=({} if is_partition and not of_rows else {name: MAPPED.get(kind, False)}) if is_mapped else None,
    )
    return File(pa.table({name: pa.array([after for _, after in pairs], ARROW.field(name).type)}), told)


def given_of(kind: str) -> st.SearchStrategy[Pair]:
    return st.sampled_from([(None, None), *VALUES[kind]])


def as_read(value: Any, name: str) -> Any:
    """A partition value that stands nowhere but in the log, as the native writer spells it."""
    if value == HIVE:
        return None
    return value.replace(microsecond=0) if name == "timestamp" and value is not None else value


@st.composite
def told_of(draw: st.DrawFn, values: list[Any], kind: str, write: Callable[[Values, str], Spelt]) -> Spelt:
    if not values:
        return None, None
    most = draw(st.sampled_from([25, 31, 32, 33, 64]) | (st.integers(1, 5) if kind == "string" else st.nothing()))
    low, high = (
        None if text is None or draw(st.integers(0, 9)) == 0 else cut(text, most) for text in write(values, kind)
    )
    return low, high


@st.composite
def a_leaf(draw: st.DrawFn, name: str, there: Sequence[Any]) -> pc.Expression:
    """A question about the column `name`, mostly about a value that is `there`."""
    kind = name.removeprefix("p_")
    column, type_ = pc.field(name), ARROW.field(name).type
    own = st.sampled_from([value for pair in VALUES[kind] for value in pair])
    own = st.sampled_from(there) | own if there else own
    match draw(st.integers(0, 9)):
        case 0:
            return column.is_null()
        case 1:
            return column.is_valid()
        case 2:
            return column.isin(pa.array(draw(st.lists(own | st.none(), max_size=3)), type_))
        case 3 | 4 | 5:
            return by_where(draw, name, KINDS[kind], draw(own))
        case _:
            return draw(st.sampled_from(COMPARISONS))(column, pa.scalar(draw(own), type_))


def by_where(draw: st.DrawFn, name: str, kind: DataType, value: Any) -> pc.Expression:
    """As the option `where` asks."""
    operand = comparison.Operand(
        column=Column((name,)),
        type=kind,
        refuse=lambda why: IllegalOptionError(option="where", value=name, explain=why),
    )
    try:
        return arrow(comparison.compared(operand, draw(st.sampled_from(sorted(COMPARISON_NAMES))), value))
    except IllegalOptionError:  # NaN, an order of booleans
        return pc.field(name).is_valid()


@given(st.data(), st.sampled_from([*NAMES, *["string", "p_string", "double"] * 5]))
def test_a_split_with_a_row_that_the_filter_lets_through_is_never_pruned(data: st.DataObject, name: str) -> None:
    files = data.draw(st.lists(a_file(name), min_size=1, max_size=8))
    stats = [statistics(file.told, SCHEMA) for file in files]

    there = [value for file in files for value in file.rows[name].to_pylist() if value is not None]
    pruned = 0
    for asked in data.draw(st.lists(filters_of(a_leaf(name, there), most=3), min_size=1, max_size=8)):
        pruner = Pruner(read_filter(asked.condition, ARROW), schema=SCHEMA, columns=COLUMNS)
        chosen = pruner.choose([file.told.partition_values for file in files], stats)
        pruned += sum(not may for may in chosen)
        for file, may in zip(files, chosen, strict=True):
            assert may or file.rows.filter(asked.condition).num_rows == 0, f"{asked}\n{file}"
    target(float(pruned))
