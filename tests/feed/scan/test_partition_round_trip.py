"""Partition values as rows: what we write delta-rs and we read, what delta-rs writes we read, and append to."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path

import hypothesis.strategies as st
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import given, settings

import tablefeed
from support.actions import add
from tablefeed.errors import DataFileError
from tablefeed.feed.scan.delta_task import DeltaColumns, DeltaTask
from tablefeed.feed.scan.task import PartitionColumn, read_task
from tablefeed.model.schema import Primitive
from tablefeed.store.memory import MemoryStore

AT = dt.datetime(2024, 2, 29, 12, 30, 15, 123456, tzinfo=dt.UTC)
COLUMNS = {
    "text": pa.array(["a%b c/ü:", "", None, "plain", "x=y", "%20", "a\nb", "😀", ".", "__HIVE_DEFAULT_PARTITION__x"]),
    "long": pa.array([-(2**63), 2**63 - 1, None]),
    "small": pa.array([-128, 127, None], pa.int8()),
    "flag": pa.array([True, False, None]),
    "day": pa.array([dt.date(2024, 2, 29), dt.date(1582, 10, 14), dt.date(1, 1, 1), None]),
    "instant": pa.array([AT, AT.replace(microsecond=0), None]),
    # No negative ones: deltalake 1.6.6 spells and reads -1.001 as "-1.0-1".
    "price": pa.array([Decimal("12.340"), Decimal("0.001"), None], pa.decimal128(10, 3)),
    "real": pa.array([0.1, -1.5e10, None]),
}


def key(row: dict[str, object]) -> str:
    return str(row["n"])


def rows_of(column: pa.Array) -> pa.Table:
    column = column.cast(pa.timestamp("us", tz="UTC")) if pa.types.is_timestamp(column.type) else column
    return pa.table({"n": range(len(column)), "p": column})


@pytest.mark.parametrize("column", COLUMNS.values(), ids=COLUMNS)
def test_partition_values_that_we_write_are_read_by_delta_rs_and_by_us(tmp_path: Path, column: pa.Array) -> None:
    rows = rows_of(column)
    tablefeed.append(tmp_path, rows, partition_by=["p"])

    expected = [{**row, "p": None if row["p"] == "" else row["p"]} for row in rows.to_pylist()]
    assert sorted(DeltaTable(str(tmp_path)).to_pyarrow_table().to_pylist(), key=key) == sorted(expected, key=key)
    assert sorted(tablefeed.open_table(tmp_path).to_arrow().to_pylist(), key=key) == sorted(expected, key=key)


@pytest.mark.parametrize("column", COLUMNS.values(), ids=COLUMNS)
def test_partition_values_that_delta_rs_writes_are_read_and_appended_to(tmp_path: Path, column: pa.Array) -> None:
    rows = rows_of(column)
    write_deltalake(str(tmp_path), rows, partition_by=["p"])
    by_delta_rs = sorted(DeltaTable(str(tmp_path)).to_pyarrow_table().to_pylist(), key=key)
    assert sorted(tablefeed.open_table(tmp_path).to_arrow().to_pylist(), key=key) == by_delta_rs

    tablefeed.append(tmp_path, rows)

    twice = DeltaTable(str(tmp_path)).to_pyarrow_table().to_pylist()
    assert len(twice) == 2 * len(rows)
    assert {row["p"] for row in twice} == {row["p"] or None if row["p"] == "" else row["p"] for row in by_delta_rs}


def test_the_file_that_the_log_names_is_percent_encoded_once(tmp_path: Path) -> None:
    tablefeed.append(tmp_path, pa.table({"n": [1], "p": ["a%b c/ü:"]}), partition_by=["p"])

    (batch,) = tablefeed.open_table(tmp_path).files()
    (path,) = batch["path"].to_pylist()

    assert (tmp_path / path).exists(), "the decoded path is the one on disk"
    assert path.startswith("p=a%25b c%2Fü%3A/")
    assert batch["partition_values"].to_pylist() == [[("p", "a%b c/ü:")]]


def test_two_partition_columns_in_the_middle_of_the_table_keep_their_places(tmp_path: Path) -> None:
    rows = pa.table({"a": [1, 2], "p": ["x", None], "b": [3, 4], "q": [True, False], "c": [5, 6]})
    tablefeed.append(tmp_path, rows, partition_by=["q", "p"])

    table = tablefeed.open_table(tmp_path)

    assert table.partition_columns == ("q", "p")
    assert table.to_arrow().sort_by("a").equals(rows)
    assert DeltaTable(str(tmp_path)).to_pyarrow_table().sort_by("a").equals(rows)


@settings(max_examples=25)  # each makes files, whatever the profile
@given(texts=st.lists(st.text(max_size=8), min_size=1, max_size=5))
def test_any_text_is_a_partition_value(texts: list[str], tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("table")
    tablefeed.append(path, pa.table({"n": range(len(texts)), "p": texts}), partition_by=["p"])

    table = tablefeed.open_table(path)

    assert table.to_arrow().sort_by("n")["p"].to_pylist() == [text or None for text in texts]


def test_a_partition_value_that_the_log_lacks_is_null_whatever_the_file_has() -> None:
    store = MemoryStore("orders")
    with store.create("f") as file:
        pq.write_table(pa.table({"n": [1, 2], "p": [7, 7]}), file)
    columns = DeltaColumns(partitions={"p": PartitionColumn(physical_name="p", type=Primitive("long"))})
    task = DeltaTask(url=store.url, storage_options={}, columns=columns).of([add("f", partition_values={})])

    (batch,) = read_task(task, pa.schema([("n", pa.int64()), ("p", pa.int64())]), store=store)

    assert batch.to_pylist() == [{"n": 1, "p": None}, {"n": 2, "p": None}]


def test_a_partition_value_that_is_none_of_its_type_is_an_error_that_names_the_file() -> None:
    store = MemoryStore("orders")
    store.replace("f", b"")
    columns = DeltaColumns(partitions={"p": PartitionColumn(physical_name="p", type=Primitive("long"))})
    task = DeltaTask(url=store.url, storage_options={}, columns=columns).of([add("f", partition_values={"p": "x"})])

    with pytest.raises(DataFileError, match="'x' is not of type long") as caught:
        list(read_task(task, pa.schema([("p", pa.int64())]), store=store))
    assert caught.value.path == "f"
