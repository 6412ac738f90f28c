"""What writes make of generated columns, as GeneratedColumnSuite has it."""

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
    Writes,
    a_struct,
    actions,
    an_array,
    by_batch,
    is_untouched,
    make,
    refused,
    rows,
)
from support.logs import protocol, put, remove
from support.micro_batches import SparkModel
from tablefeed.errors import InvalidRowsError, SchemaMismatchError, UnsupportedExpressionError
from tablefeed.store import LocalStore

either = pytest.mark.parametrize("write", BOTH.values(), ids=BOTH)
GENERATED = protocol(1, 7, writerFeatures=["appendOnly", "invariants", "generatedColumns"])
MAPPED = protocol(2, 7, writerFeatures=["appendOnly", "invariants", "generatedColumns", "columnMapping"])


def ints(*values: int | None) -> pa.Array:
    return pa.array(values, pa.int32())


def generated(expression: str) -> dict[str, Any]:
    return {"delta.generationExpression": expression}


# --- the table of most scenarios -------------------------------------------------------------------------------------

_COLUMNS: list[Column] = [
    ("c0_g", "void", generated("null")),
    ("c1", "long"),
    ("c2_g", "long", generated("c1 + 10")),
    ("c3_p", "string"),
    ("c4_g_p", "date", generated("cast(c5 as date)")),
    ("c5", "timestamp"),
    ("c6", "integer"),
    ("c7_g_p", "integer", generated("c6 * 10")),
    ("c8", "date"),
]
PARTITION_BY = ("c3_p", "c4_g_p", "c7_g_p")
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
    "c8": date(2020, 11, 12),
}
_ARROW = {"c5": pa.timestamp("us", "UTC"), "c6": pa.int32(), "c7_g_p": pa.int32()}
ALL = "c0_g c1 c2_g c3_p c4_g_p c5 c6 c7_g_p c8"


def a_row(columns: str, **other: object) -> pa.Table:
    """The full row in these columns, with `other` values."""
    row = FULL_ROW | other
    return pa.table({name: pa.array([row[name]], _ARROW.get(name)) for name in columns.split()})


def the_table(path: Path) -> Path:
    return make(path, a_struct(*_COLUMNS), GENERATED, partition_by=PARTITION_BY)


GIVEN = {
    "only others": "c1 c3_p c5 c6 c8",
    "another order": "c5 c6 c8 c1 c3_p",
    "all": ALL,
    "all in another order": "c5 c6 c7_g_p c8 c1 c2_g c3_p c4_g_p",
    "some generated": "c5 c6 c8 c1 c3_p c4_g_p",
}


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
@pytest.mark.parametrize("given", GIVEN.values(), ids=GIVEN)
def test_an_overwrite_makes_them_too_and_finds_its_partitions_by_them(
    tmp_path: Path, given: str, scope: Literal["static", "dynamic"]
) -> None:
    table = the_table(tmp_path)
    by_batch(table, a_row("c1 c3_p c5 c6 c8", c1=2), zone="UTC")
    elsewhere = a_row("c1 c3_p c5 c6 c8", c1=3, c6=7)
    by_batch(table, elsewhere, zone="UTC")

    tablefeed.append(table, a_row(given), mode="overwrite", partition_overwrite_mode=scope, time_zone="UTC")

    kept = [{**FULL_ROW, "c1": 3, "c2_g": 13, "c6": 7, "c7_g_p": 70}] if scope == "dynamic" else []
    assert rows(table) == [FULL_ROW, *kept]


def mapped_table(path: Path) -> Path:
    """Without the void column, which was dropped, and so with names in files of its own."""
    columns: list[Column] = [
        (
            name,
            kind,
            dict(*more) | {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": f"col-{name}"},
        )
        for number, (name, kind, *more) in enumerate(_COLUMNS[1:], 2)
    ]
    mapping = {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "9"}
    return make(path, a_struct(*columns), MAPPED, partition_by=PARTITION_BY, properties=mapping)


@either
@pytest.mark.parametrize("spelt", ["c1", "C1"])
def test_they_are_made_in_a_table_of_mapped_columns_however_the_others_are_spelt(
    tmp_path: Path, write: Write, spelt: str
) -> None:
    table = mapped_table(tmp_path)

    write(table, a_row("c1 c3_p c5 c6 c8").rename_columns({"c1": spelt}), zone="UTC")

    assert rows(table) == [{name: value for name, value in FULL_ROW.items() if name != "c0_g"}]


@either
def test_a_value_that_is_not_what_the_expression_gives_is_refused(tmp_path: Path, write: Write) -> None:
    table = mapped_table(tmp_path)

    given = a_row("c1 c2_g c3_p c5 c6 c8", c2_g=2)
    refused(
        write,
        table,
        given,
        "CHECK constraint Generated Column (`c2_g` <=> (c1 + 10)) violated by row with values",
        zone="UTC",
    )


# --- other tables ----------------------------------------------------------------------------------------------------


@either
@pytest.mark.parametrize(
    ("columns", "given", "expected"),
    [
        (
            [("a.b", "integer"), ("x.y", "integer", generated("`a.b` + 10"))],
            {"a.b": ints(1, 2)},
            [{"a.b": 1, "x.y": 11}, {"a.b": 2, "x.y": 12}],
        ),
        (
            [("current_date", "integer"), ("bar", "integer", generated("`current_date` + 1"))],
            {"current_date": ints(10)},
            [{"current_date": 10, "bar": 11}],
        ),
        (
            [
                ("a.b", "string"),
                ("a", a_struct(("b", "integer"), ("c", "string"))),
                ("array", an_array("integer")),
                ("c1", "string", generated("CONCAT(`a.b`, 'b')")),
                ("c2", "integer", generated("a.b + 100")),
                ("c3", "integer", generated("array[1]")),
            ],
            {
                "a.b": pa.array(["a"]),
                "a": pa.array([{"b": 100, "c": "foo"}], pa.struct([("b", pa.int32()), ("c", pa.string())])),
                "array": pa.array([[1000, 1001]], pa.list_(pa.int32())),
            },
            [{"a.b": "a", "a": {"b": 100, "c": "foo"}, "array": [1000, 1001], "c1": "ab", "c2": 200, "c3": 1001}],
        ),
        (
            [
                ("time", "timestamp"),
                ("year", "date", generated("make_date(year(time), 1, 1)")),
                ("month", "date", generated("make_date(year(time), month(time), 1)")),
                ("day", "date", generated("make_date(year(time), month(time), day(time))")),
                (
                    "hour",
                    "timestamp",
                    generated("make_timestamp(year(time), month(time), day(time), hour(time), 0, 0)"),
                ),
            ],
            {"time": pa.array([AT], pa.timestamp("us", "UTC"))},
            [
                {
                    "time": AT,
                    "year": date(2020, 1, 1),
                    "month": date(2020, 10, 1),
                    "day": date(2020, 10, 11),
                    "hour": datetime(2020, 10, 11, 12, tzinfo=UTC),
                }
            ],
        ),
        (
            [("c1", "integer"), ("c2", "string"), ("c3", "integer", generated("c1 + 1"))],
            {"c1": ints(1, 2), "c2": pa.array(["a1", "a2"])},
            [{"c1": 1, "c2": "a1", "c3": 2}, {"c1": 2, "c2": "a2", "c3": 3}],
        ),
        (
            [("c1", "integer"), ("c2", "string"), ("c3", "integer", generated("c1 + 1"))],
            {"c1": ints(3)},
            [{"c1": 3, "c2": None, "c3": 4}],
        ),
        (
            [("c1", "integer", generated("1 + 2")), ("c2", "integer", generated("3 + 4")), ("c3", "integer")],
            {"c3": ints(1)},
            [{"c1": 3, "c2": 7, "c3": 1}],
        ),
    ],
    ids=["dots", "keyword", "extractors", "transforms", "nullable given", "nullable absent", "constants"],
)
def test_an_expression_gives_the_values_of_its_column(
    tmp_path: Path, write: Write, columns: list[Column], given: dict[str, pa.Array], expected: list[Row]
) -> None:
    table = make(tmp_path, a_struct(*columns), GENERATED)

    write(table, pa.table(given), zone="UTC")

    assert rows(table) == expected


@either
def test_a_value_that_is_given_must_be_the_expressions_with_null_for_null(tmp_path: Path, write: Write) -> None:
    table = make(tmp_path, a_struct(("c1", "string"), ("c2", "string", generated("CONCAT(c1, 'y')"))), GENERATED)

    for c1, c2 in [("foo", None), (None, "foo"), ("x", "xx")]:
        given = pa.table({"c1": pa.array([c1], pa.string()), "c2": pa.array([c2], pa.string())})
        refused(write, table, given, "CHECK constraint Generated Column (`c2` <=> (CONCAT(c1, 'y')))")
    write(table, pa.table({"c1": ["x", None], "c2": ["xy", None]}))

    assert rows(table) == [{"c1": "x", "c2": "xy"}, {"c1": None, "c2": None}]


@either
def test_a_generated_null_is_refused_where_there_must_be_none(tmp_path: Path, write: Write) -> None:
    columns: list[Column] = [("base", "string"), ("gen", "string", generated("concat(base, '-generated')"))]
    table = make(tmp_path, a_struct(*columns, required=("gen",)), GENERATED)

    with pytest.raises(InvalidRowsError, match="column: gen") as caught:
        write(table, pa.table({"base": pa.array([None], pa.string())}))
    assert caught.value.error_class == "DELTA_NOT_NULL_CONSTRAINT_VIOLATED"
    assert is_untouched(table)
    write(table, pa.table({"base": ["1"]}))

    assert rows(table) == [{"base": "1", "gen": "1-generated"}]


@either
def test_a_column_beside_generated_ones_that_must_not_be_null_has_to_be_given(tmp_path: Path, write: Write) -> None:
    columns: list[Column] = [("c1", "integer"), ("c2", "string"), ("c3", "integer", generated("c1 + 1"))]
    table = make(tmp_path, a_struct(*columns, required=("c1", "c2", "c3")), GENERATED)

    with pytest.raises(SchemaMismatchError, match="'c2'") as caught:
        write(table, pa.table({"c1": ints(3)}))

    assert caught.value.error_class == "DELTA_MISSING_NOT_NULL_COLUMN_VALUE"
    assert is_untouched(table)


SHORTS = a_struct(("a", "short"), ("b", "short"))


@either
@pytest.mark.parametrize(
    ("columns", "given", "expected"),
    [
        (
            [("c1", "integer"), ("c2", "integer", generated("HASH(c1)"))],
            {"c1": pa.array([32767], pa.int64())},
            {"c1": 32767, "c2": 1249274084},
        ),
        (
            [("a", "short"), ("c1", a_struct(("a", "short"))), ("c2", "integer", generated("HASH(a)"))],
            {"a": ints(32767), "c1": pa.array([{"a": 32767}], pa.struct([("a", pa.int32())]))},
            {"a": 32767, "c1": {"a": 32767}, "c2": 1249274084},
        ),
        (
            [("a", "integer"), ("t", a_struct(("gen", "short"))), ("gen", "integer", generated("HASH(a)"))],
            {"a": ints(32767), "t": pa.array([{"gen": 32767}], pa.struct([("gen", pa.int32())]))},
            {"a": 32767, "t": {"gen": 32767}, "gen": 1249274084},
        ),
        (
            [("t", SHORTS), ("gen", "integer", generated("HASH(t.a)"))],
            {"t": pa.array([{"a": 32767, "b": 32767}], pa.struct([("a", pa.int16()), ("b", pa.int32())]))},
            {"t": {"a": 32767, "b": 32767}, "gen": 1249274084},
        ),
    ],
    ids=["column", "nested", "of the same name", "not referenced"],
)
def test_values_of_a_wider_type_become_the_tables_and_its_schema_stays(
    tmp_path: Path, write: Write, columns: list[Column], given: dict[str, pa.Array], expected: Row
) -> None:
    schema = a_struct(*columns)
    table = make(tmp_path, schema, GENERATED)

    write(table, pa.table(given), merge=True)

    assert rows(table) == [expected]
    assert "metaData" not in actions(table, 1)


@pytest.mark.parametrize(
    ("columns", "error_class"),
    [
        ([("c2", "integer", generated("c10 + 10"))], "DELTA_INVALID_GENERATED_COLUMN_REFERENCES"),
        (
            [("c2", "integer", generated("c1 + 10")), ("c3", "integer", generated("c2 + 10"))],
            "DELTA_INVALID_GENERATED_COLUMN_REFERENCES",
        ),
        ([("c2", "integer", generated("myudf(c1)"))], None),
        ([("c2", "double", generated("rand()"))], None),
        ([("c2", "integer", generated("max(c1)"))], None),
        ([("c2", "integer", generated("explode(array(c1))"))], None),
        ([("c2", "timestamp", generated("current_timestamp"))], None),
        ([("c2", "integer", generated("cast(c1 AS STRING)"))], None),
    ],
    ids=["no column", "generated", "udf", "rand", "max", "explode", "current_timestamp", "type"],
)
@pytest.mark.parametrize("is_given", [False, True], ids=["made", "given"])
def test_what_can_be_no_generation_expression_stops_every_write(
    tmp_path: Path, columns: list[Column], error_class: str | None, *, is_given: bool
) -> None:
    table = make(tmp_path, a_struct(("c1", "integer"), *columns), GENERATED)
    arrow = {"integer": pa.int32(), "double": pa.float64(), "timestamp": pa.timestamp("us", "UTC")}
    more = {name: pa.array([0], arrow[str(kind)]) for name, kind, *_ in columns} if is_given else {}

    with pytest.raises(UnsupportedExpressionError, match="the generation expression of column") as caught:
        by_batch(table, pa.table({"c1": ints(1), **more}), zone="UTC")

    assert caught.value.error_class == error_class
    assert is_untouched(table)


def test_changes_of_such_a_table_fill_another_whose_columns_are_generated_anew(tmp_path: Path) -> None:
    day = generated("CAST(timeCol AS DATE)")
    one = make(
        tmp_path / "one",
        a_struct(("id", "long"), ("timeCol", "timestamp"), ("dateCol", "date", day)),
        protocol(1, 7, writerFeatures=["generatedColumns", "changeDataFeed"]),
        partition_by=("dateCol",),
        properties={"delta.enableChangeDataFeed": "true"},
    )
    days = [datetime(1970, 1, number + 1, tzinfo=UTC) for number in range(6)]
    by_batch(one, pa.table({"id": [*range(6)], "timeCol": pa.array(days, pa.timestamp("us", "UTC"))}), zone="UTC")
    gone = [add for add in actions(one, 1)["add"] if add["partitionValues"]["dateCol"] < "1970-01-04"]
    removed = [remove(add["path"]) for add in gone]
    for action, add in zip(removed, gone, strict=True):
        action["remove"] |= {
            "extendedFileMetadata": True,
            "partitionValues": add["partitionValues"],
            "size": add["size"],
        }
    put(LocalStore(str(one)), 2, removed)

    changes = tablefeed.changes(one, start_version=2).read_all()
    other = make(
        tmp_path / "other",
        a_struct(("id", "long"), ("_change_type", "string"), ("timeCol", "timestamp"), ("dateCol", "date", day)),
        GENERATED,
        partition_by=("dateCol",),
        properties={"delta.enableChangeDataFeed": "false"},
    )
    by_batch(other, changes.select(["id", "_change_type", "timeCol"]), zone="UTC")

    expected = [(n, "delete", days[n], days[n].date()) for n in range(3)]
    told = zip(*(changes[name].to_pylist() for name in ("id", "_change_type", "timeCol", "dateCol")), strict=True)
    assert sorted(told) == expected
    assert [(r["id"], r["_change_type"], r["timeCol"], r["dateCol"]) for r in rows(other)] == expected


def test_a_reader_sees_no_generation_expression_and_a_copy_has_none(tmp_path: Path) -> None:
    table = make(tmp_path / "t", a_struct(("c1", "integer", generated("c2 + 1")), ("c2", "integer")), GENERATED)
    by_batch(table, pa.table({"c2": ints(1)}))

    seen = [
        SparkModel().readStream.format("tablefeed").options(**options).load(str(table)).schema
        for options in ({}, {"readChangeFeed": "false"})
    ]
    assert [field.metadata for schema in seen for field in schema] == [{}] * 4
    assert [field.metadata for field in tablefeed.open_table(table).schema] == [None, None]

    Writes(tmp_path / "copy")(tablefeed.appends(table, start_version=0).read_all())
    assert rows(tmp_path / "copy") == [{"c1": 2, "c2": 1}]
    assert "generationExpression" not in json.dumps(actions(tmp_path / "copy", 0))
