"""What values become in a column of another type: the value that Spark's CAST gives, or an error that names it."""

from __future__ import annotations

import decimal
import math
import struct
from datetime import UTC, date, datetime, tzinfo
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablefeed.data.assignment import Assignment, Policy, is_assignable, needs_zone
from tablefeed.data.casts import CastError
from tablefeed.data.retype import LossyConversionError
from tablefeed.data.storing import assigned
from tablefeed.model.schema import Array, Primitive
from tablefeed.model.schema import Decimal as DecimalType
from tablefeed.model.spark_texts import nearest_single, to_local, to_utc

BERLIN = ZoneInfo("Europe/Berlin")
UTC_US, WALL_US = pa.timestamp("us", "UTC"), pa.timestamp("us")


def stored(
    values: list[Any],
    found: pa.DataType,
    wanted: pa.DataType,
    zone: tzinfo | None = BERLIN,
    policy: Policy = Policy.ANSI,
) -> list[Any]:
    """The values as those of another type; a null comes along and stays one."""
    array = pa.array([*values, None], found)
    convert = assigned(found, wanted, Assignment(policy=policy, zone=zone))
    result = array if convert is None else convert(array)
    result.validate(full=True)
    assert result.type == wanted
    assert result[-1].as_py() is None
    return list(result.to_pylist()[:-1])


def refusal(value: Any, found: pa.DataType, wanted: pa.DataType) -> str:
    with pytest.raises(CastError, match="the value") as caught:
        stored([value], found, wanted)
    return caught.value.error_class


def utc(year: int, month: int, day: int, *time: int) -> datetime:
    return wall(year, month, day, *time).replace(tzinfo=UTC)


def wall(year: int, month: int, day: int, *time: int) -> datetime:
    hour, minute, second, microsecond = (*time, 0, 0, 0, 0)[:4]
    return datetime(year, month, day, hour, minute, second, microsecond)  # noqa: DTZ001 - a clock without a zone


# --- values ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "found", "wanted", "expected"),
    [
        ([-128, 127], pa.int64(), pa.int8(), [-128, 127]),
        ([2**53 + 1], pa.int64(), pa.float64(), [2.0**53]),
        ([7], pa.int32(), pa.decimal128(5, 2), [Decimal("7.00")]),
        ([1.9, -1.9, 2147483647.9], pa.float64(), pa.int32(), [1, -1, 2147483647]),
        ([0.1, 1e300], pa.float64(), pa.float32(), [struct.unpack("f", struct.pack("f", 0.1))[0], math.inf]),
        ([2.675, math.inf, math.nan], pa.float64(), pa.decimal128(5, 2), [Decimal("2.68"), None, None]),
        ([Decimal("-1.99")], pa.decimal128(5, 2), pa.int16(), [-1]),
        ([Decimal("1.255")], pa.decimal128(5, 3), pa.decimal128(5, 2), [Decimal("1.26")]),
        ([Decimal("-1.255")], pa.decimal128(5, 3), pa.decimal128(5, 2), [Decimal("-1.26")]),
        ([Decimal("18446744073709551615.5")], pa.decimal128(38, 18), pa.decimal128(20, 0), [Decimal(2**64)]),
        ([Decimal("9223372036854775807.9")], pa.decimal128(38, 18), pa.int64(), [2**63 - 1]),
        ([1, -1], pa.int8(), pa.string(), ["1", "-1"]),
        ([True, False], pa.bool_(), pa.string(), ["true", "false"]),
        ([1e7, 0.001, 0.0, -0.0], pa.float64(), pa.string(), ["1.0E7", "0.001", "0.0", "-0.0"]),
        ([Decimal("1.50")], pa.decimal128(5, 2), pa.string(), ["1.50"]),
        ([b"ab"], pa.binary(), pa.string(), ["ab"]),
        (["ab"], pa.string(), pa.binary(), [b"ab"]),
        ([" 12 ", "-7", "+3", "007"], pa.string(), pa.int32(), [12, -7, 3, 7]),
        (["1e2", " .5", "NaN", "-infinity"], pa.large_string(), pa.float64(), [100.0, 0.5, math.nan, -math.inf]),
        (["1.005", "1e3"], pa.string(), pa.decimal128(6, 2), [Decimal("1.01"), Decimal("1000.00")]),
        (["0e400", "-0e999999999"], pa.string(), pa.decimal128(6, 2), [Decimal("0.00"), Decimal("0.00")]),
        (["2024-2-9", "2024"], pa.string(), pa.date32(), [date(2024, 2, 9), date(2024, 1, 1)]),
        (["2024-02-29T25"], pa.string(), pa.date32(), [date(2024, 2, 29)]),
        (["2024-07-01 12:00:00.5"], pa.string(), UTC_US, [utc(2024, 7, 1, 10, 0, 0, 500000)]),
        (["2024-07-01T12:00:00Z"], pa.string(), UTC_US, [utc(2024, 7, 1, 12)]),
        (["2024-07-01 12:00:00+05:00"], pa.string(), WALL_US, [wall(2024, 7, 1, 12)]),
        ([date(2024, 7, 1)], pa.date32(), UTC_US, [utc(2024, 6, 30, 22)]),
        ([date(2024, 7, 1)], pa.date32(), WALL_US, [wall(2024, 7, 1)]),
        ([date(2024, 7, 1)], pa.date32(), pa.string(), ["2024-07-01"]),
        ([utc(2024, 6, 30, 23)], UTC_US, pa.date32(), [date(2024, 7, 1)]),
        ([utc(2024, 6, 30, 23)], pa.timestamp("ns", "Asia/Tokyo"), WALL_US, [wall(2024, 7, 1, 1)]),
        ([utc(2024, 6, 30, 23)], UTC_US, pa.string(), ["2024-07-01 01:00:00"]),
        ([wall(2024, 7, 1, 1)], WALL_US, pa.string(), ["2024-07-01 01:00:00"]),
        ([wall(2024, 7, 1, 1)], WALL_US, UTC_US, [utc(2024, 6, 30, 23)]),
        ([wall(1969, 12, 31, 23)], WALL_US, pa.date32(), [date(1969, 12, 31)]),
    ],
    ids=str,
)  # fmt: skip
def test_a_value_becomes_what_sparks_cast_makes_of_it(
    values: list[Any], found: pa.DataType, wanted: pa.DataType, expected: list[Any]
) -> None:
    assert_same(stored(values, found, wanted), expected)


def assert_same(found: list[Any], expected: list[Any]) -> None:
    """By their texts: NaN is itself, and 0.0 is not -0.0."""
    assert [repr(value) for value in found] == [
        repr(value.replace(tzinfo=ZoneInfo("UTC")) if getattr(value, "tzinfo", None) else value) for value in expected
    ]


@pytest.mark.parametrize(
    ("value", "found", "wanted", "error_class"),
    [
        (128, pa.int64(), pa.int8(), "CAST_OVERFLOW_IN_TABLE_INSERT"),
        (2.0**63, pa.float64(), pa.int64(), "CAST_OVERFLOW_IN_TABLE_INSERT"),
        (math.nan, pa.float64(), pa.int32(), "CAST_OVERFLOW_IN_TABLE_INSERT"),
        (1000, pa.int32(), pa.decimal128(5, 2), "CAST_OVERFLOW_IN_TABLE_INSERT"),
        (Decimal("999.995"), pa.decimal128(6, 3), pa.decimal128(5, 2), "CAST_OVERFLOW_IN_TABLE_INSERT"),
        (Decimal("128.0"), pa.decimal128(6, 3), pa.int8(), "CAST_OVERFLOW_IN_TABLE_INSERT"),
        ("1" * 30, pa.string(), pa.decimal128(5, 2), "CAST_OVERFLOW_IN_TABLE_INSERT"),
        ("1e999999999", pa.string(), pa.decimal128(5, 2), "CAST_OVERFLOW_IN_TABLE_INSERT"),
        ("1.0", pa.string(), pa.int32(), "CAST_INVALID_INPUT"),
        ("128", pa.string(), pa.int8(), "CAST_INVALID_INPUT"),
        ("", pa.string(), pa.float64(), "CAST_INVALID_INPUT"),
        ("1_0", pa.string(), pa.decimal128(5, 2), "CAST_INVALID_INPUT"),
        ("2023-02-29", pa.string(), pa.date32(), "CAST_INVALID_INPUT"),
        ("12:30:00", pa.string(), UTC_US, "CAST_INVALID_INPUT"),
        ("2024-01-01 00:00:00 Nowhere/Land", pa.string(), UTC_US, "CAST_INVALID_INPUT"),
        ("2024-01-01 00:00:00+123", pa.string(), UTC_US, "CAST_INVALID_INPUT"),
        ("2024-01-01 00:00:00+02:3:15", pa.string(), UTC_US, "CAST_INVALID_INPUT"),
    ],
    ids=str,
)
def test_a_value_that_does_not_fit_is_never_stored(
    value: Any, found: pa.DataType, wanted: pa.DataType, error_class: str
) -> None:
    assert refusal(value, found, wanted) == error_class


def test_bytes_that_are_no_text_are_not_stored_as_one() -> None:
    with pytest.raises(pa.ArrowInvalid, match="UTF8"):
        stored([b"\xff"], pa.binary(), pa.string())


DECIMALS = st.integers(-(10**38) + 1, 10**38 - 1)


@given(DECIMALS, st.integers(0, 38), st.integers(1, 38), st.data())
def test_decimals_of_any_size_are_rounded_half_away_from_zero_or_refused(
    unscaled: int, scale: int, precision: int, data: st.DataObject
) -> None:
    value = Decimal(unscaled).scaleb(-scale, decimal.Context(prec=80))
    wanted = pa.decimal128(precision, data.draw(st.integers(0, precision)))
    exact = decimal.Context(prec=100, rounding=decimal.ROUND_HALF_UP)
    expected = value.quantize(Decimal(1).scaleb(-wanted.scale), context=exact)

    fits = abs(expected) < Decimal(10) ** (wanted.precision - wanted.scale)
    if fits:
        assert stored([value], pa.decimal128(38, scale), wanted) == [expected]
    else:
        assert refusal(value, pa.decimal128(38, scale), wanted) == "CAST_OVERFLOW_IN_TABLE_INSERT"


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_the_single_nearest_to_a_decimal_is_not_taken_by_way_of_a_double(single: float) -> None:
    above = struct.unpack("f", struct.pack("I", struct.unpack("I", struct.pack("f", abs(single)))[0] + 1))[0]
    if math.isfinite(above):
        exact = decimal.Context(prec=400)
        low, high = Decimal(abs(single)), Decimal(above)
        middle = exact.divide(exact.add(low, high), Decimal(2))
        nudge = exact.multiply(exact.subtract(high, low), Decimal("1e-30"))

        assert nearest_single(exact.subtract(middle, nudge)) == abs(single)
        assert nearest_single(exact.add(middle, nudge)) == above


@pytest.mark.parametrize(
    ("text", "single"),
    [("3.4028235677973366e38", 3.4028234663852886e38), ("340282356779733661637539395458142568448", math.inf)],
)
def test_a_number_is_infinite_only_from_the_middle_between_the_largest_single_and_the_next(
    text: str, single: float
) -> None:
    assert stored([text, f"-{text}"], pa.string(), pa.float32()) == [single, -single]


@pytest.mark.parametrize(
    ("values", "found", "wanted"),
    [
        (["1", "x", None, "2", "x", "y"], pa.string(), pa.int32()),
        ([1.0, math.nan, None, 2.0, 1e10, -1e10], pa.float64(), pa.int32()),
        ([1, 2**31, None, 2, -(2**40), 2**31], pa.int64(), pa.int32()),
        (["1e2", "1e9", None, "3", "1e400", "12345"], pa.string(), pa.decimal128(4, 0)),
    ],
)
def test_an_error_says_which_values_the_wanted_type_cannot_hold(
    values: list[Any], found: pa.DataType, wanted: pa.DataType
) -> None:
    with pytest.raises(CastError) as caught:
        stored(values, found, wanted)

    assert caught.value.failed == pa.array([False, True, False, False, True, True, False])


def test_a_day_beyond_all_timestamps_is_refused() -> None:
    last = pa.array([2**31 - 1], pa.int32()).view(pa.date32())
    convert = assigned(pa.date32(), WALL_US, Assignment())

    assert convert is not None
    with pytest.raises(CastError):
        convert(last)


def test_a_clock_that_jumps_goes_on_and_one_that_is_put_back_is_read_the_first_time() -> None:
    gap, twice = wall(2024, 3, 31, 2, 30), wall(2024, 10, 27, 2, 30)

    assert stored([gap, twice], WALL_US, UTC_US) == [utc(2024, 3, 31, 1, 30), utc(2024, 10, 27, 0, 30)]


def test_a_day_whose_midnight_was_skipped_begins_at_the_jump_or_is_refused() -> None:
    sao_paulo, toronto = ZoneInfo("America/Sao_Paulo"), ZoneInfo("America/Toronto")

    assert stored([date(2018, 11, 4)], pa.date32(), UTC_US, sao_paulo) == [utc(2018, 11, 4, 3)]  # from 0:00 to 1:00
    with pytest.raises(CastError):
        stored([date(1919, 3, 31)], pa.date32(), UTC_US, toronto)  # from 23:30 to 0:30, where to_utc gives 1:00


@pytest.mark.parametrize(
    ("zone", "day", "instant"),
    [
        ("Europe/Stockholm", date(1941, 7, 1), utc(1941, 6, 30, 22)),  # as in Berlin, where clocks were set forward
        ("Europe/Oslo", date(1960, 7, 1), utc(1960, 6, 30, 23)),
        ("Europe/Amsterdam", date(1930, 1, 1), utc(1930, 1, 1)),  # as in Brussels
        ("Asia/Kuala_Lumpur", date(1937, 1, 1), utc(1936, 12, 31, 16, 40)),  # as in Singapore
        ("Europe/Stockholm", date(2024, 7, 1), utc(2024, 6, 30, 22)),
    ],
)
def test_before_1970_a_zone_has_the_rules_of_the_zone_that_java_merges_it_into(
    zone: str, day: date, instant: datetime
) -> None:
    there = ZoneInfo(zone)

    assert stored([day], pa.date32(), UTC_US, there) == [instant]
    assert stored([instant], UTC_US, pa.string(), there) == [f"{day} 00:00:00"]


@pytest.mark.parametrize("year", [-200_000, -1, 0, 1, 9999, 10_000, 200_000])
def test_zones_have_rules_in_years_that_python_has_not(year: int) -> None:
    day = round((year - 1970) * 365.2425 * 86_400_000_000)
    assert to_local(to_utc(day, BERLIN), BERLIN) == day
    assert to_utc(day, BERLIN) != day


# --- with ANSI off ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "found", "wanted", "expected"),
    [
        ([2**63 - 1, -(2**63), 2**31, 5], pa.int64(), pa.int32(), [-1, 0, -(2**31), 5]),
        ([128, 300, -129], pa.int32(), pa.int8(), [-128, 44, 127]),
        ([1e10, -1e10, math.inf, math.nan, -1.9], pa.float64(), pa.int32(), [2**31 - 1, -(2**31), 2**31 - 1, 0, -1]),
        ([128.5, 1e10, 65536.0], pa.float64(), pa.int8(), [-128, -1, 0]),
        ([1e19, -1e19, 2.0**63, math.nan], pa.float32(), pa.int64(), [2**63 - 1, -(2**63), 2**63 - 1, 0]),
        ([Decimal("128.9"), Decimal("-129.9")], pa.decimal128(6, 1), pa.int8(), [-128, 127]),
        ([Decimal("18446744073709551621.5")], pa.decimal128(38, 18), pa.int64(), [5]),
        ([Decimal("5.999999999999999999")], pa.decimal128(38, 18), pa.int32(), [5]),
        ([1000, 7], pa.int64(), pa.decimal128(5, 2), [None, Decimal("7.00")]),
        ([Decimal("999.995"), Decimal("1.255")], pa.decimal128(6, 3), pa.decimal128(5, 2), [None, Decimal("1.26")]),
        ([1e300, 2.675, math.nan], pa.float64(), pa.decimal128(5, 2), [None, Decimal("2.68"), None]),
        ([Decimal(0), Decimal("1.5")], pa.decimal128(38, 18), pa.string(), ["0E-18", "1.500000000000000000"]),
        ([Decimal("1e-6"), Decimal("1e-7")], pa.decimal128(9, 8), pa.string(), ["0.00000100", "1.0E-7"]),
        (["1.9", "-1.9", ".", "5.", "+.7"], pa.string(), pa.int32(), [1, -1, 0, 5, 0]),
        (["-", "1.x", "", "1e3", "2147483648"], pa.string(), pa.int32(), [None, None, None, None, None]),
        (["x", "1e400", "NaN"], pa.string(), pa.float64(), [None, math.inf, math.nan]),
        (["x", "1000", "1.005", "1e40"], pa.string(), pa.decimal128(5, 2), [None, None, Decimal("1.01"), None]),
        (["2023-02-29", "2024-02-29x", "2024-02-29"], pa.string(), pa.date32(), [None, None, date(2024, 2, 29)]),
        (["2024-02-30", "soon", "2024-07-01 12:00:00"], pa.string(), UTC_US, [None, None, utc(2024, 7, 1, 10)]),
        (["12:30:00", "soon", "2024-07-01 10:00:00"], pa.string(), WALL_US, [None, None, wall(2024, 7, 1, 10)]),
        ([date(2024, 7, 1)], pa.date32(), pa.string(), ["2024-07-01"]),
    ],
    ids=str,
)
def test_by_the_policy_legacy_what_does_not_fit_is_wrapped_or_null(
    values: list[Any], found: pa.DataType, wanted: pa.DataType, expected: list[Any]
) -> None:
    assert_same(stored(values, found, wanted, policy=Policy.LEGACY), expected)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("\u0661", pa.decimal128(5, 2)),
        ("1e0000000001", pa.decimal128(5, 2)),
        ("0x1p3", pa.float64()),
        ("1e0000000001", pa.float32()),
        ("12:30:45", UTC_US),
        ("T12", UTC_US),
        ("2024-02-29 12:30:45 PST", UTC_US),
        ("2024-02-29 12:30:45 Nowhere/Land", WALL_US),
    ],
)
def test_a_text_that_spark_may_read_and_we_do_not_is_refused_and_not_null(text: str, wanted: pa.DataType) -> None:
    with pytest.raises(CastError, match="the value") as caught:
        stored([text], pa.string(), wanted, policy=Policy.LEGACY)

    assert caught.value.error_class == "CAST_INVALID_INPUT"


@given(st.integers(-(2**63), 2**63 - 1), st.sampled_from([8, 16, 32, 64]))
def test_whole_numbers_keep_their_low_bits_whatever_they_come_as(number: int, bits: int) -> None:
    wanted = {8: pa.int8(), 16: pa.int16(), 32: pa.int32(), 64: pa.int64()}[bits]
    expected = int.from_bytes((number & (1 << bits) - 1).to_bytes(bits // 8), signed=True)

    assert stored([Decimal(number)], pa.decimal128(38, 0), wanted, policy=Policy.LEGACY) == [expected]
    if bits < 64:
        assert stored([number], pa.int64(), wanted, policy=Policy.LEGACY) == [expected]


# --- what is nested --------------------------------------------------------------------------------------------------


def test_members_are_cast_by_name_whatever_their_order_and_case_and_missing_ones_are_null() -> None:
    found = pa.struct([("B", pa.string()), ("a", pa.int64())])
    wanted = pa.struct([("A", pa.int8()), ("b", pa.int32()), ("c", pa.string())])

    assert stored([{"B": "5", "a": 7}], found, wanted) == [{"A": 7, "b": 5, "c": None}]


def test_elements_keys_and_values_are_cast() -> None:
    found, wanted = pa.map_(pa.string(), pa.list_(pa.string())), pa.map_(pa.int32(), pa.list_(pa.date32()))

    assert stored([[("1", ["2024-01-01", None])]], found, wanted) == [[(1, [date(2024, 1, 1), None])]]


def test_a_key_that_is_null_after_the_cast_is_refused() -> None:
    with pytest.raises(LossyConversionError, match="a key would become null"):
        stored([[(math.nan, 1)]], pa.map_(pa.float64(), pa.int8()), pa.map_(pa.decimal128(5, 2), pa.int8()))


@pytest.mark.parametrize("policy", [Policy.ANSI, Policy.LEGACY])
def test_two_keys_of_a_map_that_would_be_one_are_refused_and_those_of_two_maps_are_not(policy: Policy) -> None:
    found, wanted = pa.map_(pa.string(), pa.int8()), pa.map_(pa.int32(), pa.int8())

    rows = [[("1", 1), ("2", 2)], None, [("01", 3)], []]
    assert stored(rows, found, wanted, policy=policy) == [[(1, 1), (2, 2)], None, [(1, 3)], []]
    with pytest.raises(LossyConversionError, match="two keys of one map would become equal"):
        stored([*rows, [("1", 1), ("01", 2)]], found, wanted, policy=policy)


def test_nested_keys_that_would_be_one_are_refused() -> None:
    key, other = pa.struct([("k", pa.int64())]), pa.struct([("k", pa.int8())])

    with pytest.raises(LossyConversionError, match="two keys of one map would become equal"):
        stored(
            [[({"k": 1}, 1), ({"k": 257}, 2)]], pa.map_(key, pa.int8()), pa.map_(other, pa.int8()), policy=Policy.LEGACY
        )


def test_a_value_that_does_not_fit_is_named_by_its_path() -> None:
    found, wanted = pa.struct([("tags", pa.list_(pa.string()))]), pa.struct([("tags", pa.list_(pa.int32()))])

    with pytest.raises(CastError) as caught:
        stored([{"tags": ["x"]}], found, wanted)
    assert caught.value.column[0] == "tags"
    assert caught.value.value == "x"
    assert "the value 'x'" in str(caught.value)


def test_values_that_no_row_has_are_not_cast() -> None:
    texts = pa.array([["x"], ["1"], ["y"]])
    hidden = pa.StructArray.from_arrays([pa.array(["x", "2"])], names=["n"], mask=pa.array([True, False]))
    behind_null = pa.ListArray.from_arrays([0, 1, 2], pa.array(["x", "3"]), mask=pa.array([True, False]))
    how = Assignment()

    lists = assigned(texts.type, pa.list_(pa.int32()), how)
    structs = assigned(hidden.type, pa.struct([("n", pa.int32())]), how)
    assert lists is not None
    assert structs is not None
    assert lists(texts.slice(1, 1)).to_pylist() == [[1]]
    assert lists(texts.slice(0, 0)).to_pylist() == []
    assert lists(behind_null).to_pylist() == [None, [3]]
    assert structs(hidden).to_pylist() == [None, {"n": 2}]


# --- which types may meet --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("incoming", "table", "policies"),
    [
        ("long", "integer", {Policy.ANSI, Policy.LEGACY}),
        ("integer", "long", set(Policy)),
        ("string", "integer", {Policy.ANSI, Policy.LEGACY}),
        ("integer", "string", set(Policy)),
        ("timestamp", "date", {Policy.ANSI, Policy.LEGACY}),
        ("date", "timestamp", set(Policy)),
        ("string", "binary", {Policy.ANSI, Policy.LEGACY}),
        ("integer", "boolean", set()),
        ("boolean", "integer", set()),
        ("string", "boolean", set()),
        ("integer", "date", set()),
        ("long", "timestamp", set()),
        ("binary", "integer", set()),
        ("void", "string", set()),
        ("variant", "string", set()),
    ],
)
def test_the_pairs_are_sparks_implicit_casts(incoming: str, table: str, policies: set[Policy]) -> None:
    assert {p for p in Policy if is_assignable(Primitive(incoming), Primitive(table), p)} == policies


def test_what_is_no_pair_has_no_cast_by_either_policy() -> None:
    for policy in (Policy.ANSI, Policy.LEGACY):
        with pytest.raises(LossyConversionError, match="bool cannot be taken as int32 without loss"):
            stored([True], pa.bool_(), pa.int32(), policy=policy)


def test_what_is_nested_is_never_stored_as_what_is_not() -> None:
    nested = Array(Primitive("string"), contains_null=True)

    assert not is_assignable(nested, Primitive("string"), Policy.ANSI)
    assert not is_assignable(Primitive("string"), nested, Policy.ANSI)
    with pytest.raises(LossyConversionError):
        assigned(pa.list_(pa.string()), pa.int32(), Assignment())


@pytest.mark.parametrize(
    ("incoming", "table", "needed"),
    [
        ("string", "timestamp", True),
        ("timestamp", "timestamp_ntz", True),
        ("timestamp", "date", True),
        ("timestamp", "timestamp", False),
        ("date", "timestamp_ntz", False),
        ("string", "date", False),
    ],
)
def test_a_zone_is_needed_where_moments_meet_what_is_none(incoming: str, table: str, *, needed: bool) -> None:
    assert needs_zone(Primitive(incoming), Primitive(table)) is needed


def test_decimals_of_fewer_digits_on_both_sides_lose_nothing() -> None:
    strict = [is_assignable(DecimalType(10, 3), DecimalType(*to), Policy.STRICT) for to in ((12, 3), (12, 5), (12, 6))]

    assert strict == [True, True, False]
