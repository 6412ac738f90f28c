"""Spark's own values of chosen expressions, written down (Spark 4.3, ANSI): the same must come of ours without a JVM.

tests/spark/test_expressions.py asks Spark about many more. Dates are days and timestamps microseconds since 1970 in
results, decimals and times texts in rows.
"""

from __future__ import annotations

from decimal import Decimal
from math import inf, nan

import pyarrow as pa
import pytest

from support.expressions import SCHEMA
from tablefeed.data.sql import Asked, RowFailedError, compile_expressions
from tablefeed.data.sql.kinds import arrow_type

_FAILS = object()
"""Spark raises for the row."""
_Case = tuple[object, ...]
_Row = tuple[str, str, list[_Case]]
"""An expression, the columns that it names, and cases: their values in a row, and then Spark's value."""

_IN_UTC: list[_Row] = [
    ("f64 > 0", "f64", [(0.0, False), (0.1, True), (None, None)]),
    ("f64 = 'NaN'", "f64", [(0.0, False), (None, None), (nan, True)]),
    ("f64 <=> f64", "f64", [(0.0, True)]),
    ("dec > big", "dec big", [("0.00", "0E-18", False), ("-0.01", None, None), ("99999999.99", "-1E-18", True)]),
    ("dec <=> 12.34", "dec", [("0.00", False), ("12.34", True)]),
    ("s > 'é'", "s", [("", False), (None, None), ("ΑΣ", True)]),
    ("i32 > '1'", "i32", [(0, False), (None, None), (2147483647, True)]),
    ("i32 < 99999999999999999999", "i32", [(0, True), (None, True)]),
    ("9223372036854775807.5 <= i64", "i64", [(0, False), (None, False)]),
    ("i64 >= -99999999999999999999BD", "i64", [(0, True), (None, True)]),
    ("i64 < 9223372036854775807.0", "i64", [(9223372036854775807, False), (None, None)]),
    ("i64 = 99999999999999999999", "i64", [(0, False), (None, None)]),
    ("i64 < CAST(99999999999999999999 AS DECIMAL(20,0))", "i64", [(0, True), (None, None)]),
    ("d > '2000-01-01'", "d", [("1970-01-01", False), ("2024-02-29", True), (None, None)]),
    ("NOT (b AND i32 > 0)", "b i32", [(True, 0, True), (None, None, None), (True, 42, False)]),
    ("b OR i32 > 0", "b i32", [(True, 0, True), (None, None, None), (False, -2147483648, False)]),
    ("i32 IN (0, NULL)", "i32", [(0, True), (1, None)]),
    ("i32 NOT IN (1, NULL)", "i32", [(0, None), (1, False)]),
    ("CASE WHEN b THEN dec ELSE 0 END", "b dec", [(True, "0.00", Decimal("0.00")), (True, "12.34", Decimal("12.34"))]),
    ("CASE WHEN b THEN dec ELSE 0 END", "b dec", [(True, "2.50", Decimal("2.50"))]),
    ("CASE WHEN b THEN dec ELSE 0 END", "b dec", [(True, "-99999999.99", Decimal("-99999999.99"))]),
    ("NULLIF(s, '')", "s", [("", None), ("ΑΣ", "ΑΣ"), ("o'neil", "o'neil"), ("\ufeffbom\uffff", "\ufeffbom\uffff")]),
    ("LEAST(i32, i64, 5)", "i32 i64", [(0, 1, 0), (-2147483648, -9223372036854775808, -9223372036854775808)]),
    ("LEAST(i32, i64, 5)", "i32 i64", [(1000000, 1, 1)]),
    ("LEAST(f32, 1.5F)", "f32", [(-0.0, -0.0), (nan, 1.5), (None, 1.5)]),
    ("GREATEST(f64, 1.0D)", "f64", [(0.0, 1.0), (inf, inf), (2.5, 2.5), (1e17, 1e17)]),
    ("IF(b, -0.0D, f64)", "b f64", [(True, 1.0, -0.0), (False, 1.0, 1.0)]),
    ("f64 IN (-0.0D, 2.5D)", "f64", [(0.0, True), (1.0, False), (None, None)]),
    ("i64 + j64", "i64 j64", [(-1, -9223372036854775808, _FAILS), (1, None, None)]),
    ("i64 + j64", "i64 j64", [(-9223372036854775808, 9223372036854775807, -1), (4294967296, -42, 4294967254)]),
    ("i64 DIV j64", "i64 j64", [(1, None, None), (-9223372036854775808, 9223372036854775807, -1)]),
    ("i64 DIV j64", "i64 j64", [(4294967296, -42, -102261126)]),
    ("i64 % j64", "i64 j64", [(1, None, None), (-42, 9223372036854775807, -42)]),
    ("i64 % j64", "i64 j64", [(9223372036854775807, 4294967296, 4294967295)]),
    ("i64 % j64", "i64 j64", [(9223372036854775807, -9223372036854775808, 9223372036854775807)]),
    ("pmod(i32, 7)", "i32", [(0, 0), (None, None), (-2147483648, 5), (3, 3)]),
    ("pmod(i32, -2147483647)", "i32", [(-7, 2147483642), (7, 7)]),
    ("pmod(i64, j64)", "i64 j64", [(-1, -9223372036854775808, 9223372036854775807), (-7, -3, -1)]),
    ("-i64", "i64", [(-9223372036854775808, _FAILS), (1, -1), (None, None), (9007199254740993, -9007199254740993)]),
    ("i32 / 2", "i32", [(0, 0.0), (-1, -0.5), (42, 21.0), (3, 1.5)]),
    ("f64 % 0.1D", "f64", [(0.0, 0.0), (nan, nan), (2.5, 0.09999999999999987), (1e17, 0.04888487687421761)]),
    ("dec * dec", "dec", [("0.00", Decimal("0.0000")), (None, None), ("1.50", Decimal("2.2500"))]),
    ("dec * dec", "dec", [("12.34", Decimal("152.2756"))]),
    ("dec / 3", "dec", [("0.00", Decimal("0.000000")), (None, None), ("1.50", Decimal("0.500000"))]),
    ("dec / 3", "dec", [("12.34", Decimal("4.113333"))]),
    ("dec / INT(3)", "dec", [("12.34", Decimal("4.1133333333333")), (None, None)]),
    ("1.5 / floor(CAST(i32 AS DECIMAL(10,0)))", "i32", [(7, Decimal("0.214285714286")), (0, _FAILS)]),
    ("dec / +3", "dec", [("12.34", Decimal("4.1133333333333")), (None, None)]),
    ("+n = '1'", "n", [("1.0", True), (None, None), ("a", _FAILS)]),
    (
        "CAST(big AS DECIMAL(18,18)) / CAST(wide AS DECIMAL(19,0))",
        "big wide",
        [("0.936754337759707619", "2625142665947502963", Decimal("3.5683940149652827678E-19"))],
    ),
    ("wide % dec", "wide dec", [("99999999999999999999999999999999999999", "0.07", _FAILS)]),
    ("wide % dec", "wide dec", [("12345678901234567890123456789012345678", "0.01", Decimal("0.00"))]),
    ("dec % 0.3", "dec", [("0.00", Decimal("0.00")), (None, None), ("2.50", Decimal("0.10"))]),
    ("big + dec", "big dec", [("0E-18", "0.00", Decimal("0E-17"))]),
    ("big + dec", "big dec", [("1.500000000000000000", "-0.01", Decimal("1.49000000000000000"))]),
    ("big + dec", "big dec", [("0E-18", "-2.50", Decimal("-2.50000000000000000"))]),
    (
        "big + dec",
        "big dec",
        [("99999999999999999999.999999999999999999", "2.50", Decimal("100000000000000000002.50000000000000000"))],
    ),
    ("big * big", "big", [("99999999999999999999.999999999999999999", _FAILS), ("0E-18", Decimal("0.000000"))]),
    ("big * big", "big", [("1.500000000000000000", Decimal("2.250000")), (None, None)]),
    ("wide * 2", "wide", [("99999999999999999999999999999999999999", _FAILS), ("0", Decimal("0"))]),
    ("wide * 2", "wide", [("1", Decimal("2")), (None, None)]),
    ("NVL2(i32 + 1 + 1 + 1, i32, 2) * i32 * i32", "i32", [(42, 74088)]),
    ("NOT (CEIL(wide) IS NOT NULL)", "wide", [("99999999999999999999999999999999999999", False)]),
    ("CAST(i64 AS INT)", "i64", [(9223372036854775807, _FAILS), (1, 1), (0, 0), (-1, -1)]),
    ("CAST(f64 AS BIGINT)", "f64", [(nan, _FAILS), (0.0, 0), (2.5, 2)]),
    ("CAST(f64 AS FLOAT)", "f64", [(0.0, 0.0), (None, None), (-inf, -inf)]),
    ("CAST(f64 AS FLOAT)", "f64", [(9.223372036854776e18, 9.223372036854776e18)]),
    ("CAST(dec AS DECIMAL(5,1))", "dec", [("99999999.99", _FAILS), ("0.00", Decimal("0.0")), ("1.50", Decimal("1.5"))]),
    ("CAST(dec AS DECIMAL(5,1))", "dec", [("-2.50", Decimal("-2.5"))]),
    ("CAST(big AS DOUBLE)", "big", [("0E-18", 0.0), (None, None), ("-1E-18", -1e-18)]),
    ("CAST(CAST(dec AS DECIMAL(2,2)) AS STRING)", "dec", [("0.01", "0.01"), ("-0.01", "-0.01"), ("0.00", "0.00")]),
    ("CAST(n AS INT)", "n", [("1.5", _FAILS), ("1", 1), (None, None), ("+3", 3)]),
    ("CAST(n AS DECIMAL(10,1))", "n", [("1e3", Decimal("1000.0"))]),
    ("CAST(n AS DOUBLE)", "n", [("abc", _FAILS), ("1", 1.0), ("1.5", 1.5), ("-Infinity", -inf)]),
    ("CAST(n AS BOOLEAN)", "n", [(" 12 ", _FAILS), ("1", True), (None, None), ("N", False)]),
    ("CAST(t AS DATE)", "t", [("2023-02-29", _FAILS), ("2024-02-29", 19782), ("2024-05", 19844)]),
    ("CAST(t AS DATE)", "t", [("1582-10-10", -141432)]),
    ("CAST(ts AS BIGINT)", "ts", [("1970-01-01 00:00:00", 0), ("2024-10-27 01:30:00", 1729992600)]),
    ("CAST(ts AS BIGINT)", "ts", [("0001-01-02 00:00:00", -62135510400), ("2024-12-31 23:30:00.100000", 1735687800)]),
    ("CAST(ts AS BIGINT)", "ts", [(-(2**63), -9223372036855), (2**63 - 1, 9223372036854), (-1, -1)]),
    ("UNIX_MILLIS(ts)", "ts", [(-(2**63), -9223372036854776), (-1, -1), (-1000, -1), (-1001, -2)]),
    ("WEEKOFYEAR(d)", "d", [("1970-01-01", 1), (None, None), ("1582-10-15", 41), ("2024-03-31", 13)]),
    ("DAYOFWEEK(d)", "d", [("1970-01-01", 5), ("1969-12-31", 4), ("1582-10-15", 6)]),
    ("LAST_DAY(d)", "d", [("1970-01-01", 30), ("1582-10-04", -141411), ("2024-12-30", 20088)]),
    ("TRUNC(d, 'WEEK')", "d", [("1970-01-01", -3), ("1582-10-15", -141431), ("2024-12-30", 20087)]),
    ("DATE_FORMAT(ts, 'yyyy-MM-dd-HH')", "ts", [("1970-01-01 00:00:00", "1970-01-01-00")]),
    ("DATE_FORMAT(ts, 'yyyy-MM-dd-HH')", "ts", [("2024-10-27 01:30:00", "2024-10-27-01")]),
    ("DATE_FORMAT(ts, 'yyyy-MM-dd-HH')", "ts", [("0001-01-02 00:00:00", "0001-01-02-00")]),
    ("DATE_FORMAT(ts, 'yyyy-MM-dd-HH')", "ts", [("2024-12-31 23:30:00.100000", "2024-12-31-23")]),
    ("UNIX_TIMESTAMP(ts)", "ts", [("1970-01-01 00:00:00", 0), ("2024-10-27 01:30:00", 1729992600)]),
    ("UNIX_TIMESTAMP(ts)", "ts", [("9999-12-31 22:59:59.999999", 253402297199), ("1980-04-06 01:00:00", 323830800)]),
    ("LENGTH(s)", "s", [("", 0), (" lead and trail ", 16), ("ΑΣ", 2), ("foo@bar.com", 11)]),
    ("UPPER(s)", "s", [("", ""), ("ΑΣ", "ΑΣ"), ("o'neil", "O'NEIL"), ("\ufeffbom\uffff", "\ufeffBOM\uffff")]),
    ("LOWER(s)", "s", [("", ""), ("ΑΣ", "ας"), ("o'neil", "o'neil"), ("\ufeffbom\uffff", "\ufeffbom\uffff")]),
    ("TRIM(s)", "s", [("", ""), ("ΑΣ", "ΑΣ"), ("éa", "éa")]),
    ("SUBSTRING(s, 0, 2)", "s", [("", ""), ("ΑΣ", "ΑΣ"), ("éa", "éa")]),
    ("SUBSTRING(s, -2, 1)", "s", [("", ""), ("été", "e"), ("éa", "é")]),
    ("RIGHT(s, 2)", "s", [("", ""), ("ΑΣ", "ΑΣ"), ("éa", "éa")]),
    ("CONCAT_WS(',', s, n)", "s n", [("", "1", ",1"), ("line\r\n", "-0", "line\r\n,-0")]),
    ("CONCAT_WS(',', s, n)", "s n", [("o'neil", "NaN", "o'neil,NaN"), ("🤦🏼\u200d♂️x", "1.5", "🤦🏼\u200d♂️x,1.5")]),
    ("s LIKE '_'", "s", [("", False), ("a", True), (None, None)]),
    ("s RLIKE '^[^@]+@[^@]+$'", "s", [("", False), (None, None), ("foo@bar.com", True)]),
    ("REPLACE(s, '', 'b')", "s", [("", ""), ("ΑΣ", "ΑΣ"), ("éa", "éa")]),
    ("ceil(f64)", "f64", [(inf, _FAILS), (0.0, 0), (None, None), (-2.5, -2)]),
    ("ARRAY_CONTAINS(arr, 1)", "arr", [([1, 2, 3], True), ([], False), (None, None)]),
    ("arr[1]", "arr", [([], _FAILS), ([1, 2, 3], 2), (None, None)]),
    ("m['k'] = 1", "m", [([("k", 1), ("b", None)], True), ([], None)]),
    ("ARRAY_SIZE(ARRAY_COMPACT(arr))", "arr", [([5, None], 1), (None, None)]),
    ("ARRAY_APPEND(arr, i32)[1]", "arr i32", [([5], None, None)]),
    ("ARRAY_APPEND(arr, i32)[0]", "arr i32", [([], 7, 7)]),
    ("ARRAY_PREPEND(arr, i32)[0]", "arr i32", [([5], 7, 7)]),
    ("ARRAY_INSERT(arr, 1, i32)[1]", "arr i32", [([5], 7, 5)]),
    ("HASH(i32)", "i32", [(32767, 1249274084)]),
    ("HASH(i16)", "i16", [(32767, 1249274084)]),
    ("HASH(i64)", "i64", [(32767, -860381306)]),
    ("HASH(s)", "s", [("Spark", 228093765), (None, 42)]),
    ("s LIKE ANY ('a%', '%x')", "s", [("ax", True), ("b", False)]),
    ("s LIKE ALL ('a%', '%x')", "s", [("ab", False)]),
    ("s NOT LIKE ANY ('a%', '%x')", "s", [("ab", True), ("ax", False)]),
    ("s NOT LIKE ALL ('a%', '%x')", "s", [("ab", False), (None, None)]),
    ("DATE_PART('YEAR', d)", "d", [("2024-02-29", 2024)]),
    ("DECODE(ENCODE(s, 'utf-8'), 'utf-8')", "s", [("Straße", "Straße")]),
    ("MAKE_TIMESTAMP(2024, 2, 29, 23, 59, i32)", "i32", [(60, 1709251200000000), (61, _FAILS)]),
    ("MAKE_TIMESTAMP(i32, 1, 1, 0, 0, 0)", "i32", [(1970, 0), (1000000, _FAILS)]),
    ("MAKE_TIMESTAMP(2024, 2, 30, 0, 0, i32)", "i32", [(0, _FAILS)]),
    ("ASSERT_TRUE(i32 < 2) IS NULL", "i32", [(1, True), (2, _FAILS), (None, _FAILS)]),
]

_IN_BERLIN: list[_Row] = [
    ("CAST(t AS TIMESTAMP)", "t", [("2023-02-29", _FAILS), ("2024-02-29", 1709161200000000)]),
    ("CAST(t AS TIMESTAMP)", "t", [(" 2024-05-06 ", 1714946400000000), ("1582-10-10", -12219728008000000)]),
    ("CAST(d AS TIMESTAMP)", "d", [("1970-01-01", -3600000000), ("1582-10-04", -12220246408000000)]),
    ("CAST(d AS TIMESTAMP)", "d", [("2024-03-31", 1711839600000000), ("2000-12-31", 978217200000000)]),
    ("MAKE_TIMESTAMP(2024, 3, 31, 2, i32, 0)", "i32", [(30, 1711848600000000)]),
    ("MAKE_TIMESTAMP(2024, 10, 27, 2, i32, 0)", "i32", [(30, 1729989000000000)]),
    ("CAST(ts AS DATE)", "ts", [("1970-01-01 00:00:00", 0), ("1582-10-10 12:00:00", -141432)]),
    ("CAST(ts AS DATE)", "ts", [("9999-12-31 22:59:59.999999", 2932896), ("2024-12-31 23:30:00.100000", 20089)]),
    ("CAST(ts AS STRING)", "ts", [("1970-01-01 00:00:00", "1970-01-01 01:00:00")]),
    ("CAST(ts AS STRING)", "ts", [("1969-12-31 23:59:59.999999", "1970-01-01 00:59:59.999999")]),
    ("CAST(ts AS STRING)", "ts", [("9999-12-31 22:59:59.999999", "9999-12-31 23:59:59.999999")]),
    ("CAST(ts AS STRING)", "ts", [("1980-04-06 01:00:00", "1980-04-06 03:00:00")]),
    ("CAST(ntz AS TIMESTAMP)", "ntz", [("2024-03-31 02:30:00", 1711848600000000)]),
    ("CAST(ntz AS TIMESTAMP)", "ntz", [("2024-10-27 02:30:00.250000", 1729989000250000), (None, None)]),
    ("CAST(ntz AS TIMESTAMP)", "ntz", [("1969-12-31 23:59:59.999999", -3600000001)]),
    ("HOUR(ts)", "ts", [("1970-01-01 00:00:00", 1), ("2024-10-27 00:30:00", 2), ("1800-06-01 12:34:56.789012", 13)]),
    ("DATE_TRUNC('HOUR', ts)", "ts", [("1970-01-01 00:00:00", 0), ("2024-10-27 01:30:00", 1729990800000000)]),
    ("DATE_TRUNC('HOUR', ts)", "ts", [("0001-01-02 00:00:00", -62135513608000000)]),
    ("DATE_TRUNC('HOUR', ts)", "ts", [("2024-12-31 23:30:00.100000", 1735686000000000)]),
    ("DATE_TRUNC('DAY', ts)", "ts", [("1970-01-01 00:00:00", -3600000000)]),
    ("DATE_TRUNC('DAY', ts)", "ts", [("1582-10-10 12:00:00", -12219728008000000)]),
    ("DATE_TRUNC('DAY', ts)", "ts", [("9999-12-31 22:59:59.999999", 253402210800000000)]),
    ("DATE_TRUNC('DAY', ts)", "ts", [("2024-12-31 23:30:00.100000", 1735686000000000)]),
    ("ts >= '2024-03-31 02:30:00'", "ts", [("1970-01-01 00:00:00", False), (None, None)]),
    ("ts >= '2024-03-31 02:30:00'", "ts", [("2024-10-27 00:30:00", True)]),
    ("ntz < ts", "ntz ts", [("2024-03-31 02:30:00", "1970-01-01 00:00:00", False), (None, None, None)]),
    ("ntz < ts", "ntz ts", [("1969-12-31 23:59:59.999999", "2024-03-31 01:00:00", True)]),
]


@pytest.mark.parametrize(
    ("text", "columns", "cases", "zone"),
    [*((*row, "UTC") for row in _IN_UTC), *((*row, "Europe/Berlin") for row in _IN_BERLIN)],
)
def test_an_expression_has_the_values_that_spark_gave(text: str, columns: str, cases: list[_Case], zone: str) -> None:
    program = compile_expressions([Asked(text=text)], SCHEMA, time_zone=zone)
    kinds = {field.name: arrow_type(field.type) for field in SCHEMA}
    for *given, value in cases:
        row = dict(zip(columns.split(), given, strict=True))
        batch = pa.record_batch({name: _array(one, kinds[name]) for name, one in row.items()})
        if value is _FAILS:
            with pytest.raises(RowFailedError):
                program.evaluate(batch)
        else:
            assert repr(_plain(program.evaluate(batch)[0])) == repr(value), row


def _array(value: object, kind: pa.DataType) -> pa.Array:
    if not isinstance(value, str) or pa.types.is_string(kind):
        return pa.array([value], kind)
    if pa.types.is_decimal(kind):
        return pa.array([Decimal(value)], kind)
    if pa.types.is_timestamp(kind):
        return pa.array([value]).cast(pa.timestamp("us")).cast(pa.int64()).cast(kind)
    return pa.array([value]).cast(kind)


def _plain(array: pa.Array) -> object:
    if pa.types.is_timestamp(array.type) or pa.types.is_date(array.type):
        array = array.cast(pa.int32() if pa.types.is_date(array.type) else pa.int64())
    return array[0].as_py()
