"""Splits become rows of the table's types, whichever writer made them, or are refused by name."""

from __future__ import annotations

import math
import pickle
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from ipaddress import IPv6Address
from typing import Any

import orjson
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.corpus_splits import read
from support.split_bytes import LZ4, NONE, U64, ZSTD, Document, Raw, a_field, a_split
from tablefeed.data.read import ReadPlan
from tablefeed.data.splits import SplitFile, chunks_of, read_split_batches
from tablefeed.errors import DataFileError, ObjectNotFoundError, UnsupportedFeatureError
from tablefeed.indextables.split.nested import Instant
from tablefeed.indextables.split.split_file import Chunk

UTC_US = pa.timestamp("us", "UTC")


def a_plan(schema: pa.Schema, *, batch_rows: int = 10_000) -> ReadPlan:
    return ReadPlan(schema=schema, batch_rows=batch_rows)


def a_file(split: bytes, **told: Any) -> SplitFile:
    return SplitFile(**{"path": "part-0.split", "size_bytes": len(split), "num_records": None, **told})


def rows(split: bytes, schema: pa.Schema, **told: Any) -> list[dict[str, Any]]:
    return read(split, schema, **told).to_pylist()  # type: ignore[no-any-return]  # as pyarrow gives them


def stored(given: object, kind: pa.DataType, *, version: int = 2, count: int = 1) -> Any:
    """What a column `c` of type `kind` reads where this is stored, in so many documents."""
    split = a_split(["c"], [[[(0, given)]] * count], version=version)
    read = [row["c"] for row in rows(split, pa.schema([("c", kind)]))]
    assert len(read) == count
    assert all(repr(value) == repr(read[0]) for value in read)
    return read[0]


one_or_many = pytest.mark.parametrize("count", [1, 100])
"""Values in values are read one by one where they are few, and else in columns."""


def nanos(year: int, month: int, day: int) -> Instant:
    return Instant(int(datetime(year, month, day, tzinfo=UTC).timestamp()) * 1_000_000_000)


ROWS: list[Document] = [[(0, 1), (1, "a")], [(1, "b"), (0, 2)], [], [(0, 4)]]
SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string())])
TOLD = [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}, {"id": None, "name": None}, {"id": 4, "name": None}]


@pytest.mark.parametrize("compressor", [NONE, LZ4, ZSTD])
def test_each_document_is_a_row_whatever_the_order_of_its_values_and_what_it_lacks_is_null(compressor: int) -> None:
    assert rows(a_split(["id", "name"], [ROWS], compressor=compressor), SCHEMA) == TOLD


def test_segments_follow_each_other_and_an_empty_one_has_no_rows() -> None:
    assert rows(a_split(["id", "name"], [ROWS[:1], [], ROWS[1:]]), SCHEMA) == TOLD


def test_a_split_without_segments_has_no_rows() -> None:
    assert rows(a_split(["id"], []), SCHEMA) == []


def test_with_no_stored_column_wanted_rows_are_counted_and_no_block_is_read() -> None:
    split = a_split(["id"], [[[(0, i)] for i in range(2500)]])
    reads: list[tuple[int, int]] = []

    def read(at: int, length: int) -> bytes:
        reads.append((at, length))
        return split[at : at + length]

    batches = list(read_split_batches(read, a_plan(pa.schema([]), batch_rows=1000), a_file(split)))

    assert [batch.num_rows for batch in batches] == [1000, 1000, 500]
    assert len(reads) == 3


def test_batches_are_no_longer_than_the_plan_says() -> None:
    split = a_split(["id"], [[[(0, i)] for i in range(25)]], block_rows=4)
    plan = a_plan(pa.schema([("id", pa.int64())]), batch_rows=10)

    batches = list(read_split_batches(lambda at, n: split[at : at + n], plan, a_file(split)))

    assert [batch.num_rows for batch in batches] == [10, 10, 5]
    assert pa.Table.from_batches(batches).column("id").to_pylist() == list(range(25))


@one_or_many
@pytest.mark.parametrize(
    ("kind", "given", "told"),
    [
        (pa.int64(), -(1 << 63), -(1 << 63)),
        (pa.int64(), U64(7), 7),
        (pa.int32(), -1, -1),
        (pa.int16(), "-32768", -32768),
        (pa.int8(), "127", 127),
        (pa.float64(), -2.5, -2.5),
        (pa.float64(), -math.inf, -math.inf),
        (pa.float32(), 1.25, 1.25),
        (pa.float32(), math.inf, math.inf),
        (pa.bool_(), True, True),
        (pa.string(), "", ""),
        (pa.string(), "héllo \x00", "héllo \x00"),
        (pa.string(), "y" * 20_000, "y" * 20_000),
        (pa.string(), IPv6Address("::ffff:192.168.1.1"), "192.168.1.1"),
        (pa.string(), IPv6Address("2001:db8:0:0::1"), "2001:db8::1"),
        (pa.string(), {"a": {"b": [1, 2.5, "x", None, True]}}, '{"a":{"b":[1,2.5,"x",null,true]}}'),
        (pa.string(), {"t": nanos(2024, 1, 1)}, '{"t":"2024-01-01T00:00:00Z"}'),
        (pa.string(), {"t": Instant(-1_000)}, '{"t":"1969-12-31T23:59:59.999999Z"}'),
        (pa.string(), {"_raw": "no json {"}, "no json {"),
        (pa.string(), {"_raw": '{"a": 1}'}, '{"_raw":"{\\"a\\": 1}"}'),
        (pa.string(), {"_raw": "x", "a": 1}, '{"_raw":"x","a":1}'),
        (pa.binary(), b"", b""),
        (pa.binary(), b"\x00\xff", b"\x00\xff"),
        (pa.date32(), nanos(2024, 2, 29), date(2024, 2, 29)),
        (pa.date32(), nanos(1969, 12, 31), date(1969, 12, 31)),
        (pa.date32(), Instant(-1), date(1969, 12, 31)),
        (pa.date32(), Instant(-(2**63)), date(1677, 9, 21)),
        (pa.date32(), Instant(2**63 - 1), date(2262, 4, 11)),
        (UTC_US, Instant(-1_000), datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC)),
        (pa.timestamp("us"), "1700000000000001", datetime(2023, 11, 14, 22, 13, 20, 1)),  # noqa: DTZ001 - has no zone
        (pa.timestamp("us"), "2024-01-02T03:04", datetime(2024, 1, 2, 3, 4)),  # noqa: DTZ001 - as above
        (pa.decimal128(10, 2), "-12345678.9", Decimal("-12345678.90")),
        (pa.decimal128(38, 18), "0E-18", Decimal("0E-18")),
        (pa.int64(), None, None),
    ],
)
def test_a_value_is_read_as_the_schema_says(kind: pa.DataType, given: object, told: object, count: int) -> None:
    assert stored(given, kind, count=count) == told


def test_a_split_may_have_times_without_zone_in_both_forms() -> None:
    split = a_split(["at"], [[[(0, "1000")], [(0, "1970-01-01 00:00:00.002")], []]])

    assert rows(split, pa.schema([("at", pa.timestamp("us"))])) == [
        {"at": datetime(1970, 1, 1, 0, 0, 0, 1000)},  # noqa: DTZ001 - has no zone
        {"at": datetime(1970, 1, 1, 0, 0, 0, 2000)},  # noqa: DTZ001 - as above
        {"at": None},
    ]


def test_nan_is_nan_of_either_width_and_zero_keeps_its_sign() -> None:
    assert math.copysign(1, stored(-0.0, pa.float64())) == -1
    assert math.isnan(stored(math.nan, pa.float64()))
    assert math.isnan(stored(math.nan, pa.float32()))


def test_the_first_version_of_doc_stores_has_its_dates_in_microseconds() -> None:
    assert stored(Instant(-1), UTC_US, version=1) == datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC)
    assert stored(Instant(86_400_000_000), pa.date32(), version=1) == date(1970, 1, 2)
    assert stored({"t": Instant(1)}, pa.string(), version=1) == '{"t":"1970-01-01T00:00:00.000001Z"}'


STRUCT = pa.struct([("a", pa.int32()), ("s", pa.string()), ("d", pa.date32()), ("t", UTC_US), ("b", pa.binary())])
MEMBERS = {
    "a": 7,
    "s": "x",
    "d": date(1969, 12, 31),
    "t": datetime(2020, 1, 2, 3, 4, 5, 678_901, UTC),
    "b": b"\x00\xff",
}


@one_or_many
def test_a_struct_is_the_same_from_the_writer_by_rows_and_the_writer_by_arrow(count: int) -> None:
    by_rows = {"a": 7, "s": "x", "d": -86_400_000, "t": 1_577_934_245_678_901, "b": "AP8="}
    by_arrow = {"b": b"\x00\xff", "t": Instant(1_577_934_245_678_901_000), "d": nanos(1969, 12, 31), "s": "x", "a": 7}

    assert stored(by_rows, STRUCT, count=count) == stored(by_arrow, STRUCT, count=count) == MEMBERS


@one_or_many
def test_members_that_are_null_or_left_out_are_null(count: int) -> None:
    empty = dict.fromkeys(MEMBERS)

    assert stored(dict.fromkeys(MEMBERS), STRUCT, count=count) == stored({}, STRUCT, count=count) == empty


@one_or_many
@pytest.mark.parametrize("given", [{"_values": ["a", "b"]}, {"c": ["a", "b"]}, ["a", "b"]])
def test_an_array_is_the_same_from_each_writer(given: object, count: int) -> None:
    assert stored(given, pa.list_(pa.string()), count=count) == ["a", "b"]


@one_or_many
@pytest.mark.parametrize("given", [{"_values": []}, {"c": []}, [], {}])
def test_an_empty_array_is_not_null(given: object, count: int) -> None:
    assert stored(given, pa.list_(pa.int32()), count=count) == []


def test_several_values_of_a_field_are_the_elements_of_an_array_in_their_order() -> None:
    split = a_split(["c", "x"], [[[(0, "b"), (1, 1), (0, "a")], [(1, 2)], [(0, "z")]]])

    read = rows(split, pa.schema([("c", pa.list_(pa.string()))]))

    assert read == [{"c": ["b", "a"]}, {"c": None}, {"c": ["z"]}]


def test_separate_values_of_an_array_stay_in_their_document_wherever_each_has_its_first_one() -> None:
    split = a_split(["x", "c"], [[[(0, 1), (1, "a")], [(1, "b")], [(0, 2), (1, "c"), (1, "d")]]])

    assert rows(split, pa.schema([("c", pa.list_(pa.string()))])) == [{"c": ["a"]}, {"c": ["b"]}, {"c": ["c", "d"]}]


def test_a_null_alone_is_no_array_whatever_other_documents_have() -> None:
    split = a_split(["c"], [[[(0, None)], [(0, "a"), (0, None)], [(0, None)]]])

    assert rows(split, pa.schema([("c", pa.list_(pa.string()))])) == [{"c": None}, {"c": ["a", None]}, {"c": None}]


def test_several_values_of_a_column_that_is_no_array_are_refused() -> None:
    split = a_split(["c"], [[[(0, 1), (0, 2)]]])

    with pytest.raises(DataFileError, match="column c that is not of type int64: a document has several values"):
        rows(split, pa.schema([("c", pa.int64())]))


@one_or_many
def test_a_struct_with_one_member_twice_is_refused_and_moves_no_value_to_another_row(count: int) -> None:
    twice = Raw(b"\x0d\x84\x00\x81a\x09\x01\x00\x81a\x09\x00")
    split = a_split(["c"], [[[(0, twice)], [(0, {"b": True})]] * count])

    with pytest.raises(DataFileError, match="a document has several values"):
        rows(split, pa.schema([("c", pa.struct([("a", pa.bool_()), ("b", pa.bool_())]))]))


@one_or_many
@pytest.mark.parametrize(
    ("key", "names", "keys"),
    [
        (pa.string(), ["z.y"], ["z.y"]),
        (pa.int64(), ["-5"], [-5]),
        (pa.float64(), ["1.5", "-Infinity"], [1.5, -math.inf]),
        (pa.bool_(), ["true", "false"], [True, False]),
        (pa.date32(), ["-86400000"], [date(1969, 12, 31)]),
        (UTC_US, ["1"], [datetime(1970, 1, 1, 0, 0, 0, 1, UTC)]),
    ],
)
def test_keys_of_maps_are_read_from_their_texts(
    key: pa.DataType, names: list[str], keys: list[object], count: int
) -> None:
    read = stored(dict.fromkeys(names, 1), pa.map_(key, pa.int32()), count=count)

    assert read == [(k, 1) for k in keys]


@one_or_many
def test_values_are_nested_in_each_other_at_any_depth(count: int) -> None:
    kind = pa.list_(pa.struct([("m", pa.map_(pa.string(), pa.list_(pa.float32())))]))

    assert stored({"_values": [{"m": {"k": [1.5, 2]}}, {"m": None}]}, kind, count=count) == [
        {"m": [("k", [1.5, 2.0])]},
        {"m": None},
    ]


@one_or_many
@pytest.mark.parametrize("text", ["0.1", "-2.7182817", "3.4028235E38", "1.4E-45", "16777216", "Infinity", "NaN"])
def test_a_float_inside_another_value_is_the_nearest_of_what_is_stored(text: str, count: int) -> None:
    kind = pa.struct([("a", pa.float32()), ("l", pa.list_(pa.float32()))])
    nearest = pa.scalar(float(text), pa.float32()).as_py()

    for form in (float(text), text):  # IndexTables stores the text as JSON: a number, or NaN and infinities as texts
        assert repr(stored({"a": form, "l": [form]}, kind, count=count)) == repr({"a": nearest, "l": [nearest]})


@one_or_many
@pytest.mark.parametrize(
    ("given", "kind"),
    [
        ({"_values": None}, pa.list_(pa.int64())),
        ({"_values": [1], "c": [2]}, pa.list_(pa.int64())),
        ({"_values": [1], "x": 2}, pa.list_(pa.int64())),
        ([{"_values": [1]}], pa.list_(pa.list_(pa.int64()))),
        ([1], pa.struct([("a", pa.int32())])),
        ({"x": 1}, pa.map_(pa.int64(), pa.int64())),
        ({"a": [1]}, pa.struct([("a", pa.string())])),
        (1 << 31, pa.int32()),
        (U64(1 << 63), pa.int64()),
        ("128", pa.int8()),
        ("", pa.int16()),
        (1.5, pa.int64()),
        ("1", pa.int64()),
        (1e300, pa.float32()),
        (0.1, pa.float32()),
        (1, pa.float64()),
        (1, pa.bool_()),
        (1, pa.string()),
        (b"x", pa.string()),
        ("x", pa.binary()),
        ("x", UTC_US),
        (Instant(1), UTC_US),
        (1, pa.date32()),
        ("12.345", pa.decimal128(10, 2)),
        ("1E-41", pa.decimal128(10, 2)),
        (1.5, pa.decimal128(10, 2)),
        ("x", pa.timestamp("us")),
        ("x", pa.struct([("a", pa.int32())])),
        ({"a": "x"}, pa.struct([("a", pa.int32())])),
        ({"a": True}, pa.struct([("a", pa.int32())])),
        ({"a": 1 << 40}, pa.struct([("a", pa.int32())])),
        ({"a": 1e300}, pa.struct([("a", pa.float32())])),
        ({"a": "1e300"}, pa.struct([("a", pa.float32())])),
        ({"a": (1 << 53) + 1}, pa.struct([("a", pa.float64())])),
        ({"a": "x y"}, pa.struct([("a", pa.binary())])),
        ({"a": "NaN"}, pa.struct([("a", pa.decimal128(4, 2))])),
        ({"a": Instant(1)}, pa.struct([("a", UTC_US)])),
        ({"other": [1]}, pa.list_(pa.int64())),
        ([], pa.map_(pa.string(), pa.int64())),
        (Raw(b"\x00\x81\xff"), pa.string()),
        (Raw(b"\x09\x02"), pa.bool_()),
    ],
)
def test_a_value_that_does_not_fit_its_column_is_refused_with_the_columns_name(
    given: object, kind: pa.DataType, count: int
) -> None:
    with pytest.raises(
        DataFileError, match=r"part-0.split of <unnamed table> has a value in column c that is not of type "
    ) as refused:
        stored(given, kind, count=count)

    assert (refused.value.url, refused.value.path) == ("<unnamed table>", "part-0.split")


@one_or_many
@pytest.mark.parametrize("given", [b"x", Raw(b"\x09\x02"), Raw(b"\x00\x81\xff")])
def test_json_of_a_value_that_it_cannot_hold_is_refused(given: object, count: int) -> None:
    reason = "JSON cannot hold|a boolean of 2|not UTF-8|Invalid UTF8"
    for value in ({"b": given}, {"a": [given]}, [given]):
        with pytest.raises(DataFileError, match=reason):
            stored(value, pa.string(), count=count)


@one_or_many
@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, "{}"),
        ([], "[]"),
        ({"a": {}, "b": []}, '{"a":{},"b":[]}'),
        ({"b": 1, "a": 2}, '{"b":1,"a":2}'),
        ({"é\n": '"\\\x00\x1f\x7f\u2028'}, '{"é\\n":"\\"\\\\\\u0000\\u001f\x7f\u2028"}'),
        ([-(1 << 63), U64((1 << 64) - 1)], "[-9223372036854775808,18446744073709551615]"),
        ([1.0, -0.0, 1e-7, math.nan, math.inf], "[1.0,-0.0,1e-7,null,null]"),
        ([IPv6Address("::ffff:1.2.3.4")], '["1.2.3.4"]'),
        ([Instant(0), Instant(1_500_000_000)], '["1970-01-01T00:00:00Z","1970-01-01T00:00:01.5Z"]'),
        ([Instant(10_000_000_000)], '["1970-01-01T00:00:10Z"]'),
        ([Instant(-(1 << 63))], '["1677-09-21T00:12:43.145224192Z"]'),
        ({"_raw": ""}, ""),
        ({"_raw": "[1]"}, "[1]"),
        ({"_raw": 1}, '{"_raw":1}'),
        ({"_raw": Instant(0)}, '{"_raw":"1970-01-01T00:00:00Z"}'),
        ({"_raw": IPv6Address("::1")}, "::1"),
        ({"a": {"_raw": "x"}}, '{"a":{"_raw":"x"}}'),
        (Raw(b"\x0d\x86\x00\x81a\x0b\x00\x81b\x09\x01\x00\x81a\x09\x00"), '{"a":false,"b":true}'),
    ],
)
def test_json_is_written_without_spaces_in_the_order_of_the_index(given: object, told: str, count: int) -> None:
    assert stored(given, pa.string(), count=count) == told


LEAVES = st.none() | st.booleans() | st.integers(-(1 << 63), (1 << 63) - 1) | st.floats() | st.text(max_size=4)
JSON = st.dictionaries(
    st.text(max_size=2),
    st.recursive(LEAVES, lambda v: st.lists(v, max_size=3) | st.dictionaries(st.text(max_size=2), v, max_size=3)),
    max_size=4,
)


@given(pool=st.lists(st.none() | JSON, min_size=1, max_size=6), count=st.integers(1, 200))
def test_json_of_many_documents_is_that_of_each(pool: list[dict[str, Any] | None], count: int) -> None:
    values = [pool[i * i % len(pool)] for i in range(count)]
    split = a_split(["c"], [[[] if value is None else [(0, value)] for value in values]])

    read = [row["c"] for row in rows(split, pa.schema([("c", pa.string())]))]

    assert read == [None if value is None else orjson.dumps(value).decode() for value in values]


@one_or_many
@pytest.mark.parametrize("code", [3, 7, 8, 14, 255])
def test_a_type_code_that_is_not_known_is_refused_at_any_depth(code: int, count: int) -> None:
    for value in (Raw([code]), [Raw([code])], {"a": Raw([code])}):
        with pytest.raises(UnsupportedFeatureError, match=f"type code {code}"):
            stored(value, pa.string(), count=count)


def test_a_column_that_the_split_does_not_know_is_null_or_the_adds_constant() -> None:
    split = a_split(["id"], [[[(0, 1)]]])
    schema = pa.schema([("day", pa.date32()), ("id", pa.int64()), ("later", pa.string())])

    read = rows(split, schema, constants={"day": pa.scalar(date(2024, 1, 1))})

    assert read == [{"day": date(2024, 1, 1), "id": 1, "later": None}]


def test_a_partition_column_that_is_stored_is_read_from_the_documents_even_where_it_is_null_there() -> None:
    split = a_split(["k"], [[[(0, "a b")], []]])

    read = rows(split, pa.schema([("k", pa.string())]), constants={"k": pa.scalar("a%20b")})

    assert read == [{"k": "a b"}, {"k": None}]
    assert rows(a_split(["k"], [[[]]]), pa.schema([("k", pa.string())]), constants={"k": pa.scalar("x")}) == [
        {"k": None}
    ]


def test_a_column_that_is_indexed_and_not_stored_is_refused_unless_the_add_has_its_value() -> None:
    split = a_split([a_field("c", stored=False)], [[[]]])
    schema = pa.schema([("c", pa.string())])

    assert rows(split, schema, constants={"c": pa.scalar("x")}) == [{"c": "x"}]
    with pytest.raises(UnsupportedFeatureError, match="indexes column c without storing it"):
        rows(split, schema)


def test_a_required_column_without_a_value_is_refused() -> None:
    split = a_split(["id"], [[[(0, 1)], []]])

    with pytest.raises(DataFileError, match="a null in column id"):
        rows(split, pa.schema([pa.field("id", pa.int64(), nullable=False)]))


def test_another_number_of_rows_than_the_log_says_is_refused() -> None:
    split = a_split(["id"], [[[(0, 1)]]])
    schema = pa.schema([("id", pa.int64())])

    assert rows(split, schema, num_records=1) == [{"id": 1}]
    with pytest.raises(DataFileError, match="has 1 rows, but the log says 2"):
        rows(split, schema, num_records=2)


@pytest.mark.parametrize(
    "gone", [FileNotFoundError("gone"), ObjectNotFoundError(url="memory://t", name="part-0.split")]
)
def test_a_split_that_is_gone_is_refused_by_name(gone: Exception) -> None:
    def read(at: int, length: int) -> bytes:
        gone.add_note(f"{length} bytes from {at}")
        raise gone

    with pytest.raises(DataFileError, match=r"part-0.split of <unnamed table> is gone, but the log still names it"):
        list(read_split_batches(read, a_plan(SCHEMA), SplitFile(path="part-0.split", size_bytes=100, num_records=1)))


def test_a_store_that_does_not_have_its_checksum_is_refused_before_a_row_of_it_is_given() -> None:
    split = a_split(["s"], [[[(0, "abcd")]]], compressor=NONE)
    other = split.replace(b"abcd", b"abce")

    with pytest.raises(DataFileError, match="does not match its checksum"):
        rows(other, pa.schema([("s", pa.string())]))


KIND = pa.struct(
    [
        ("n", pa.int64()),
        ("l", pa.list_(pa.string())),
        ("m", pa.map_(pa.string(), pa.struct([("d", pa.date32()), ("f", pa.float64())]))),
    ]
)
DAYS = st.integers(-1_000, 1_000)
STRUCTS = st.fixed_dictionaries(
    {},
    optional={
        "n": st.none() | st.integers(-(1 << 63), (1 << 63) - 1),
        "l": st.none() | st.lists(st.none() | st.text(max_size=3), max_size=3),
        "m": st.none() | st.dictionaries(st.text(max_size=2), st.fixed_dictionaries({"d": DAYS}), max_size=3),
        "other": st.none() | st.lists(st.dictionaries(st.text(max_size=2), st.binary(max_size=2), max_size=2)),
    },
)


def as_stored(value: Any) -> Any:
    """Days as one of the writers or the other has them."""
    match value:
        case {"d": int(days)}:
            return {"d": days * 86_400_000} if days % 2 else {"d": Instant(days * 86_400_000_000_000)}
        case dict():
            return {name: as_stored(item) for name, item in value.items()}
        case _:
            return value


def as_read(value: dict[str, Any]) -> dict[str, Any]:
    of_maps = value.get("m")
    entries = None
    if of_maps is not None:
        entries = [(k, {"d": date(1970, 1, 1) + timedelta(v["d"]), "f": None}) for k, v in of_maps.items()]
    return {"n": value.get("n"), "l": value.get("l"), "m": entries}


@given(pool=st.lists(st.none() | STRUCTS, min_size=1, max_size=5), count=st.integers(60, 150))
def test_structs_of_many_documents_are_read_each_as_its_own(pool: list[dict[str, Any] | None], count: int) -> None:
    values = [pool[i * i % len(pool)] for i in range(count)]
    split = a_split(["x", "c"], [[[(1, as_stored(value)), (0, i)] for i, value in enumerate(values)]])

    read = rows(split, pa.schema([("c", KIND), ("x", pa.int64())]))

    assert [row["c"] for row in read] == [None if value is None else as_read(value) for value in values]
    assert [row["x"] for row in read] == list(range(count))


def test_members_of_more_names_than_columns_are_for_are_read_one_by_one() -> None:
    kind = pa.struct([("a", pa.int64()), ("k7", pa.string())])
    split = a_split(["c"], [[[(0, {"a": i, f"k{i}": f"{i}", "z": [i]})] for i in range(300)]])

    read = rows(split, pa.schema([("c", kind)]))

    assert read == [{"c": {"a": i, "k7": "7" if i == 7 else None}} for i in range(300)]


# --- chunks ----------------------------------------------------------------------------------------------------------


def a_large_split(segments: Sequence[int]) -> bytes:
    """A split whose rows count up, through segments of so many rows each, in blocks of 10,000."""
    first = [sum(segments[:i]) for i in range(len(segments))]
    documents: list[list[Document]] = [[[(0, b + i)] for i in range(n)] for b, n in zip(first, segments, strict=True)]
    return a_split(["id"], documents, block_rows=10_000)


def test_chunks_are_of_whole_blocks_of_one_segment_and_have_every_row_once() -> None:
    split = a_large_split([130_000, 5, 20_000])
    schema = pa.schema([("id", pa.int64())])

    chunks = chunks_of(lambda at, n: split[at : at + n], a_file(split))

    assert [(c.first_block, c.block_count, c.first_row, c.row_count) for c in chunks] == [
        (0, 6, 0, 60_000),
        (6, 6, 60_000, 60_000),
        (12, 1, 120_000, 10_000),
        (13, 1, 130_000, 5),
        (14, 2, 130_005, 20_000),
    ]
    read = [rows(split, schema, chunks=[chunk]) for chunk in pickle.loads(pickle.dumps(chunks))]  # noqa: S301 - ours
    assert [row["id"] for of_chunk in read for row in of_chunk] == list(range(150_005))


def test_a_chunk_that_the_split_does_not_have_is_refused() -> None:
    split = a_large_split([5, 5])
    for first, count in ((0, 2), (2, 1), (1, 2), (0, 0)):
        chunk = Chunk(first_block=first, block_count=count, first_row=0, row_count=5, size_bytes=0)
        with pytest.raises(DataFileError, match="not the split that was planned"):
            rows(split, pa.schema([("id", pa.int64())]), chunks=[chunk])


def test_a_chunk_is_one_read_besides_those_that_open_the_split() -> None:
    split = a_large_split([130_000])
    schema = pa.schema([("id", pa.int64())])
    reads: list[int] = []

    def read(at: int, length: int) -> bytes:
        reads.append(length)
        return split[at : at + length]

    chunk = chunks_of(read, a_file(split))[1]
    opening = len(reads)
    list(read_split_batches(read, a_plan(schema), a_file(split, chunks=[chunk])))

    assert opening == 3
    assert reads[-1] == chunk.size_bytes
    assert len(reads) == 2 * opening + 1


def test_the_checksum_of_a_store_in_many_chunks_is_found_wrong_at_its_end() -> None:
    split = a_split(["s"], [[[(0, f"{i:06}")] for i in range(70_000)]], compressor=NONE, block_rows=10_000)
    other = split.replace(b"000123", b"000124", 1)
    batches = read_split_batches(
        lambda at, n: other[at : at + n], a_plan(pa.schema([("s", pa.string())])), a_file(other)
    )

    taken = sum(next(batches).num_rows for _ in range(6))

    assert taken == 60_000
    with pytest.raises(DataFileError, match="does not match its checksum"):
        next(batches)
