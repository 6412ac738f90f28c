"""A bound is read from statistics where it is certain, and loosened by what its writer may have lost."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import orjson
import pyarrow as pa
import pytest

from tablefeed.delta.stats.column_bounds import ColumnBounds, Leaf, read_bounds
from tablefeed.model import schema as model
from tablefeed.model.schema import Primitive

LONG, TEXT, DOUBLE = Primitive("long"), Primitive("string"), Primitive("double")


def read(kind: Primitive | model.Decimal, *texts: str | None, path: tuple[str, ...] = ("c",)) -> ColumnBounds:
    return read_bounds(pa.array(texts, type=pa.string()), [Leaf(path=path, type=kind)])[0]


def bounds(kind: Primitive | model.Decimal, low: object, high: object) -> tuple[Any, Any]:
    """What is read of `low` and `high`, which are as JSON has them."""
    text = orjson.dumps({"minValues": {"c": low}, "maxValues": {"c": high}}).decode()
    found = read(kind, text)
    return found.low[0].as_py(), found.high[0].as_py()


def raw(digits: str) -> orjson.Fragment:
    return orjson.Fragment(digits)


@pytest.mark.parametrize(
    ("kind", "low", "high"),
    [
        (LONG, -(2**63), 2**63 - 1),
        (Primitive("byte"), -128, 127),
        (Primitive("short"), 1, 1),
        (Primitive("integer"), 0, 2**31 - 1),
        (TEXT, "", "é"),
        (TEXT, "a" * 15, "a" * 15),
        (TEXT, "a" * 32, "b"),  # a minimum that was cut is a beginning
    ],
    ids=str,
)
def test_numbers_short_texts_and_dates_bound_as_they_are(kind: Primitive, low: object, high: object) -> None:
    assert bounds(kind, low, high) == (low, high)
    assert bounds(Primitive("date"), "2024-01-01", "9999-12-31") == (date(2024, 1, 1), date(9999, 12, 31))


@pytest.mark.parametrize(
    ("kind", "text", "low", "high"),
    [
        ("timestamp", "2024-01-01T00:00:00.123Z", "2024-01-01T00:00:00.122+00:00", "2024-01-01T00:00:00.124+00:00"),
        # A zone's offset is written in minutes and may have had seconds.
        (
            "timestamp",
            "2024-01-01T02:00:00.000+02:00",
            "2023-12-31T23:58:59.999+00:00",
            "2024-01-01T00:01:00.001+00:00",
        ),
        ("timestamp_ntz", "2024-01-01T00:00:00.123", "2024-01-01T00:00:00.122", "2024-01-01T00:00:00.124"),
        ("timestamp_ntz", "2024-01-01 00:00:00.123", "2024-01-01T00:00:00.122", "2024-01-01T00:00:00.124"),
        # Written when the column was one of dates.
        ("timestamp_ntz", "2024-01-01", "2023-12-31T23:59:59.999", "2024-01-01T00:00:00.001"),
    ],
)
def test_a_time_bounds_what_was_cut_to_it(kind: str, text: str, low: str, high: str) -> None:
    found = bounds(Primitive(kind), text, text)

    assert found == (datetime.fromisoformat(low), datetime.fromisoformat(high))


@pytest.mark.parametrize("kind", ["date", "timestamp", "timestamp_ntz"])
@pytest.mark.parametrize("text", ["1582-10-14", "1582-10-14T00:00:00.000", "1582-10-14T00:00:00.000Z", "0001-01-01"])
def test_days_that_may_be_of_the_julian_calendar_bound_nothing(kind: str, text: str) -> None:
    assert bounds(Primitive(kind), text, text) == (None, None)


def test_the_first_day_of_the_gregorian_calendar_bounds_what_it_says() -> None:
    low, high = bounds(Primitive("timestamp_ntz"), "1582-10-15T00:00:00.000", "1582-10-15T00:00:00.000")

    assert low == datetime.fromisoformat("1582-10-14T23:59:59.999")
    assert high == datetime.fromisoformat("1582-10-15T00:00:00.001")


@pytest.mark.parametrize("text", ["1899-12-31T23:59:59.999Z", "1850-01-01T00:00:00.000-08:00"])
def test_moments_that_may_be_by_a_later_offset_of_their_zone_bound_nothing(text: str) -> None:
    assert bounds(Primitive("timestamp"), text, text) == (None, None)
    assert bounds(Primitive("timestamp_ntz"), text[:23], text[:23]) != (None, None)


def test_the_first_moment_by_standard_time_bounds_what_it_says() -> None:
    assert bounds(Primitive("timestamp"), "1900-01-01T00:00:00.000Z", "1900-01-01T00:00:00.000Z") == (
        datetime.fromisoformat("1899-12-31T23:59:59.999Z"),
        datetime.fromisoformat("1900-01-01T00:00:00.001Z"),
    )


def test_a_timestamp_without_a_zone_is_in_one_that_nobody_knows() -> None:
    assert bounds(Primitive("timestamp"), "2024-01-01T00:00:00.000", "2024-01-01") == (None, None)


@pytest.mark.parametrize(
    ("high", "bound"),
    [
        # From 16 bytes on, the last character may be a cut's: what comes before it bounds all that begins so.
        ("a" * 16, "a" * 14 + "b"),
        ("a" * 32 + "\x7f", "a" * 31 + "b"),
        ("a" * 32 + "\U0010ffff", "a" * 31 + "b"),
        ("a" * 32 + "\ufffd", "a" * 31 + "b"),
        ("abc\ufffd", "abd"),  # exceeds "abc😀", which earlier versions of Delta-Spark cut so if a setting says 3
        ("\U0001f600" * 4, "\U0001f600" * 2 + "\U0001f601"),
        ("a" * 16 + "\ud7ffb", "a" * 16 + "\ue000"),  # surrogates are no characters
        ("a" * 16 + "\U0010ffff" * 8, "a" * 15 + "b"),
        ("\U0010ffff" * 8, None),
        # Half a character of two, as Java spells it, where it was cut in between.
        ("a" * 31 + "?\ufffd", "a" * 30 + "b"),
    ],
)
def test_a_text_that_may_be_cut_is_exceeded_by_what_follows_it(high: str, bound: str | None) -> None:
    assert bounds(TEXT, "", high) == ("", bound)


def test_a_double_bounds_the_float_that_was_spelt_in_few_digits() -> None:
    low, high = bounds(DOUBLE, 0.1, 0.1)
    single = pa.scalar(0.1, pa.float32()).as_py()

    assert low < 0.1 < single < high < 0.1000001

    low, high = bounds(Primitive("float"), 0.1, 0.1)
    assert low < single < high
    assert pa.scalar(low, pa.float32()).as_py() == low


@pytest.mark.parametrize("kind", [DOUBLE, Primitive("float")])
def test_a_number_that_is_a_float_itself_is_spelt_in_full(kind: Primitive) -> None:
    assert bounds(kind, -1.5, 16777216) == (-1.5, 16777216.0)
    low, high = bounds(kind, 2**60 + 1, 2**60 + 1)
    assert low < 2**60 < high


@pytest.mark.parametrize("kind", [DOUBLE, Primitive("float")])
def test_the_least_of_numbers_bounds_zero_and_the_greatest_bound_nothing_finite(kind: Primitive) -> None:
    low, high = bounds(kind, 5e-324, 5e-324)
    assert low < 0 < high
    low, high = bounds(kind, -1.7976931348623157e308, 1.7976931348623157e308)
    assert (low, high) == (-float("inf"), float("inf"))


@pytest.mark.parametrize("special", ["NaN", "Infinity", "-Infinity", "inf", None])
def test_what_json_has_no_number_for_bounds_no_number(special: object) -> None:
    assert bounds(DOUBLE, special, special) == (None, None)


@pytest.mark.parametrize(
    ("kind", "text", "bound"),
    [
        (model.Decimal(10, 2), "99999999.99", Decimal("99999999.99")),
        (model.Decimal(10, 2), "-1.1", Decimal("-1.10")),
        (model.Decimal(10, 4), "5", Decimal("5.0000")),
        (model.Decimal(10, 4), '"-5.25"', Decimal("-5.2500")),  # as Trino spells it
        (model.Decimal(10, 4), '"5e1"', None),
        (model.Decimal(4, 2), "123.45", None),
        (model.Decimal(4, 2), "1e400", None),
        (model.Decimal(4, 2), "1e999999999999999999", None),
    ],
)
def test_a_short_decimal_bounds_as_it_is_and_one_that_does_not_fit_bounds_nothing(
    kind: model.Decimal, text: str, bound: Decimal | None
) -> None:
    assert bounds(kind, raw(text), raw(text)) == (bound, bound)


def test_a_long_decimal_lies_within_what_a_double_makes_of_it() -> None:
    low, high = bounds(model.Decimal(38, 18), raw("1.2345678901234567e+19"), raw("1.2345678901234567e+19"))
    value = Decimal("12345678901234567890.123456789012345678")

    assert float(value) == 1.2345678901234567e19
    assert low < value < high < value + 12_000


def test_the_ends_of_64_bits_bound_no_decimal_that_may_have_been_cut_to_them() -> None:
    huge = model.Decimal(38, 0)
    assert bounds(huge, -(2**63), 2**63 - 1) == (None, None)
    low, high = bounds(huge, 2**63 - 1, 2**63 - 1)  # of a value beyond, the cut one is less
    assert (low < Decimal(2**63 - 1), high) == (True, None)
    low, high = bounds(huge, -(2**63), -(2**63))
    assert (low, high > Decimal(-(2**63))) == (None, True)


@pytest.mark.parametrize("kind", ["boolean", "binary"])
def test_booleans_and_bytes_have_counts_and_no_bounds(kind: str) -> None:
    found = read(Primitive(kind), '{"numRecords":1,"minValues":{"c":true},"maxValues":{"c":"x"},"nullCount":{"c":0}}')

    assert (found.low.to_pylist(), found.high.to_pylist()) == ([None], [None])
    assert (found.may_be_null.to_pylist(), found.may_have_value.to_pylist()) == ([False], [True])


WRONG = [True, "5", 5.0, 5.5, [5], {"c": 5}, None, 2**63, -(2**63) - 1]


@pytest.mark.parametrize("value", WRONG, ids=str)
def test_a_long_is_bounded_by_integers_of_64_bits_alone(value: object) -> None:
    number = raw(str(value)) if isinstance(value, int) and not isinstance(value, bool) else value
    assert bounds(LONG, number, number) == (None, None)


@pytest.mark.parametrize(
    "kind", [*(Primitive(n) for n in ("byte", "float", "double", "date", "timestamp", "string")), model.Decimal(4, 2)]
)
@pytest.mark.parametrize("value", [True, [], {}, ["a"], {"c": {}}, None], ids=str)
def test_a_value_of_another_json_type_bounds_nothing(kind: Primitive | model.Decimal, value: object) -> None:
    assert bounds(kind, value, value) == (None, None)


def test_half_a_surrogate_pair_is_no_text() -> None:
    found = read(TEXT, r'{"minValues":{"c":"\ud83d"},"maxValues":{"c":"\ud83d"}}', '{"minValues":{"c":"a"}}')

    assert (found.low.to_pylist(), found.high.to_pylist()) == ([None, "a"], [None, None])


@pytest.mark.parametrize(
    "text",
    [None, "", "{", "[]", "null", "7", '"{}"', "{}", '{"minValues":[],"maxValues":7,"nullCount":null}', "\ufeff{}",
     '{"numRecords":NaN,"nullCount":{"c":NaN},"minValues":{"c":Infinity}}', '{"minValues":' + "[" * 2000,
     '{"numRecords":' + "9" * 5000 + "}"],
)  # fmt: skip
def test_statistics_that_say_nothing_leave_all_open(text: str | None) -> None:
    for kind in (LONG, DOUBLE, model.Decimal(10, 2)):
        found = read(kind, text)

        assert (found.low.to_pylist(), found.high.to_pylist()) == ([None], [None])
        assert (found.may_be_null.to_pylist(), found.may_have_value.to_pylist()) == ([True], [True])


def test_of_a_name_that_comes_twice_nothing_is_believed() -> None:
    twice = '{"minValues":{"c":1,"c":5,"d":3},"maxValues":{"c":9},"nullCount":{"c":0}}'
    group = '{"minValues":{"c":1},"maxValues":{"c":9},"minValues":{"c":5}}'
    escaped = '{"minValues":{"c":1,"\\u0063":5},"maxValues":{"c":9}}'
    found = read(LONG, twice, group, escaped)

    assert found.low.to_pylist() == [None, None, None]
    assert found.high.to_pylist() == [9, 9, 9]


def test_bounds_that_contradict_each_other_are_both_dropped() -> None:
    assert bounds(LONG, 5, 4) == (None, None)
    assert bounds(LONG, 5, 5) == (5, 5)


@pytest.mark.parametrize(
    ("counts", "may_be_null", "may_have_value"),
    [
        ('"numRecords":3,"nullCount":{"c":0}', False, True),
        ('"numRecords":3,"nullCount":{"c":1}', True, True),
        ('"numRecords":3,"nullCount":{"c":3}', True, False),
        ('"numRecords":3,"nullCounts":{"c":3}', True, False),
        ('"numRecords":3,"nullCount":{"c":4}', True, True),
        ('"numRecords":0,"nullCount":{"c":0}', False, True),
        ('"nullCount":{"c":3}', True, True),
        ('"numRecords":3', True, True),
        ('"numRecords":"3","nullCount":{"c":"3"}', True, True),
        ('"numRecords":3.0,"nullCount":{"c":3.0}', True, True),
        ('"numRecords":true,"nullCount":{"c":true}', True, True),
        ('"numRecords":false,"nullCount":{"c":false}', True, True),
        # Wide bounds: the counts are of the file, with the rows that a deletion vector has taken out.
        ('"numRecords":3,"tightBounds":false,"nullCount":{"c":3}', True, False),
        ('"numRecords":3,"tightBounds":false,"nullCount":{"c":0}', False, True),
        # Where there are bounds there is a value.
        ('"numRecords":3,"nullCount":{"c":3},"minValues":{"c":1}', True, True),
    ],
)
def test_counts_tell_of_no_null_and_of_nothing_but_nulls(
    counts: str,
    may_be_null: bool,  # noqa: FBT001 - what is expected
    may_have_value: bool,  # noqa: FBT001
) -> None:
    found = read(LONG, f"{{{counts}}}")

    assert (found.may_be_null.to_pylist(), found.may_have_value.to_pylist()) == ([may_be_null], [may_have_value])


def test_a_member_is_found_where_the_schema_has_it_and_its_nulls_may_be_those_of_its_struct() -> None:
    text = '{"numRecords":2,"minValues":{"s":{"c":1},"c":7},"maxValues":{"s":{"c":2}},"nullCount":{"s":{"c":0}}}'
    found = read(LONG, text, '{"minValues":{"s":1}}', path=("s", "c"))

    assert (found.low.to_pylist(), found.high.to_pylist()) == ([1, None], [2, None])
    assert found.may_be_null.to_pylist() == [True, True]
