"""Rules of tables that rows keep or break: NOT NULL, CHECK constraints, invariants, generated columns.

The stories are those of CheckConstraintsSuite, InvariantEnforcementSuite and GeneratedColumnSuite.
"""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pytest

import tablefeed
from scenarios.made_tables import (
    BOTH,
    Column,
    Row,
    Write,
    a_map,
    a_struct,
    actions,
    an_array,
    by_batch,
    make,
    rows,
)
from scenarios.sinks import stream_into
from support.logs import protocol
from support.micro_batches import SparkModel
from tablefeed.errors import InvalidRowsError, TablefeedError, UnsupportedExpressionError

either = pytest.mark.parametrize("write", BOTH.values(), ids=BOTH)
GENERATED = protocol(1, 7, writerFeatures=["appendOnly", "invariants", "generatedColumns"])
VIOLATED = "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"
LONG_TEXT = "DELTA_EXCEED_CHAR_VARCHAR_LIMIT"

ARROW = {
    "integer": pa.int32(),
    "long": pa.int64(),
    "string": pa.string(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "tags": pa.list_(pa.string()),
    "m": pa.map_(pa.string(), pa.int32()),
}
NESTED = {"tags": an_array("string"), "m": a_map("string", "integer")}


def generated(expression: str) -> dict[str, Any]:
    return {"delta.generationExpression": expression}


def invariant(expression: str) -> dict[str, Any]:
    return {"delta.invariants": json.dumps({"expression": {"expression": expression}})}


def refused(write: Write, table: Path, given: pa.Table, error_class: str, *words: str) -> None:
    """Nothing of the write is there, and the error says why."""
    with pytest.raises(TablefeedError) as caught:
        write(table, given, zone="UTC")

    assert caught.value.error_class == error_class
    assert [word for word in words if word not in caught.value.message] == []
    assert not list(table.rglob("*.parquet"))
    assert tablefeed.open_table(table).version == 0


# --- NOT NULL --------------------------------------------------------------------------------------------------------

PAIR = pa.struct([("key", pa.string()), ("value", pa.int32())])
PAIRED = a_struct(("key", "string"), ("value", "integer"), required=("key",))
GOOD, BAD = {"key": "a", "value": 1}, {"key": None, "value": 2}
NULLS: dict[str, tuple[Column, pa.Array, str]] = {
    "nested": (("c", PAIRED), pa.array([GOOD, BAD], PAIR), "c.key"),
    "nested in a null": (("c", PAIRED), pa.array([GOOD, None], PAIR), "c.key"),
    "array": (("c", an_array(PAIRED)), pa.array([[BAD]], pa.list_(PAIR)), "c.element.key"),
    "map key": (("c", a_map(PAIRED, "integer")), pa.array([[(BAD, 1)]], pa.map_(PAIR, pa.int32())), "c.key.key"),
    "map value": (("c", a_map("integer", PAIRED)), pa.array([[(1, BAD)]], pa.map_(pa.int32(), PAIR)), "c.value.key"),
}


@either
@pytest.mark.parametrize(("column", "given", "path"), NULLS.values(), ids=NULLS)
def test_a_null_that_a_schema_forbids_within_a_column_is_refused_with_the_path(
    tmp_path: Path, write: Write, column: Column, given: pa.Array, path: str
) -> None:
    table = make(tmp_path, a_struct(column))

    refused(write, table, pa.table({"c": given}), "DELTA_NOT_NULL_CONSTRAINT_VIOLATED", f"column: {path}.")


@either
def test_a_null_and_an_absent_column_are_refused_where_there_must_be_values(tmp_path: Path, write: Write) -> None:
    table = make(tmp_path, PAIRED)
    rows_with_null = pa.table({"key": pa.array(["a", None]), "value": pa.array([1, 2], pa.int32())})

    refused(write, table, rows_with_null, "DELTA_NOT_NULL_CONSTRAINT_VIOLATED", "column: key.")
    refused(write, table, rows_with_null.select(["value"]), "DELTA_MISSING_NOT_NULL_COLUMN_VALUE", "'key'")
    write(table, rows_with_null.slice(0, 0))

    assert rows(table) == []


@either
@pytest.mark.parametrize("broken", [{"c2": "", "c3": "a"}, {"c2": "a", "c3": ""}], ids=["first", "second"])
def test_an_empty_text_is_refused_in_a_partition_column_that_must_not_be_null(
    tmp_path: Path, write: Write, broken: dict[str, str]
) -> None:
    columns = [("c1", "long"), ("c2", "string"), ("c3", "string")]
    table = make(tmp_path, a_struct(*columns, required=("c2", "c3")), partition_by=("c2", "c3"))
    empty = next(name for name, text in broken.items() if not text)

    given = pa.table({"c1": [1], **{name: [text] for name, text in broken.items()}})
    refused(write, table, given, "DELTA_NOT_NULL_CONSTRAINT_VIOLATED", f"column: {empty}.")


# --- conditions ------------------------------------------------------------------------------------------------------

CONDITIONS: list[tuple[str, dict[str, str], tuple[Any, ...] | None, tuple[Any, ...]]] = [
    ("num < 10 and text < 'g'", {"num": "integer", "text": "string"}, (5, "a"), (5, "g")),
    ("LENGTH(text) < 10", {"text": "string"}, ("abcdefg",), ("abcdefghijklmnop",)),
    ("( (num < '10') AND ((LENGTH(text)) < 100) )", {"num": "integer", "text": "string"}, (9, "data"), (11, "data")),
    ("num < year(current_date())", {"num": "integer"}, (2000,), (2**31 - 1,)),
    ("num < unix_timestamp()", {"num": "integer"}, (2000,), (2**31 - 1,)),
    ("concat(num, text) != '9i'", {"num": "integer", "text": "string"}, (9, "j"), (9, "i")),
    ("text in ('a', 'b', 'c')", {"text": "string"}, ("b",), ("d",)),
    ("value == startsWith(id, 'A')", {"id": "string", "value": "boolean"}, ("DEF", False), ("ABA", False)),
    ("value == endsWith(id, 'A')", {"id": "string", "value": "boolean"}, ("ABA", True), ("ABA", False)),
    ("value == contains(id, 'A')", {"id": "string", "value": "boolean"}, ("ABA", True), ("DEF", True)),
    ("name LIKE ANY ('%test%', '%prod%')", {"name": "string"}, ("a test",), ("data",)),
    ("name NOT LIKE ANY ('%no%', '%never%')", {"name": "string"}, ("no",), ("no, never",)),
    ("code LIKE ALL ('%A%', '%B%')", {"code": "string"}, ("AB",), ("A",)),
    ("code NOT LIKE ALL ('%X%', '%Y%')", {"code": "string"}, ("AB",), ("ABY",)),
    ("array_size(array_compact(tags)) > 0", {"tags": "tags"}, (["a"],), ([None],)),
    ("array_size(array_append(tags, 'x')) > 1", {"tags": "tags"}, (["a"],), ([],)),
    ("array_size(array_prepend(tags, 'y')) > 1", {"tags": "tags"}, (["a"],), ([],)),
    ("array_size(array_insert(tags, 1, 'z')) > 1", {"tags": "tags"}, (["a"],), (None,)),
    ("SIZE(m) = 1 AND m['a'] = 1", {"m": "m"}, ([("a", 1)],), ([("a", 2)],)),
    ("SIZE(tags) = 2 AND tags[0] < 'b'", {"tags": "tags"}, (["a", "z"],), ([None, "z"],)),
    ("tags[1] IS NULL", {"tags": "tags"}, (None,), (["a", "b"],)),
    ("assert_true(value < 2) is not null", {"value": "integer"}, None, (1,)),
    ("date_part('YEAR', value) < 2000", {"value": "date"}, (date(1999, 1, 1),), (date(2001, 1, 1),)),
    ("decode(encode(value, 'utf-8'), 'utf-8') = 'abc'", {"value": "string"}, ("abc",), ("a",)),
    ("extract(YEAR FROM value) < 2000", {"value": "date"}, (date(1999, 1, 1),), (date(2001, 1, 1),)),
    ("ifnull(value, 1) = 1", {"value": "integer"}, (1,), (2,)),
    ("left(value, 1) = 'a'", {"value": "string"}, ("ab",), ("b",)),
    ("right(value, 1) = 'a'", {"value": "string"}, ("ba",), ("b",)),
    ("nullif(value, 1) = 2", {"value": "integer"}, (2,), (1,)),
    ("nvl(value, 1) = 1", {"value": "integer"}, (None,), (2,)),
    ("nvl2(value, 1, 2) = 3", {"value": "integer"}, None, (2,)),
    ("to_date(value) = '2001-01-01'", {"value": "string"}, ("2001-01-01",), ("2002-01-01",)),
    ("to_timestamp(value) = '2001-01-01'", {"value": "string"}, ("2001-01-01",), ("2002-01-01 00:12:00",)),
]
"""Each with its columns, a row that keeps it, if there is one, and a row that breaks it."""


@pytest.mark.parametrize(
    ("expression", "columns", "kept", "broken"), [pytest.param(*each, id=each[0]) for each in CONDITIONS]
)
def test_a_row_that_breaks_a_constraint_is_refused_and_one_that_keeps_it_written(
    tmp_path: Path, expression: str, columns: dict[str, str], kept: tuple[Any, ...] | None, broken: tuple[Any, ...]
) -> None:
    kinds = {name: NESTED.get(name, kind) for name, kind in columns.items()}
    table = make(tmp_path, a_struct(*kinds.items()), protocol(1, 3), constraints={"c": expression})

    def one(row: tuple[Any, ...]) -> pa.Table:
        return pa.table(
            {name: pa.array([value], ARROW[columns[name]]) for name, value in zip(columns, row, strict=True)}
        )

    refused(by_batch, table, one(broken), VIOLATED, f"CHECK constraint c ({expression}) violated by row")
    if kept is not None:
        by_batch(table, one(kept), zone="UTC")
        assert rows(table) == [dict(zip(columns, kept, strict=True))]


@pytest.mark.parametrize(
    ("rule", "error_class"),
    [
        ({"check": "event_date < 2025-06-12"}, None),
        ({"check": "id + 1"}, "DELTA_NON_BOOLEAN_CHECK_CONSTRAINT"),
        ({"check": "does_not_exist"}, "DELTA_INVALID_CHECK_CONSTRAINT_REFERENCES"),
        ({"check": "id > (SELECT max(id) FROM tbl)"}, None),
        ({"check": "external_udf(id)"}, None),
        ({"generated": "c10 + 10"}, "DELTA_INVALID_GENERATED_COLUMN_REFERENCES"),
        ({"generated": "cast(id AS STRING)"}, None),
        ({"generated": "current_timestamp"}, None),
        ({"generated": "max(id)"}, None),
        ({"generated": "explode(array(id))"}, None),
    ],
    ids=lambda value: str(next(iter(value.values()))) if isinstance(value, dict) else "",
)
@pytest.mark.parametrize("is_given", [True, False], ids=["given", "made"])
def test_a_rule_that_no_row_can_be_held_against_stops_every_write(
    tmp_path: Path, rule: dict[str, str], error_class: str | None, *, is_given: bool
) -> None:
    made = generated(rule["generated"]) if "generated" in rule else {}
    columns: list[Column] = [("id", "integer"), ("event_date", "date"), ("g", "integer", made)]
    checks = {"c": rule["check"]} if "check" in rule else {}
    table = make(tmp_path, a_struct(*columns), GENERATED if made else protocol(1, 3), constraints=checks)
    given = {"id": pa.array([1], pa.int32()), "event_date": pa.array([0], pa.date32())}

    with pytest.raises(UnsupportedExpressionError) as caught:
        by_batch(table, pa.table(given | ({"g": given["id"]} if is_given else {})), zone="UTC")

    assert caught.value.error_class == error_class
    assert not list(table.rglob("*.parquet"))


@either
@pytest.mark.parametrize(
    ("column", "error_class", "words"),
    [
        (("value", "integer", invariant("value < 3")), VIOLATED, ["value < 3", " - value : 5"]),
        (("value", "string", {"__CHAR_VARCHAR_TYPE_STRING": "varchar(2)"}), LONG_TEXT, ['"five"']),
    ],
    ids=["invariant", "varchar"],
)
def test_a_batch_and_a_stream_keep_the_rules_of_a_column(
    tmp_path: Path, write: Write, column: Column, error_class: str, words: list[str]
) -> None:
    kept, broken = (1, 5) if column[1] == "integer" else ("1", "five")
    table = make(tmp_path, a_struct(("key", "string"), column), constraints={"known": "key IS NOT NULL"})

    refused(write, table, pa.table({"key": ["a", "b"], "value": [kept, broken]}), error_class, *words)
    refused(write, table, pa.table({"value": [kept]}), VIOLATED, "constraint known", " - key : null")
    write(table, pa.table({"key": ["a"], "value": [kept]}))

    assert rows(table) == [{"key": "a", "value": kept}]


# --- generated columns -----------------------------------------------------------------------------------------------

_COLUMNS: list[Column] = [
    ("c0_g", "void", generated("null")),
    ("c1", "long"),
    ("c2_g", "long", generated("c1 + 10")),
    ("c3_p", "string"),
    ("c4_g_p", "date", generated("cast(c5 as date)")),
    ("c5", "timestamp"),
    ("c6", "integer"),
    ("c7_g_p", "integer", generated("c6 * 10")),
]
AT = datetime(2020, 10, 11, 12, 30, 30, tzinfo=UTC)
FULL_ROW: Row = {
    "c0_g": None,
    "c1": 1,
    "c2_g": 11,
    "c3_p": "foo",
    "c4_g_p": date(2020, 10, 11),
    "c5": AT,
    "c6": 100,
    "c7_g_p": 1000,
}
_ARROW = {"c5": ARROW["timestamp"], "c6": pa.int32(), "c7_g_p": pa.int32()}
GIVEN = {
    "only others": "c1 c3_p c5 c6",
    "all in another order": "c5 c6 c7_g_p c0_g c1 c2_g c3_p c4_g_p",
    "some generated": "c5 c6 c1 c3_p c4_g_p",
}


def a_row(columns: str, **other: object) -> pa.Table:
    """The full row in these columns, with `other` values."""
    row = FULL_ROW | other
    return pa.table({name: pa.array([row[name]], _ARROW.get(name)) for name in columns.split()})


def the_table(path: Path) -> Path:
    return make(path, a_struct(*_COLUMNS), GENERATED, partition_by=("c3_p", "c4_g_p", "c7_g_p"))


@either
@pytest.mark.parametrize("given", GIVEN.values(), ids=GIVEN)
def test_generated_columns_are_made_where_they_are_not_given(tmp_path: Path, write: Write, given: str) -> None:
    table = the_table(tmp_path)

    write(table, a_row(given), zone="UTC")

    assert rows(table) == [FULL_ROW]
    assert [path.relative_to(table).parts[:3] for path in table.rglob("*.parquet")] == [
        ("c3_p=foo", "c4_g_p=2020-10-11", "c7_g_p=1000")
    ]


@pytest.mark.parametrize("scope", ["static", "dynamic"])
def test_an_overwrite_makes_them_too_and_finds_its_partitions_by_them(
    tmp_path: Path, scope: Literal["static", "dynamic"]
) -> None:
    table = the_table(tmp_path)
    for c1, c6 in ((2, 100), (3, 7)):
        by_batch(table, a_row("c1 c3_p c5 c6", c1=c1, c6=c6), zone="UTC")

    given = a_row("c1 c3_p c5 c6")
    tablefeed.append(table, given, mode="overwrite", partition_overwrite_mode=scope, time_zone="UTC")

    kept = [{**FULL_ROW, "c1": 3, "c2_g": 13, "c6": 7, "c7_g_p": 70}] if scope == "dynamic" else []
    assert rows(table) == [FULL_ROW, *kept]


EXTRACTED: tuple[list[Column], dict[str, pa.Array], dict[str, object]] = (
    [
        ("a.b", "string"),
        ("a", a_struct(("b", "integer"), ("c", "string"))),
        ("array", an_array("integer")),
        ("current_date", "integer"),
        ("c1", "string", generated("CONCAT(`a.b`, 'b')")),
        ("c2", "integer", generated("a.b + 100")),
        ("c3", "integer", generated("array[1]")),
        ("c4", "integer", generated("`current_date` + 1")),
        ("c5", "integer", generated("1 + 2")),
    ],
    {
        "a.b": pa.array(["a"]),
        "a": pa.array([{"b": 100, "c": "foo"}], pa.struct([("b", pa.int32()), ("c", pa.string())])),
        "array": pa.array([[1000, 1001]], pa.list_(pa.int32())),
        "current_date": pa.array([10], pa.int32()),
    },
    {"c1": "ab", "c2": 200, "c3": 1001, "c4": 11, "c5": 3},
)
TRANSFORMED: tuple[list[Column], dict[str, pa.Array], dict[str, object]] = (
    [
        ("time", "timestamp"),
        ("year", "date", generated("make_date(year(time), 1, 1)")),
        ("day", "date", generated("make_date(year(time), month(time), day(time))")),
        ("hour", "timestamp", generated("make_timestamp(year(time), month(time), day(time), hour(time), 0, 0)")),
    ],
    {"time": pa.array([AT], ARROW["timestamp"])},
    {
        "year": date(2020, 1, 1),
        "day": date(2020, 10, 11),
        "hour": datetime(2020, 10, 11, 12, tzinfo=UTC),
    },
)


@pytest.mark.parametrize(
    ("columns", "given", "expected"), [EXTRACTED, TRANSFORMED], ids=["dots, keywords, extractors", "transforms"]
)
def test_an_expression_gives_the_values_of_its_column(
    tmp_path: Path, columns: list[Column], given: dict[str, pa.Array], expected: dict[str, object]
) -> None:
    table = make(tmp_path, a_struct(*columns), GENERATED)

    by_batch(table, pa.table(given), zone="UTC")

    (row,) = rows(table)
    assert {name: row[name] for name in expected} == expected


def test_a_generated_null_is_refused_where_there_must_be_none(tmp_path: Path) -> None:
    columns: list[Column] = [("base", "string"), ("gen", "string", generated("concat(base, '-generated')"))]
    table = make(tmp_path, a_struct(*columns, required=("gen",)), GENERATED)

    null = pa.table({"base": pa.array([None], pa.string())})
    refused(by_batch, table, null, "DELTA_NOT_NULL_CONSTRAINT_VIOLATED", "column: gen")
    by_batch(table, pa.table({"base": ["1"]}))

    assert rows(table) == [{"base": "1", "gen": "1-generated"}]


def test_a_wider_value_becomes_the_tables_though_columns_may_be_added(tmp_path: Path) -> None:
    table = make(tmp_path, a_struct(("c1", "integer"), ("c2", "integer", generated("HASH(c1)"))), GENERATED)

    by_batch(table, pa.table({"c1": pa.array([32767], pa.int64())}), merge=True)

    assert rows(table) == [{"c1": 32767, "c2": 1249274084}]
    assert "metaData" not in actions(table, 1)


def test_a_reader_sees_no_generation_expression_and_a_copy_has_none(tmp_path: Path) -> None:
    table = make(tmp_path / "t", a_struct(("c1", "integer", generated("c2 + 1")), ("c2", "integer")), GENERATED)
    by_batch(table, pa.table({"c2": pa.array([1], pa.int32())}))

    seen = SparkModel().readStream.format("tablefeed").load(str(table)).schema
    assert [field.metadata for field in seen] == [{}] * 2
    assert [field.metadata for field in tablefeed.open_table(table).schema] == [None, None]

    stream_into(tmp_path / "copy").write(tablefeed.appends(table, start_version=0).read_all())
    assert rows(tmp_path / "copy") == [{"c1": 2, "c2": 1}]
    assert "generationExpression" not in json.dumps(actions(tmp_path / "copy", 0))


def test_a_query_keeps_a_rule_that_was_broken_in_another_task(tmp_path: Path) -> None:
    table = make(
        tmp_path, a_struct(("c1", "long"), ("c2", "string")), partition_by=("c2",), constraints={"c": "c1 > 0"}
    )
    query = stream_into(table)

    with pytest.raises(InvalidRowsError):
        query.write(pa.table({"c1": [1], "c2": ["a"]}), pa.table({"c1": [0], "c2": ["a"]}))
    query.write(pa.table({"c1": [1], "c2": ["a"]}))

    assert rows(table) == [{"c1": 1, "c2": "a"}]
