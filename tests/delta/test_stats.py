"""Statistics are spelt as Delta-Spark spells them, and every bound stays one."""

from __future__ import annotations

import json
import math
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablefeed.delta.stats.stats_columns import record_counts
from tablefeed.delta.stats.stats_text import StatisticsShape, encode_stats, loose, num_records
from tablefeed.model.statistics import Bound, ColumnStatistics, FileStatistics


def a_file(low: Bound | None, high: Bound | None) -> FileStatistics:
    column = ColumnStatistics(null_count=0, minimum=low, maximum=high)
    return FileStatistics(num_records=1, columns={("c",): column})


C = (("c",),)


def bounds(low: Bound | None, high: Bound | None, *, prefix_length: int = 32) -> tuple[Any, Any]:
    shape = StatisticsShape(leaves=C, bounded=C, prefix_length=prefix_length)
    stats = json.loads(encode_stats(a_file(low, high), shape), parse_float=str, parse_int=str)
    return stats["minValues"].get("c"), stats["maxValues"].get("c")


def test_the_text_nests_as_the_schema_does() -> None:
    columns = {
        ("id",): ColumnStatistics(null_count=0, minimum=1, maximum=3),
        ("s", "name"): ColumnStatistics(null_count=1, minimum="a", maximum="é"),
        ("s", "t", "tags"): ColumnStatistics(null_count=2),
    }
    shape = StatisticsShape(leaves=tuple(columns), bounded=(("id",), ("s", "name")))
    assert encode_stats(FileStatistics(num_records=3, columns=columns), shape) == (
        '{"numRecords":3,"minValues":{"id":1,"s":{"name":"a"}},"maxValues":{"id":3,"s":{"name":"é"}},'
        '"nullCount":{"id":0,"s":{"name":1,"t":{"tags":2}}}}'
    )


def test_a_file_without_indexed_columns_has_its_count_and_is_tight_where_rows_can_be_deleted() -> None:
    file = FileStatistics(num_records=3, columns={})
    assert encode_stats(file, StatisticsShape(leaves=(), bounded=())) == '{"numRecords":3}'
    deletable = StatisticsShape(leaves=(), bounded=(), tells_tightness=True)
    assert encode_stats(file, deletable) == '{"numRecords":3,"tightBounds":true}'


def test_a_group_is_there_for_a_column_that_could_have_a_bound_and_for_no_other() -> None:
    file = FileStatistics(num_records=1, columns={("s", "x"): ColumnStatistics(null_count=1)})
    ordered = StatisticsShape(leaves=(("s", "x"),), bounded=(("s", "x"),))
    flag = StatisticsShape(leaves=(("s", "x"),), bounded=())
    assert encode_stats(file, ordered) == (
        '{"numRecords":1,"minValues":{"s":{}},"maxValues":{"s":{}},"nullCount":{"s":{"x":1}}}'
    )
    assert encode_stats(file, flag) == '{"numRecords":1,"nullCount":{"s":{"x":1}}}'


@pytest.mark.parametrize(
    ("bound", "spelt"),
    [
        (2**63 - 1, "9223372036854775807"),
        (0.5, "0.5"),
        (-0.0, "-0.0"),
        (math.nan, "NaN"),
        (math.inf, "Infinity"),
        (-math.inf, "-Infinity"),
        (Decimal("1.50"), "1.50"),
        (Decimal("1E+3"), "1000"),
        (Decimal("0.000000001"), "0.000000001"),
        (Decimal("12345678901234567890123456789012345678"), "12345678901234567890123456789012345678"),
        (date(1, 2, 3), "0001-02-03"),
        (datetime(2024, 1, 1, tzinfo=UTC), "2024-01-01T00:00:00.000Z"),
        (datetime(2024, 1, 1, 2, tzinfo=timezone(timedelta(hours=2))), "2024-01-01T00:00:00.000Z"),
        (datetime(2024, 1, 1, 12, 30, 5, 120_000), "2024-01-01T12:30:05.120"),  # noqa: DTZ001 - timestamp_ntz
        (datetime(1, 1, 1, tzinfo=UTC), "0001-01-01T00:00:00.000Z"),
        ("", ""),
        (None, None),
    ],
    ids=repr,
)
def test_a_bound_is_spelt_as_its_type_is(bound: Bound | None, spelt: str | None) -> None:
    assert bounds(bound, bound) == (spelt, spelt)


def test_decimals_and_numbers_are_json_numbers_and_specials_are_strings() -> None:
    assert '"minValues":{"c":1.50},"maxValues":{"c":"NaN"}' in encode_stats(
        a_file(Decimal("1.50"), math.nan), StatisticsShape(leaves=C, bounded=C)
    )


def test_microseconds_round_away_from_what_the_file_has() -> None:
    moment = datetime(2024, 12, 31, 23, 59, 59, 999_001, UTC)
    assert bounds(moment, moment) == ("2024-12-31T23:59:59.999Z", "2025-01-01T00:00:00.000Z")
    early = datetime(1969, 12, 31, 23, 59, 59, 999_999)  # noqa: DTZ001 - timestamp_ntz
    assert bounds(early, early) == ("1969-12-31T23:59:59.999", "1970-01-01T00:00:00.000")


def test_the_last_microsecond_of_time_has_no_upper_bound() -> None:
    end = datetime.max.replace(tzinfo=UTC)
    assert bounds(end, end) == ("9999-12-31T23:59:59.999Z", None)


MAX = "\U0010ffff"


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("a" * 32, "a" * 32, "a" * 32),
        ("a" * 33, "a" * 32, "a" * 32 + "\x7f"),
        ("a" * 32 + "\x7e", "a" * 32, "a" * 32 + "\x7f"),
        ("a" * 32 + "\x7f", "a" * 32, "a" * 32 + MAX),
        ("a" * 32 + "é", "a" * 32, "a" * 32 + MAX),
        # U+10FFFF cannot be exceeded, so it stays and the next character is replaced.
        ("a" * 32 + MAX + "b", "a" * 32, "a" * 32 + MAX + "\x7f"),
        ("a" * 32 + MAX, "a" * 32, "a" * 32 + MAX),
        # A prefix of 32 is counted in UTF-16 units for the maximum, in code points for the minimum; no pair is parted.
        ("\U0001f600" * 40, "\U0001f600" * 32, "\U0001f600" * 16 + MAX),
        ("a" * 31 + "\U0001f600" + "bc", "a" * 31 + "\U0001f600", "a" * 31 + "\U0001f600" + "\x7f"),
        (MAX * 32, MAX * 32, MAX * 32),
        (MAX * 33, MAX * 32, None),
        (MAX * 40, MAX * 32, None),
    ],
)
def test_texts_are_cut_to_a_prefix_that_still_bounds(text: str, low: str, high: str | None) -> None:
    assert bounds(text, text) == (low, high)


@pytest.mark.parametrize(
    ("prefix_length", "text", "low", "high"),
    [
        (3, "abc", "abc", "abc"),
        (3, "abcd", "abc", "abc\x7f"),
        (1, "\U0001f600a", "\U0001f600", "\U0001f600\x7f"),
        (40, "a" * 40, "a" * 40, "a" * 40),
        (0, "a", "", None),
        (0, "", "", ""),
    ],
)
def test_a_prefix_is_as_long_as_the_table_says(prefix_length: int, text: str, low: str, high: str | None) -> None:
    assert bounds(text, text, prefix_length=prefix_length) == (low, high)


ALPHABET = st.sampled_from(["a", "\x7e", "\x7f", "é", "\uffff", "\U00010000", MAX])


@given(st.lists(st.text(ALPHABET, min_size=28, max_size=80) | st.text(st.characters(codec="utf-8")), min_size=1))
def test_cut_bounds_hold_for_every_text_by_utf8_order(texts: list[str]) -> None:
    low, high = bounds(min(texts), max(texts))
    for text in texts:
        assert low.encode() <= text.encode()
        assert high is None or text.encode() <= high.encode()


@given(st.floats() | st.integers(-(2**63), 2**63 - 1))
def test_numbers_are_read_back_as_they_are(number: float) -> None:
    assert repr(type(number)(bounds(number, number)[0])) == repr(number)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ('{"numRecords":3,"minValues":{"a":1}}', 3),
        ('{"numRecords":0}', 0),
        ('{"numRecords":9223372036854775807}', 2**63 - 1),
        ('{"numRecords":999999999999999999}', 10**18 - 1),
        *(
            (f'{{"numRecords":{digits}}}', None)
            for digits in ("null", '"3"', "true", "-1", "1.5", "1e3", "007", "9223372036854775808", 10**30)
        ),
        *((text, None) for text in ('{"minValues":{}}', '{"numRecords":3,"minVal', "[3]", "{", "", None)),
    ],
)
def test_a_count_is_read_where_there_is_one(text: str | None, count: int | None) -> None:
    assert num_records(text) == count
    assert record_counts(pa.array([text, text], pa.string())).to_pylist() == [count, count]


def test_statistics_of_a_file_with_deleted_rows_keep_their_digits_and_say_that_bounds_are_not_tight() -> None:
    assert loose('{"numRecords":3,"minValues":{"n":1.10,"m":12345678901234567890}}') == (
        '{"numRecords":3,"minValues":{"n":1.10,"m":12345678901234567890},"tightBounds":false}'
    )


@pytest.mark.parametrize("odd", ['{"a":' * 300 + "1" + "}" * 300, '{"a":' * 1010 + "1" + "}" * 1010])
def test_of_statistics_that_cannot_be_written_again_the_row_count_is_kept(odd: str) -> None:
    assert loose(f'{{"numRecords":3,"minValues":{odd}}}') == '{"numRecords":3,"tightBounds":false}'
