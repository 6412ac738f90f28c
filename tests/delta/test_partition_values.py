from __future__ import annotations

import datetime
import decimal
import math
from pathlib import Path

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from deltalake import write_deltalake
from hypothesis import given

from tablefeed.delta.codec import decode_commit
from tablefeed.delta.names import LOG_DIR, commit_name
from tablefeed.delta.partition_values import PartitionValue, directory_text, parse, serialise
from tablefeed.errors import CorruptLogError
from tablefeed.model.actions import Version
from tablefeed.model.schema import Array, DataType, Decimal, Primitive

TYPES = ["string", "long", "integer", "short", "byte", "float", "double", "boolean", "binary", "date"]
TYPES += ["timestamp", "timestamp_ntz"]


def refuse(reason: str) -> CorruptLogError:
    return CorruptLogError(reason, url="mem://t", log_file="00000000000000000000.json")


def parsed(text: str | None, kind: DataType | str) -> PartitionValue | None:
    return parse(text, Primitive(kind) if isinstance(kind, str) else kind, refuse=refuse)


def days(text: str) -> int:
    return (datetime.date.fromisoformat(text) - datetime.date(1970, 1, 1)).days


def micros(text: str) -> int:
    since = datetime.datetime.fromisoformat(text + "+00:00") - datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
    return since // datetime.timedelta(microseconds=1)


# Written by the Delta JAR 4.4.0 on Spark 4.2.0.
WRITTEN_BY_DELTA_SPARK: list[tuple[DataType | str, PartitionValue, str]] = [
    ("string", "a%b c/ü:", "a%b c/ü:"),
    ("long", -(2**63), "-9223372036854775808"),
    ("byte", -128, "-128"),
    ("boolean", True, "true"),
    ("boolean", False, "false"),
    (Decimal(10, 2), decimal.Decimal("1.50"), "1.50"),
    (Decimal(10, 2), decimal.Decimal("-0.05"), "-0.05"),
    (Decimal(38, 38), decimal.Decimal("1E-38"), "0.00000000000000000000000000000000000001"),
    (Decimal(38, 38), decimal.Decimal(0), "0.00000000000000000000000000000000000000"),
    ("date", days("0001-01-01"), "0001-01-01"),
    ("date", days("1582-10-04"), "1582-10-04"),
    ("date", days("2024-02-29"), "2024-02-29"),
    ("date", days("9999-12-31") + 1, "+10000-01-01"),
    ("timestamp", micros("2024-01-01T05:00:00"), "2024-01-01T05:00:00.000000Z"),
    ("timestamp", micros("2024-01-01T05:00:00.500000"), "2024-01-01T05:00:00.500000Z"),
    ("timestamp", micros("1582-10-04T04:56:02"), "1582-10-04T04:56:02.000000Z"),
    ("timestamp", micros("0001-01-03T04:56:02"), "0001-01-03T04:56:02.000000Z"),
    ("timestamp_ntz", micros("2024-02-29T12:00:00.500000"), "2024-02-29 12:00:00.5"),
    ("timestamp_ntz", micros("2024-02-29T00:00:00"), "2024-02-29 00:00:00"),
    ("timestamp_ntz", micros("0001-01-01T00:00:00.000001"), "0001-01-01 00:00:00.000001"),
    ("timestamp_ntz", micros("9999-12-31T23:59:59.999999"), "9999-12-31 23:59:59.999999"),
    ("double", -0.0, "-0.0"),
    ("double", 0.1, "0.1"),
    ("double", 0.001, "0.001"),
    ("double", 1.5e-5, "1.5E-5"),
    ("double", 5e-324, "4.9E-324"),
    ("double", 1.0, "1.0"),
    ("double", 123456.789, "123456.789"),
    ("double", 9999999.0, "9999999.0"),
    ("double", 1e7, "1.0E7"),
    ("double", 1e100, "1.0E100"),
    ("double", math.inf, "Infinity"),
    ("double", -math.inf, "-Infinity"),
    ("float", 0.10000000149011612, "0.1"),
    ("float", 2.0**-149, "1.4E-45"),
    ("float", 3.4028234663852886e38, "3.4028235E38"),
    ("float", 16777216.0, "1.6777216E7"),
    ("float", 9.999999747378752e-06, "1.0E-5"),
]


@pytest.mark.parametrize(("kind", "value", "text"), WRITTEN_BY_DELTA_SPARK)
def test_values_are_written_as_delta_spark_writes_them(kind: DataType | str, value: PartitionValue, text: str) -> None:
    data_type = Primitive(kind) if isinstance(kind, str) else kind
    assert serialise(value, data_type) == text
    assert parsed(text, data_type) == value


def test_nan_is_written_as_java_has_it() -> None:
    assert serialise(math.nan, Primitive("double")) == "NaN"
    assert math.isnan(float(str(parsed("NaN", "float"))))


@pytest.mark.parametrize("kind", [*(Primitive(name) for name in TYPES), Decimal(5, 1)])
def test_no_text_and_empty_text_are_null_for_every_type(kind: DataType) -> None:
    assert parsed(None, kind) is None
    assert parsed("", kind) is None
    assert serialise(None, kind) is None


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        ("timestamp", 1_709_208_000_500_000, "2024-02-29 12:00:00.5"),
        ("timestamp_ntz", 1_709_208_000_500_000, "2024-02-29 12:00:00.5"),
        ("timestamp", None, None),
        ("date", 0, "1970-01-01"),
    ],
)
def test_directories_have_timestamps_as_sql_does(kind: str, value: PartitionValue | None, text: str | None) -> None:
    assert directory_text(value, Primitive(kind)) == text


def test_an_empty_string_and_no_bytes_are_written_as_null() -> None:
    assert serialise("", Primitive("string")) is None
    assert serialise(b"", Primitive("binary")) is None


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("timestamp", "1970-01-01 00:00:01", 1_000_000),  # no zone: UTC
        ("timestamp", "1969-12-31 23:59:59.999999", -1),
        ("timestamp", "2021-10-01 08:09:10.001", micros("2021-10-01T08:09:10.001000")),
        ("timestamp", "1970-01-01T00:00:00.123456Z", 123_456),
        ("timestamp", "1970-01-01T00:00:00Z", 0),
        ("timestamp", "1970-01-01T02:00:00+02:00", 0),
        ("timestamp", "1969-12-31T22:30:00-0130", 0),
        ("timestamp", "1970-01-01 00:01", 60_000_000),  # as Spark's cast reads it
        ("date", "1970-01-02 10:00:00", 1),
        ("timestamp", "1970-01-02", 86_400_000_000),
        ("timestamp", "1970-01-01 00:00:00.123456789", 123_456),
        ("date", "-0044-03-15", -735_525),
        ("double", "inf", math.inf),  # delta-rs
        ("double", "-inf", -math.inf),
        ("double", "1", 1.0),
        ("boolean", "TRUE", True),
        ("long", "+5", 5),
        (Decimal(3, 2), "1.5", decimal.Decimal("1.50")),
        (Decimal(3, 2), "1.5000", decimal.Decimal("1.50")),
        (Decimal(4, 0), "1E+3", decimal.Decimal(1000)),
    ],
)
def test_what_other_writers_write_is_read(kind: DataType | str, text: str, value: PartitionValue) -> None:
    assert parsed(text, kind) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("hello", b"hello"),
        ("\x00\x01", b"\x00\x01"),
        ("ü", "ü".encode()),
        (r"\u0000\u0001\u00FF", b"\x00\x01\xff"),  # delta-rs
        (r"\u0141", rb"\u0141"),  # no byte: so it is text
    ],
)
def test_bytes_are_read_as_text_or_as_one_escape_for_each(text: str, value: bytes) -> None:
    assert parsed(text, "binary") == value


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("long", "9223372036854775808"),
        ("byte", "128"),
        ("byte", "-129"),
        ("integer", "1.0"),
        ("integer", "1_000"),
        ("integer", " 1"),
        ("integer", "\u0661"),
        ("double", "one"),
        ("double", "1_0"),
        ("boolean", "1"),
        ("date", "2023-02-29"),
        ("date", "20230228"),
        ("timestamp", "2023-02-28 24:00:00"),
        ("timestamp", "2023-02-28 23:59:60"),
        ("timestamp", "2023-02-28 10:00:00 Europe/Berlin"),
        ("timestamp", "400000-01-01 00:00:00"),
        ("timestamp_ntz", "2023-02-28T10:00:00Z"),
        ("void", "x"),
        (Decimal(3, 2), "1.505"),
        (Decimal(3, 2), "10.00"),
        (Decimal(3, 2), "NaN"),
        (Array(element=Primitive("long"), contains_null=True), "[1]"),
    ],
)
def test_a_text_that_is_no_value_of_its_type_is_refused_by_the_callers_error(kind: DataType | str, text: str) -> None:
    with pytest.raises(CorruptLogError, match="the partition value") as caught:
        parsed(text, kind)
    assert text in str(caught.value)


INTEGERS = {
    name: st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    for name, bits in {"long": 64, "integer": 32, "short": 16, "byte": 8, "date": 32, "timestamp": 64}.items()
}
VALUES: st.SearchStrategy[tuple[DataType, PartitionValue]] = st.one_of(
    *(st.tuples(st.just(Primitive(name)), values) for name, values in INTEGERS.items()),
    st.tuples(st.just(Primitive("timestamp_ntz")), INTEGERS["timestamp"]),
    st.tuples(st.just(Primitive("double")), st.floats(allow_nan=False)),
    st.tuples(st.just(Primitive("float")), st.floats(allow_nan=False, width=32)),
    st.tuples(st.just(Primitive("boolean")), st.booleans()),
    st.tuples(st.just(Primitive("string")), st.text(min_size=1)),
    st.tuples(st.just(Primitive("binary")), st.binary(min_size=1)),
    st.tuples(st.just(Primitive("binary")), st.text(r"\u01").map(str.encode).filter(bool)),
    st.tuples(st.just(Decimal(38, 10)), st.decimals(places=10, min_value=-(10**27), max_value=10**27)),
)


@given(VALUES)
def test_what_is_written_is_read_back(typed: tuple[DataType, PartitionValue]) -> None:
    data_type, value = typed
    read = parsed(serialise(value, data_type), data_type)
    assert (read, str(read)) == (value, str(value))  # as text too: -0.0 is not 0.0


@pytest.mark.parametrize(
    ("kind", "value", "arrow"),
    [
        ("date", -1, pa.scalar(datetime.date(1969, 12, 31))),
        ("timestamp", 1, pa.scalar(datetime.datetime(1970, 1, 1, 0, 0, 0, 1, tzinfo=datetime.UTC))),
        ("timestamp_ntz", 1, pa.scalar(datetime.datetime(1970, 1, 1, 0, 0, 0, 1))),  # noqa: DTZ001 - zone-less
    ],
)
def test_days_and_microseconds_are_what_arrow_takes(kind: str, value: int, arrow: pa.Scalar) -> None:
    assert pa.scalar(parsed(serialise(value, Primitive(kind)), kind), arrow.type) == arrow


@given(st.datetimes(), st.sampled_from(["T", " "]), st.sampled_from(["seconds", "milliseconds", "microseconds"]))
def test_an_instant_is_the_same_however_it_is_spelt(moment: datetime.datetime, between: str, to: str) -> None:
    text = moment.isoformat(sep=between, timespec=to)
    expected = micros(text)

    assert [parsed(text + zone, "timestamp") for zone in ("", "Z", "+00:00", "-0000")] == [expected] * 4
    assert parsed(text, "timestamp_ntz") == expected


def test_the_values_that_delta_rs_writes_are_read(tmp_path: Path) -> None:
    moment = datetime.datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=datetime.UTC)
    columns = {
        "b": (pa.array([b"\x00\xff\\"]), Primitive("binary"), b"\x00\xff\\"),
        "t": (pa.array([moment], pa.timestamp("us", "UTC")), Primitive("timestamp"), -1),
        "n": (pa.array([moment.replace(tzinfo=None)]), Primitive("timestamp_ntz"), -1),
        "f": (pa.array([-math.inf]), Primitive("double"), -math.inf),
        "d": (pa.array([datetime.date(2024, 2, 29)]), Primitive("date"), days("2024-02-29")),
        "z": (pa.array([""]), Primitive("string"), None),
    }
    rows = pa.table({"i": [1], **{name: column for name, (column, _, _) in columns.items()}})
    write_deltalake(tmp_path, rows, partition_by=list(columns))
    log_file = tmp_path / LOG_DIR / commit_name(0)
    commit = decode_commit(log_file.read_bytes(), version=Version(0), log_file="0", modified_ms=0)

    (file,) = commit.added

    for name, (_, data_type, value) in columns.items():
        assert parsed(file.partition_values[name], data_type) == value
