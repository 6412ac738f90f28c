"""Rows keep the rules of their table: absent columns are filled, and what breaks a rule is named with its values."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal as Number

import pyarrow as pa
import pytest

from tablefeed.data.rule_evaluation import RowRules, Setting
from tablefeed.data.sql.kinds import arrow_type
from tablefeed.errors import InvalidRowsError, SchemaMismatchError, UnsupportedExpressionError
from tablefeed.model.rules import Check, TableRules, TextLimit
from tablefeed.model.schema import Array, DataType, Decimal, Field, Map, Primitive, Struct

_INT, _LONG, _STRING = Primitive("integer"), Primitive("long"), Primitive("string")
_DATE, _TIMESTAMP = Primitive("date"), Primitive("timestamp")
_NOW_US = 1_700_000_000_000_000


def _schema(**kinds: DataType) -> Struct:
    return Struct(tuple(Field(name, kind, nullable=True) for name, kind in kinds.items()))


def _kept(
    rules: TableRules, schema: Struct, rows: dict[str, list[object]], *, zone: str | None = None
) -> pa.RecordBatch:
    """The rows under `rules`; columns that they lack are absent."""
    count = len(next(iter(rows.values())))
    fields = [pa.field(f.name, arrow_type(f.type)) for f in schema]
    columns = [pa.array(rows.get(f.name, [None] * count), f.type) for f in fields]
    absent = frozenset(schema.names) - rows.keys()
    setting = Setting(absent=absent, time_zone=zone, now_us=_NOW_US)
    return RowRules(rules, schema, setting)(pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields)))


def _checks(*expressions: str) -> TableRules:
    return TableRules(checks=tuple(Check(name=f"c{i}", expression=e) for i, e in enumerate(expressions)))


def test_rows_that_keep_all_rules_pass_as_they_are() -> None:
    rows: dict[str, list[object]] = {"x": [1, 2], "s": ["a", None]}

    kept = _kept(_checks("x > 0", "s IS NULL OR s <> ''"), _schema(x=_INT, s=_STRING), rows)

    assert kept.to_pydict() == rows


@pytest.mark.parametrize("broken", [0, None])
def test_a_condition_that_is_false_or_null_is_broken_and_named_with_the_columns_that_it_names(broken: object) -> None:
    schema = _schema(x=_INT, y=_INT, s=_STRING)

    with pytest.raises(InvalidRowsError) as caught:
        _kept(_checks("y = y", "X > 0 AND s <> 'b'"), schema, {"x": [1, broken], "y": [7, 8], "s": ["a", "c"]})

    assert caught.value.message.startswith(
        "[DELTA_VIOLATE_CONSTRAINT_WITH_VALUES] CHECK constraint c1 (X > 0 AND s <> 'b') violated by row with values:\n"
        f" - s : c\n - x : {'null' if broken is None else broken}\n"
    )
    assert "<unnamed table>" in caught.value.message


@pytest.mark.parametrize(
    ("expression", "row", "shown"),
    [
        ("S.A.b > 0", {"a": {"b": 0, "c": 9}, "x": 1}, " - s.A.b : 0\n"),
        ("s.a.b > 0", {"a": None, "x": 1}, " - s.a.b : null\n"),
        ("s.a.b > 0", None, " - s.a.b : null\n"),
        ("s.a.b > s.x", {"a": {"b": 0, "c": 9}, "x": 1}, " - s.a.b : 0\n - s.x : 1\n"),
        ("s.l[s.x].b > 0", {"l": [{"b": 5}, {"b": -1}], "x": 1}, " - s.l : [{'b': 5}, {'b': -1}]\n - s.x : 1\n"),
        ("s.a.b + s.a.b > 0", {"a": {"b": 0, "c": 9}, "x": 1}, " - s.a.b : 0\n"),
    ],
    ids=["another case", "null struct", "null column", "two members", "element", "twice"],
)
def test_a_member_is_shown_by_its_path_without_those_beside_it(expression: str, row: object, shown: str) -> None:
    element = _schema(b=_INT)
    schema = _schema(s=_schema(a=_schema(b=_INT, c=_INT), x=_INT, l=Array(element, contains_null=True)))

    with pytest.raises(InvalidRowsError) as caught:
        _kept(_checks(expression), schema, {"s": [row]})

    assert f"violated by row with values:\n{shown}Nothing" in caught.value.message


def test_the_first_broken_row_is_the_one_that_is_shown() -> None:
    with pytest.raises(InvalidRowsError, match=r"(?s) - x : -1\n"):
        _kept(_checks("x > 0"), _schema(x=_INT), {"x": [1, -1, -2]})


def test_a_row_for_which_spark_raises_is_refused_with_its_values_and_without_a_wrapped_number() -> None:
    with pytest.raises(InvalidRowsError, match=r"x \+ 1 > 0 fails \(a result is out of the range") as caught:
        _kept(_checks("x + 1 > 0"), _schema(x=_INT), {"x": [1, 2**31 - 1]})

    assert " - x : 2147483647" in caught.value.message


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("xxhash64(x) > 0", "the function xxhash64 is not evaluated here"),
        ("t > '2024-01-01'", "set the option timeZone"),
        ("missing > 0", "there is no missing among"),
        ("x", "not a boolean"),
    ],
)
def test_a_rule_that_is_not_evaluated_exactly_refuses_the_write_by_name(expression: str, said: str) -> None:
    with pytest.raises(UnsupportedExpressionError, match="its constraint c0") as caught:
        _kept(_checks(expression), _schema(x=_INT, s=_STRING, t=_TIMESTAMP), {"x": [1], "s": ["a"], "t": [None]})

    assert said in caught.value.message
    assert (caught.value.expression, caught.value.rule) == (expression, "its constraint c0")


@pytest.mark.parametrize(
    ("rules", "error_class"),
    [
        (_checks("gone > 0"), "DELTA_INVALID_CHECK_CONSTRAINT_REFERENCES"),
        (_checks("x + 1"), "DELTA_NON_BOOLEAN_CHECK_CONSTRAINT"),
        (TableRules(generated={"y": "gone + 10"}), "DELTA_INVALID_GENERATED_COLUMN_REFERENCES"),
        (TableRules(generated={"x": "gone + 10"}), "DELTA_INVALID_GENERATED_COLUMN_REFERENCES"),
        (TableRules(generated={"x": "1", "y": "x + 10"}), "DELTA_INVALID_GENERATED_COLUMN_REFERENCES"),
        (TableRules(generated={"x": "y + 10", "y": "1"}), "DELTA_INVALID_GENERATED_COLUMN_REFERENCES"),
        (TableRules(defaults={"y": "x"}), None),
        (_checks("rand() > 0"), None),
    ],
    ids=[
        "constraint",
        "not a condition",
        "absent generated column",
        "given generated column",
        "absent of another",
        "given of another",
        "default",
        "not evaluated",
    ],
)
def test_a_rule_that_cannot_be_one_has_the_class_that_the_jar_refuses_it_with(
    rules: TableRules, error_class: str | None
) -> None:
    with pytest.raises(UnsupportedExpressionError) as caught:
        _kept(rules, _schema(x=_INT, y=_INT), {"x": [1]})

    assert caught.value.error_class == error_class


def test_an_absent_generated_column_is_computed_in_the_type_of_its_column() -> None:
    rules = TableRules(generated={"day": "CAST(t AS DATE)", "twice": "x * 2"})
    schema = _schema(t=_TIMESTAMP, day=_DATE, x=_INT, twice=_LONG)

    kept = _kept(rules, schema, {"t": [datetime(2024, 6, 1, 23, tzinfo=UTC)], "x": [4]}, zone="Europe/Berlin")

    assert kept.column("day").to_pylist() == [date(2024, 6, 2)]
    assert kept.column("twice") == pa.array([8], pa.int64())


def test_a_generated_value_that_its_column_does_not_hold_is_refused() -> None:
    schema = _schema(x=_LONG, y=Primitive("byte"))

    with pytest.raises(InvalidRowsError, match="A column cannot be filled: x fails"):
        _kept(TableRules(generated={"y": "x"}), schema, {"x": [128]})


@pytest.mark.parametrize(("given", "is_kept"), [(2024, True), (2023, False), (None, False)])
def test_a_given_generated_column_must_be_what_it_would_be(given: object, *, is_kept: bool) -> None:
    rules = TableRules(generated={"y": "YEAR(d)"})
    rows: dict[str, list[object]] = {"d": [date(2024, 1, 1)], "y": [given]}

    if is_kept:
        assert _kept(rules, _schema(d=_DATE, y=_INT), rows).to_pydict() == rows
    else:
        with pytest.raises(InvalidRowsError, match=r"CHECK constraint Generated Column \(`y` <=> \(YEAR\(d\)\)\)"):
            _kept(rules, _schema(d=_DATE, y=_INT), rows)


def test_a_given_generated_column_may_be_null_where_its_expression_is() -> None:
    rules = TableRules(generated={"y": "YEAR(d)"})

    assert _kept(rules, _schema(d=_DATE, y=_INT), {"d": [None], "y": [None]}).num_rows == 1


def test_an_absent_column_takes_its_default_and_a_given_null_stays_null() -> None:
    rules = TableRules(
        defaults={"n": "7", "s": "'new'", "p": "1.5", "at": "current_timestamp()", "on": "current_date()", "g": "1"}
    )
    schema = _schema(x=_INT, n=_LONG, s=_STRING, p=Decimal(5, 2), at=_TIMESTAMP, on=_DATE, g=_INT)

    kept = _kept(rules, schema, {"x": [1, 2], "g": [None, 3]}, zone="Asia/Tokyo")

    assert kept.to_pydict() == {
        "x": [1, 2],
        "n": [7, 7],
        "s": ["new", "new"],
        "p": [Number("1.50")] * 2,
        "at": [datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)] * 2,
        "on": [date(2023, 11, 15)] * 2,
        "g": [None, 3],
    }


def test_a_generated_column_may_hang_on_one_that_took_its_default_and_both_are_checked() -> None:
    rules = TableRules(
        defaults={"n": "7"}, generated={"m": "n + x"}, checks=(Check(name="small", expression="m < 10"),)
    )
    schema = _schema(x=_INT, n=_INT, m=_INT)

    assert _kept(rules, schema, {"x": [1]}).to_pydict() == {"x": [1], "n": [7], "m": [8]}
    with pytest.raises(InvalidRowsError, match=" - m : 10"):
        _kept(rules, schema, {"x": [3]})


@pytest.mark.parametrize("default", ["x", "uuid()", "'a'"])
def test_a_default_that_is_no_constant_of_its_type_is_refused_by_name(default: str) -> None:
    with pytest.raises(UnsupportedExpressionError, match="the default of column n"):
        _kept(TableRules(defaults={"n": default}), _schema(x=_INT, n=_INT), {"x": [1]})


@pytest.mark.parametrize("default", ["3000000000", "1/0"])
def test_a_default_that_its_column_does_not_hold_is_refused_before_a_row_is_looked_at(default: str) -> None:
    setting = Setting(absent=frozenset({"m", "n"}), time_zone=None, now_us=_NOW_US)

    with pytest.raises(SchemaMismatchError) as caught:
        RowRules(TableRules(defaults={"m": "1", "n": default}), _schema(x=_INT, m=_INT, n=_INT), setting)

    assert f"no column 'n', and its default in <unnamed table>, {default}, cannot be stored there" in str(caught.value)
    assert "filter" not in str(caught.value)


@pytest.mark.parametrize("zone", [None, "Nowhere/City"])
def test_a_day_that_hangs_on_an_unknown_zone_is_refused_in_the_tables_words(zone: str | None) -> None:
    with pytest.raises(UnsupportedExpressionError, match=r"on, current_date\(\), .*: ") as caught:
        _kept(TableRules(defaults={"on": "current_date()"}), _schema(x=_INT, on=_DATE), {"x": [1]}, zone=zone)
    assert "BIGINT" not in str(caught.value)


def _limit(*path: str, length: int = 3) -> TableRules:
    return TableRules(limits=(TextLimit(path=path, length=length, kind="varchar"),))


def test_a_text_is_measured_in_characters_and_a_null_has_none() -> None:
    rows: dict[str, list[object]] = {"s": ["äöü", "🤦ab", None, ""]}

    assert _kept(_limit("s"), _schema(s=_STRING), rows).to_pydict() == rows


def test_a_text_that_is_too_long_by_a_blank_alone_is_refused() -> None:
    with pytest.raises(
        InvalidRowsError, match=r"\[DELTA_EXCEED_CHAR_VARCHAR_LIMIT\] Value \"abc \" exceeds.*s of <unnamed table>"
    ):
        _kept(_limit("s"), _schema(s=_STRING), {"s": ["abc "]})


@pytest.mark.parametrize(
    ("kind", "path", "value"),
    [
        (Array(_STRING, contains_null=True), ("element",), ["ab", None, "long"]),
        (Map(_STRING, _STRING, value_contains_null=True), ("key",), [("long", "a")]),
        (Map(_STRING, _STRING, value_contains_null=True), ("value",), [("a", None), ("b", "long")]),
        (Struct((Field("a", _STRING, nullable=True),)), ("a",), {"a": "long"}),
        (Array(Struct((Field("a", _STRING, nullable=True),)), contains_null=True), ("element", "a"), [{"a": "long"}]),
    ],
)
def test_a_text_that_is_too_long_is_found_at_every_depth(kind: DataType, path: tuple[str, ...], value: object) -> None:
    assert _kept(_limit("c", *path, length=4), _schema(c=kind), {"c": [None, value]}).num_rows == 2
    with pytest.raises(InvalidRowsError, match='Value "long" exceeds'):
        _kept(_limit("c", *path), _schema(c=kind), {"c": [None, value]})


@pytest.mark.parametrize(
    "present", ["year(current_date())", "year(current_timestamp())", "unix_timestamp() - 1699997977"]
)
def test_a_condition_may_hang_on_the_moment_of_the_write(present: str) -> None:
    rules, schema = _checks(f"x <= {present}"), _schema(x=_INT)

    assert _kept(rules, schema, {"x": [2023]}, zone="UTC").num_rows == 1
    with pytest.raises(InvalidRowsError, match=" - x : 2024"):
        _kept(rules, schema, {"x": [2024]}, zone="UTC")


def test_no_rows_keep_every_rule() -> None:
    assert _kept(_checks("x > 0"), _schema(x=_INT), {"x": []}).num_rows == 0


def test_a_text_that_is_no_utf_8_is_refused_and_names_the_table() -> None:
    broken = pa.array([b"\xff"]).view(pa.string())
    setting = Setting(absent=frozenset(), time_zone=None, now_us=_NOW_US)
    rules = RowRules(_checks("upper(s) = s"), _schema(s=_STRING), setting)

    with pytest.raises(InvalidRowsError, match="The rules of <unnamed table> cannot be evaluated on these rows"):
        rules(pa.record_batch({"s": broken}))


@pytest.mark.parametrize("zone", ["Nowhere/City", "CST", "+19:00"])
def test_a_time_zone_that_is_not_known_refuses_a_rule_that_hangs_on_it(zone: str) -> None:
    with pytest.raises(UnsupportedExpressionError, match="time zone"):
        _kept(_checks("year(t) > 0"), _schema(t=_TIMESTAMP), {"t": [None]}, zone=zone)


def test_a_generated_column_may_not_hang_on_the_moment_as_a_default_may() -> None:
    with pytest.raises(UnsupportedExpressionError, match="the generation expression of column at"):
        _kept(TableRules(generated={"at": "now()"}), _schema(x=_INT, at=_TIMESTAMP), {"x": [1]})
