"""What an add says of a partition column is a value of its type, or refused."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from tablefeed.errors import LogError
from tablefeed.indextables.log.partition_values import Constants, timestamp_text
from tablefeed.indextables.split.indexing import Style


def refuse(reason: str) -> LogError:
    return LogError(reason, url="memory://t")


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (pa.string(), "a%20b/ü:", "a%20b/ü:"),
        (pa.string(), "", ""),
        (pa.string(), "__HIVE_DEFAULT_PARTITION__", None),
        (pa.int32(), "-5", -5),
        (pa.int64(), "__HIVE_DEFAULT_PARTITION__", None),
        (pa.int64(), "9223372036854775807", (1 << 63) - 1),
        (pa.float64(), "1.5e3", 1500.0),
        (pa.float64(), "-inf", float("-inf")),
        (pa.float64(), "Infinity", float("inf")),
        (pa.bool_(), "true", True),
        (pa.date32(), "1969-12-31", date(1969, 12, 31)),
        (pa.timestamp("us", "UTC"), "2024-01-02 03:04:05", datetime(2024, 1, 2, 3, 4, 5, tzinfo=UTC)),
        (pa.timestamp("us", "UTC"), "2024-01-02 03:04:05.000006", datetime(2024, 1, 2, 3, 4, 5, 6, UTC)),
        (pa.timestamp("us", "UTC"), "2024-01-02T03:04:05Z", datetime(2024, 1, 2, 3, 4, 5, tzinfo=UTC)),
        (pa.timestamp("us", "UTC"), "1969-12-31T23:59:59.000006Z", datetime(1969, 12, 31, 23, 59, 59, 6, UTC)),
        (pa.timestamp("us"), "1704164645000006", datetime(2024, 1, 2, 3, 4, 5, 6)),  # noqa: DTZ001 - it has no zone
        (pa.timestamp("us"), "-1", datetime(1969, 12, 31, 23, 59, 59, 999_999)),  # noqa: DTZ001 - it has no zone
        (pa.timestamp("us"), "2024-01-02 03:04:05", datetime(2024, 1, 2, 3, 4, 5)),  # noqa: DTZ001 - it has no zone
        (pa.decimal128(9, 2), "1.5", Decimal("1.50")),
    ],
)
def test_a_text_is_the_value_that_its_writer_meant(kind: pa.DataType, text: str, value: object) -> None:
    found = Constants(texts={"c": text}, columns=pa.schema([("c", kind)]), refuse=refuse)

    assert found["c"].type == kind
    assert found["c"].as_py() == value


@pytest.mark.parametrize(
    ("micros", "by_rows", "by_arrow"),
    [
        (0, "1970-01-01T00:00:00Z", "1970-01-01 00:00:00"),
        (-1, "1969-12-31T23:59:59.999999Z", "1969-12-31 23:59:59"),
        (1_704_067_200_500_000, "2024-01-01T00:00:00.500Z", "2024-01-01 00:00:00"),
        (1_704_067_200_000_500, "2024-01-01T00:00:00.000500Z", "2024-01-01 00:00:00"),
        (-62_135_596_800_000_000, "0001-01-01T00:00:00Z", "0001-01-01 00:00:00"),
    ],
)
def test_a_timestamp_is_spelled_as_the_writer_of_its_style_does(micros: int, by_rows: str, by_arrow: str) -> None:
    assert timestamp_text(micros, Style.ROWS) == by_rows
    assert timestamp_text(micros, Style.ARROW) == by_arrow


def test_a_text_is_judged_when_its_value_is_asked_for() -> None:
    columns = pa.schema([("a", pa.int32()), ("b", pa.timestamp("us", "UTC"))])
    found = Constants(texts={"a": "5", "b": "2024-01-01T00%3A00%3A00Z"}, columns=columns, refuse=refuse)

    assert "b" in found
    assert found["a"].as_py() == 5


def test_a_column_that_an_add_does_not_name_is_null() -> None:
    columns = pa.schema([("a", pa.int32()), ("b", pa.string())])

    assert Constants(texts={"a": None}, columns=columns, refuse=refuse) == {
        "a": pa.scalar(None, pa.int32()),
        "b": pa.scalar(None, pa.string()),
    }


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (pa.int32(), "2147483648"),
        (pa.int32(), "0x10"),
        (pa.int32(), ""),
        (pa.float64(), "1_0"),
        (pa.bool_(), "1"),
        (pa.date32(), "2024-13-01"),
        (pa.timestamp("us", "UTC"), "yesterday"),
        (pa.timestamp("us", "UTC"), "1704164645000006"),
        (pa.timestamp("us"), "9" * 20),
        (pa.decimal128(4, 2), "1.234"),
        (pa.decimal128(4, 2), "1E-41"),
    ],
)
def test_a_text_that_is_no_value_of_its_type_is_refused_with_the_columns_name(kind: pa.DataType, text: str) -> None:
    with pytest.raises(LogError) as refused:
        Constants(texts={"c": text}, columns=pa.schema([("c", kind)]), refuse=refuse)["c"]

    assert str(refused.value) == f"the partition value {text!r} of c is not of type {kind}"
