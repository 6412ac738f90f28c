"""A null is found wherever the schema forbids one, and only there."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import pyarrow as pa
import pytest

from tablefeed.data.required import RequiredColumns, refuse_nulls
from tablefeed.errors import InvalidRowsError

REQUIRED = pa.field("x", pa.int64(), nullable=False)
STRUCT = pa.struct([REQUIRED, pa.field("y", pa.string())])


@pytest.mark.parametrize(
    ("field", "values", "found"),
    [
        (REQUIRED, [1, 2], None),
        (REQUIRED, [1, None], "x"),
        (pa.field("x", pa.int64()), [None], None),
        (pa.field("s", STRUCT), [{"x": 1, "y": None}, None], None),
        (pa.field("s", STRUCT), [None, {"x": None, "y": "a"}], "s.x"),
        (pa.field("s", STRUCT, nullable=False), [{"x": 1}, None], "s"),
        (pa.field("l", pa.list_(pa.field("element", pa.int64(), nullable=False))), [[1], None, []], None),
        (pa.field("l", pa.list_(pa.field("element", pa.int64(), nullable=False))), [[1], [2, None]], "l.element"),
        (pa.field("l", pa.list_(pa.field("element", STRUCT))), [[{"x": 1}, None]], None),
        (pa.field("l", pa.list_(pa.field("element", STRUCT))), [None, [{"x": None}]], "l.element.x"),
        (pa.field("m", pa.map_(pa.string(), pa.field("value", pa.int64(), nullable=False))), [[("a", 1)], None], None),
        (pa.field("m", pa.map_(pa.string(), STRUCT)), [[("a", None)], [("b", {"x": 1})]], None),
        (
            pa.field("m", pa.map_(pa.string(), pa.field("value", pa.int64(), nullable=False))),
            [[("a", None)]],
            "m.value",
        ),
        (pa.field("m", pa.map_(STRUCT, pa.int64())), [[({"x": 1}, None)], None], None),
        (pa.field("m", pa.map_(STRUCT, pa.int64())), [[({"x": 1}, 1)], [({"x": None, "y": "a"}, 2)]], "m.key.x"),
    ],
)
def test_a_null_counts_where_it_is_forbidden_and_its_parent_is_there(
    field: pa.Field, values: list[Any], found: str | None
) -> None:
    array = pa.array(values, field.type)
    for rows in (array, pa.concat_arrays([pa.array([None], field.type), array]).slice(1)):
        batch = pa.RecordBatch.from_arrays([rows], schema=pa.schema([field]))
        assert RequiredColumns(batch.schema).first_null(batch) == found


@pytest.mark.parametrize(
    ("field", "values", "found"),
    [
        (pa.field("s", STRUCT), [{"x": 1}], None),
        (pa.field("s", STRUCT), [{"x": 1}, None], "s.x"),
        (pa.field("s", pa.struct([pa.field("t", STRUCT)])), [None], "s.t.x"),
        (pa.field("s", pa.struct([pa.field("t", STRUCT)])), [{"t": None}], "s.t.x"),
        (pa.field("s", pa.struct([pa.field("y", pa.string())])), [None], None),
        (pa.field("l", pa.list_(pa.field("element", STRUCT))), [[{"x": 1}], None, []], None),
        (pa.field("l", pa.list_(pa.field("element", STRUCT))), [[{"x": 1}, None]], "l.element.x"),
        (pa.field("m", pa.map_(pa.string(), STRUCT)), [[("a", {"x": 1})], None], None),
        (pa.field("m", pa.map_(pa.string(), STRUCT)), [[("a", {"x": 1})], [("b", None)]], "m.value.x"),
        (pa.field("m", pa.map_(pa.struct([pa.field("t", STRUCT)]), pa.int64())), [[({"t": None}, 1)]], "m.key.t.x"),
    ],
)
def test_a_null_struct_is_found_where_it_has_a_required_member(
    field: pa.Field, values: list[Any], found: str | None
) -> None:
    table = pa.Table.from_arrays([pa.array(values, field.type)], schema=pa.schema([field]))

    with nullcontext() if found is None else pytest.raises(InvalidRowsError, match=rf"for column: {found}\. "):
        refuse_nulls(table)
