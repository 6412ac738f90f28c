"""What values become by the policy `legacy`: what Spark's CAST makes of them with ANSI off."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablefeed.data.assignment import Assignment, Policy
from tablefeed.data.casts import CastError
from tablefeed.data.retype import LossyConversionError
from tablefeed.data.storing import assigned

UTC_US, WALL_US = pa.timestamp("us", "UTC"), pa.timestamp("us")
LONG_MIN, LONG_MAX = -(2**63), 2**63 - 1
INT_MIN, INT_MAX = -(2**31), 2**31 - 1
NOON = datetime(2024, 7, 1, 10, tzinfo=UTC)
"""In Berlin."""


def stored(values: list[Any], found: pa.DataType, wanted: pa.DataType, policy: Policy = Policy.LEGACY) -> list[Any]:
    """The values as those of another type; a null comes along and stays one."""
    array = pa.array([*values, None], found)
    convert = assigned(found, wanted, Assignment(policy=policy, zone=ZoneInfo("Europe/Berlin")))
    assert convert is not None
    result = convert(array)
    result.validate(full=True)
    assert (result.type, result[-1].as_py()) == (wanted, None)
    return list(result.to_pylist()[:-1])


@pytest.mark.parametrize(
    ("values", "found", "wanted", "expected"),
    [
        ([LONG_MAX, LONG_MIN, 2**31, 5], pa.int64(), pa.int32(), [-1, 0, INT_MIN, 5]),
        ([128, 300, -129], pa.int32(), pa.int8(), [-128, 44, 127]),
        ([1e10, -1e10, math.inf, math.nan, -1.9], pa.float64(), pa.int32(), [INT_MAX, INT_MIN, INT_MAX, 0, -1]),
        ([128.5, 1e10, 65536.0], pa.float64(), pa.int8(), [-128, -1, 0]),
        ([1e19, -1e19, 2.0**63, math.nan], pa.float32(), pa.int64(), [LONG_MAX, LONG_MIN, LONG_MAX, 0]),
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
        (["2024-02-30", "soon", "2024-07-01 12:00:00"], pa.string(), UTC_US, [None, None, NOON]),
        (["12:30:00", "soon", "2024-07-01 10:00:00"], pa.string(), WALL_US, [None, None, NOON.replace(tzinfo=None)]),
        ([date(2024, 7, 1)], pa.date32(), pa.string(), ["2024-07-01"]),
    ],
    ids=str,
)
def test_what_does_not_fit_is_wrapped_or_null(
    values: list[Any], found: pa.DataType, wanted: pa.DataType, expected: list[Any]
) -> None:
    assert [repr(value) for value in stored(values, found, wanted)] == [
        repr(value.replace(tzinfo=ZoneInfo("UTC")) if getattr(value, "tzinfo", None) else value) for value in expected
    ]


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
        stored([text], pa.string(), wanted)

    assert caught.value.error_class == "CAST_INVALID_INPUT"


@given(st.integers(LONG_MIN, LONG_MAX), st.sampled_from([8, 16, 32, 64]))
def test_whole_numbers_keep_their_low_bits_whatever_they_come_as(number: int, bits: int) -> None:
    wanted = {8: pa.int8(), 16: pa.int16(), 32: pa.int32(), 64: pa.int64()}[bits]
    expected = int.from_bytes((number & (1 << bits) - 1).to_bytes(bits // 8), signed=True)

    assert stored([Decimal(number)], pa.decimal128(38, 0), wanted) == [expected]
    if bits < 64:
        assert stored([number], pa.int64(), wanted) == [expected]


def test_values_inside_are_cast_alike() -> None:
    found = pa.struct([("a", pa.list_(pa.string())), ("m", pa.map_(pa.int64(), pa.int64()))])
    wanted = pa.struct([("a", pa.list_(pa.int8())), ("m", pa.map_(pa.int8(), pa.int8()))])

    row = {"a": ["x", "7", None], "m": [(257, 300)]}
    assert stored([row], found, wanted) == [{"a": [None, 7, None], "m": [(1, 44)]}]


def test_a_key_of_a_map_that_would_be_null_is_refused() -> None:
    with pytest.raises(LossyConversionError, match="a key would become null"):
        stored([[("x", 1)]], pa.map_(pa.string(), pa.int8()), pa.map_(pa.int32(), pa.int8()))


@pytest.mark.parametrize("policy", [Policy.ANSI, Policy.LEGACY])
def test_two_keys_of_a_map_that_would_be_one_are_refused_and_those_of_two_maps_are_not(policy: Policy) -> None:
    found, wanted = pa.map_(pa.string(), pa.int8()), pa.map_(pa.int32(), pa.int8())

    rows = [[("1", 1), ("2", 2)], None, [("01", 3)], []]
    assert stored(rows, found, wanted, policy) == [[(1, 1), (2, 2)], None, [(1, 3)], []]
    with pytest.raises(LossyConversionError, match="two keys of one map would become equal"):
        stored([*rows, [("1", 1), ("01", 2)]], found, wanted, policy)


def test_nested_keys_that_would_be_one_are_refused() -> None:
    key, other = pa.struct([("k", pa.int64())]), pa.struct([("k", pa.int8())])

    with pytest.raises(LossyConversionError, match="two keys of one map would become equal"):
        stored([[({"k": 1}, 1), ({"k": 257}, 2)]], pa.map_(key, pa.int8()), pa.map_(other, pa.int8()))


def test_what_is_no_pair_is_none_by_this_policy_either() -> None:
    with pytest.raises(LossyConversionError):
        stored([True], pa.bool_(), pa.int32())
