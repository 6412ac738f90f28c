"""Expressions of Spark's SQL as tables have them in constraints and generated columns, and rows at the edges of types.

`rows()` are the rows, `EXPRESSIONS` what is asked of them. None was left out because its answer differs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal as Number

import pyarrow as pa

from tablefeed.delta.schema.arrow_schema import to_arrow
from tablefeed.model.schema import Array, DataType, Decimal, Field, Map, Primitive, Struct

_NAN, _INF = float("nan"), float("inf")
_I8 = [0, 1, -1, 127, -128, None, 5]
_I16 = [7, 0, 32767, -32768, None, 128, -129, 3]
_I32 = [0, 1, None, -1, 2147483647, -2147483648, 42, 100, -7, 3, 1000000]
_I64 = [1, 0, -1, None, 9223372036854775807, -9223372036854775808, 4294967296, 9007199254740993, -42, 2147483648]
_F32 = [0.0, -0.0, 1.5, None, _NAN, _INF, -_INF, 3.4028234663852886e38, 1e-45, 0.1, 16777217.0]
_F64 = [
    *(0.0, -0.0, 0.1, None, _NAN, _INF, -_INF, 1.7976931348623157e308, 5e-324, 2.5, -2.5, 9.223372036854775807e18),
    1e17,
]
_DEC = ["0.00", "0.01", "-0.01", None, "99999999.99", "-99999999.99", "1.50", "2.50", "-2.50", "12.34", "100.00"]
_BIG = [
    *("0", "1.5", None, "99999999999999999999.999999999999999999", "-0.000000000000000001"),
    "-12345.678901234567890123",
]
_WIDE = [
    *("0", "1", None, "99999999999999999999999999999999999999", "-99999999999999999999999999999999999999", "10"),
    *("12345678901234567890123456789012345678", "-12345678901234567890123456789012345000"),
    *("12345678901234567890123456789012335000", "-1234567890123456789012345678901234"),
]
_S = [
    *("", "a", None, "A", " lead and trail ", "\ttab\n", "Straße", "ΑΣ", "e\u0301te\u0301", "🤦🏼‍♂️x", "İstanbul", "ﬁn"),
    *("a%b_c", "o'neil", "éa", "z\u0000z", "foo@bar.com", "line\r\n", "ABC-123", "\ufeffbom\uffff", "ǅ"),
]
_N = [
    *("1", " 12 ", None, "-7", "+3", "1.5", "abc", "", "9223372036854775808", "000000000000000000000000042", "1e3"),
    *("NaN", "-Infinity", "0x10", "1_000", "٣", "2147483648", "-0", "true", "N", ".5", "5.", "1d"),
]
_T = [
    *("2024-02-29", "2024-2-9", None, "2023-02-29", "2024", "2024-05", " 2024-05-06 ", "2024-05-06T10:11:12Z"),
    *("2024-05-06 10:11:12.123456789", "2024-03-31 02:30:00", "2024-10-27 02:30:00", "1582-10-10", "0001-01-01"),
    *("24-01-01", "x", "2024-05-06 10:11:12+02:30", "2024-05-06 10", "2024-05-06 25:00:00"),
    *("9999-12-31 23:59:59.999999", "2024-05-06 10:11", "2024-13-01", "1883-11-18 12:00:00"),
]
_D = [
    *(date(1970, 1, 1), date(2024, 2, 29), None, date(1969, 12, 31), date(1582, 10, 4), date(1582, 10, 15)),
    *(date(1, 1, 1), date(9999, 12, 31), date(2024, 3, 31), date(2024, 12, 30), date(2021, 1, 3), date(1900, 3, 1)),
    date(2000, 12, 31),
]
_TS = [
    *("1970-01-01T00:00:00", "2024-03-31T00:59:59.999999", None, "2024-03-31T01:00:00", "2024-10-27T00:30:00"),
    *("2024-10-27T01:30:00", "1969-12-31T23:59:59.999999", "1582-10-10T12:00:00", "1800-06-01T12:34:56.789012"),
    *("2024-02-29T12:30:45.000001", "0001-01-02T00:00:00", "9999-12-31T22:59:59.999999", "2500-07-01T00:00:00.5"),
    *("1893-03-31T23:06:32", "1945-05-24T01:00:00", "2024-12-31T23:30:00.100000", "1980-04-06T01:00:00"),
]
_NTZ = ["2024-03-31T02:30:00", "2024-10-27T02:30:00.25", None, "1969-12-31T23:59:59.999999", "1583-01-01T00:00:00"]
_BIN = [b"", b"\x00\xff", None, "Straße".encode(), b"abc"]
_BOOL = [True, False, None]
_ST = [{"a": 1, "b": "x", "t": datetime(2024, 3, 31, 1, tzinfo=UTC)}, {"a": None, "b": "", "t": None}, None]
_ARR = [[1, 2, 3], [], None, [None], [5, None]]
_M = [[("k", 1), ("b", None)], [], None, [("K", 7)]]

_ROWS = 53
"""A prime, and the lists are of other lengths, so that their values meet in many pairs."""

_TIME = Primitive("timestamp")
_MEMBERS = (
    Field("a", Primitive("integer"), nullable=True),
    Field("b", Primitive("string"), nullable=True),
    Field("t", _TIME, nullable=True),
)
_COLUMNS: Mapping[str, tuple[DataType, Sequence[object]]] = {
    "i8": (Primitive("byte"), _I8),
    "i16": (Primitive("short"), _I16),
    "i32": (Primitive("integer"), _I32),
    "i64": (Primitive("long"), _I64),
    "j64": (Primitive("long"), _I64[3:]),
    "f32": (Primitive("float"), _F32),
    "f64": (Primitive("double"), _F64),
    "dec": (Decimal(10, 2), [v and Number(v) for v in _DEC]),
    "big": (Decimal(38, 18), [v and Number(v) for v in _BIG]),
    "wide": (Decimal(38, 0), [v and Number(v) for v in _WIDE]),
    "b": (Primitive("boolean"), _BOOL),
    "s": (Primitive("string"), _S),
    "n": (Primitive("string"), _N),
    "t": (Primitive("string"), _T),
    "d": (Primitive("date"), _D),
    "d2": (Primitive("date"), _D[4:]),
    "ts": (_TIME, [v and datetime.fromisoformat(v).replace(tzinfo=UTC) for v in _TS]),
    "ts2": (_TIME, [v and datetime.fromisoformat(v).replace(tzinfo=UTC) for v in _TS[6:]]),
    "ntz": (Primitive("timestamp_ntz"), [v and datetime.fromisoformat(v) for v in _NTZ]),
    "bin": (Primitive("binary"), _BIN),
    "st": (Struct(_MEMBERS), _ST),
    "arr": (Array(Primitive("integer"), contains_null=True), _ARR),
    "m": (Map(Primitive("string"), Primitive("integer"), value_contains_null=True), _M),
}
SCHEMA = Struct(
    (
        Field("id", Primitive("integer"), nullable=False),
        *(Field(name, kind, nullable=True) for name, (kind, _) in _COLUMNS.items()),
    )
)


def rows() -> pa.RecordBatch:
    """The rows, as SCHEMA says."""
    kinds = to_arrow(SCHEMA)
    columns = {
        name: pa.array([values[i % len(values)] for i in range(_ROWS)], kinds.field(name).type)
        for name, (_, values) in _COLUMNS.items()
    }
    return pa.record_batch({"id": pa.array(range(_ROWS), pa.int32()), **columns})


_COMPARISONS = """
i32 = i64
i8 < i16
i64 > 0
i64 >= j64
i64 <= 9223372036854775807.5
i64 < -9223372036854775808.5
99999999999999999999 > i32
i32 >= -99999999999999999999BD
NOT (i8 > 9223372036854775808)
i64 > CAST(-99999999999999999999 AS DECIMAL(20,0))
i64 = 99999999999999999999
i64 <> 99999999999999999999
i64 <=> j64
i32 <> 42
i32 != 42
i32 == 42
f32 = f64
f64 > 0
f64 <= 0.1
f64 = 0
f64 = 'NaN'
f32 > 1e10
f64 <=> f64
f32 = i32
i64 = f32
f64 < i64
dec = 1.5
dec > 0
dec >= i32
dec <= i64
dec < f64
dec > big
big > 0
big = 1.5
wide >= 10
wide < i64
dec <=> 12.34
dec = '12.34'
i32 > '1'
i32 = n
f64 > n
b = true
b = false
b <> true
b
NOT b
b <=> NULL
b = 'true'
s = 'a'
s < 'b'
s > 'é'
s >= ''
s <> s
s <=> NULL
s = NULL
bin = X'616263'
bin < X'ff'
d > '2000-01-01'
d >= DATE'1582-10-10'
d = d2
d < d2
d < ts
d = t
ts > '2024-01-01'
ts >= '2024-03-31 02:30:00'
ts < TIMESTAMP'2024-10-27 02:30:00'
ts = TIMESTAMP'2024-03-31 01:00:00Z'
ts > ts2
ts <=> ts2
ts > d
ntz > '2024-03-31'
ntz < ts
ntz >= TIMESTAMP_NTZ'2024-03-31 02:30:00'
ntz < d
st.a = 1
st.a IS NULL
st.b = ''
st.t > '2024-03-31'
arr[0] > 0
m['k'] = 1
m['nope'] IS NULL
"""

_LOGIC = """
b AND i32 > 0
b OR i32 > 0
NOT (b AND i32 > 0)
i32 > 0 AND i64 > 0 AND f64 > 0
i32 > 0 OR i64 > 0 AND f64 > 0
i32 <> 0 AND 100 / i32 > 1
i32 = 0 OR 100 / i32 > 1
b IS NULL OR CAST(n AS INT) > 0
b AND CAST(n AS INT) > 0
i32 IS NULL
i32 IS NOT NULL
b IS TRUE
ASSERT_TRUE(b) IS NULL
ASSERT_TRUE(i32 < 2) IS NOT NULL
b OR ASSERT_TRUE(i32 > 0) IS NULL
b IS NOT TRUE
b IS FALSE
i32 IN (0, 1, 42)
i32 NOT IN (0, 1, 42)
i32 IN (0, NULL)
i32 NOT IN (1, NULL)
i64 IN (1, i32)
dec IN (1.5, 2.5, 0)
f64 IN (0.0D, 2.5D)
f64 IN (0.1, 2.5)
s IN ('a', 'A', '')
d IN ('1970-01-01', DATE'2024-02-29')
ts IN (TIMESTAMP'2024-03-31 01:00:00Z')
i32 BETWEEN 0 AND 100
i32 NOT BETWEEN 0 AND 100
dec BETWEEN 0 AND 99.99
d BETWEEN '1969-01-01' AND '2024-12-31'
ts BETWEEN '1970-01-01' AND '2025-01-01 00:00:00'
s BETWEEN 'A' AND 'z'
CASE WHEN i32 > 0 THEN 'pos' WHEN i32 < 0 THEN 'neg' ELSE 'zero' END
CASE i32 WHEN 0 THEN 'zero' WHEN 1 THEN 'one' END
CASE WHEN b THEN i32 ELSE i64 END
CASE WHEN b THEN dec ELSE 0 END
CASE WHEN b THEN i8 ELSE dec END
CASE WHEN n RLIKE '^[0-9]+$' THEN CAST(n AS BIGINT) > 0 ELSE true END
CASE WHEN i32 <> 0 THEN 10 DIV i32 ELSE 0 END
IF(b, 1, 2)
IF(i32 > 0, i32, NULL)
IF(b, f32, f64)
COALESCE(i32, 0)
COALESCE(i32, i64, 0)
COALESCE(s, n, '')
COALESCE(b, false) OR i32 > 0
NVL(dec, 0)
NVL2(i32, 'x', 'y')
IFNULL(s, 'none')
NULLIF(i32, 42)
NULLIF(s, '')
isnull(s)
isnotnull(s)
isnan(f64)
isnan(f32)
GREATEST(i32, i64)
LEAST(i32, i64, 5)
GREATEST(f64, 1.0D)
LEAST(f32, 1.5F)
GREATEST(f32, -1.5F)
LEAST(f64, 1.5D)
GREATEST(d, d2)
LEAST(s, 'b')
i32 > 0 IS TRUE
(i32 > 0) = b
(i32 > 0) <=> (i64 > 0)
i32 IN ('1', '42')
n IN (1, 2)
d IN ('1970-01-01', ts)
CASE WHEN b THEN '1' ELSE 2 END
IF(b, d, '2020-01-01')
COALESCE(n, 0)
COALESCE(d, ts)
NULLIF(i32, '1')
GREATEST(n, 'b')
LEAST(dec, i32)
i64 = '1.5'
n + 1.5
i32 IS NULL OR i32 BETWEEN 0 AND 150 AND s <> ''
b <=> (s LIKE 'a%')
NOT b <=> true
"""

_NUMBERS = """
i8 + i8
dec + CAST(5 AS BIGINT)
dec + 5L
-CAST(5 AS INT)
i8 + 1
i8 * 2
i16 - i8
i32 + 1
i32 + i32
i32 - i64
i32 * 1000
i64 + j64
i64 - j64
i64 * j64
i64 * 2
i64 + 1L
-i32
-i64
-i8
-f64
-dec
abs(i32)
abs(i64)
abs(f64)
abs(dec)
i32 / 2
i32 / i64
i64 / i32
f64 / 2
f64 / i32
f64 + f32
f32 + f32
f32 * 2
f64 * f64
f64 - 0.1D
f32 / 3
i32 % 3
i64 % j64
i32 % i32
f64 % 3
f64 % 0.1D
mod(i32, 7)
pmod(i32, 7)
pmod(i64, -3)
pmod(i64, j64)
pmod(i32, i64)
pmod(i32, -2147483647)
pmod(i16, -32768S)
i32 DIV 3
i64 DIV j64
i32 DIV i32
dec + 1
dec + 0.001
dec - dec
dec * 2
dec * dec
dec * 1.05
dec * i32
dec * i64
dec / 3
dec / +3
dec * - +3
+i32 + 1
+i8
+n
+n = '1'
+d
dec / dec
dec / i32
dec % 7
dec % 0.3
dec + f64
dec * f64
big + big
big - 1
big * 2
big * big
big / 3
big + dec
wide + 1
wide * 2
wide - wide
wide / 7
wide % 10
NOT (CEIL(wide) IS NOT NULL)
i32 + '1'
'1' + 1
round(dec, 1)
round(dec)
round(big, 3)
round(f64, 1)
ceil(dec)
floor(dec)
1.5 / floor(CAST(i32 AS DECIMAL(10,0)))
1.5 / ceil(wide)
1.5 / round(CAST(i32 AS DECIMAL(10,0)))
dec / floor(3)
dec / INT(3)
dec / BIGINT(3)
floor(big)
ceil(f64)
floor(f64)
ceil(f32)
floor(i32)
1 + 2 * 3 - 4 / 2
(i32 + 1) * 2 > 10
5
2147483648
-2147483648
1.50
1e3
-128Y
100L
1.5BD
0.1F
-0.0D
-0.0F
1.1e0F
IF(b, -0.0D, f64)
f64 IN (-0.0, 2.5, 1)
"""

_CASTS = """
CAST(i64 AS INT)
CAST(i32 AS SMALLINT)
CAST(i16 AS TINYINT)
CAST(i32 AS BIGINT)
CAST(i64 AS DOUBLE)
CAST(i64 AS FLOAT)
CAST(i32 AS DECIMAL(5,2))
CAST(i64 AS DECIMAL(20,0))
CAST(i32 AS STRING)
CAST(i64 AS STRING)
CAST(i32 AS BOOLEAN)
CAST(i64 AS TIMESTAMP)
CAST(f64 AS INT)
CAST(f64 AS BIGINT)
CAST(f32 AS INT)
CAST(f32 AS DOUBLE)
CAST(f64 AS FLOAT)
CAST(f64 AS STRING)
CAST(f64 AS DECIMAL(10,2))
CAST(f64 AS BOOLEAN)
CAST(dec AS INT)
CAST(dec AS BIGINT)
CAST(dec AS DOUBLE)
CAST(dec AS FLOAT)
CAST(dec AS DECIMAL(5,1))
CAST(dec AS DECIMAL(20,4))
CAST(big AS DECIMAL(10,2))
CAST(big AS DOUBLE)
CAST(wide AS BIGINT)
CAST(wide AS DOUBLE)
CAST(dec AS STRING)
CAST(big AS STRING)
CAST(CAST(dec % 1 AS DECIMAL(2,2)) AS STRING)
CONCAT(0.05, -0.5)
CAST(b AS INT)
CAST(b AS STRING)
CAST(n AS INT)
CAST(n AS BIGINT)
CAST(n AS TINYINT)
CAST(n AS DOUBLE)
CAST(n AS FLOAT)
CAST(n AS DECIMAL(10,1))
CAST(n AS BOOLEAN)
CAST(s AS BINARY)
CAST(t AS DATE)
CAST(t AS TIMESTAMP)
CAST(t AS TIMESTAMP_NTZ)
CAST(bin AS STRING)
CAST(d AS STRING)
CAST(d AS TIMESTAMP)
CAST(d AS TIMESTAMP_NTZ)
CAST(ts AS DATE)
CAST(ts AS STRING)
CAST(ts AS BIGINT)
CAST(ts AS TIMESTAMP_NTZ)
CAST(ts AS DOUBLE)
CAST(ntz AS DATE)
CAST(ntz AS STRING)
CAST(ntz AS TIMESTAMP)
CAST('12' AS INT)
CAST('2024-02-30' AS DATE)
CAST(NULL AS INT)
date(ts)
int(n)
string(d)
"""

_TIMES = """
YEAR(d)
YEAR(ts)
YEAR(ntz)
YEAR(t)
MONTH(d)
MONTH(ts)
DAY(d)
DAYOFMONTH(ts)
QUARTER(d)
QUARTER(ts)
DAYOFWEEK(d)
WEEKDAY(d)
DAYOFYEAR(d)
WEEKOFYEAR(d)
LAST_DAY(d)
HOUR(ts)
MINUTE(ts)
SECOND(ts)
HOUR(ntz)
HOUR(d)
EXTRACT(YEAR FROM d)
EXTRACT(HOUR FROM ts)
DATE_PART('YEAR', d)
DATE_PART('minute', ts)
DATEPART('week', d)
DATE_PART(s, d)
EXTRACT(DOW FROM d)
DATE_TRUNC('YEAR', ts)
DATE_TRUNC('QUARTER', ts)
DATE_TRUNC('MONTH', ts)
DATE_TRUNC('WEEK', ts)
DATE_TRUNC('DAY', ts)
DATE_TRUNC('HOUR', ts)
DATE_TRUNC('MINUTE', ts)
DATE_TRUNC('SECOND', ts)
DATE_TRUNC('DAY', d)
TRUNC(d, 'YEAR')
TRUNC(d, 'MM')
TRUNC(d, 'QUARTER')
TRUNC(d, 'WEEK')
TRUNC(ts, 'MONTH')
DATE_FORMAT(ts, 'yyyy')
DATE_FORMAT(ts, 'yyyy-MM')
DATE_FORMAT(ts, 'yyyy-MM-dd')
DATE_FORMAT(ts, 'yyyy-MM-dd-HH')
DATE_FORMAT(ts, 'yyyyMMdd')
DATE_FORMAT(ts, 'HH:mm:ss')
DATE_FORMAT(d, 'yyyy-MM')
DATE_FORMAT(d, 'MM/dd/yyyy')
DATE_FORMAT(ts, 'EEEE')
DATE_ADD(d, 1)
DATE_ADD(d, i32)
DATE_SUB(d, 30)
DATEDIFF(d, d2)
DATEDIFF(ts, d)
MONTHS_BETWEEN(d, d2)
TO_DATE(ts)
TO_DATE(t)
TO_DATE(t, 'yyyy-MM-dd')
TO_TIMESTAMP(t)
MAKE_DATE(2024, 2, i8)
MAKE_DATE(2024, 2, 29)
MAKE_TIMESTAMP(2024, 3, 31, 2, i8, 0)
MAKE_TIMESTAMP(2024, 10, 27, 2, 30, i8)
MAKE_TIMESTAMP(YEAR(ts), MONTH(ts), DAY(ts), HOUR(ts), 0, 0)
MAKE_TIMESTAMP(2024, 2, 29, 23, 59, 60)
MAKE_TIMESTAMP(i32, 1, 1, 0, 0, 0)
UNIX_TIMESTAMP(ts)
UNIX_TIMESTAMP(d)
UNIX_TIMESTAMP(t)
UNIX_SECONDS(ts)
UNIX_MILLIS(ts)
UNIX_MICROS(ts)
CAST(TIMESTAMP_MICROS(i64) AS BIGINT)
UNIX_SECONDS(TIMESTAMP_MICROS(i64))
UNIX_MILLIS(TIMESTAMP_MICROS(i64))
TIMESTAMP_SECONDS(i32)
TIMESTAMP_MILLIS(i64)
d + 1
d - 1
d - d2
ts - ts2
d >= DATE_SUB(d2, 7)
YEAR(d) >= 2000 AND MONTH(d) BETWEEN 1 AND 12
CAST(ts AS DATE) = d
"""

_TEXTS = """
LENGTH(s)
LENGTH(s) <= 5
LENGTH(bin)
LENGTH(i32)
UPPER(s)
LOWER(s)
UPPER(s) = s
TRIM(s)
LTRIM(s)
RTRIM(s)
TRIM(s) <> ''
SUBSTRING(s, 1, 3)
SUBSTRING(s, 0, 2)
SUBSTRING(s, -2, 1)
SUBSTRING(s, -100, 99)
SUBSTRING(s, 2)
SUBSTR(s, i8, 2)
SUBSTRING(s, 2, -1)
SUBSTRING(s, i32, i32)
SUBSTRING(t, 1, 4)
LEFT(s, 2)
RIGHT(s, 2)
LEFT(s, i8)
CONCAT(s, '-', n)
CONCAT(s, i32)
s || n
s || CAST(n AS INT)
CONCAT(s, n, CAST(n AS INT))
s || '-' || i32
CONCAT_WS(',', s, n)
CONCAT_WS('-', YEAR(d), MONTH(d))
STARTSWITH(s, 'a')
ENDSWITH(s, 'e')
CONTAINS(s, 'a')
CONTAINS(s, '')
s LIKE 'a%'
s LIKE '%a%'
s LIKE '_'
s LIKE '__'
s LIKE ''
s NOT LIKE '%@%'
s LIKE 'a%b_c'
s LIKE n
s LIKE ANY ('a%', '%x')
s LIKE ANY ('a%')
s LIKE SOME ('%a%', NULL)
s LIKE ALL ('%a%', '%b%')
s NOT LIKE ANY ('%a%', '%b%')
s NOT LIKE ALL ('%a%', '%b%')
s NOT LIKE ALL ('%a%')
NOT s LIKE ANY ('%a%', '%b%')
s LIKE ANY ('a', n)
DECODE(ENCODE(s, 'utf-8'), 'UTF-8') = s
ENCODE(s, 'utf-8') = bin
ENCODE(s, 'utf-16')
DECODE(bin, 'utf-8')
s ILIKE 'A%'
s RLIKE '^[a-z]+$'
s RLIKE '^[A-Z]{3}-[0-9]+$'
s RLIKE '^[^@]+@[^@]+$'
s RLIKE '^.$'
s RLIKE '^(foo|bar).*[.]com$'
n RLIKE '^[0-9]*$'
s RLIKE '^(?i)abc'
REGEXP_REPLACE(s, 'a', 'b')
REPLACE(s, 'a', 'b')
REPLACE(s, '', 'b')
REPLACE(s, 'a', '')
INSTR(s, 'a')
LOCATE('a', s)
SPLIT(s, 'a')[0]
HASH(s)
HASH(b)
HASH(i8)
HASH(i16)
HASH(i32)
HASH(i64)
HASH(d)
HASH(ts)
HASH(ntz)
HASH(bin)
HASH(i32, s, i64, b)
HASH(s, i32 + 1)
HASH(NULL, s)
PMOD(HASH(i64), 16)
HASH(f64)
HASH(arr)
SIZE(arr)
SIZE(m)
SIZE(arr) > 0
ARRAY_CONTAINS(arr, 1)
ARRAY_SIZE(arr)
ARRAY_SIZE(ARRAY_COMPACT(arr)) = SIZE(arr)
ARRAY_SIZE(ARRAY_APPEND(arr, 1)) > 3
ARRAY_APPEND(arr, i32)[0]
ARRAY_APPEND(arr, i32)[SIZE(arr)]
ARRAY_PREPEND(arr, i32)[0]
ARRAY_PREPEND(arr, 7)[1]
ARRAY_INSERT(arr, 1, i32)[0]
ARRAY_COMPACT(arr)[0]
arr[1]
ELEMENT_AT(arr, 1)
m['K']
CARDINALITY(arr)
EXISTS(arr, x -> x > 1)
FORALL(arr, x -> x > 0)
arr IS NOT NULL AND SIZE(arr) >= 1
UPPER(SUBSTRING(s, 1, 1))
LENGTH(TRIM(s)) > 0
s = UPPER(s) AND LENGTH(s) = 3
UPPER(i32)
LENGTH(CONCAT(s, s)) <= 10
SUBSTRING(s, 1, 1) IN ('a', 'A', 'é')
COALESCE(TRIM(s), '') <> ''
LOWER(s) LIKE '%com'
st.b LIKE 'x%'
"""

EXPRESSIONS: tuple[str, ...] = tuple(
    line for group in (_COMPARISONS, _LOGIC, _NUMBERS, _CASTS, _TIMES, _TEXTS) for line in group.strip().splitlines()
)
