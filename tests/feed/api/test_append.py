"""`tablefeed.append`, argument by argument, on the local disk. delta-rs reads back what was written."""

from __future__ import annotations

import json
import resource
from collections.abc import Iterator
from datetime import UTC, datetime
from mmap import MAP_PRIVATE, mmap
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

import tablefeed
from support.commits import already_applied, committed
from support.logs import a_log, col, meta, protocol, said, struct
from tablefeed import errors
from tablefeed.feed.upkeep.background import wait_until_done
from tablefeed.store import LocalStore

ROWS = pa.table({"id": [1, 2], "name": ["a", None]})


def seen_by_delta_rs(path: Path) -> list[dict[str, object]]:
    rows = DeltaTable(str(path)).to_pyarrow_table().to_pylist()
    return sorted(rows, key=lambda row: str(row))


def parquet_files(path: Path) -> list[Path]:
    return list(path.rglob("*.parquet"))


# --- what can be given -----------------------------------------------------------------------------------------------


class Stream:
    """What pandas, polars and DuckDB hand out, and nothing more."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return ROWS.__arrow_c_stream__(requested_schema)


def batches() -> Iterator[pa.RecordBatch]:
    yield from ROWS.to_batches(max_chunksize=1)


@pytest.mark.parametrize(
    "data",
    [ROWS, ROWS.to_batches()[0], ROWS.to_reader(), ROWS.to_batches(), batches(), Stream()],
    ids=["Table", "RecordBatch", "RecordBatchReader", "list", "generator", "__arrow_c_stream__"],
)
def test_anything_that_arrow_takes_as_batches_is_appended(tmp_path: Path, data: object) -> None:
    outcome = tablefeed.append(tmp_path, data)

    assert outcome == committed(0)
    assert seen_by_delta_rs(tmp_path) == [{"id": 1, "name": "a"}, {"id": 2, "name": None}]


NESTED = pa.table({"id": [1], "n": [[1]], "m": [{"x": 1}]})
WORDS, CODEC = "must be 'ansi', 'strict' or 'legacy'", "delta.parquet.compression.codec"


@pytest.mark.parametrize(
    ("arguments", "error", "said"),
    [
        ({"data": 5}, errors.SchemaMismatchError, "are a int"),
        ({"data": "rows"}, errors.SchemaMismatchError, "are a str"),
        ({"data": []}, errors.SchemaMismatchError, "are a list"),
        ({"data": [{"id": 1}]}, errors.SchemaMismatchError, "are a list"),
        ({"data": pa.chunked_array([[1]])}, errors.SchemaMismatchError, "are not a table"),
        ({"data": pd.DataFrame([[1, 2]], columns=["id", "id"])}, errors.SchemaMismatchError, "not a table: Duplicate"),
        ({"data": NESTED, "partition_by": ["n"]}, errors.SchemaMismatchError, "is nested"),
        ({"data": NESTED, "partition_by": ["m"]}, errors.SchemaMismatchError, "is nested"),
        ({"partition_by": ["other"]}, errors.SchemaMismatchError, r"^\[DELTA_.* no column 'other'"),
        ({"partition_by": ["id", "name"]}, errors.SchemaMismatchError, r"^\[DELTA_.* that is not a partition column"),
        ({"partition_by": ["id", "ID"]}, errors.SchemaMismatchError, r"^\[DELTA_.* names a column twice"),
        *(
            ({"mode": word}, errors.IllegalOptionError, "'append' or 'overwrite'")
            for word in ("error", "ignore", "APPEND", "")
        ),
        ({"store_assignment": "lenient"}, errors.IllegalOptionError, WORDS),
        ({"store_assignment": 1}, errors.IllegalOptionError, WORDS),
        ({"time_zone": "Nowhere/Land"}, errors.IllegalOptionError, "must be a time zone"),
        ({"overwrite_schema": True}, errors.ConflictingOptionsError, "Only an overwrite replaces the schema"),
        ({"merge_schema": "yes"}, errors.IllegalOptionError, "merge_schema"),
        ({"app_id": "loader"}, errors.IncompleteOptionsError, "'app_id' needs 'txn_version'. Set both or neither"),
        ({"txn_version": 1}, errors.IncompleteOptionsError, "'txn_version' needs 'app_id'. Set both or neither"),
        *(({"app_id": "a", "txn_version": n}, errors.IllegalOptionError, "at least 0") for n in (-1, 1.5, "1", 2**63)),
        ({"properties": {"delta.appendOnly": True}}, errors.IllegalOptionError, "must be a text"),
        ({"properties": {CODEC: "lzo"}}, errors.IllegalOptionError, "'brotli', 'lz4_raw' or 'uncompressed'"),
        ({"compression": "lzo"}, errors.IllegalOptionError, "'compression'.*must be 'snappy'"),
        ({"compression": 7}, errors.IllegalOptionError, "'compression'.*must be a text"),
        ({"max_records_per_file": 0}, errors.IllegalOptionError, "must be a whole number of at least 1"),
        ({"log_compaction_every": 1}, errors.IllegalOptionError, "must be a whole number of at least 2"),
        ({"checkpoint_part_size": "many"}, errors.IllegalOptionError, "must be a whole number of at least 1"),
        ({"user_metadata": b"nightly"}, errors.IllegalOptionError, "must be a text"),
        ({"user_metadata": "\ud800"}, errors.IllegalOptionError, "UTF-8 can hold"),
        ({"app_id": "\ud800x", "txn_version": 1}, errors.IllegalOptionError, "UTF-8 can hold"),
        ({"properties": {"x": "\ud800"}}, errors.IllegalOptionError, "UTF-8 can hold"),
        ({"properties": {"\ud800": "x"}}, errors.IllegalOptionError, "UTF-8 can hold"),
        ({"partition_by": ["\ud800"]}, errors.IllegalOptionError, "UTF-8 can hold"),
        ({"time_zone": "\ud800"}, errors.IllegalOptionError, "UTF-8 can hold"),
        ({"url": "/tmp/\ud800"}, errors.IllegalOptionError, "UTF-8 can hold"),  # noqa: S108 - nothing is made there
    ],
)
def test_what_cannot_be_obeyed_is_refused_before_anything_is_written(
    tmp_path: Path, arguments: dict[str, Any], error: type[errors.TablefeedError], said: str
) -> None:
    with pytest.raises(error, match=said) as caught:
        tablefeed.append(**{"url": tmp_path / "t", "data": ROWS, **arguments})

    assert str(caught.value).isprintable()
    assert not (tmp_path / "t").exists()


@pytest.mark.parametrize("second", [pa.record_batch({"other": [2]}), pa.record_batch({"id": ["two"]}), 7], ids=str)
def test_batches_whose_columns_change_on_the_way_are_refused_and_leave_no_file(tmp_path: Path, second: object) -> None:
    with pytest.raises(errors.SchemaMismatchError, match="do not have one schema"):
        tablefeed.append(tmp_path, iter([pa.record_batch({"id": [1]}), second]))
    assert parquet_files(tmp_path) == []


def test_an_error_of_the_rows_themselves_passes_and_leaves_nothing(tmp_path: Path) -> None:
    def failing() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"id": [1]})
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        tablefeed.append(tmp_path, failing())
    assert parquet_files(tmp_path) == []
    assert not (tmp_path / "_delta_log").exists()


def test_no_rows_make_a_table_with_columns_and_without_files(tmp_path: Path) -> None:
    tablefeed.append(tmp_path, ROWS.slice(0, 0))

    assert DeltaTable(str(tmp_path)).schema().to_arrow().names == ["id", "name"]
    assert parquet_files(tmp_path) == []


# --- how they become the table's -------------------------------------------------------------------------------------


@pytest.fixture
def table(tmp_path: Path) -> Path:
    write_deltalake(str(tmp_path), pa.table({"Id": pa.array([0], pa.int64()), "name": ["z"], "tags": [["x"]]}))
    return tmp_path


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        (pa.table({"Id": [True]}), r"Column 'Id' .* is long, but the rows have boolean"),
        (pa.table({"Id": [{"a": 1}]}), "is long, but the rows have struct<a:long>"),
        (pa.table({"tags": [[[1]]]}), "is array<string>, but the rows have array<array<long>>"),
        (pa.table({"Id": [1], "extra": [1]}), "have a column 'extra'"),
        (pa.table([[1], [2]], names=["Id", "ID"]), "DELTA_DUPLICATE_COLUMNS_FOUND"),
        (pa.table({"Id": pa.array([1], pa.duration("s"))}), "duration"),
    ],
)
def test_rows_that_do_not_fit_the_table_are_refused_by_column_before_a_file_is_written(
    table: Path, rows: pa.Table, text: str
) -> None:
    before = parquet_files(table)

    with pytest.raises(errors.SchemaMismatchError, match=text) as caught:
        tablefeed.append(table, rows)

    assert caught.value.error_class is not None
    assert str(table) in str(caught.value)
    assert parquet_files(table) == before


SHARED = pa.ListViewArray.from_arrays(
    pa.array([1, 0, 0, 3], pa.int32()),
    pa.array([2, 3, 0, 1], pa.int32()),
    pa.array([1, 2, 3, 4]),
    mask=pa.array([False, False, True, False]),
)
"""[2, 3], [1, 2, 3], null, [4]: the lists of a view share values, in no order."""

TEXT, LIST, LARGE = pa.string_view(), pa.list_view(pa.int64()), pa.large_list_view(pa.int64())


@pytest.mark.parametrize(
    ("column", "values"),
    [
        (SHARED, [[2, 3], [1, 2, 3], None, [4]]),
        (pa.array([[2, 3], None, [4]], LARGE), [[2, 3], None, [4]]),
        (SHARED.slice(1, 2), [[1, 2, 3], None]),
        (pa.array([{"x": [0, 1]}], pa.struct([("x", LIST)])), [{"x": [0, 1]}]),
        (pa.array([None, {"x": [0, 1]}], pa.struct([("x", LARGE)])), [None, {"x": [0, 1]}]),
        (pa.array([[[1], []], None, [[2, 3]]], pa.list_view(LIST)), [[[1], []], None, [[2, 3]]]),
        (pa.array([[("k", [1, 2])], None], pa.map_(TEXT, LIST)), [[("k", [1, 2])], None]),
        (pa.array([["a", None], None], pa.list_(TEXT)), [["a", None], None]),
        (pa.array([["a"], None], pa.large_list(TEXT)), [["a"], None]),
        (pa.array([["a", "b"], None], pa.list_(TEXT, 2)), [["a", "b"], None]),
        (pa.array([[b"a"], None], pa.list_(pa.binary_view())), [[b"a"], None]),
        (pa.array([None, [("k", "v")]], pa.map_(TEXT, TEXT)), [None, [("k", "v")]]),
        (pa.array([None, {"x": ["a"]}], pa.struct([("x", pa.list_view(TEXT))])), [None, {"x": ["a"]}]),
        (pa.ListArray.from_arrays([0, 2], pa.array(["a", "b"], TEXT).dictionary_encode()), [["a", "b"]]),
    ],
    ids=lambda x: str(getattr(x, "type", "")),
)
def test_views_at_any_depth_are_stored_as_the_values_they_show(
    tmp_path: Path, column: pa.Array, values: list[object]
) -> None:
    tablefeed.append(tmp_path, pa.table({"id": range(len(column)), "c": column}))
    tablefeed.append(tmp_path, pa.table({"id": range(len(column)), "c": column}))  # to a table that has its own types

    assert [row["c"] for row in tablefeed.open_table(tmp_path).to_arrow().sort_by("id").to_pylist()[::2]] == values
    assert len(seen_by_delta_rs(tmp_path)) == 2 * len(values)


def test_a_batch_may_have_more_than_2_gib_of_texts_or_be_a_slice_of_one(tmp_path: Path) -> None:
    texts, size = 2_060, 1 << 20
    ends, zeros = pa.array(range(0, (texts + 1) * size, size), pa.int64()), mmap(-1, texts * size, MAP_PRIVATE)
    column = pa.LargeStringArray.from_buffers(texts, ends.buffers()[1], pa.py_buffer(zeros))
    rows = pa.table({"id": range(texts), "c": column, "l": pa.LargeListArray.from_arrays(range(texts + 1), column)})

    tablefeed.append(tmp_path / "whole", rows.select(["id", "c"]))
    tablefeed.append(tmp_path / "slice", rows.slice(texts - 2))

    assert tablefeed.open_table(tmp_path / "whole").to_arrow(columns=["id"])["id"].to_pylist() == list(range(texts))
    last = {"id": texts - 1, "c": "\0" * size, "l": ["\0" * size]}
    assert tablefeed.open_table(tmp_path / "slice").to_arrow().to_pylist()[-1] == last


def test_other_forms_of_the_tables_types_are_stored_as_those(tmp_path: Path) -> None:
    moment = datetime(2024, 1, 1, tzinfo=UTC)
    tablefeed.append(tmp_path, pa.table({"t": pa.array([moment], pa.timestamp("us", "UTC")), "s": ["a"], "n": [1]}))

    berlin = pa.array([moment], pa.timestamp("us", "Europe/Berlin"))
    other = {"s": pa.array(["a"], pa.large_string()), "n": pa.array([1], pa.int32()), "t": berlin}
    tablefeed.append(tmp_path, pa.table(other))

    assert tablefeed.open_table(tmp_path).to_arrow().to_pylist() == [{"t": moment, "s": "a", "n": 1}] * 2


@pytest.mark.parametrize(
    "hollow",
    [pa.array([{}], pa.struct([])), pa.array([[{"x": {}}]], pa.list_(pa.struct([("x", pa.struct([]))])))],
    ids=["alone", "in a list"],
)
def test_a_struct_without_members_is_refused_before_anything_is_written(tmp_path: Path, hollow: pa.Array) -> None:
    with pytest.raises(errors.SchemaMismatchError, match=r"'s' .* struct without members"):
        tablefeed.append(tmp_path / "t", pa.table({"a": [1], "s": hollow}))
    assert not (tmp_path / "t").exists()

    tablefeed.append(tmp_path / "t", pa.table({"a": [1]}))
    with pytest.raises(errors.SchemaMismatchError, match=r"'s' .* struct without members"):
        tablefeed.append(tmp_path / "t", pa.table({"a": [1], "s": hollow}), merge_schema=True)


@pytest.mark.parametrize(
    ("columns", "partition_columns"), [((), ()), ((("v", "void"),), ()), ((("p", "string"),), ("p",))]
)
def test_rows_of_which_no_file_could_store_a_column_are_refused(
    tmp_path: Path, columns: tuple[tuple[str, str], ...], partition_columns: tuple[str, ...]
) -> None:
    told = meta(*(col(name, kind) for name, kind in columns), partition_columns=partition_columns)
    a_log(LocalStore(str(tmp_path)), v0=[protocol(), told])
    rows = pa.table({name: ["a"] if kind == "string" else pa.nulls(1) for name, kind in columns})

    with pytest.raises(errors.SchemaMismatchError, match=r"DELTA_EMPTY_DATA.* has no column that files can store"):
        tablefeed.append(tmp_path, rows)


LIST_OF_VOIDS = {"type": "array", "elementType": "void", "containsNull": True}


@pytest.mark.parametrize("kind", [LIST_OF_VOIDS, struct(col("v", "void"))], ids=["in a list", "alone in a struct"])
def test_a_column_without_a_type_that_files_cannot_leave_out_refuses_rows_but_no_property(
    tmp_path: Path, kind: dict[str, object]
) -> None:
    a_log(LocalStore(str(tmp_path)), v0=[protocol(), meta(col("id"), col("x", kind))])

    with pytest.raises(errors.SchemaMismatchError, match=r"DELTA_COMPLEX_TYPE_COLUMN_CONTAINS_NULL_TYPE.* 'x'"):
        tablefeed.append(tmp_path, pa.table({"id": [1]}))
    assert tablefeed.alter(tmp_path, set_properties={"mine": "1"}) == committed(1)


NO_UTF8 = pa.Array.from_buffers(pa.string(), 2, pa.array([b"\xff\xfe", b"a"]).buffers())
"""What Spark makes of CAST(binary AS STRING)."""


def test_texts_of_any_bytes_are_kept_and_have_no_bounds(tmp_path: Path) -> None:
    tablefeed.append(tmp_path, pa.table({"id": [1, 2], "s": NO_UTF8}))

    kept = tablefeed.open_table(tmp_path).to_arrow().sort_by("id")["s"].combine_chunks()
    assert kept.buffers()[2].to_pybytes()[:3] == b"\xff\xfea"
    stats = {"numRecords": 2, "minValues": {"id": 1}, "maxValues": {"id": 2}, "nullCount": {"id": 0, "s": 0}}
    assert json.loads(said(tmp_path, 0, "add")[0]["stats"]) == stats
    assert tablefeed.open_table(tmp_path).to_arrow(filter=pc.field("s") == "a")["id"].to_pylist() == [2]


@pytest.mark.parametrize("properties", [{}, {"delta.columnMapping.mode": "name"}], ids=["plain", "mapped"])
def test_a_partition_that_no_log_can_name_leaves_nothing(tmp_path: Path, properties: dict[str, str]) -> None:
    rows = pa.table({"id": [1, 2], "s": NO_UTF8})
    with pytest.raises(errors.InvalidRowsError, match="partition column 's' that is not UTF-8"):
        tablefeed.append(tmp_path / "t", rows, partition_by="s", properties=properties)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_text_of_any_bytes_is_no_number(tmp_path: Path) -> None:
    tablefeed.append(tmp_path, pa.table({"id": [1]}))

    with pytest.raises(errors.InvalidRowsError, match="CAST_INVALID_INPUT"):
        tablefeed.append(tmp_path, pa.table({"id": NO_UTF8}))
    assert len(parquet_files(tmp_path)) == 1


def test_nanoseconds_fit_where_nothing_is_cut_off(tmp_path: Path) -> None:
    def rows(nanoseconds: int) -> pa.Table:
        return pa.table({"at": pa.array([nanoseconds], pa.timestamp("ns"))})

    tablefeed.append(tmp_path, rows(1000))
    with pytest.raises(errors.SchemaMismatchError, match=r"'at' .* would lose data"):
        tablefeed.append(tmp_path, rows(1001))
    assert tablefeed.open_table(tmp_path).version == 0


def test_a_new_table_promises_no_not_null(tmp_path: Path) -> None:
    tablefeed.append(tmp_path, pa.table({"id": [1]}, schema=pa.schema([pa.field("id", pa.int64(), nullable=False)])))

    assert tablefeed.open_table(tmp_path).schema.field("id").nullable


@pytest.mark.parametrize("name", ["a b", "a,b", "a;b", "a{b", "a}b", "a(b", "a)b", "a\nb", "a\tb", "a=b"])
@pytest.mark.parametrize("nested", [False, True])
def test_names_that_parquet_cannot_carry_are_refused(tmp_path: Path, name: str, *, nested: bool) -> None:
    rows = pa.table({"outer": [{name: 1}]}) if nested else pa.table({name: [1]})

    with pytest.raises(
        errors.SchemaMismatchError, match=r"(?s)INVALID_CHARACTERS_IN_COLUMN_NAMES.*columnMapping.mode=name"
    ):
        tablefeed.append(tmp_path, rows)


# --- mode ------------------------------------------------------------------------------------------------------------


def test_overwrite_replaces_all_rows_in_one_version(table: Path) -> None:
    outcome = tablefeed.append(table, pa.table({"Id": [7]}), mode="overwrite")

    assert outcome == committed(1)
    assert seen_by_delta_rs(table) == [{"Id": 7, "name": None, "tags": None}]
    assert tablefeed.open_table(table, version=0).to_arrow()["Id"].to_pylist() == [0]


def test_overwrite_makes_the_table_where_there_is_none_and_with_nothing_leaves_it_empty(tmp_path: Path) -> None:
    assert tablefeed.append(tmp_path, ROWS, mode="overwrite") == committed(0)
    tablefeed.append(tmp_path, ROWS.slice(0, 0), mode="overwrite")

    assert seen_by_delta_rs(tmp_path) == []


# --- app_id and txn_version ------------------------------------------------------------------------------------------


def test_a_write_with_an_application_and_a_version_is_done_once(tmp_path: Path) -> None:
    outcomes = [tablefeed.append(tmp_path, ROWS, app_id="loader", txn_version=v) for v in (3, 3, 2, 4)]

    assert outcomes == [committed(0), already_applied(0, recorded=3), already_applied(0, recorded=3), committed(1)]
    assert tablefeed.open_table(tmp_path).txn_version("loader") == 4
    assert DeltaTable(str(tmp_path)).transaction_version("loader") == 4
    assert len(parquet_files(tmp_path)) == 2, "what is known to be done is not written"


def test_an_application_recorded_by_delta_rs_counts(tmp_path: Path) -> None:
    from deltalake import CommitProperties, Transaction

    done = CommitProperties(app_transactions=[Transaction("loader", 5)])
    write_deltalake(str(tmp_path), ROWS, commit_properties=done)

    assert tablefeed.append(tmp_path, ROWS, app_id="loader", txn_version=5) == already_applied(0, recorded=5)


# --- partition_by and properties -------------------------------------------------------------------------------------


def test_an_existing_table_keeps_its_partitioning_and_refuses_another(tmp_path: Path) -> None:
    tablefeed.append(tmp_path, ROWS, partition_by=["ID"])

    tablefeed.append(tmp_path, ROWS)
    tablefeed.append(tmp_path, ROWS, partition_by="id")
    with pytest.raises(errors.SchemaMismatchError, match="is partitioned by id, and the write asks for name"):
        tablefeed.append(tmp_path, ROWS, partition_by=["name"])
    with pytest.raises(errors.SchemaMismatchError, match="no column 'id', by which"):
        tablefeed.append(tmp_path, ROWS.drop_columns("id"))

    assert DeltaTable(str(tmp_path)).metadata().partition_columns == ["id"]


def test_a_disk_that_takes_no_more_is_an_error_of_ours_and_leaves_the_table_as_it_was(tmp_path: Path) -> None:
    tablefeed.append(tmp_path, pa.table({"id": [1]}))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (65_536, hard))
    try:
        with pytest.raises(errors.StoreError, match=r"part-00000-.* at .*: .*File too large"):
            tablefeed.append(tmp_path, pa.table({"id": range(200_000)}))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    assert [file.suffix for file in tmp_path.iterdir() if file.is_file()] == [".parquet"]
    assert tablefeed.open_table(tmp_path).to_arrow()["id"].to_pylist() == [1]


@pytest.mark.parametrize(("codec", "ending"), [("brotli", "br"), ("gzip", "gz"), ("lz4_raw", "lz4raw")])
def test_each_codec_that_a_table_may_name_is_written_and_read(tmp_path: Path, codec: str, ending: str) -> None:
    tablefeed.append(tmp_path, ROWS, properties={"delta.parquet.compression.codec": codec})

    [file] = parquet_files(tmp_path)
    assert file.name.endswith(f".{ending}.parquet")
    assert seen_by_delta_rs(tmp_path) == tablefeed.open_table(tmp_path).to_arrow().to_pylist() == ROWS.to_pylist()


@pytest.mark.parametrize(("version", "page_type"), [("1.0.0", 0), ("2.12.0", 3)])
def test_data_pages_are_of_the_version_that_the_table_names(tmp_path: Path, version: str, page_type: int) -> None:
    tablefeed.append(tmp_path, ROWS, properties={"delta.parquet.format.version": version})

    [file] = parquet_files(tmp_path)
    at = pq.read_metadata(file).row_group(0).column(0).data_page_offset
    # Thrift's compact protocol: the first field of PageHeader is the type, an integer in zigzag.
    assert file.read_bytes()[at : at + 2] == bytes([0x15, page_type << 1])
    assert seen_by_delta_rs(tmp_path) == tablefeed.open_table(tmp_path).to_arrow().to_pylist() == ROWS.to_pylist()


def test_files_lie_in_random_folders_where_the_table_says_so_partitioned_or_not(tmp_path: Path) -> None:
    properties = {"delta.randomizeFilePrefixes": "true", "delta.randomPrefixLength": "4"}
    tablefeed.append(tmp_path, ROWS, properties=properties, partition_by="name")
    tablefeed.append(tmp_path, ROWS)

    folders = [file.relative_to(tmp_path).parent.as_posix() for file in parquet_files(tmp_path)]
    assert len(folders) == 4
    assert all(len(folder) == 4 and folder.isalnum() for folder in folders)
    assert seen_by_delta_rs(tmp_path) == [*ROWS.slice(0, 1).to_pylist() * 2, *ROWS.slice(1).to_pylist() * 2]


def test_a_process_that_goes_on_appending_reads_no_log_file_older_than_the_last_it_saw(tmp_path: Path) -> None:
    for row in range(3):
        tablefeed.append(tmp_path, pa.table({"id": [row]}))
    for version in (0, 1):
        (tmp_path / f"_delta_log/{version:020d}.json").unlink()

    assert tablefeed.append(tmp_path, pa.table({"id": [3]})) == committed(3)


def test_a_relative_path_is_of_the_folder_that_the_process_is_in_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("here", "there"):
        (tmp_path / folder).mkdir()
        monkeypatch.chdir(tmp_path / folder)
        tablefeed.append("orders", pa.table({"id": [1]}))

    assert tablefeed.append("orders", pa.table({"id": [2]})) == committed(1)
    assert tablefeed.open_table(tmp_path / "here" / "orders").version == 0


# --- what the caller chooses for one write ---------------------------------------------------------------------------


def test_codec_rows_of_a_file_and_what_is_said_of_a_commit_go_before_the_tables(tmp_path: Path) -> None:
    own: dict[str, Any] = {"compression": "ZSTD", "max_records_per_file": 2, "user_metadata": "nightly"}
    rows = pa.table({"id": [1, 2, 3]})
    tablefeed.append(tmp_path, rows, **own, properties={"delta.parquet.compression.codec": "gzip"})
    tablefeed.append(tmp_path, rows)

    files = [pq.ParquetFile(path).metadata for path in parquet_files(tmp_path)]
    found = sorted((file.num_rows, file.row_group(0).column(0).compression) for file in files)
    assert found == [(1, "ZSTD"), (2, "ZSTD"), (3, "GZIP")]
    told = [info.fields.get("userMetadata") for info in tablefeed.open_table(tmp_path).history()]
    assert told == [None, "nightly"]
    assert [row["id"] for row in seen_by_delta_rs(tmp_path)] == [1, 1, 2, 2, 3, 3]


def test_each_so_many_commits_are_one_compaction_file_and_a_checkpoint_has_parts(tmp_path: Path) -> None:
    log = tmp_path / "_delta_log"
    for _ in range(4):
        interval = {"delta.checkpointInterval": "3"}
        tablefeed.append(tmp_path, ROWS, log_compaction_every=2, checkpoint_part_size=2, properties=interval)
        wait_until_done()

    ranges = [f"{first:020d}.{first + 1:020d}.compacted.json" for first in (0, 2)]
    assert sorted(path.name for path in log.glob("*.compacted.json")) == ranges
    assert len([*log.glob(f"{3:020d}.checkpoint.*.parquet")]) > 1
    for path in [*log.glob("*.json")]:
        if path.name != f"{3:020d}.json":
            path.unlink()
    assert len(seen_by_delta_rs(tmp_path)) == 8
