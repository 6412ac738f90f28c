"""Statistics in columns say what they say one by one: structs become the texts, texts give their counts."""

from __future__ import annotations

import json
import math
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given

from tablefeed.delta.stats.stats_columns import record_counts, texts_of
from tablefeed.delta.stats.stats_text import num_records

# --- texts -----------------------------------------------------------------------------------------------------------


def bounds(kind: pa.DataType, low: object, high: object) -> dict[str, Any]:
    """What the text says of a column "c" of that type: JSON, numbers as their digits."""
    minimum, maximum = (pa.array([value], pa.struct([("c", kind)])) for value in ({"c": low}, {"c": high}))
    parsed = pa.StructArray.from_arrays([minimum, maximum], ["minValues", "maxValues"])
    (text,) = texts_of(parsed).to_pylist()
    orjson.loads(text)  # strict, where json takes NaN
    found: dict[str, Any] = json.loads(text, parse_float=str, parse_int=str)
    return {name: values.get("c") for name, values in found.items()}


def test_a_text_has_the_members_of_the_struct_in_delta_sparks_order() -> None:
    inner = pa.struct([("id", pa.int64()), ("s", pa.struct([("x y", pa.string())]))])
    counts = pa.struct([("id", pa.int64()), ("s", pa.struct([("x y", pa.int64())]))])
    kind = pa.struct(
        [
            ("tightBounds", pa.bool_()),
            ("nullCount", counts),
            ("maxValues", inner),
            ("minValues", inner),
            ("numRecords", pa.int64()),
            ("unknown", pa.int64()),
        ]
    )
    whole = {
        "numRecords": 3,
        "minValues": {"id": -1, "s": {"x y": "a"}},
        "maxValues": {"id": 2, "s": {"x y": "b"}},
        "nullCount": {"id": 0, "s": {"x y": 1}},
        "tightBounds": True,
        "unknown": 1,
    }
    partly = {"numRecords": 4, "minValues": {"id": None, "s": {"x y": None}}, "maxValues": {"id": 5, "s": None}}

    assert texts_of(pa.array([whole, None, partly, {}], kind)).to_pylist() == [
        '{"numRecords":3,"minValues":{"id":-1,"s":{"x y":"a"}},"maxValues":{"id":2,"s":{"x y":"b"}},'
        '"nullCount":{"id":0,"s":{"x y":1}},"tightBounds":true}',
        None,
        '{"numRecords":4,"minValues":{"s":{}},"maxValues":{"id":5}}',
        "{}",
    ]


@pytest.mark.parametrize(
    ("kind", "low", "high", "spelt"),
    [
        (pa.int8(), -128, 127, ("-128", "127")),
        (pa.int64(), -(2**63), 2**63 - 1, ("-9223372036854775808", "9223372036854775807")),
        (pa.bool_(), False, True, (False, True)),
        (pa.float64(), 1.0, 0.1, ("1.0", "0.1")),
        (pa.float64(), -0.0, 1e300, ("-0.0", "1e+300")),
        (pa.float32(), 0.1, 1.0, ("0.10000000149011612", "1.0")),  # all digits, as a double has them
        (pa.float64(), -math.inf, math.nan, ("-Infinity", "NaN")),
        (pa.float64(), math.inf, math.inf, ("Infinity", "Infinity")),
        (pa.decimal128(10, 2), Decimal("-1.50"), Decimal("12345678.90"), ("-1.50", "12345678.90")),
        (pa.decimal128(20, 10), Decimal("0.0000000001"), Decimal(0), ("0.0000000001", "0.0000000000")),
        (pa.decimal128(38, 0), Decimal(-(10**37)), Decimal(10**37), (f"-1{'0' * 37}", f"1{'0' * 37}")),
        (pa.string(), 'q"\\\n\x01', "ü😀\u2028", ('q"\\\n\x01', "ü😀\u2028")),
        (pa.large_string(), "", "a,b{}", ("", "a,b{}")),
        (pa.dictionary(pa.int32(), pa.string()), "a", "b", ("a", "b")),
        (pa.string_view(), "a", "b", ("a", "b")),
        (pa.date32(), date(1582, 10, 15), date(9999, 12, 31), ("1582-10-15", "9999-12-31")),
        (pa.binary(), b"a", b"b", (None, None)),
        (pa.list_(pa.int64()), [1], [2], (None, None)),
    ],
    ids=str,
)
def test_a_bound_is_spelt_as_the_protocol_spells_it(
    kind: pa.DataType, low: object, high: object, spelt: tuple[object, object]
) -> None:
    found = bounds(kind, low, high)

    assert (found["minValues"], found["maxValues"]) == spelt


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
@pytest.mark.parametrize(("zone", "mark"), [("UTC", "Z"), (None, "")])
def test_timestamps_have_milliseconds_and_a_z_where_they_are_instants(unit: str, zone: str | None, mark: str) -> None:
    moment = datetime(2024, 2, 29, 23, 59, 59, 123000, tzinfo=UTC if zone else None)

    found = bounds(pa.timestamp(unit, tz=zone), moment, moment)

    assert set(found.values()) == {f"2024-02-29T23:59:59.123{mark}"}


def test_microseconds_widen_the_bounds_to_the_millisecond_around_them_before_1970_too() -> None:
    kind = pa.timestamp("us", tz="UTC")
    new_year = datetime(2024, 1, 1, 0, 0, 0, 1, tzinfo=UTC)

    assert bounds(kind, new_year, new_year) == {
        "minValues": "2024-01-01T00:00:00.000Z",
        "maxValues": "2024-01-01T00:00:00.001Z",
    }
    assert bounds(kind, -1, -1) == {"minValues": "1969-12-31T23:59:59.999Z", "maxValues": "1970-01-01T00:00:00.000Z"}


def test_a_moment_of_another_zone_is_told_in_utc() -> None:
    found = bounds(pa.timestamp("us", tz="America/New_York"), 0, 0)

    assert found["minValues"] == "1970-01-01T00:00:00.000Z"


def test_a_bound_beyond_the_year_9999_is_left_out() -> None:
    last = datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)

    assert bounds(pa.timestamp("us", tz="UTC"), last, last) == {
        "minValues": "9999-12-31T23:59:59.999Z",
        "maxValues": None,
    }
    assert bounds(pa.date32(), -800_000, 3_000_000) == {"minValues": None, "maxValues": None}


@pytest.mark.parametrize("unit", ["us", "ns"])
@pytest.mark.parametrize("zone", ["UTC", None])
@pytest.mark.parametrize("ever", [2**63 - 1, -(2**63)])
def test_the_first_and_the_last_moment_of_64_bits_are_left_out(unit: str, zone: str | None, ever: int) -> None:
    kind = pa.timestamp(unit, zone)
    moment = pa.array([ever]).cast(kind)[0]

    assert bounds(kind, moment, moment) == {"minValues": None, "maxValues": None}


def test_a_bound_that_may_be_of_the_julian_calendar_is_left_out() -> None:
    old, moment = date(1582, 10, 14), datetime(1899, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)

    assert bounds(pa.date32(), old, old) == {"minValues": None, "maxValues": None}
    assert bounds(pa.timestamp("us", "UTC"), moment, moment) == {"minValues": None, "maxValues": None}


def test_a_struct_of_bytes_which_is_how_a_variant_comes_is_no_bound() -> None:
    variant = pa.struct([("metadata", pa.binary()), ("value", pa.binary())])

    assert bounds(variant, {"metadata": b"", "value": b""}, None) == {"minValues": None, "maxValues": None}


def test_the_name_of_a_column_is_quoted() -> None:
    parsed = pa.array([{"nullCount": {'a"b,ü': 1}}], pa.struct([("nullCount", pa.struct([('a"b,ü', pa.int64())]))]))

    assert texts_of(parsed).to_pylist() == ['{"nullCount":{"a\\"b,ü":1}}']


@given(
    st.lists(
        st.fixed_dictionaries({"numRecords": st.integers(0, 9) | st.none(), "s": st.text() | st.none()}) | st.none()
    )
)
def test_a_text_is_the_json_of_its_struct_for_any_rows(rows: list[dict[str, Any] | None]) -> None:
    kind = pa.struct([("numRecords", pa.int64()), ("minValues", pa.struct([("s", pa.string())]))])
    structs = [row and {"numRecords": row["numRecords"], "minValues": {"s": row["s"]}} for row in rows]

    texts = texts_of(pa.array(structs, kind)).to_pylist()

    assert [text and json.loads(text) for text in texts] == [
        row
        and {
            **({} if row["numRecords"] is None else {"numRecords": row["numRecords"]}),
            "minValues": {} if row["s"] is None else {"s": row["s"]},
        }
        for row in rows
    ]


def test_delta_spark_keeps_the_same_in_text_and_struct(corpus: Path) -> None:
    """Tables whose checkpoints have both: but for the digits of a fraction they are the same JSON."""
    compared = 0
    for table in ("app-txn-checkpoint", "external-table-different-nullability", "parsed-stats"):
        for file in sorted((corpus / "delta/kernelrs-data" / table / "_delta_log").glob("*.checkpoint.parquet")):
            adds = pq.read_table(file, columns=["add"])["add"].combine_chunks()
            texts = texts_of(adds.field("stats_parsed")).to_pylist()
            for ours, theirs in zip(texts, adds.field("stats").to_pylist(), strict=True):
                if theirs is not None:
                    assert _comparable(ours) == _comparable(theirs)
                    compared += 1

    assert compared > 5


def _comparable(text: str) -> Any:
    stats = json.loads(text)
    for member in ("minValues", "maxValues"):
        for name, value in stats.get(member, {}).items():
            if isinstance(value, str) and value[10:11] in ("T", " "):
                # some writers keep microseconds, which our bounds step over
                stats[member][name] = value[:19].replace(" ", "T")
    return stats


# --- counts ----------------------------------------------------------------------------------------------------------


def counts(*texts: str | None) -> list[int | None]:
    found: list[int | None] = record_counts(pa.array(texts, pa.string())).to_pylist()
    return found


def test_a_count_is_read_where_it_is_the_first_and_where_it_is_not() -> None:
    assert counts(
        '{"numRecords":3,"minValues":{"a":1}}', '{"minValues":{"a":1},"numRecords":4}', '{ "numRecords" : 5 }', None, ""
    ) == [3, 4, 5, None, None]


def test_a_column_that_is_called_like_the_count_is_not_taken_for_it() -> None:
    assert counts(
        '{"minValues":{"numRecords":7},"maxValues":{"numRecords":9},"numRecords":2}',
        '{"minValues":{"numRecords":7}}',
        '{"numRecords":{"numRecords":7}}',
        '{"numRecords":2,"maxValues":{"numRecords":9}}',
    ) == [2, None, None, 2]


@given(
    st.lists(
        st.none()
        | st.text(max_size=20)
        | st.dictionaries(st.sampled_from(["numRecords", "a"]), st.integers(-5, 10**20) | st.text(max_size=3)).map(
            json.dumps
        )
        | st.dictionaries(st.sampled_from(["numRecords", "a"]), st.integers(-5, 10**20)).map(
            lambda stats: json.dumps(stats, separators=(",", ":"))
        ),
        max_size=20,
    )
)
def test_counts_of_any_texts_are_what_they_are_one_by_one(texts: list[str | None]) -> None:
    alone = [num_records(text) for text in texts]

    assert counts(*texts) == alone
