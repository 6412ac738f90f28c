"""Rows become complete files, one per partition where it fits, or none at all."""

from __future__ import annotations

import contextlib
import io
import math
import os
import pickle
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablefeed.data.write import Compression, FileLayout, NewFile, WrittenFile, write_files
from tablefeed.errors import InvalidRowsError
from tablefeed.model.statistics import ColumnStatistics


@dataclass
class Folder:
    """Files in memory that are kept when their context ends well and dropped when it does not."""

    kept: dict[str, bytes] = field(default_factory=dict)
    dropped: list[str] = field(default_factory=list)
    opened: set[str] = field(default_factory=set)
    most_open: int = 0
    partitions: dict[str, dict[str, object]] = field(default_factory=dict)

    def new_file(self, values: Mapping[str, pa.Scalar], number: int) -> NewFile:
        path = f"part-{number}.parquet"
        self.partitions[path] = {name: value.as_py() for name, value in values.items()}
        return NewFile(path=path, opened=self._create(path))

    @contextlib.contextmanager
    def _create(self, path: str) -> Iterator[BinaryIO]:
        self.opened.add(path)
        self.most_open = max(self.most_open, len(self.opened))
        file = io.BytesIO()
        try:
            yield file
            self.kept[path] = file.getvalue()
        except GeneratorExit:  # forgotten, not told
            raise
        except BaseException:
            self.dropped.append(path)
            raise
        finally:
            self.opened.remove(path)

    def read(self, path: str) -> pa.Table:
        return pq.read_table(io.BytesIO(self.kept[path]), partitioning=None)

    def metadata(self, path: str) -> pq.FileMetaData:
        return pq.read_metadata(io.BytesIO(self.kept[path]))


def write(table: pa.Table, folder: Folder, *, batch_rows: int = 10_000, **layout: Any) -> list[WrittenFile]:
    batches = table.to_batches(max_chunksize=batch_rows)
    written = write_files(batches, FileLayout(**{"schema": table.schema, **layout}), folder.new_file)
    assert sorted(folder.kept) == sorted(file.path for file in written)
    assert not folder.opened
    for file in written:
        assert file.size_bytes == len(folder.kept[file.path])
        assert file.statistics.num_records == folder.read(file.path).num_rows
    return written


def test_small_batches_become_large_row_groups() -> None:
    folder = Folder()
    (file,) = write(pa.table({"a": range(10_000)}), folder, batch_rows=100, row_group_rows=4000)
    metadata = folder.metadata(file.path)
    assert [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)] == [4000, 4000, 2000]
    assert folder.read(file.path).column("a").to_pylist() == list(range(10_000))


def test_one_huge_batch_becomes_row_groups_of_bounded_bytes() -> None:
    folder = Folder()
    table = pa.table({"a": ["x" * 1000] * 1000})
    (file,) = write(table, folder, batch_rows=1000, row_group_bytes=200_000)
    metadata = folder.metadata(file.path)
    assert [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)] == [181, 182, 182, 182, 182, 91]


def test_a_file_that_is_full_is_followed_by_the_next() -> None:
    folder = Folder()
    table = pa.table({"a": range(3000)})
    files = write(table, folder, batch_rows=100, row_group_rows=100, max_file_bytes=5000)
    assert len(files) > 1
    assert all(5000 <= file.size_bytes < 8000 for file in files[:-1])
    assert pa.concat_tables(folder.read(file.path) for file in files).equals(table)


@pytest.fixture
def counted_pool() -> Iterator[pa.MemoryPool]:
    """Arrow's memory, counted from here on."""
    before = pa.default_memory_pool()
    counted = pa.proxy_memory_pool(before)
    pa.set_memory_pool(counted)
    yield counted
    pa.set_memory_pool(before)


def test_no_rows_make_no_file() -> None:
    assert write(pa.table({"a": pa.array([], pa.int64())}), Folder()) == []
    empty = pa.record_batch([pa.array([], pa.int64())], ["a"])
    assert write_files([empty, empty], FileLayout(schema=empty.schema), Folder().new_file) == []


def test_each_partition_has_its_own_file_without_the_partition_columns() -> None:
    folder = Folder()
    table = pa.table({"p": ["a", "b", "", None, "a"], "q": [1, 1, 1, 1, 1], "v": range(5)})
    files = write(table, folder, batch_rows=2, partition_by=("q", "p"))
    rows = {file.partition_values["p"].as_py(): folder.read(file.path).to_pydict() for file in files}
    assert rows == {"a": {"v": [0, 4]}, "b": {"v": [1]}, None: {"v": [2, 3]}}
    assert {tuple(file.partition_values) for file in files} == {("q", "p")}
    assert all(file.partition_values["q"].equals(pa.scalar(1)) for file in files)
    assert all(set(file.statistics.columns) == {("v",)} for file in files)
    assert [folder.partitions[f.path] for f in files] == [
        {name: value.as_py() for name, value in f.partition_values.items()} for f in files
    ]


def test_partitions_stay_what_they_are_across_windows() -> None:
    folder = Folder()
    table = pa.table({"p": [0.0, -0.0, math.nan, None, -math.nan] * 20, "v": range(100)})
    files = write(table, folder, batch_rows=7, partition_by=("p",), row_group_rows=7, buffered_bytes=1 << 20)
    found = {repr(f.partition_values["p"].as_py()): folder.read(f.path).column("v").to_pylist() for f in files}
    assert len(found) == len(files)
    assert found == {
        "0.0": list(range(0, 100, 5)),
        "-0.0": list(range(1, 100, 5)),
        "nan": sorted([*range(2, 100, 5), *range(4, 100, 5)]),
        "None": list(range(3, 100, 5)),
    }


def test_what_waits_for_its_row_group_is_bounded_over_all_partitions() -> None:
    folder = Folder()
    table = pa.table({"p": [i % 50 for i in range(5000)], "v": range(5000)})
    tight = write(table, folder, batch_rows=500, partition_by=("p",), row_group_rows=500, buffered_bytes=20_000)
    assert len(tight) == 50
    assert folder.most_open > 1
    groups = [folder.metadata(f.path).num_row_groups for f in tight]
    assert max(groups) > 1
    roomy = Folder()
    write(table, roomy, batch_rows=500, partition_by=("p",), row_group_rows=500)
    assert roomy.most_open == 1
    assert all(roomy.metadata(path).num_row_groups == 1 for path in roomy.kept)


def test_rows_for_many_partitions_take_little_more_memory_than_what_may_wait(counted_pool: pa.MemoryPool) -> None:
    most_bytes = 2 << 20

    def batches() -> Iterator[pa.RecordBatch]:
        for first in range(0, 1_000_000, 10_000):
            rows = pa.array(range(first, first + 10_000))
            yield pa.record_batch({"v": rows, "p": pc.bit_wise_and(rows, 63)})

    schema = pa.schema({"v": pa.int64(), "p": pa.int64()})
    layout = FileLayout(schema=schema, partition_by=("p",), row_group_bytes=most_bytes, buffered_bytes=most_bytes)
    files = write_files(batches(), layout, Folder().new_file)

    assert len(files) == 64
    assert sum(file.statistics.num_records for file in files) == 1_000_000
    assert counted_pool.max_memory() < 1.75 * most_bytes


def test_a_large_batch_is_written_and_gone_before_the_next_is_made(counted_pool: pa.MemoryPool) -> None:
    batch_bytes = 8 << 20

    def batches() -> Iterator[pa.RecordBatch]:
        for _ in range(5):
            yield pa.record_batch({"v": pa.array([b"x" * 1000] * (batch_bytes // 1000))})

    layout = FileLayout(schema=pa.schema({"v": pa.binary()}), row_group_bytes=batch_bytes * 4 // 3)
    (file,) = write_files(batches(), layout, Folder().new_file)

    assert file.statistics.num_records == 5 * (batch_bytes // 1000)
    assert counted_pool.max_memory() < 1.75 * batch_bytes


def test_the_number_of_open_files_is_bounded() -> None:
    folder = Folder()
    table = pa.table({"p": [i % 200 for i in range(2000)], "v": range(2000)})
    write(table, folder, batch_rows=1000, partition_by=("p",), row_group_rows=1000, buffered_bytes=1)
    assert folder.most_open == 64
    values = [v for path in folder.kept for v in folder.read(path).column("v").to_pylist()]
    assert sorted(values) == list(range(2000))


def test_a_null_in_a_required_column_drops_every_open_file() -> None:
    folder = Folder()
    schema = pa.schema([pa.field("a", pa.int64(), nullable=False), pa.field("p", pa.int64())])
    good = pa.record_batch([range(100), [0] * 100], schema=schema)
    bad = pa.record_batch([pa.array([1, None]), pa.array([1, 1])], schema=schema)
    layout = FileLayout(schema=schema, partition_by=("p",), row_group_rows=100)
    with pytest.raises(InvalidRowsError, match=r"^\[DELTA_NOT_NULL_CONSTRAINT_VIOLATED\].*column: a\..*<unnamed"):
        write_files([good, good, bad], layout, folder.new_file)
    assert folder.kept == {}
    assert folder.dropped == ["part-0.parquet"]


def test_an_empty_text_is_a_null_in_a_required_partition_column() -> None:
    schema = pa.schema([pa.field("p", pa.string(), nullable=False), pa.field("v", pa.int64())])
    table = pa.table({"p": ["a", ""], "v": [1, 2]}, schema=schema)
    with pytest.raises(InvalidRowsError, match="column: p"):
        write(table, Folder(), partition_by=("p",))
    assert len(write(table, Folder())) == 1


def test_an_error_of_the_source_leaves_through_the_open_files() -> None:
    folder = Folder()

    def batches() -> Iterator[pa.RecordBatch]:
        yield from [pa.record_batch([range(10)], ["a"])] * 3
        raise KeyboardInterrupt

    layout = FileLayout(schema=pa.schema([("a", pa.int64())]), row_group_rows=10)
    with pytest.raises(KeyboardInterrupt):
        write_files(batches(), layout, folder.new_file)
    assert (folder.kept, folder.dropped, folder.opened) == ({}, ["part-0.parquet"], set())


def test_a_disk_that_is_full_is_reported_as_it_is_and_the_other_files_are_dropped() -> None:
    folder = Folder()

    class Full(io.BytesIO):
        def write(self, _: Any) -> int:
            raise OSError(28, "No space left on device")

    def new_file(values: Mapping[str, pa.Scalar], number: int) -> NewFile:
        if number == 1:
            return NewFile(path="full", opened=contextlib.nullcontext(Full()))
        return folder.new_file(values, number)

    table = pa.table({"p": [0] * 20 + [1] * 20, "v": range(40)})
    layout = FileLayout(schema=table.schema, partition_by=("p",), row_group_rows=10)
    with pytest.raises(OSError, match="No space left"):
        write_files(table.to_batches(max_chunksize=10), layout, new_file)
    assert folder.dropped == ["part-0.parquet"]


def test_files_have_the_types_that_every_reader_takes() -> None:
    schema = pa.schema(
        [
            ("t", pa.timestamp("us", "UTC")),
            ("n", pa.timestamp("us")),
            ("small", pa.decimal128(9, 2)),
            ("large", pa.decimal128(38, 2)),
            pa.field("id", pa.int64(), nullable=False),
            ("void", pa.null()),
            ("l", pa.list_(pa.field("element", pa.int32()))),
        ]
    )
    table = pa.table(
        {"t": [0], "n": [0], "small": [None], "large": [None], "id": [1], "void": [None], "l": [[1]]}, schema
    )
    folder = Folder()
    (file,) = write(table, folder)
    metadata = folder.metadata(file.path)
    assert b"ARROW:schema" not in (metadata.metadata or {})
    columns = [metadata.schema.column(i) for i in range(metadata.num_columns)]
    assert [(c.path, c.physical_type) for c in columns] == [
        ("t", "INT64"),
        ("n", "INT64"),
        ("small", "INT32"),
        ("large", "FIXED_LEN_BYTE_ARRAY"),
        ("id", "INT64"),
        ("l.list.element", "INT32"),
    ]
    assert "isAdjustedToUTC=true, timeUnit=microseconds" in str(columns[0].logical_type)
    assert "isAdjustedToUTC=false, timeUnit=microseconds" in str(columns[1].logical_type)
    assert columns[4].max_definition_level == 0
    assert metadata.row_group(0).column(0).compression == "SNAPPY"


def test_no_footer_has_bounds_that_pass_over_nan() -> None:
    folder = Folder()
    kind = pa.struct([("x", pa.float32())])
    table = pa.table({"x": [1.0, math.nan], "s": pa.array([{"x": math.nan}, {"x": 1.0}], kind), "i": [1, 2]})
    (file,) = write(table, folder)
    group = folder.metadata(file.path).row_group(0)
    assert [group.column(i).statistics is not None for i in range(3)] == [False, False, True]
    assert [group.column(i).has_column_index for i in range(3)] == [False, False, True]


def test_a_float_whose_name_is_the_path_of_another_leaf_has_no_bounds_in_the_footer() -> None:
    folder = Folder()
    (file,) = write(pa.table({"a.b": [1.0, math.nan], "a": [{"b": 1}, {"b": 2}]}), folder)
    group = folder.metadata(file.path).row_group(0)
    assert [group.column(i).statistics is not None for i in range(2)] == [False, False]


def test_statistics_are_of_the_asked_leaves() -> None:
    folder = Folder()
    (file,) = write(pa.table({"a": [1, None], "b": ["x", "y"]}), folder, leaves=(("b",),))
    assert dict(file.statistics.columns) == {("b",): ColumnStatistics(null_count=0, minimum="x", maximum="y")}


def test_a_layout_that_stores_nothing_cannot_be_built() -> None:
    schema = pa.schema([("p", pa.int64())])
    with pytest.raises(ValueError, match="no column"):
        FileLayout(schema=schema, partition_by=("p",))
    with pytest.raises(ValueError, match="not in the schema"):
        FileLayout(schema=schema, partition_by=("q",))


def test_what_crosses_processes_survives_pickling() -> None:
    table = pa.table({"p": pa.array([Decimal("1.5")]), "v": [1]})
    layout = FileLayout(schema=table.schema, partition_by=("p",))
    files = write(table, Folder(), partition_by=("p",))
    assert pickle.loads(pickle.dumps((layout, files))) == (layout, files)  # noqa: S301 - our own bytes


ROWS = st.fixed_dictionaries(
    {
        "p": st.none() | st.sampled_from(["a", "b"]),
        "q": st.none() | st.booleans(),
        "x": st.none() | st.floats(),
        "s": st.none() | st.text(st.characters(codec="utf-8"), max_size=5),
        "n": st.none() | st.fixed_dictionaries({"l": st.none() | st.lists(st.none() | st.integers(-9, 9), max_size=2)}),
    }
)


@given(st.lists(ROWS, max_size=30), st.integers(1, 9), st.integers(1, 9), st.integers(1, 2000))
def test_every_row_is_in_exactly_one_file_of_its_partition(
    rows: list[dict[str, Any]], batch_rows: int, row_group_rows: int, buffered_bytes: int
) -> None:
    inner = pa.struct([("l", pa.list_(pa.field("element", pa.int64())))])
    schema = pa.schema([("p", pa.string()), ("q", pa.bool_()), ("x", pa.float64()), ("s", pa.string()), ("n", inner)])
    folder = Folder()
    written = write(
        pa.Table.from_pylist(rows, schema=schema),
        folder,
        batch_rows=batch_rows,
        partition_by=("p", "q"),
        row_group_rows=row_group_rows,
        buffered_bytes=buffered_bytes,
    )
    found = [
        {**{name: value.as_py() for name, value in file.partition_values.items()}, **row}
        for file in written
        for row in folder.read(file.path).to_pylist()
    ]
    assert _comparable(found) == _comparable(rows)


def _comparable(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(repr(sorted(row.items())) for row in rows)


@pytest.mark.parametrize("batch_rows", [1, 7, 100])
def test_no_file_has_more_rows_than_are_allowed(batch_rows: int) -> None:
    folder = Folder()
    table = pa.table({"p": [0, 1] * 25, "v": range(50)})

    written = write(table, folder, batch_rows=batch_rows, partition_by=("p",), most_file_rows=10)

    assert sorted(file.statistics.num_records for file in written) == [5, 5, 10, 10, 10, 10]
    assert sorted(v for file in written for v in folder.read(file.path)["v"].to_pylist()) == list(range(50))


def test_a_target_size_makes_files_of_about_that_size() -> None:
    folder = Folder()
    table = pa.table({"v": [os.urandom(1024) for _ in range(8 * 1024)]})
    layout = FileLayout(schema=table.schema).of_files_of(2 << 20)

    written = write_files(table.to_batches(max_chunksize=100), layout, folder.new_file)

    assert [2 <= file.size_bytes / (1 << 20) < 4 for file in written[:-1]] == [True] * (len(written) - 1)
    assert len(written) in (3, 4, 5)


def test_of_a_large_file_snappy_takes_the_columns_that_it_makes_much_smaller() -> None:
    folder, count = Folder(), 70_000
    made = random.Random(1)  # noqa: S311 - data, not secrets
    inner = pa.StructArray.from_arrays([pa.array(range(count)), pa.array(made.choices(range(9), k=count))], ["a", "b"])
    hexes = [made.randbytes(10).hex() for _ in range(count)]
    words = [f"{number:05d} of the same words again and again" for number in range(count)]

    (file,) = write(pa.table({"hexes": hexes, "words": words, "inner": inner}), folder)

    columns = [folder.metadata(file.path).row_group(0).column(i) for i in range(4)]
    assert {column.path_in_schema: column.compression for column in columns} == {
        "hexes": "UNCOMPRESSED",
        "words": "SNAPPY",
        "inner.a": "SNAPPY",
        "inner.b": "UNCOMPRESSED",
    }
    assert folder.read(file.path)["hexes"].to_pylist() == hexes


@pytest.mark.parametrize(("begin", "end"), [(20_000, 70_000), (11_000, 14_000)])
def test_a_column_with_texts_in_some_of_its_rows_is_judged_by_all_parts_of_them(begin: int, end: int) -> None:
    folder = Folder()
    texts = [f"{number:05d} of the same words again and again" for number in range(begin, end)]

    (file,) = write(pa.table({"text": [None] * begin + texts + [None] * (70_000 - end)}), folder)

    assert folder.metadata(file.path).row_group(0).column(0).compression == "SNAPPY"


@pytest.mark.parametrize(
    ("compression", "said"),
    [("zstd", "ZSTD"), ("gzip", "GZIP"), ("lz4", "LZ4"), ("none", "UNCOMPRESSED"), ("snappy", "SNAPPY")],
)
def test_the_pages_are_compressed_as_is_asked(compression: Compression, said: str) -> None:
    folder = Folder()
    table = pa.table({"v": range(10)})

    (file,) = write(table, folder, compression=compression)

    assert folder.metadata(file.path).row_group(0).column(0).compression == said
    assert folder.read(file.path)["v"].to_pylist() == list(range(10))
