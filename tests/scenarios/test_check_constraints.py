"""What a table with CHECK constraints takes, as CheckConstraintsSuite has it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tablefeed
from scenarios.made_tables import BOTH, Write, a_map, a_struct, an_array, by_batch, is_untouched, make, refused, rows
from support.logs import metadata, protocol, put
from tablefeed.errors import InvalidRowsError, UnsupportedExpressionError
from tablefeed.store import LocalStore

either = pytest.mark.parametrize("write", BOTH.values(), ids=BOTH)

NUM_AND_TEXT = a_struct(("num", "integer"), ("text", "string"))


def num_and_text(num: int, text: str) -> pa.Table:
    return pa.table({"num": pa.array([num], pa.int32()), "text": [text]})


@either
@pytest.mark.parametrize(
    ("expression", "kept", "broken"),
    [
        ("num < 10 and text < 'g'", [(5, "a")], [(11, "a"), (5, "g")]),
        ("LENGTH(text) < 10", [(11, "abcdefg")], [(12, "abcdefghijklmnop")]),
        ("num < '10'", [(9, "data")], [(11, "data")]),
        ("( (num < '10') AND ((LENGTH(text)) < 100) )", [(9, "data")], [(11, "data")]),
        ("num < year(current_date())", [(2000, "data")], [(2**31 - 1, "data")]),
        ("num < unix_timestamp()", [(2000, "data")], [(2**31 - 1, "data")]),
        ("concat(num, text) != '9i'", [(9, "j")], [(9, "i")]),
    ],
    ids=["AND", "builtin methods", "implicit casts", "parentheses", "current_date", "unix_timestamp", "concat"],
)
def test_a_row_that_breaks_a_constraint_is_refused_and_one_that_keeps_it_written(
    tmp_path: Path, write: Write, expression: str, kept: list[tuple[int, str]], broken: list[tuple[int, str]]
) -> None:
    table = make(tmp_path, NUM_AND_TEXT, protocol(1, 3), constraints={"c": expression})

    for num, text in broken:
        said = f"CHECK constraint c ({expression}) violated by row"
        refused(write, table, num_and_text(num, text), said, zone="UTC")
    for num, text in kept:
        write(table, num_and_text(num, text), zone="UTC")

    assert rows(table) == [{"num": num, "text": text} for num, text in kept]


def test_a_row_is_taken_once_the_constraint_that_it_breaks_is_gone(tmp_path: Path) -> None:
    table = make(tmp_path, NUM_AND_TEXT, protocol(1, 3), constraints={"lessThan10": "num < 10 and text < 'g'"})
    refused(by_batch, table, num_and_text(11, "a"), "CHECK constraint lessThan10")

    put(LocalStore(str(table)), 1, [metadata(json.dumps(NUM_AND_TEXT))])
    by_batch(table, num_and_text(11, "a"))

    assert rows(table) == [{"num": 11, "text": "a"}]


@pytest.mark.parametrize(
    ("expression", "error_class"),
    [
        ("event_date < 2025-06-12", None),
        ("non_existent_column > 0", "DELTA_INVALID_CHECK_CONSTRAINT_REFERENCES"),
        ("id + 1", "DELTA_NON_BOOLEAN_CHECK_CONSTRAINT"),
        ("3", "DELTA_NON_BOOLEAN_CHECK_CONSTRAINT"),
        ("does_not_exist", "DELTA_INVALID_CHECK_CONSTRAINT_REFERENCES"),
        ("id <", None),
        ("id > (SELECT max(id) FROM tbl)", None),
        ("external_udf(id)", None),
    ],
    ids=["types", "no column", "no boolean", "a number", "no boolean column", "unparseable", "subquery", "udf"],
)
@pytest.mark.parametrize("is_there", [True, False], ids=["there", "made"])
def test_a_constraint_that_no_row_can_be_held_against_stops_every_write(
    tmp_path: Path, expression: str, error_class: str | None, *, is_there: bool
) -> None:
    table, properties = tmp_path / "t", {"delta.constraints.c": expression}
    if is_there:
        make(table, a_struct(("id", "integer"), ("event_date", "date")), protocol(1, 3), constraints={"c": expression})

    given = pa.table({"id": pa.array([1], pa.int32()), "event_date": pa.array([0], pa.date32())})
    with pytest.raises(UnsupportedExpressionError) as caught:
        tablefeed.append(table, given, properties=properties)

    assert (caught.value.rule, caught.value.error_class) == ("its constraint c", error_class)
    assert not list(tmp_path.rglob("*.parquet"))
    assert table.exists() is is_there


def test_a_table_is_made_with_a_constraint_that_its_rows_keep(tmp_path: Path) -> None:
    properties = {"delta.constraints.positive_id": "id > 0"}

    with pytest.raises(InvalidRowsError):
        tablefeed.append(tmp_path / "t", pa.table({"id": [0], "value": ["a"]}), properties=properties)
    tablefeed.append(tmp_path / "t", pa.table({"id": [1], "value": ["a"]}), properties=properties)

    assert rows(tmp_path / "t") == [{"id": 1, "value": "a"}]


NESTED = a_struct(
    ("id", "integer"),
    ("text", "string"),
    (
        "nested",
        a_struct(("constant", "string"), ("m", a_map("integer", "integer")), ("arr", an_array("integer"))),
    ),
)
_NESTED = pa.struct([("constant", pa.string()), ("m", pa.map_(pa.int32(), pa.int32())), ("arr", pa.list_(pa.int32()))])


def nested(number: int, value: dict[str, Any] | None) -> pa.Table:
    return pa.table({"id": pa.array([number], pa.int32()), "nested": pa.array([value], _NESTED)})


WITH_NULLS: list[tuple[int, dict[str, Any] | None]] = [
    (10, {"constant": "c", "m": [(10, None)], "arr": [None, None, 12]}),
    (11, {"constant": "c", "m": [(11, None)], "arr": None}),
    (12, None),
]


@either
def test_a_null_breaks_a_constraint_that_compares_it_wherever_it_comes_from(tmp_path: Path, write: Write) -> None:
    table = make(tmp_path, NESTED, protocol(1, 3), constraints={"arr0": "nested.arr[0] < 100"})

    for number, value in WITH_NULLS:
        refused(write, table, nested(number, value), "CHECK constraint arr0 (nested.arr[0] < 100) violated by row")


@either
def test_a_constraint_that_asks_for_null_is_kept_by_one_wherever_it_comes_from(tmp_path: Path, write: Write) -> None:
    nulls = {"textNull": "text IS NULL", "arr1Null": "nested.arr[1] IS NULL"}
    table = make(tmp_path, NESTED, protocol(1, 3), constraints=nulls)
    known = {"constant": "c", "m": [(0, 0)], "arr": [0, 1, 2]}
    refused(write, table, nested(0, known), "CHECK constraint arr1Null (nested.arr[1] IS NULL)")

    for number, value in WITH_NULLS:
        write(table, nested(number, value))

    assert sorted(row["id"] for row in rows(table)) == [10, 11, 12]


@either
@pytest.mark.parametrize(
    ("expression", "broken"),
    [
        ("SIZE(nested.arr) = 3", {"constant": "c", "m": [(1, 1)], "arr": [1, 2]}),
        ("nested.m[id] = id", {"constant": "c", "m": [(1, 2)], "arr": [1, 2, 3]}),
    ],
    ids=["array", "map"],
)
def test_a_constraint_reaches_into_structs_arrays_and_maps(
    tmp_path: Path, write: Write, expression: str, broken: dict[str, Any]
) -> None:
    table = make(tmp_path, NESTED, protocol(1, 3), constraints={"c": expression})

    refused(write, table, nested(1, broken), f"({expression})")
    write(table, nested(1, {"constant": "c", "m": [(1, 1)], "arr": [1, 2, 3]}))

    assert [row["id"] for row in rows(table)] == [1]


# --- CHAR and VARCHAR ------------------------------------------------------------------------------------------------


def declared(kind: str) -> dict[str, str]:
    return {"__CHAR_VARCHAR_TYPE_STRING": kind}


@either
def test_a_table_with_a_constraint_and_declared_lengths_is_written(tmp_path: Path, write: Write) -> None:
    schema = a_struct(
        ("id", "integer"), ("name", "string", declared("varchar(50)")), ("code", "string", declared("char(10)"))
    )
    table = make(tmp_path, schema, protocol(1, 3), constraints={"positive_id": "id > 0"})
    given = pa.table({"id": pa.array([1], pa.int32()), "name": ["test"], "code": ["ABC"]})

    write(table, given)

    assert [{**row, "code": row["code"].rstrip()} for row in rows(table)] == [{"id": 1, "name": "test", "code": "ABC"}]


@either
def test_a_text_longer_than_declared_is_refused_with_the_jars_class(tmp_path: Path, write: Write) -> None:
    table = make(tmp_path, a_struct(("id", "integer"), ("value", "string", declared("varchar(12)"))))
    given = pa.table({"id": pa.array([1, 2], pa.int32()), "value": ["short string", "a very long string"]})

    with pytest.raises(InvalidRowsError, match='"a very long string"') as caught:
        write(table, given)
    assert caught.value.error_class == "DELTA_EXCEED_CHAR_VARCHAR_LIMIT"
    assert is_untouched(table)
    write(table, given.slice(0, 1))

    assert rows(table) == [{"id": 1, "value": "short string"}]


# --- what may be in one ----------------------------------------------------------------------------------------------


@either
@pytest.mark.parametrize(
    ("expression", "kept", "broken"),
    [
        ("value == startsWith(id, 'A')", [("ABA", True), ("DEF", False)], ("ABA", False)),
        ("value == endsWith(id, 'A')", [("ABA", True), ("DEF", False)], ("ABA", False)),
        ("value == contains(id, 'A')", [("ABA", True), ("DEF", False)], ("DEF", True)),
    ],
    ids=["startsWith", "endsWith", "contains"],
)
def test_a_constraint_may_look_into_a_text(
    tmp_path: Path, write: Write, expression: str, kept: list[tuple[str, bool]], broken: tuple[str, bool]
) -> None:
    table = make(
        tmp_path, a_struct(("id", "string"), ("value", "boolean")), protocol(1, 3), constraints={"c1": expression}
    )

    refused(write, table, pa.table({"id": [broken[0]], "value": [broken[1]]}), f"({expression})")
    write(table, pa.table({"id": [text for text, _ in kept], "value": [holds for _, holds in kept]}))

    assert rows(table) == [{"id": text, "value": holds} for text, holds in kept]


LIKE = {
    "c_like_any": "name LIKE ANY ('%test%', '%prod%')",
    "c_not_like_any": "name NOT LIKE ANY ('%forbidden%', '%blocked%')",
    "c_like_all": "code LIKE ALL ('%A%', '%B%')",
    "c_not_like_all": "code NOT LIKE ALL ('%X%', '%Y%')",
}


@either
def test_a_constraint_may_ask_for_one_or_all_of_some_patterns(tmp_path: Path, write: Write) -> None:
    table = make(tmp_path, a_struct(("name", "string"), ("code", "string")), protocol(1, 3), constraints=LIKE)

    for name, code, broken in [
        ("data", "AB", "c_like_any"),
        ("test_forbidden_blocked", "AB", "c_not_like_any"),
        ("test_data", "A", "c_like_all"),
        ("test_data", "ABY", "c_not_like_all"),
    ]:
        refused(write, table, pa.table({"name": [name], "code": [code]}), f"CHECK constraint {broken} ")
    write(table, pa.table({"name": ["test_forbidden"], "code": ["AB"]}))

    assert rows(table) == [{"name": "test_forbidden", "code": "AB"}]


@either
@pytest.mark.parametrize(
    ("expressions", "broken"),
    [
        (["array_size(tags) > 0", "array_size(array_compact(tags)) > 0"], [[], [None], None]),
        (
            [
                "array_size(array_append(tags, 'x')) > 1",
                "array_size(array_prepend(tags, 'y')) > 1",
                "array_size(array_insert(tags, 1, 'z')) > 1",
            ],
            [[], None],
        ),
    ],
    ids=["array_size", "array_append"],
)
def test_a_constraint_may_build_an_array(
    tmp_path: Path, write: Write, expressions: list[str], broken: list[list[str] | None]
) -> None:
    named = {f"c{number}": expression for number, expression in enumerate(expressions)}
    table = make(tmp_path, a_struct(("tags", an_array("string"))), protocol(1, 3), constraints=named)

    for tags in broken:
        refused(write, table, pa.table({"tags": pa.array([tags], pa.list_(pa.string()))}), "CHECK constraint c")
    write(table, pa.table({"tags": [["a", "b"]]}))

    assert rows(table) == [{"tags": ["a", "b"]}]
