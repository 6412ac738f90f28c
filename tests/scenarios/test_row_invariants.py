"""Rows that a table's rules refuse, as InvariantEnforcementSuite has them: NOT NULL, invariants, CHECK constraints."""

from __future__ import annotations

import json
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from scenarios.made_tables import (
    BOTH,
    Column,
    Row,
    Write,
    Writes,
    a_map,
    a_struct,
    an_array,
    by_batch,
    is_untouched,
    make,
    rows,
)
from support.logs import Action, protocol
from tablefeed.errors import InvalidRowsError, SchemaMismatchError

either = pytest.mark.parametrize("write", BOTH.values(), ids=BOTH)

KEY_AND_VALUE = a_struct(("key", "string"), ("value", "integer"), required=("key",))
PAIR = pa.struct([("key", pa.string()), ("value", pa.int32())])


def ints(*values: int | None) -> pa.Array:
    return pa.array(values, pa.int32())


def invariant(expression: str) -> dict[str, Any]:
    return {"delta.invariants": json.dumps({"expression": {"expression": expression}})}


def refused(write: Write, table: Path, given: pa.Table, error_class: str, *words: str) -> None:
    """Nothing of the write is there, and the error says why."""
    with pytest.raises((InvalidRowsError, SchemaMismatchError)) as caught:
        write(table, given)

    assert caught.value.error_class == error_class
    assert [word for word in words if word not in caught.value.message] == []
    assert is_untouched(table)


# --- NOT NULL --------------------------------------------------------------------------------------------------------


@either
@pytest.mark.parametrize(
    ("schema", "given", "column"),
    [
        (KEY_AND_VALUE, {"key": pa.array(["a", None]), "value": ints(1, 2)}, "key"),
        (
            a_struct(("top", KEY_AND_VALUE)),
            {"top": pa.array([{"key": "a", "value": 1}, {"key": None, "value": 2}], PAIR)},
            "top.key",
        ),
        (a_struct(("top", KEY_AND_VALUE)), {"top": pa.array([{"key": "a", "value": 1}, None], PAIR)}, "top.key"),
        (
            a_struct(("top", an_array(an_array(a_struct(("key", "string"), ("value", "integer"))))), required=("top",)),
            {"top": pa.array([[[{"key": "a", "value": 1}]], None], pa.list_(pa.list_(PAIR)))},
            "top",
        ),
    ],
    ids=["top level", "nested", "nested in a null", "array"],
)
def test_a_null_where_there_must_be_none_is_refused_with_the_path(
    tmp_path: Path, write: Write, schema: Row, given: dict[str, pa.Array], column: str
) -> None:
    table = make(tmp_path, schema)

    refused(write, table, pa.table(given), "DELTA_NOT_NULL_CONSTRAINT_VIOLATED", f"column: {column}.")


@either
@pytest.mark.parametrize("given", [["value"], []], ids=["others", "none"])
def test_rows_without_a_column_that_must_not_be_null_are_refused(
    tmp_path: Path, write: Write, given: list[str]
) -> None:
    table = make(tmp_path, KEY_AND_VALUE)

    refused(write, table, pa.table({"value": ints(1, 2)}).select(given), "DELTA_MISSING_NOT_NULL_COLUMN_VALUE", "'key'")


@either
def test_no_rows_break_no_rule(tmp_path: Path, write: Write) -> None:
    table = make(tmp_path, KEY_AND_VALUE)

    write(table, pa.table({"key": pa.array([], pa.string()), "value": ints()}))

    assert rows(table) == []


MAIL = a_struct(("name", "string"), ("mailbox", "string"), required=("mailbox",))
NO_MAIL = {"name": "myName", "mailbox": None}
_MAIL = pa.struct([("name", pa.string()), ("mailbox", pa.string())])
_NESTED = pa.struct([("n", pa.int32()), ("arr", pa.list_(_MAIL))])


@either
@pytest.mark.parametrize(
    ("column", "given", "path"),
    [
        (("arr", an_array(MAIL)), pa.array([[NO_MAIL]], pa.list_(_MAIL)), "arr.element.mailbox"),
        (("m", a_map(MAIL, "integer")), pa.array([[(NO_MAIL, 1)]], pa.map_(_MAIL, pa.int32())), "m.key.mailbox"),
        (("m", a_map("integer", MAIL)), pa.array([[(1, NO_MAIL)]], pa.map_(pa.int32(), _MAIL)), "m.value.mailbox"),
        (
            ("s", a_struct(("n", "integer"), ("arr", an_array(MAIL)), required=("n", "arr"))),
            pa.array([{"n": 1, "arr": [NO_MAIL]}], _NESTED),
            "s.arr.element.mailbox",
        ),
    ],
    ids=["array", "map key", "map value", "nested array"],
)
def test_a_null_that_a_schema_forbids_within_arrays_and_maps_is_refused_too(
    tmp_path: Path, write: Write, column: Column, given: pa.Array, path: str
) -> None:
    table = make(tmp_path, a_struct(column))

    refused(write, table, pa.table({column[0]: given}), "DELTA_NOT_NULL_CONSTRAINT_VIOLATED", f"column: {path}.")


# --- invariants ------------------------------------------------------------------------------------------------------


def with_invariant(expression: str) -> Row:
    return a_struct(("key", "string"), ("value", "integer", invariant(expression)))


@either
@pytest.mark.parametrize(
    ("schema", "given", "words"),
    [
        (with_invariant("value < 3"), {"key": ["a", None], "value": ints(1, 5)}, [" - value : 5"]),
        (
            a_struct(("top", with_invariant("top.value < 3"))),
            {"top": pa.array([{"key": "a", "value": 1}, {"key": None, "value": 5}], PAIR)},
            [" - top.value : 5\n"],
        ),
        (with_invariant("value < 3"), {"key": ["a", "b"]}, [" - value : null"]),
        (with_invariant("value < 3"), {"key": ["a", "b"], "value": ints(1, None)}, [" - value : null"]),
        (
            a_struct(("top", with_invariant("top.value < 3"))),
            {"top": pa.array([{"key": "a", "value": 1}, {"key": "b", "value": None}], PAIR)},
            [" - top.value : null\n"],
        ),
        (
            a_struct(("top", with_invariant("top.value < 3"))),
            {"top": pa.array([{"key": "a"}, {"key": "b"}])},
            [" - top.value : null\n"],
        ),
    ],
    ids=["top level", "nested", "absent", "null", "nested null", "nested absent"],
)
def test_a_row_for_which_an_invariant_is_not_true_is_refused_with_its_values(
    tmp_path: Path, write: Write, schema: Row, given: dict[str, Any], words: list[str]
) -> None:
    table = make(tmp_path, schema)

    refused(write, table, pa.table(given), "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES", *words)


@either
@pytest.mark.parametrize(
    ("schema", "absent", "null", "expected"),
    [
        (
            with_invariant("value is null or value < 3"),
            {"key": ["a", "b"]},
            {"key": ["c", "d"], "value": ints(1, None)},
            [{"key": k, "value": v} for k, v in [("a", None), ("b", None), ("c", 1), ("d", None)]],
        ),
        (
            a_struct(("top", with_invariant("top.value is null or top.value < 3"))),
            {"top": pa.array([{"key": "a"}, {"key": "b"}])},
            {"top": pa.array([{"key": "c", "value": 1}, {"key": "d", "value": None}], PAIR)},
            [{"top": {"key": k, "value": v}} for k, v in [("a", None), ("b", None), ("c", 1), ("d", None)]],
        ),
    ],
    ids=["top level", "nested"],
)
def test_an_invariant_that_allows_a_null_takes_one_that_is_given_or_not(
    tmp_path: Path, write: Write, schema: Row, absent: Any, null: Any, expected: list[Row]
) -> None:
    for number, given in enumerate((absent, null)):
        table = make(tmp_path / str(number), schema)
        write(table, pa.table(given))

    assert rows(tmp_path / "0") + rows(tmp_path / "1") == expected


@either
@pytest.mark.parametrize(
    ("expression", "kept", "broken"),
    [
        ("value < 3 AND value > 0", {"value": ints(1, 2)}, [{"value": ints(1, 4)}, {"value": ints(-1, 2)}]),
        ("key in ('a', 'b', 'c')", {"key": ["a", "b"]}, [{"key": ["a", "d"]}, {"key": ["e"]}]),
    ],
    ids=["AND", "IN SET"],
)
def test_an_invariant_of_several_conditions_is_kept(
    tmp_path: Path, write: Write, expression: str, kept: Any, broken: list[Any]
) -> None:
    for number, given in enumerate(broken):
        table = make(tmp_path / str(number), with_invariant(expression))
        refused(write, table, pa.table(given), "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES", expression)

    table = make(tmp_path / "kept", with_invariant(expression))
    write(table, pa.table(kept))
    assert len(rows(table)) == 2


@either
@pytest.mark.parametrize(
    ("expression", "kind", "bad", "good"),
    [
        ("assert_true(value < 2) is not null", "integer", 1, None),
        ("date_part('YEAR', value) < 2000", "date", date(2001, 1, 1), date(1999, 1, 1)),
        ("decode(encode(value, 'utf-8'), 'utf-8') = 'abc'", "string", "a", "abc"),
        ("extract(YEAR FROM value) < 2000", "date", date(2001, 1, 1), date(1999, 1, 1)),
        ("ifnull(value, 1) = 1", "integer", 2, 1),
        ("left(value, 1) = 'a'", "string", "b", "ab"),
        ("right(value, 1) = 'a'", "string", "b", "ba"),
        ("nullif(value, 1) = 2", "integer", 1, 2),
        ("nvl(value, 1) = 1", "integer", 2, 1),
        ("nvl2(value, 1, 2) = 3", "integer", 2, None),
        ("to_date(value) = '2001-01-01'", "string", "2002-01-01", "2001-01-01"),
        ("to_timestamp(value) = '2001-01-01'", "string", "2002-01-01 00:12:00", "2001-01-01"),
    ],
    ids=[
        "assert_true",
        "date_part",
        "decode",
        "extract",
        "ifnull",
        "left",
        "right",
        "nullif",
        "nvl",
        "nvl2",
        "to_date",
        "to_timestamp",
    ],
)
def test_a_function_that_spark_replaces_by_another_is_evaluated(
    tmp_path: Path, write: Write, expression: str, kind: str, bad: object, good: object
) -> None:
    arrow = {"integer": pa.int32(), "date": pa.date32(), "string": pa.string()}[kind]
    table = make(tmp_path, a_struct(("value", kind, invariant(expression))))
    in_utc: Write = partial(write, zone="UTC")

    given = pa.table({"value": pa.array([bad], arrow)})
    refused(in_utc, table, given, "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES", expression)
    if good is not None:
        in_utc(table, pa.table({"value": pa.array([good], arrow)}))
        assert rows(table) == [{"value": good}]


# --- CHECK constraints -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "told", [protocol(1, 3), protocol(1, 7, writerFeatures=["invariants", "checkConstraints"])], ids=["2", "7"]
)
def test_a_constraint_holds_however_the_protocol_lists_it(tmp_path: Path, told: Action) -> None:
    schema = a_struct(("valueA", "long"), ("valueB", "long"), ("valueC", "long"))
    table = make(tmp_path, schema, told, constraints={"mychk": "valueA < valueB"})

    said = "CHECK constraint mychk (valueA < valueB) violated by row with values:"
    refused(
        by_batch,
        table,
        pa.table({"valueA": [100], "valueB": [50]}),
        "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES",
        said,
        " - valueA : 100",
        " - valueB : 50",
    )
    refused(
        by_batch, table, pa.table({"valueA": [100]}), "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES", said, " - valueB : null"
    )
    by_batch(table, pa.table({"valueA": [50], "valueB": [100]}))

    assert rows(table) == [{"valueA": 50, "valueB": 100, "valueC": None}]


def test_a_table_with_a_constraint_takes_a_new_column(tmp_path: Path) -> None:
    schema = a_struct(("valueA", "long"), ("valueB", "long"))
    table = make(tmp_path, schema, protocol(1, 3), constraints={"mychk": "valueA < valueB"})

    by_batch(table, pa.table({"valueA": [1], "valueB": [2], "valueC": ints(3)}), merge=True)

    assert rows(table) == [{"valueA": 1, "valueB": 2, "valueC": 3}]


# --- an empty text that partitions is null ---------------------------------------------------------------------------


@either
@pytest.mark.parametrize(
    ("required", "partition_by", "broken", "kept"),
    [
        (("c2",), ("c2",), [{"c2": ""}], []),
        (("c2",), ("c2", "c3"), [{"c2": "", "c3": "a"}], [({"c2": "a", "c3": ""}, {"c1": 1, "c2": "a", "c3": None})]),
        (
            ("c2", "c3"),
            ("c2", "c3"),
            [{"c2": "", "c3": "a"}, {"c2": "a", "c3": ""}, {"c2": "", "c3": ""}],
            [({"c2": "a", "c3": "b"}, {"c1": 1, "c2": "a", "c3": "b"})],
        ),
    ],
    ids=["create", "multiple", "multiple not null"],
)
def test_an_empty_text_is_refused_in_a_partition_column_that_must_not_be_null(
    tmp_path: Path,
    write: Write,
    required: tuple[str, ...],
    partition_by: tuple[str, ...],
    broken: list[dict[str, str]],
    kept: list[tuple[dict[str, str], Row]],
) -> None:
    columns = [("c1", "integer"), *((name, "string") for name in ("c2", "c3") if name in partition_by)]
    table = make(tmp_path, a_struct(*columns, required=required), partition_by=partition_by)

    for row in broken:
        empty = next(name for name in required if not row[name])
        given = pa.table({"c1": ints(1), **{name: [text] for name, text in row.items()}})
        refused(write, table, given, "DELTA_NOT_NULL_CONSTRAINT_VIOLATED", f"column: {empty}.")
    for row, expected in kept:
        write(table, pa.table({"c1": ints(1), **{name: [text] for name, text in row.items()}}))
        assert rows(table) == [expected]


@either
def test_a_constraint_meets_null_in_a_partition_column_that_is_an_empty_text(tmp_path: Path, write: Write) -> None:
    schema = a_struct(("c1", "integer"), ("c2", "string"))
    table = make(tmp_path, schema, partition_by=("c2",), constraints={"test": "c2 IS NOT NULL"})

    given = pa.table({"c1": ints(1), "c2": [""]})
    refused(write, table, given, "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES", "constraint test", " - c2 : null")


def test_a_query_writes_to_a_partitioned_table_with_a_constraint(tmp_path: Path) -> None:
    schema = a_struct(("c1", "integer"), ("c2", "string"))
    table = make(tmp_path, schema, partition_by=("c2",), constraints={"cons": "c1 > 0"})

    Writes(table)(pa.table({"c1": ints(1), "c2": ["a"]}))

    assert rows(table) == [{"c1": 1, "c2": "a"}]
