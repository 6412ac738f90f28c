"""Reads with a filter: the rows that it lets through of a read without one, from fewer files and fewer bytes."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, BinaryIO, cast

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable, write_deltalake

import tablefeed
from support.faulty_store import FaultyStore
from support.logs import log_of
from tablefeed.errors import DataFileError, IllegalOptionError
from tablefeed.feed.api.table import Table
from tablefeed.store import LocalStore

Write = Callable[[Path, pa.Table, Sequence[str]], object]


def by_delta_rs(path: Path, rows: pa.Table, partition_by: Sequence[str]) -> object:
    return write_deltalake(str(path), rows, mode="append", partition_by=list(partition_by))


def by_ourselves(path: Path, rows: pa.Table, partition_by: Sequence[str]) -> object:
    return tablefeed.append(path, rows, partition_by=partition_by)


WRITERS = pytest.mark.parametrize("write", [by_delta_rs, by_ourselves])

DAY = date(2024, 1, 1)
TICK = datetime(2024, 1, 1, 0, 0, 0, 999_999, UTC)


def a_file(number: int) -> pa.Table:
    """Two rows of every type, no value of which is in the file of another number; a third is null."""
    near = (number * 10, number * 10 + 1)
    columns = {
        "long": pa.array([*near, None]),
        "byte": pa.array([*near, None], pa.int8()),
        "double": pa.array([*(n + 0.1 for n in near), None]),
        "with_nan": pa.array([*(n + 0.1 for n in near), math.nan]),
        "float": pa.array([*(n + 0.1 for n in near), None], pa.float32()),
        "text": [f"{'long, and the same to begin with, ' * (number % 2)}{n:03d}" for n in near] + [None],
        "decimal": pa.array([*(Decimal(n) + Decimal("0.01") for n in near), None], pa.decimal128(10, 2)),
        "large": pa.array([*(Decimal(n) + Decimal("1e-18") for n in near), None], pa.decimal128(38, 18)),
        "date": [*(DAY + timedelta(days=n) for n in near), None],
        "timestamp": pa.array([*(TICK + timedelta(days=n) for n in near), None], pa.timestamp("us", "UTC")),
        "wall": pa.array([*(TICK.replace(tzinfo=None) + timedelta(days=n) for n in near), None], pa.timestamp("us")),
        "boolean": [number % 2 == 0, number % 2 == 0, None],
        "binary": [bytes([n]) for n in near] + [None],
        "struct": [{"inner": n, "text": str(n)} for n in near] + [None],
        "list": [[n] for n in near] + [None],
        "void_so_far": pa.nulls(3, pa.int64()) if number < 3 else pa.array([1, 2, 3]),
    }
    return pa.table(columns)


ORDERED = ("long", "byte", "double", "float", "text", "decimal", "large", "date", "timestamp", "wall")


def sorted_rows(rows: pa.Table) -> list[str]:
    return sorted(map(repr, rows.to_pylist()))


def filters(column: pc.Expression, value: Any) -> list[pc.Expression]:
    """Filters of `column` with one of its own values."""
    compared = [column != value, column < value, column >= value, ~(column >= value), ~(column < value)]
    return [*compared, column.is_null(), column.isin([value]), ~column.isin([value])]


@WRITERS
def test_no_decimal_is_lost_whose_bounds_its_writer_cut_to_64_bits(tmp_path: Path, write: Write) -> None:
    values = [Decimal(10**38 - 1), Decimal(1 - 10**38), Decimal(2**63), Decimal(-(2**63) - 1), Decimal(5)]
    for value in values:
        write(tmp_path, pa.table({"huge": pa.array([value], pa.decimal128(38, 0))}), [])

    for value in values:
        check_all(tmp_path, pc.field("huge"), pa.scalar(value, pa.decimal128(38, 0)))


def check_all(path: Path, column: pc.Expression, value: Any) -> None:
    whole = tablefeed.open_table(path).to_arrow()
    for condition in filters(column, value):
        expected = sorted_rows(whole.filter(condition))
        assert sorted_rows(tablefeed.open_table(path).to_arrow(filter=condition)) == expected
        assert sorted_rows(tablefeed.appends(path, filter=condition).read_all()) == expected


@WRITERS
def test_a_filter_of_any_type_reads_the_same_rows_from_the_file_that_has_them(tmp_path: Path, write: Write) -> None:
    for number in range(3):
        write(tmp_path, a_file(number), [])
    rows = a_file(1)
    columns = {name: (pc.field(name), rows[name][0]) for name in rows.schema.names if name in ORDERED}
    columns["member"] = (pc.field("struct", "inner"), pa.scalar(10))

    for column, value in columns.values():
        check_all(tmp_path, column, value)
        assert len(data_files_of(tmp_path, column == value)) == 1
    for name in ("boolean", "binary", "with_nan"):
        check_all(tmp_path, pc.field(name), rows[name][0])
    assert len(data_files_of(tmp_path, pc.field("void_so_far") > 0)) == 0


@WRITERS
@pytest.mark.parametrize("name", [*ORDERED, "boolean"])
def test_a_partition_of_any_type_is_found_by_its_value(tmp_path: Path, write: Write, name: str) -> None:
    for number in range(2):
        write(tmp_path, a_file(number).select(list({name, "long", "text"})), [name])
    value = a_file(1)[name][0]

    check_all(tmp_path, pc.field(name), value)
    assert len(data_files_of(tmp_path, pc.field(name) == value)) == 1


@WRITERS
def test_a_file_that_is_ruled_out_is_never_opened(tmp_path: Path, write: Write) -> None:
    for number in range(4):
        write(tmp_path, a_file(number), [])
    keep = pc.field("long") >= 30
    (kept,) = data_files_of(tmp_path, keep)
    for file in tmp_path.glob("*.parquet"):
        if file.name != kept:
            file.unlink()

    assert tablefeed.open_table(tmp_path).to_arrow(columns=["long"], filter=keep)["long"].to_pylist() == [30, 31]
    assert tablefeed.appends(tmp_path, columns=["long"], filter=keep).read_all()["long"].to_pylist() == [30, 31]
    with pytest.raises(DataFileError):
        tablefeed.open_table(tmp_path).to_arrow(filter=~pc.field("binary").isin([b""]) | keep)


def data_files_of(path: Path, condition: pc.Expression) -> list[str]:
    store = FaultyStore(LocalStore(str(path)))
    Table(log_of(store).load()).to_arrow(filter=condition)
    return [call.name for call in store.calls if call.operation == "open_input" and "_delta_log" not in call.name]


class MeteredStore(FaultyStore):
    """Counts the bytes that are read of data files."""

    def __init__(self, path: Path) -> None:
        super().__init__(LocalStore(str(path)))
        self.read_bytes = 0

    def open_input(self, name: str) -> BinaryIO:
        return cast("BinaryIO", io.BufferedReader(_Metered(self, super().open_input(name)), buffer_size=1))


class _Metered(io.RawIOBase):
    def __init__(self, store: MeteredStore, inner: BinaryIO) -> None:
        self._store, self._inner = store, inner

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return self._inner.seek(offset, whence)

    def readinto(self, buffer: Any) -> int:
        data = self._inner.read(len(buffer))
        buffer[: len(data)] = data
        self._store.read_bytes += len(data)
        return len(data)

    def close(self) -> None:
        self._inner.close()
        super().close()


def bytes_read(path: Path, **arguments: Any) -> int:
    store = MeteredStore(path)
    Table(log_of(store).load()).to_arrow(**arguments)
    return store.read_bytes


def test_bytes_are_read_of_the_columns_asked_for_and_those_that_the_filter_names(tmp_path: Path) -> None:
    rows = 20_000
    wide = {name: pa.array([f"{name}{n * 7919 % rows:08d}" for n in range(rows)]) for name in "abcd"}
    for start in (0, rows):
        tablefeed.append(tmp_path, pa.table({"id": range(start, start + rows), **wide}))
    condition = pc.starts_with(pc.field("b"), "b")

    whole = bytes_read(tmp_path, filter=condition)
    narrow = bytes_read(tmp_path, columns=["a"], filter=condition)
    pruned = bytes_read(tmp_path, columns=["a"], filter=condition & (pc.field("id") < 10))

    assert narrow < 0.6 * whole
    assert pruned < 0.7 * narrow
    assert bytes_read(tmp_path, columns=["a"]) < 0.6 * narrow


@pytest.mark.parametrize(
    ("columns", "condition"),
    [
        (["long"], pc.field("text") == "000"),
        (["text", "long", "text"], pc.field("long") < 5),
        (["struct"], pc.field("struct", "inner") == 1),
        (["long"], pc.field("struct", "inner") == 1),
        (["long"], pc.field(5) == "000"),
        (["date"], pc.scalar(value=True)),
        ([], pc.field("long") < 5),
        ([], pc.scalar(value=True)),
        (["double"], (pc.field("byte") + pc.field("long") > 1) | pc.field("boolean")),
    ],
    ids=str,
)
def test_columns_and_filter_together_give_the_columns_of_the_rows_let_through(
    tmp_path: Path, columns: list[str], condition: pc.Expression
) -> None:
    for number in range(2):
        by_ourselves(tmp_path, a_file(number), [])
    whole = tablefeed.open_table(tmp_path).to_arrow()
    expected = whole.filter(condition).select(columns)

    found = tablefeed.open_table(tmp_path).to_batches(columns=columns, filter=condition)

    assert found.schema.names == columns
    batches = list(found)
    assert sum(batch.num_rows for batch in batches) == expected.num_rows
    if len(set(columns)) == len(columns):
        assert sorted_rows(pa.Table.from_batches(batches, found.schema)) == sorted_rows(expected)


def test_deleted_rows_stay_deleted_and_pruning_goes_by_the_bounds_of_all(tmp_path: Path) -> None:
    for number in range(3):
        by_delta_rs(tmp_path, a_file(number), [])
    DeltaTable(str(tmp_path)).delete("long = 10")

    def longs(condition: pc.Expression) -> list[int]:
        rows = tablefeed.open_table(tmp_path).to_arrow(columns=["long"], filter=condition)
        return sorted(rows["long"].to_pylist())

    assert longs(pc.field("long") == 10) == []
    assert longs(pc.field("long") >= 10) == [11, 20, 21]


def test_a_filter_with_a_text_that_pyarrow_cannot_show_is_refused_as_others_are(tmp_path: Path) -> None:
    by_ourselves(tmp_path, a_file(0), [])
    condition = (pc.field("text") == "\U0010ffff" * 70) & (pc.field("unknown") == 1)

    with pytest.raises(IllegalOptionError, match="cannot filter the rows"):
        tablefeed.open_table(tmp_path).to_arrow(filter=condition)


def test_a_filter_with_a_text_that_pyarrow_cannot_show_plans_deletes_updates_and_optimizes_as_others_do(
    tmp_path: Path,
) -> None:
    word, other = "日" * 40, "月" * 40
    for number in range(3):
        tablefeed.append(tmp_path, pa.table({"id": [number], "p": [word]}), partition_by="p")
    condition = pc.field("p").isin([word])

    assert tablefeed.open_table(tmp_path).plan(filter=condition).files == 3
    assert tablefeed.optimize(tmp_path, where=condition).files_removed == 3
    tablefeed.update(tmp_path, {"id": "id + 10"}, condition)
    tablefeed.delete(tmp_path, ~pc.field("p").isin([other]))
    assert tablefeed.open_table(tmp_path).to_arrow().num_rows == 0
