"""No file is pruned that has a row which the filter lets through, whoever wrote its statistics."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import given, note, target
from hypothesis import strategies as st

from support.files_with_statistics import (
    ARROW,
    LEAVES,
    MEMBERS,
    MOMENT,
    SCHEMA,
    VALUES,
    A,
    a_file,
    columns,
    value_of,
    with_physical_names,
)
from support.filters import COMPARISONS, Asked, filters_of
from tablefeed.delta.schema.arrow_schema import to_arrow
from tablefeed.feed.scan.arrow_filter import read_filter
from tablefeed.feed.scan.pruning import Pruner
from tablefeed.model.schema import Field, Struct

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


FILTER = filters_of(a_leaf(), most=4)


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
