"""The option `where`: which rows and files a predicate of SQL lets through. Spark's own answers: tests/spark."""

from __future__ import annotations

import datetime as dt
import math
import sys
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tablefeed.delta.schema.arrow_schema import from_arrow, to_arrow
from tablefeed.errors import IllegalOptionError, TablefeedError, UnsupportedOptionError
from tablefeed.feed.scan.where import row_filter
from tablefeed.model.schema import Field, Primitive, Struct

NAN = math.nan
BOOL = pa.bool_()
BOTH = (True, False, None)
WORDS = "a s . x ( ) = < <=> IN NOT NULL IS 1 2.5 'q' AND OR BETWEEN , - ` TRUE ; ! [ ] :: {"


def kept(predicate: str, kind: pa.DataType, *values: object) -> list[object]:
    """The values of the column `a` that are let through."""
    rows = pa.table({"a": pa.array(values, type=kind)})
    condition = row_filter(predicate, from_arrow(rows.schema)).condition
    return list(rows.filter(condition)["a"].to_pylist())


def refusal(predicate: str, kind: pa.DataType) -> str:
    schema = from_arrow(pa.schema([("a", kind), ("s", pa.struct([("x", pa.int32())]))]))
    with pytest.raises(IllegalOptionError) as refused:
        row_filter(predicate, schema)
    return str(refused.value)


@pytest.mark.parametrize(
    ("predicate", "found"),
    [
        ("a = 2", [2]),
        ("2 = a", [2]),
        ("a <> 2", [1, 3]),
        ("NOT a = 2", [1, 3]),
        ("a < 2", [1]),
        ("2 < a", [3]),
        ("a <= 2 AND a > 1", [2]),
        ("a <=> 2", [2]),
        ("NOT a <=> 2", [1, 3, None]),
        ("a <=> NULL", [None]),
        ("a IN (1, 3, 7)", [1, 3]),
        ("a NOT IN (1, 7)", [2, 3]),
        ("a BETWEEN 2 AND 3", [2, 3]),
        ("NOT a BETWEEN 2 AND 3", [1]),
        ("a IS NULL OR a = 1", [1, None]),
        ("a IS NOT NULL", [1, 2, 3]),
        ("NOT (a = 1 AND a IS NOT NULL)", [2, 3, None]),
        ("NOT (a = 1 OR a IS NOT NULL)", []),
        ("A = 1 OR a = 2 AND a = 3", [1]),
    ],
)
def test_nulls_are_neither_true_nor_false_and_are_dropped(predicate: str, found: list[int | None]) -> None:
    assert kept(predicate, pa.int32(), 1, 2, 3, None) == found


@pytest.mark.parametrize(
    ("predicate", "found"),
    [
        ("a < 2.5", [-128, 2]),
        ("a <= 2.5", [-128, 2]),
        ("a > 2.5", [3, 127]),
        ("a >= 2.0", [2, 3, 127]),
        ("a = 2.5", []),
        ("a <> 2.5", [-128, 2, 3, 127]),
        ("NOT a = 2.5", [-128, 2, 3, 127]),
        ("a <=> 2.5", []),
        ("NOT a <=> 2.5", [-128, 2, 3, 127, None]),
        ("a < 300", [-128, 2, 3, 127]),
        ("a >= 128", []),
        ("a > -129", [-128, 2, 3, 127]),
        ("a < -128", []),
        ("a <= -128.5", []),
        ("a IN (2, 2.5, 400)", [2]),
        ("a NOT IN (2.5, 400)", [-128, 2, 3, 127]),
        ("a <= 9223372036854775807", [-128, 2, 3, 127]),
        ("a < -9223372036854775808", []),
    ],
)
def test_a_number_that_a_type_has_not_lies_between_those_that_it_has(predicate: str, found: list[int]) -> None:
    assert kept(predicate, pa.int8(), -128, 2, 3, 127, None) == found


def test_decimals_are_compared_exactly() -> None:
    values = [Decimal("-0.01"), Decimal("0.10"), Decimal("99999999.99"), None]

    assert kept("a > 0.099", pa.decimal128(10, 2), *values) == values[1:3]
    assert kept("a = 0.1", pa.decimal128(10, 2), *values) == values[1:2]
    assert kept("a < 99999999.995", pa.decimal128(10, 2), *values) == values[:3]
    assert kept("a < 0", pa.decimal128(10, 2), *values) == values[:1]


def test_nan_is_above_all_numbers_and_differs_from_each() -> None:
    for kind in (pa.float32(), pa.float64()):
        assert kept("a > 2", kind, 1.5, 2, math.inf, None) == [math.inf]
        assert [str(a) for a in kept("a > 2", kind, 1.5, NAN, None)] == ["nan"]
        assert [str(a) for a in kept("a >= 2 AND a <> 1 AND NOT a <= 5", kind, 1.5, NAN, None)] == ["nan"]
        assert [str(a) for a in kept("a NOT IN (1.5, 2)", kind, 1.5, NAN, None)] == ["nan"]
        assert kept("a < 1e300", kind, 1.5, NAN, None) == [1.5]
        assert kept("a IS NULL", kind, NAN, None) == [None]


def test_zero_has_no_sign() -> None:
    assert kept("a = 0", pa.float64(), -0.0, 0.0) == [0.0, 0.0]
    assert kept("a IN (0, 1)", pa.float32(), -0.0, 0.0) == [0.0, 0.0]
    assert kept("a >= 0 AND a <= -0.0", pa.float64(), -0.0, 0.0, 1.0) == [0.0, 0.0]


def test_a_float_is_held_against_the_double_that_the_literal_is() -> None:
    tenth = pa.scalar(0.1, pa.float32()).as_py()  # a little above 0.1

    assert kept("a = 0.1", pa.float32(), 0.1) == []
    assert kept("a > 0.1", pa.float32(), 0.1) == [tenth]
    assert kept("a <= 0.1", pa.float32(), 0.1, 0.05) == [pa.scalar(0.05, pa.float32()).as_py()]
    assert kept("a < 1e39 AND a > -1e39 AND a <> 1e-50", pa.float32(), 0.0, math.inf) == [0.0]
    assert kept("a > 1e-50", pa.float32(), 0.0, 1e-45) == [pa.scalar(1e-45, pa.float32()).as_py()]
    assert kept("a < -1e-50", pa.float32(), 0.0, -1e-45) == [pa.scalar(-1e-45, pa.float32()).as_py()]


def test_texts_dates_and_times_are_compared_with_their_own_literals() -> None:
    day, noon = dt.date(2024, 1, 31), dt.datetime(2024, 1, 31, 12)  # noqa: DTZ001 - without a zone
    instant = noon.replace(tzinfo=dt.UTC)

    assert kept("a > 'Z' AND a < \"ä\"", pa.string(), "Z", "a", "ä") == ["a"]
    assert kept("a >= DATE'2024-01-31'", pa.date32(), day, dt.date(2024, 1, 30)) == [day]
    assert kept("a >= '2024-01-31'", pa.date32(), day, dt.date(2024, 1, 30)) == [day]
    assert kept("a IN ('2024-01-31')", pa.date32(), day, dt.date(2024, 1, 30), None) == [day]
    assert kept("a = TIMESTAMP'2024-01-31 13:00:00+01:00'", pa.timestamp("us", "UTC"), instant) == [instant]
    assert kept("a IN (TIMESTAMP'2024-01-31 12:00:00Z')", pa.timestamp("us", "UTC"), instant) == [instant]
    assert kept("a < TIMESTAMP_NTZ'2024-01-31 12:00:00.000001'", pa.timestamp("us"), noon) == [noon]
    assert kept("a", pa.bool_(), *BOTH) == [True]
    assert kept("NOT a", pa.bool_(), *BOTH) == [False]
    assert kept("a <> TRUE", pa.bool_(), *BOTH) == [False]
    assert kept("a NOT IN (TRUE)", pa.bool_(), *BOTH) == [False]
    assert kept("a NOT IN ('a', 'b')", pa.string(), "a", "c", None) == ["c"]
    assert kept("a NOT IN (DATE'2024-01-31')", pa.date32(), day, dt.date(2024, 1, 30), None) == [dt.date(2024, 1, 30)]


def test_a_member_of_a_struct_that_is_null_is_null() -> None:
    rows = pa.table({"a": pa.array([{"x": 1}, {"x": None}, None, {"x": 2}], pa.struct([("x", pa.int32())]))})
    schema = from_arrow(rows.schema)

    assert rows.filter(row_filter("a.X = 1 OR a.x IS NULL", schema).condition).num_rows == 3
    assert rows.filter(row_filter("a IS NULL", schema).condition).num_rows == 1
    assert row_filter("`a`.x = 1", schema).fields.names == ["a"]


def test_of_any_type_it_can_be_asked_whether_it_is_null() -> None:
    for kind, value in (
        (pa.null(), None),
        (pa.binary(), b""),
        (pa.list_(pa.int8()), []),
        (pa.map_(pa.int8(), BOOL), []),
    ):
        assert len(kept("a IS NULL", kind, value, None)) == 1 + (value is None)
        assert len(kept("a IS NOT NULL", kind, value, None)) == 1 - (value is None)


@pytest.mark.parametrize(
    ("predicate", "kind", "said"),
    [
        ("a = 'x'", pa.int64(), "holds a, bigint, against a text: give a number without an exponent"),
        ("a = 1e3", pa.int64(), "against a number with an exponent"),
        ("a = TRUE", pa.int64(), "against a boolean"),
        ("a = 5", pa.string(), "holds a, string, against a number: give a text in quotes"),
        ("a = '2024-1-1'", pa.date32(), "give DATE'2024-01-31' or '2024-01-31'"),
        ("a = '2024-02-30'", pa.date32(), "holds a, date, against a text"),
        ("a = DATE'2024-02-30'", pa.date32(), "which is no such time"),
        ("a = TIMESTAMP'2024-01-31 12:00:00Z'", pa.date32(), "against a timestamp"),
        ("a = TIMESTAMP'2024-01-31 12:00:00'", pa.timestamp("us", "UTC"), "whose zone the session would decide"),
        ("a = TIMESTAMP'2024-01-31 12:00:00Z'", pa.timestamp("us"), "give TIMESTAMP_NTZ"),
        ("a = DATE'2024-01-31'", pa.timestamp("us", "UTC"), "against a date"),
        ("a < TRUE", pa.bool_(), "use = or <>"),
        ("a = 1", pa.bool_(), "give TRUE or FALSE"),
        ("a = 'x'", pa.binary(), "only IS NULL and IS NOT NULL"),
        ("s = 1", pa.int64(), "only IS NULL and IS NOT NULL"),
        ("a = 16777217", pa.float32(), "which is no float: write 16777217.0"),
        ("a = 1e400", pa.float64(), "no double"),
        ("a = 5", pa.decimal128(38, 30), "Spark would round"),
        (
            "a > 9223372036854775808",
            pa.int64(),
            "holds a, bigint, against 9223372036854775808, which no bigint reaches",
        ),
        ("a IN (1, -9223372036854775808.5)", pa.int8(), "which no bigint reaches"),
        ("a = 1." + "0" * 38, pa.int64(), "more than 38 digits"),
        ("a = " + "9" * 200, pa.int64(), "where a number is expected"),
        ("b = 1", pa.int64(), "names 'b', but the table has a, s"),
        ("s.y = 1", pa.int64(), "names 'y', but s has x"),
        ("a.x = 1", pa.int64(), "names 'x', but a has no members"),
        ("a", pa.int64(), "asks whether a holds, which is bigint and no boolean"),
        ("a = NULL", pa.int64(), "write IS NULL"),
        ("a IN (1, NULL)", pa.int64(), "has NULL"),
        ("a = s.x", pa.int64(), "has s.x where something else is expected"),
        ("a + 1 = 2", pa.int64(), "has a plus sign"),
        ("+a = '1'", pa.string(), "has a plus sign"),  # Spark: true for 1.0
        ("a LIKE 'x%'", pa.string(), "has a LIKE 'x%'"),
        ("length(a) = 1", pa.string(), "LENGTH(a)"),
        ("REGEXP_REPLACE(a, \"x\" 'b')", pa.string(), "has regexpreplace"),  # which sqlglot cannot write as SQL
        ("a = 'x''y'", pa.string(), "where something else is expected"),
        ("a = 'x\\'", pa.string(), "has a backslash"),
        ("a = 1L", pa.int64(), "where something else is expected"),
        ("a IS TRUE", pa.bool_(), "a IS TRUE"),
        ("a BETWEEN SYMMETRIC 2 AND 1", pa.int64(), "has SYMMETRIC"),
        ("a IN (SELECT 1)", pa.int64(), "has QUERY"),
        ("a = 1; a = 2", pa.int64(), "is not one predicate"),
        ("a = ", pa.int64(), "no predicate that can be read"),
        ("inner = 1", pa.int64(), "needs backticks"),
        ("", pa.int64(), "predicate"),
        ("(" * 3000 + "a = 1" + ")" * 3000, pa.int64(), "nests too deep"),
    ],
)
def test_what_is_not_sure_to_mean_what_it_means_to_spark_is_refused_by_name(
    predicate: str, kind: pa.DataType, said: str
) -> None:
    text = refusal(predicate, kind)

    assert said in text
    assert text.startswith("[DELTA_ILLEGAL_OPTION] Invalid value ")
    assert ("allowed are AND, OR, NOT" in text) != (said.startswith("names ") and ", but " in said)


@pytest.mark.parametrize(
    ("number", "most_scale"),
    [(2**31 - 1, 28), (-(2**31) + 1, 28), (2**31, 18), (2**63 - 1, 18), (2**63, 19), (-(2**63), 19), (10**19, 18)],
)
def test_a_whole_number_is_compared_with_as_many_decimals_as_38_digits_leave(number: int, most_scale: int) -> None:
    assert kept(f"a < {number}", pa.decimal128(38, most_scale), None) == []
    assert "Spark would round" in refusal(f"a < {number}", pa.decimal128(38, most_scale + 1))
    assert kept("a = 5", pa.decimal128(38, 0), 5, 6) == [5]


def test_a_number_has_up_to_100_characters() -> None:
    assert kept(f"a = {'0' * 99}5", pa.int64(), 5, 6) == [5]
    assert "where a number is expected" in refusal(f"a = {'0' * 100}5", pa.int64())


def test_a_column_that_spark_compares_by_rules_of_its_own_can_only_be_null() -> None:
    char = Field("a", Primitive("string"), nullable=True, metadata={"__CHAR_VARCHAR_TYPE_STRING": "char(5)"})
    collated = Field("b", Primitive("string"), nullable=True, metadata={"__COLLATIONS": {"b": "icu.UNICODE_CI"}})
    varchar = Field("c", Primitive("string"), nullable=True, metadata={"__CHAR_VARCHAR_TYPE_STRING": "varchar(5)"})
    schema = Struct((char, collated, varchar))

    assert row_filter("a IS NULL AND b IS NOT NULL AND c = 'x'", schema).fields.names == ["a", "b", "c"]
    for predicate in ("a = 'x'", "b IN ('x')"):
        with pytest.raises(IllegalOptionError, match="by rules of its own"):
            row_filter(predicate, schema)


def test_long_lists_and_chains_are_no_deeper_than_short_ones() -> None:
    numbers = range(3000)

    assert kept(f"a IN ({', '.join(map(str, numbers))})", pa.float64(), 5, 5000, None) == [5]
    assert kept(f"a IN ({', '.join(map(str, numbers))})", pa.int64(), 5, 5000, None) == [5]
    assert kept(" OR ".join(f"a = {n}" for n in numbers), pa.int64(), 5, 5000, None) == [5]


@given(st.text() | st.lists(st.sampled_from(WORDS.split(" "))).map(" ".join))
@example("a = {")
def test_whatever_the_text_is_it_is_understood_or_refused(text: str) -> None:
    schema = from_arrow(pa.schema([("a", pa.int64()), ("s", pa.struct([("x", pa.int32())]))]))
    try:
        found = row_filter(text, schema)
    except TablefeedError:
        return
    assert to_arrow(schema).empty_table().filter(found.condition).num_rows == 0


def test_without_sqlglot_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sqlglot", None)

    with pytest.raises(UnsupportedOptionError, match=r'pip install "tablefeed\[where\]"'):
        row_filter("a = 1", from_arrow(pa.schema([("a", pa.int64())])))
