"""A file's rows come out as exactly the wanted schema, or the file is refused by name."""

from __future__ import annotations

import io
import itertools
import pickle
import sys
from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from types import FrameType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap64

from fuzzing.data_files import with_an_encrypted_column
from support.bounds import OutOfMemory
from tablefeed.data.read import FileColumns, ReadPlan, RowSelection, read_batches, row_group_places
from tablefeed.data.retype import FIELD_ID, conversion
from tablefeed.errors import DataFileError


def parquet(table: pa.Table, **options: Any) -> io.BytesIO:
    file = io.BytesIO()
    pq.write_table(table, file, **options)
    return file


def read(
    source: Any, schema: pa.Schema, *, stored: pa.Schema | None = None, batch_rows: int = 1000, **file: Any
) -> list[pa.RecordBatch]:
    plan = ReadPlan(schema=schema, stored=stored, batch_rows=batch_rows)
    batches = list(read_batches(source, plan, FileColumns(path="part-0.parquet", **file)))
    for batch in batches:
        batch.validate(full=True)
        assert batch.schema.equals(schema)
    return batches


def rows(batches: Sequence[pa.RecordBatch]) -> list[dict[str, Any]]:
    return [row for batch in batches for row in batch.to_pylist()]


def list_of(element: pa.DataType) -> pa.DataType:
    return pa.list_(pa.field("element", element))


def overwritten(file: io.BytesIO, column: str) -> io.BytesIO:
    chunk = pq.read_metadata(file).row_group(0)
    index = [chunk.column(i).path_in_schema for i in range(chunk.num_columns)].index(column)
    start = chunk.column(index).dictionary_page_offset or chunk.column(index).data_page_offset
    data = bytearray(file.getvalue())
    data[start : start + chunk.column(index).total_compressed_size] = (
        b"\xff" * chunk.column(index).total_compressed_size
    )
    return io.BytesIO(bytes(data))


def test_batches_have_the_asked_size_whatever_the_row_groups() -> None:
    file = parquet(pa.table({"a": range(1000)}), row_group_size=70)
    batches = read(file, pa.schema([("a", pa.int64())]), batch_rows=300)
    assert [batch.num_rows for batch in batches] == [300, 300, 300, 100]
    assert [row["a"] for row in rows(batches)] == list(range(1000))


def test_rows_are_selected_by_their_position_in_the_file_whatever_the_row_groups() -> None:
    file = parquet(pa.table({"a": range(10)}), row_group_size=3)
    selection = RowSelection(without=BitMap64([4, 9]), only=BitMap64([0, 3, 4, 5, 9]))
    for batch_rows in (1, 2, 4, 100):
        found = read(file, pa.schema([("a", pa.int64())]), batch_rows=batch_rows, selection=selection)
        assert rows(found) == [{"a": 0}, {"a": 3}, {"a": 5}]


def test_rows_are_selected_in_a_file_whose_texts_are_views() -> None:
    # delta-rs writes texts like this in a MERGE. Arrow cannot take values from them.
    texts = pa.array(["a", "b", "c"], pa.string_view())
    member = pa.field("t", pa.string_view(), metadata={FIELD_ID: b"2"})
    columns = {
        "text": texts,
        "list": pa.array([["a"], ["b"], ["c"]], pa.list_(pa.string_view())),
        "struct": pa.StructArray.from_arrays([texts], fields=[member]),
    }
    text = pa.string()
    schema = pa.schema({"text": text, "list": list_of(text), "struct": pa.struct([("u", text)])})
    stored = schema.set(2, pa.field("struct", pa.struct([pa.field("t", text, metadata={FIELD_ID: b"2"})])))

    some = RowSelection(without=BitMap64([1]))
    found = read(parquet(pa.table(columns)), schema, stored=stored, selection=some)

    assert rows(found) == [
        {"text": "a", "list": ["a"], "struct": {"u": "a"}},
        {"text": "c", "list": ["c"], "struct": {"u": "c"}},
    ]


def test_how_columns_are_made_selectable_is_decided_once_for_a_file_and_not_for_each_batch() -> None:
    columns = {"a": range(100), "t": pa.array(["x"] * 100, pa.string_view())}
    file, schema = parquet(pa.table(columns)), pa.schema([("a", pa.int64()), ("t", pa.string())])
    some, decisions = RowSelection(without=BitMap64([7])), 0

    def count(frame: FrameType, event: str, _: object) -> None:
        nonlocal decisions
        decisions += event == "call" and frame.f_code is conversion.__code__

    def decided(batch_rows: int) -> int:
        nonlocal decisions
        decisions = 0
        sys.setprofile(count)
        try:
            assert len(read(file, schema, batch_rows=batch_rows, selection=some)) == 100 // batch_rows
        finally:
            sys.setprofile(None)
        return decisions

    assert decided(batch_rows=10) == decided(batch_rows=100) > 0


def test_rows_of_which_no_column_is_wanted_are_selected_as_well() -> None:
    file = parquet(pa.table({"a": range(10)}))
    found = read(file, pa.schema([]), batch_rows=4, selection=RowSelection(without=BitMap64([0, 1, 2, 3, 9])))
    assert [batch.num_rows for batch in found] == [4, 1]


def test_a_rows_place_in_the_file_is_told_whatever_rows_and_columns_are_wanted() -> None:
    file = parquet(pa.table({"a": list(range(10, 20))}), row_group_size=3)
    place = pa.field("place", pa.int64())
    for batch_rows in (1, 4, 100):
        found = read(file, pa.schema([place, ("a", pa.int64())]), batch_rows=batch_rows, positions="place")
        assert rows(found) == [{"place": i, "a": 10 + i} for i in range(10)]
    some = RowSelection(without=BitMap64([0, 1, 9]))
    found = read(file, pa.schema([place]), batch_rows=4, selection=some, positions="place")
    assert rows(found) == [{"place": i} for i in range(2, 9)]


@given(st.lists(st.integers(0, 2000), max_size=4), st.integers(1, 40))
def test_shares_that_meet_have_each_row_once_and_in_its_place(bounds: list[int], row_group_size: int) -> None:
    file = parquet(pa.table({"a": range(100)}), row_group_size=row_group_size)
    schema = pa.schema([("a", pa.int64()), ("place", pa.int64())])
    edges = [None, *sorted(bounds), None]

    shares = [*itertools.pairwise(edges)]
    parts = [rows(read(file, schema, share=share, positions="place")) for share in shares]

    assert sorted((row["a"], row["place"]) for part in parts for row in part) == [(n, n) for n in range(100)]


def test_a_share_without_a_row_groups_middle_has_no_row_and_all_of_them_are_counted_without_columns() -> None:
    file = parquet(pa.table({"a": range(100)}), row_group_size=50)
    middle = len(file.getvalue()) // 3

    counts = [
        sum(b.num_rows for b in read(file, pa.schema([]), share=share))
        for share in ((None, 4), (4, middle), (middle, None))
    ]

    assert counts[0] == 0
    assert sorted(counts[1:]) == [50, 50]


def test_a_row_group_whose_middle_is_a_bound_is_in_the_share_that_begins_there() -> None:
    file = parquet(pa.table({"a": range(100)}), row_group_size=50)
    (_, (middle, _)) = row_group_places(file)

    parts = [rows(read(file, pa.schema([("a", pa.int64())]), share=s)) for s in ((None, middle), (middle, None))]

    assert [row["a"] for part in parts for row in part] == list(range(100))


def test_a_deletion_vector_means_the_same_rows_in_a_share() -> None:
    file = parquet(pa.table({"a": range(100)}), row_group_size=10)
    half = len(file.getvalue()) // 2
    selection = RowSelection(without=BitMap64(range(5, 100)))

    shares = ((None, half), (half, None))
    parts = [rows(read(file, pa.schema([("a", pa.int64())]), share=s, selection=selection)) for s in shares]

    assert [row["a"] for part in parts for row in part] == [0, 1, 2, 3, 4]


def test_where_no_row_can_count_no_column_is_read() -> None:
    file = parquet(pa.table({"a": list(range(10))}))
    nothing = RowSelection(only=BitMap64([1, 2]), without=BitMap64([2, 1, 0]))

    assert read(file, pa.schema([("a", pa.string())]), selection=nothing) == []
    assert not RowSelection(only=BitMap64([1, 2]), without=BitMap64([2])).is_empty
    assert not RowSelection(without=BitMap64([2])).is_empty


def test_a_selection_of_rows_that_the_file_has_not_is_another_files() -> None:
    file = parquet(pa.table({"a": range(10)}))
    with pytest.raises(DataFileError, match="has 10 rows, but its deletion vector needs 11"):
        read(file, pa.schema([("a", pa.int64())]), selection=RowSelection(without=BitMap64([10])))


def by_id(name: str, kind: pa.DataType, field_id: int) -> pa.Field:
    return pa.field(name, kind, metadata={FIELD_ID: str(field_id).encode()})


def test_columns_and_members_are_found_by_field_id_whatever_their_names() -> None:
    inner = pa.struct([by_id("x", pa.int64(), 3), by_id("y", pa.int64(), 4)])
    written = pa.schema([by_id("p", pa.int64(), 1), by_id("q", inner, 2)])
    file = parquet(pa.table({"p": [1], "q": [{"x": 30, "y": 40}]}, written))

    swapped = pa.struct([by_id("x", pa.int64(), 4), by_id("y", pa.int64(), 3)])
    stored = pa.schema([by_id("q", pa.int64(), 1), by_id("s", swapped, 2), by_id("p", pa.int64(), 9)])
    wanted = pa.schema([("one", pa.int64()), ("two", swapped), ("new", pa.int64())])

    assert rows(read(file, wanted, stored=stored)) == [{"one": 1, "two": {"x": 40, "y": 30}, "new": None}]


def test_a_file_without_field_ids_is_refused_where_columns_go_by_them() -> None:
    file = parquet(pa.table({"a": [1]}))
    with pytest.raises(DataFileError, match="has no field ids"):
        read(file, pa.schema([("a", pa.int64())]), stored=pa.schema([by_id("a", pa.int64(), 1)]))


def test_a_column_of_the_right_id_whose_name_another_has_too_is_refused() -> None:
    file = parquet(
        pa.table([pa.array([1]), pa.array([2])], schema=pa.schema([by_id("a", pa.int64(), n) for n in (1, 2)]))
    )
    with pytest.raises(DataFileError, match="2 columns of that name"):
        read(file, pa.schema([("x", pa.int64())]), stored=pa.schema([by_id("x", pa.int64(), 1)]))


VALUE = pa.field("value", pa.binary(), nullable=False)
METADATA = pa.field("metadata", pa.binary(), nullable=False, metadata={"variant": "true"})
VARIANT = pa.struct([METADATA, VALUE])


def test_a_shredded_variant_is_its_two_parts_and_one_whose_columns_contradict_each_other_is_refused() -> None:
    plain = {"metadata": b"\x01\x00\x00", "value": b"\x0c\x07"}
    wanted = pa.schema([("v", VARIANT)])
    kind = pa.struct([("typed_value", pa.int8()), ("value", pa.binary()), ("metadata", pa.binary())])

    def shredded(value: bytes | None, typed: int) -> pa.Table:
        return pa.table({"v": pa.array([{"metadata": plain["metadata"], "value": value, "typed_value": typed}], kind)})

    assert rows(read(parquet(pa.table({"v": [plain]})), wanted)) == [{"v": plain}]
    assert rows(read(parquet(shredded(None, 7)), wanted)) == [{"v": plain}]
    with pytest.raises(
        DataFileError, match=r"variant in column v whose parts cannot be put together: a value"
    ) as caught:
        read(parquet(shredded(b"\x00", 7)), wanted)
    assert caught.value.error_class == "MALFORMED_VARIANT"


def test_a_variants_parts_are_found_by_their_names_in_any_order_under_a_mapping_too() -> None:
    plain = {"metadata": b"m", "value": b"v"}
    wanted = pa.schema([("v", pa.struct([VALUE, METADATA]))])
    stored = pa.schema([("col-1", VARIANT)])
    assert rows(read(parquet(pa.table({"col-1": [plain]})), wanted, stored=stored)) == [{"v": plain}]


def test_a_file_without_rows_gives_no_batch() -> None:
    assert read(parquet(pa.table({"a": pa.array([], pa.int64())})), pa.schema([("a", pa.int64())])) == []


def test_a_row_group_beyond_the_memory_limit_is_read_piece_by_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tablefeed.data.read._WHOLE_CHUNK_BYTES", 1000)
    monkeypatch.setattr("tablefeed.data.read._PIECE_BYTES", 4096)
    file = parquet(pa.table({"a": range(50_000), "s": [f"text {i}" for i in range(50_000)]}), use_dictionary=False)
    longest = 0

    class Watched(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            nonlocal longest
            longest = max(longest, size or 0)
            return super().read(size)

    batches = read(Watched(file.getvalue()), pa.schema([("a", pa.int64()), ("s", pa.string())]), batch_rows=1000)
    assert sum(batch.num_rows for batch in batches) == 50_000
    assert longest < 100_000 < len(file.getvalue())


def test_batches_of_large_rows_have_fewer_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tablefeed.data.read.BATCH_BYTES", 10_000)
    texts = ["x" * 1_000] * 50 + ["y"] * 5_000
    whole = pa.table({"a": range(5_050), "text": texts})
    file = parquet(whole, use_dictionary=False, row_group_size=50)
    schema = pa.schema([("a", pa.int64()), ("text", pa.string())])

    assert max(batch.nbytes for batch in read(file, schema, batch_rows=5_050)) < 20_000
    assert rows(read(file, schema, batch_rows=5_050)) == whole.to_pylist()
    (small, *_) = read(file, schema.remove(1), batch_rows=500)
    assert small.num_rows == 500


@pytest.mark.parametrize("kind", [pa.string(), pa.struct([("t", pa.string())])])
@pytest.mark.parametrize("group_rows", [5_000, 20_000])
def test_batches_of_texts_that_repeat_are_as_small_as_those_of_others(
    monkeypatch: pytest.MonkeyPatch, group_rows: int, kind: pa.DataType
) -> None:
    monkeypatch.setattr("tablefeed.data.read.BATCH_BYTES", 200_000)
    texts = pa.array([str(n % 10) * 1_000 for n in range(20_000)])
    column = texts if kind == pa.string() else pa.StructArray.from_arrays([texts], fields=list(kind))
    whole = pa.table({"a": range(20_000), "text": column})
    file = parquet(whole, row_group_size=group_rows)
    assert len(file.getvalue()) < 200_000

    batches = read(file, whole.schema, batch_rows=20_000)

    assert pa.Table.from_batches(batches).equals(whole)
    assert max(batch.nbytes for batch in batches) < 400_000
    assert len(batches) < 200


@pytest.mark.parametrize(
    "whole",
    [
        pa.table({"zeros": pa.array([[0.0] * 500] * 2_000, pa.list_(pa.float64()))}),
        pa.table({"few": pa.array([{"l": [1] * 1_000}] * 1_000, pa.struct([("l", pa.list_(pa.int64()))]))}),
        pa.table({f"c{n}": pa.array([n] * 50_000) for n in range(20)}),
        pa.table({f"c{n}": pa.nulls(50_000, pa.float64()) for n in range(20)}),
    ],
    ids=lambda whole: whole.schema.names[0],
)
def test_batches_of_nulls_and_of_runs_of_equal_numbers_are_as_small_as_those_of_others(
    monkeypatch: pytest.MonkeyPatch, whole: pa.Table
) -> None:
    monkeypatch.setattr("tablefeed.data.read.BATCH_BYTES", 200_000)
    file = parquet(whole)
    assert len(file.getvalue()) < 200_000

    batches = read(file, whole.schema, batch_rows=50_000)

    assert pa.Table.from_batches(batches).equals(whole)
    assert max(batch.nbytes for batch in batches) < 400_000
    assert len(batches) < 100


def test_columns_come_in_the_wanted_order_with_the_wanted_nullability() -> None:
    file = parquet(pa.table({"a": [1], "b": ["x"], "c": [2.5]}))
    schema = pa.schema([pa.field("c", pa.float64(), nullable=False), pa.field("a", pa.int64())])
    assert rows(read(file, schema)) == [{"c": 2.5, "a": 1}]


def test_a_column_that_is_not_wanted_is_not_read() -> None:
    file = overwritten(parquet(pa.table({"a": [1, 2], "b": ["x", "y"]})), "b")
    assert rows(read(file, pa.schema([("a", pa.int64())]))) == [{"a": 1}, {"a": 2}]
    with pytest.raises(DataFileError):
        read(file, pa.schema([("b", pa.string())]))


@pytest.mark.parametrize("constants", [{}, {"p": pa.scalar("x")}])
def test_where_no_column_of_the_file_is_wanted_rows_are_counted_without_reading_any(
    constants: dict[str, pa.Scalar],
) -> None:
    file = overwritten(parquet(pa.table({"a": range(25)})), "a")
    schema = pa.schema([(name, pa.string()) for name in constants])
    batches = read(file, schema, constants=constants, batch_rows=10)
    assert [batch.num_rows for batch in batches] == [10, 10, 5]
    assert rows(batches) == [dict.fromkeys(constants, "x")] * 25


def test_what_the_file_lacks_is_null_at_every_depth() -> None:
    file = parquet(pa.table({"s": [{"a": 1}, None], "l": [[{"a": 1}], []]}))
    inner = pa.struct([("new", pa.string()), ("a", pa.int64())])
    schema = pa.schema([("new", list_of(pa.int32())), ("s", inner), ("l", list_of(inner))])
    assert rows(read(file, schema)) == [
        {"new": None, "s": {"new": None, "a": 1}, "l": [{"new": None, "a": 1}]},
        {"new": None, "s": None, "l": []},
    ]


STRICT = pa.schema(
    [pa.field("s", pa.struct([pa.field("x", pa.int64(), nullable=False)])), pa.field("id", pa.int64(), nullable=False)]
)


@pytest.mark.parametrize(
    ("columns", "broken"),
    [
        ({"id": [1, None], "s": [{"x": 1}, None]}, "id"),
        ({"id": [1, 2], "s": [None, {"x": None}]}, r"s\.x"),
        ({"s": [{"x": 1}, None]}, "id"),
        ({"id": [1, 2], "s": [{"y": 1}, None]}, r"s\.x"),
    ],
)
def test_a_null_that_the_schema_does_not_allow_is_refused_also_where_the_file_lacks_the_column(
    columns: dict[str, Any], broken: str
) -> None:
    with pytest.raises(DataFileError, match=f"a null in column {broken}, which is NOT NULL in the table's schema"):
        read(parquet(pa.table(columns)), STRICT)


def test_nulls_in_rows_that_do_not_count_and_in_columns_that_are_not_wanted_are_not_looked_at() -> None:
    source = parquet(pa.table({"id": [1, None], "s": [{"x": 1}, {"x": None}]}))
    first = RowSelection(without=BitMap64([1]))

    assert rows(read(source, STRICT, selection=first)) == [{"s": {"x": 1}, "id": 1}]
    assert rows(read(source, pa.schema([]))) == [{}, {}]


def test_a_constant_that_is_null_is_no_value_either() -> None:
    required = pa.schema([pa.field("id", pa.int64(), nullable=False)])

    with pytest.raises(DataFileError, match="NOT NULL"):
        read(parquet(pa.table({"id": [1]})), required, constants={"id": pa.scalar(None, pa.int64())})


def test_the_constant_wins_over_the_files_own_column() -> None:
    file = parquet(pa.table({"a": [1, 2], "p": ["of the file", "of the file"]}))
    schema = pa.schema([("p", pa.string()), ("a", pa.int64()), ("q", pa.date32())])
    constants = {"p": pa.scalar("of the log"), "q": pa.scalar(None, pa.date32())}
    assert rows(read(file, schema, constants=constants)) == [
        {"p": "of the log", "a": 1, "q": None},
        {"p": "of the log", "a": 2, "q": None},
    ]


def test_names_are_matched_by_case_first_and_then_without() -> None:
    file = parquet(pa.table({"ID": [1], "id": [2], "Name": ["x"], "s": [{"Inner": 3}]}))
    schema = pa.schema([("id", pa.int64()), ("name", pa.string()), ("S", pa.struct([("inner", pa.int64())]))])
    assert rows(read(file, schema)) == [{"id": 2, "name": "x", "S": {"inner": 3}}]


def test_a_name_that_fits_two_columns_only_without_case_is_refused() -> None:
    file = parquet(pa.table({"ID": [1], "iD": [2]}))
    with pytest.raises(DataFileError, match=r"part-0\.parquet.*\bid\b.*2 columns of that name"):
        read(file, pa.schema([("id", pa.int64())]))


def test_a_dot_in_a_name_is_part_of_the_name() -> None:
    file = parquet(pa.table({"a.b": [1], "a": [{"b": 2, "c": 3}]}))
    assert rows(read(file, pa.schema([("a.b", pa.int64())]))) == [{"a.b": 1}]
    assert rows(read(file, pa.schema([("a", pa.struct([("b", pa.int64())]))]))) == [{"a": {"b": 2}}]


def test_physical_names_are_mapped_at_every_depth() -> None:
    file = parquet(pa.table({"c1": [[{"c2": 7}]], "c3": [1], "name": ["not this one"]}))
    wanted = pa.schema(
        [("id", pa.int64()), ("items", list_of(pa.struct([("price", pa.int64())]))), ("name", pa.string())]
    )
    stored = pa.schema([("c3", pa.int64()), ("c1", list_of(pa.struct([("c2", pa.int64())]))), ("c4", pa.string())])
    assert rows(read(file, wanted, stored=stored)) == [{"id": 1, "items": [{"price": 7}], "name": None}]


LOSSLESS: list[Any] = [
    (pa.array([1, None], pa.int32()), pa.int64(), [1, None]),
    (pa.array([127], pa.int64()), pa.int8(), [127]),
    (pa.array([2**32 - 1], pa.uint32()), pa.int64(), [2**32 - 1]),
    (pa.array([3], pa.int32()), pa.float64(), [3.0]),
    (pa.array([3], pa.int32()), pa.decimal128(12, 2), [Decimal("3.00")]),
    (pa.array([0.5], pa.float32()), pa.float64(), [0.5]),
    (pa.array([Decimal("1.5")], pa.decimal128(3, 1)), pa.decimal128(10, 4), [Decimal("1.5000")]),
    (pa.array([date(2024, 2, 29)]), pa.timestamp("us"), [datetime(2024, 2, 29)]),  # noqa: DTZ001
    (pa.array([1], pa.timestamp("ms")), pa.timestamp("us", "UTC"), [datetime(1970, 1, 1, 0, 0, 0, 1000, UTC)]),
    (pa.array([1000], pa.timestamp("ns")), pa.timestamp("us"), [datetime(1970, 1, 1, 0, 0, 0, 1)]),  # noqa: DTZ001
    (pa.array([0], pa.timestamp("us", "+05:00")), pa.timestamp("us", "UTC"), [datetime(1970, 1, 1, tzinfo=UTC)]),
    (pa.array(["a", None, "a"]).dictionary_encode(), pa.string(), ["a", None, "a"]),
    (pa.array(["a"], pa.large_string()), pa.string(), ["a"]),
    (pa.array(["a"], pa.string_view()), pa.string(), ["a"]),
    (pa.array([b"a"]), pa.string(), ["a"]),
    (pa.array([b"ab"], pa.binary(2)), pa.binary(), [b"ab"]),
    (pa.array([[1, None], None], pa.large_list(pa.int32())), list_of(pa.int64()), [[1, None], None]),
    (pa.array([[1, 2]], pa.list_(pa.int32(), 2)), list_of(pa.int64()), [[1, 2]]),
    pytest.param(
        pa.array([[1, None], None, [2, 3]], pa.list_(pa.int32(), 2)),
        list_of(pa.int64()),
        [[1, None], None, [2, 3]],
        marks=pytest.mark.skipif(int(pa.__version__.split(".")[0]) < 26, reason="this pyarrow writes no such file"),
    ),
    (pa.array([None, None], pa.null()), list_of(pa.int64()), [None, None]),
    (
        pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.int32())),
        pa.map_(pa.string(), pa.int64()),
        [[("a", 1)], None],
    ),
]


@pytest.mark.parametrize(("array", "wanted", "values"), LOSSLESS, ids=lambda x: str(getattr(x, "type", ""))[:40])
def test_a_type_that_holds_the_values_takes_them(array: pa.Array, wanted: pa.DataType, values: list[object]) -> None:
    batches = read(parquet(pa.table({"c": array})), pa.schema([("c", wanted)]), batch_rows=1)
    assert [row["c"] for row in rows(batches)] == values


@pytest.mark.parametrize("batch_rows", [1, 3, 100])
@pytest.mark.parametrize("selection", [None, RowSelection(without=BitMap64([0]))])
def test_a_dictionary_within_a_column_is_read_from_several_row_groups(
    batch_rows: int, selection: RowSelection | None
) -> None:
    texts = pa.array(["a", "b", "c", None, "a", "d"]).dictionary_encode()
    columns = {
        "s": pa.StructArray.from_arrays([texts], ["t"]),
        "l": pa.ListArray.from_arrays(pa.array([0, 1, 2, 3, 4, 4, 6], pa.int32()), texts),
    }
    file = parquet(pa.table(columns), row_group_size=2)
    schema = pa.schema([("s", pa.struct([("t", pa.string())])), ("l", list_of(pa.string()))])

    found = rows(read(file, schema, batch_rows=batch_rows, selection=selection))

    expected = [("a", ["a"]), ("b", ["b"]), ("c", ["c"]), (None, [None]), ("a", []), ("d", ["a", "d"])]
    assert found == [{"s": {"t": t}, "l": each} for t, each in expected[0 if selection is None else 1 :]]


LOSSY: list[tuple[pa.Array, pa.DataType]] = [
    (pa.array([128], pa.int64()), pa.int8()),
    (pa.array([2**53 + 1], pa.int64()), pa.float64()),
    (pa.array([0.5], pa.float64()), pa.float32()),
    (pa.array([0.5], pa.float64()), pa.int64()),
    (pa.array([Decimal("1.25")], pa.decimal128(3, 2)), pa.decimal128(10, 1)),
    (pa.array([1], pa.timestamp("ns")), pa.timestamp("us")),
    (pa.array([2**62], pa.timestamp("ms")), pa.timestamp("us")),
    (pa.array([0], pa.timestamp("us", "UTC")), pa.timestamp("us")),
    (pa.array([date(2024, 2, 29)]), pa.timestamp("us", "UTC")),
    (pa.array(["1"]), pa.int64()),
    (pa.array([b"\xff"]), pa.string()),
    (pa.array([True]), pa.int32()),
    (pa.array([[1]], list_of(pa.int64())), pa.int64()),
    (pa.array([{"a": "x"}]), pa.struct([("a", pa.int64())])),
]


@pytest.mark.parametrize(("array", "wanted"), LOSSY, ids=lambda x: str(getattr(x, "type", x))[:40])
def test_what_would_lose_a_value_is_refused_by_file_column_and_types(array: pa.Array, wanted: pa.DataType) -> None:
    with pytest.raises(DataFileError) as caught:
        read(parquet(pa.table({"c": array})), pa.schema([("c", wanted)]))
    assert caught.value.path == "part-0.parquet"
    leaf_types = ("string", "int64") if pa.types.is_struct(wanted) else (array.type, wanted)
    for part in ("part-0.parquet", "column c", *map(str, leaf_types)):
        assert part in str(caught.value)


@pytest.mark.parametrize("year", [1, 1600, 1970, 2300, 9999])
@pytest.mark.parametrize("zone", ["UTC", None])
def test_int96_keeps_its_instant_in_any_year(year: int, zone: str | None) -> None:
    moment = datetime(year, 6, 1, 12, 30, 0, 123456, tzinfo=UTC)
    naive = pa.array([moment.replace(tzinfo=None)], pa.timestamp("us"))
    file = parquet(pa.table({"t": naive}), use_deprecated_int96_timestamps=True, store_schema=False)
    assert pq.read_metadata(file).schema.column(0).physical_type == "INT96"
    expected = moment if zone else moment.replace(tzinfo=None)
    assert rows(read(file, pa.schema([("t", pa.timestamp("us", zone))]))) == [{"t": expected}]


def test_inner_names_of_lists_do_not_matter() -> None:
    table = pa.table({"l": pa.array([[1], None, [2, None]], pa.list_(pa.int32()))})
    for file in (parquet(table, use_compliant_nested_type=False), parquet(table, store_schema=False)):
        values = [row["l"] for row in rows(read(file, pa.schema([("l", list_of(pa.int32()))])))]
        assert values == [[1], None, [2, None]]


NESTED = st.none() | st.fixed_dictionaries(
    {
        "i": st.none() | st.integers(-(2**31), 2**31 - 1),
        "l": st.none()
        | st.lists(
            st.none() | st.fixed_dictionaries({"x": st.none() | st.text(st.characters(codec="utf-8"), max_size=3)}),
            max_size=3,
        ),
        "m": st.none()
        | st.dictionaries(st.text("ab", max_size=2), st.none() | st.integers(0, 9), max_size=2).map(
            lambda d: list(d.items())
        ),
    }
)


@given(values=st.lists(NESTED, min_size=1, max_size=20), batch_rows=st.integers(1, 7))
def test_nested_values_survive_a_change_of_inner_types_in_batches_of_any_size(
    values: list[dict[str, Any] | None], batch_rows: int
) -> None:
    narrow = pa.struct(
        [
            ("i", pa.int32()),
            ("l", pa.large_list(pa.struct([("x", pa.large_string())]))),
            ("m", pa.map_(pa.string(), pa.int8())),
        ]
    )
    wide = pa.struct(
        [("m", pa.map_(pa.string(), pa.int64())), ("l", list_of(pa.struct([("x", pa.string())]))), ("i", pa.int64())]
    )
    file = parquet(pa.table({"s": pa.array(values, narrow)}), row_group_size=5)
    batches = read(file, pa.schema([("s", wide)]), batch_rows=batch_rows)
    assert [row["s"] for row in rows(batches)] == values


def test_a_damaged_file_is_refused_by_name(tmp_path: Path) -> None:
    whole = parquet(pa.table({"a": range(1000)})).getvalue()
    schema = pa.schema([("a", pa.int64())])
    for damaged in (
        whole[: len(whole) // 2],
        whole[:-1],
        whole[:4],
        b"",
        b"not Parquet at all, whatever its name says",
    ):
        with pytest.raises(DataFileError, match=r"part-0\.parquet of <unnamed table> cannot be read") as caught:
            read(io.BytesIO(damaged), schema)
        assert caught.value.__cause__ is not None
    (tmp_path / "short.parquet").write_bytes(whole[:100])
    with pytest.raises(DataFileError):
        read(str(tmp_path / "short.parquet"), schema)


def test_a_process_without_enough_memory_is_not_told_to_remove_the_file() -> None:
    file = parquet(pa.table({"a": ["x" * 1_000]}), compression="none")

    with pytest.raises(DataFileError, match=r"part-0\.parquet .* more memory .*: malloc of size 300000000") as caught:
        read(OutOfMemory(file.getvalue()), pa.schema([("a", pa.string())]))
    assert "remove" not in str(caught.value)


@pytest.mark.parametrize("column", ["a", "b"])
def test_a_file_whose_pages_end_before_its_footer_says_loses_no_row_in_silence(column: str) -> None:
    whole = parquet(pa.table({"a": range(10), "b": ["x"] * 10}), compression="none", use_dictionary=False)
    schema = pa.schema([("a", pa.int64()), ("b", pa.string())])
    data = bytearray(whole.getvalue())
    # The page's header begins with its type, data; as an index page it is passed over, as Parquet asks of readers.
    start = pq.read_metadata(whole).row_group(0).column("ab".index(column)).data_page_offset
    assert data[start : start + 2] == b"\x15\x00"
    data[start + 1] = 2

    for wanted in (schema, pa.schema([schema.field(column)])):
        with pytest.raises(DataFileError, match=r"part-0\.parquet of <unnamed table>"):
            read(io.BytesIO(data), wanted)


def test_a_page_that_does_not_fit_its_checksum_gives_no_wrong_value() -> None:
    table = pa.table({"a": ["first", "second", "third"]})
    whole = parquet(table, compression="none", use_dictionary=False, write_page_checksum=True)
    damaged = whole.getvalue().replace(b"second", b"Second", 1)

    with pytest.raises(DataFileError, match="CRC checksum verification failed"):
        read(io.BytesIO(damaged), pa.schema([("a", pa.string())]))


def _footer(*, rows: int, in_group: int) -> bytes:
    """A Parquet file of nothing but a footer: one column, one row group (Thrift's compact protocol, by hand)."""

    def number(value: int) -> bytes:
        value, spelled = value << 1 ^ value >> 63, b""
        while value > 0x7F:
            value, spelled = value >> 7, spelled + bytes([value & 0x7F | 0x80])
        return spelled + bytes([value])

    root, leaf = b"\x48\x01r\x15\x02\x00", b"\x15\x04\x25\x02\x18\x01a\x00"
    group = b"\x19\x0c\x16\x00\x16" + number(in_group) + b"\x00"
    footer = b"\x15\x02\x19\x2c" + root + leaf + b"\x16" + number(rows) + b"\x19\x1c" + group + b"\x00"
    return b"PAR1" + footer + len(footer).to_bytes(4, "little") + b"PAR1"


@pytest.mark.parametrize(("rows_said", "in_group"), [(2**62, 3), (3, 2**62), (-3, -3), (3, -3), (0, 5)])
def test_a_footer_that_contradicts_itself_is_no_count_of_rows(rows_said: int, in_group: int) -> None:
    with pytest.raises(DataFileError, match="rows"):
        read(io.BytesIO(_footer(rows=rows_said, in_group=in_group)), pa.schema([]))


def test_a_footer_that_claims_more_columns_than_any_file_has_takes_no_memory_for_them() -> None:
    claimed = b"\x15\x02\x19\xfc\xa1\x8d\x06"  # a list of 100,001 schema elements
    file = b"PAR1" + claimed + len(claimed).to_bytes(4, "little") + b"PAR1"
    with pytest.raises(DataFileError, match="Exceeded size limit"):
        read(io.BytesIO(file), pa.schema([]))


def test_a_small_file_of_which_pyarrow_must_not_be_asked_is_refused_where_texts_may_repeat(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file = io.BytesIO(with_an_encrypted_column())  # pyarrow ends the process where it is asked for that column
    schema = pa.schema([("id", pa.int64())])
    assert [row["id"] for row in rows(read(file, schema))] == [1, None, 3]

    monkeypatch.setattr("tablefeed.data.read._SMALL_REPEATED_BYTES", 0)
    with pytest.raises(DataFileError, match="cannot be read as Parquet"):
        read(file, schema)


def test_a_file_that_vanishes_is_reported_with_deltas_class(tmp_path: Path) -> None:
    with pytest.raises(DataFileError, match=r"^\[DELTA_FILE_NOT_FOUND\].*part-0\.parquet.*is gone") as caught:
        read(str(tmp_path / "gone.parquet"), pa.schema([("a", pa.int64())]))
    assert isinstance(caught.value.__cause__, FileNotFoundError)


def test_a_plan_survives_the_way_to_an_executor() -> None:
    plan = ReadPlan(batch_rows=9, schema=pa.schema([("t", pa.timestamp("us", "UTC"))]))
    file = FileColumns(path="p", constants={"d": pa.scalar(Decimal("1.5")), "n": pa.scalar(None, pa.string())})
    assert pickle.loads(pickle.dumps((plan, file))) == (plan, file)  # noqa: S301 - our own bytes
