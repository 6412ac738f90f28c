"""Errors of the rooms that read and write bytes name the table by the time they reach the caller."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tablefeed
from tablefeed.errors import (
    TABLE,
    DataFileError,
    InvalidRowsError,
    LogError,
    SchemaMismatchError,
    UnsupportedExpressionError,
    UnsupportedFeatureError,
)

ROWS = pa.table({"id": [1, 2], "s": ["a", "b"]})


def write(rows: Any, folder: str = "", **options: Any) -> Callable[[Path], object]:
    return lambda path: tablefeed.append(path / folder, rows, **options)


def write_with_rule(rule: str) -> Callable[[Path], object]:
    return lambda path: tablefeed.append(path / "new", ROWS, properties={"delta.constraints.c": rule})


def read_after(damage: Callable[[Path], object], files: str) -> Callable[[Path], object]:
    def read(path: Path) -> object:
        for file in path.rglob(files):
            damage(file)
        return tablefeed.open_table(path).to_arrow()

    return read


def optimize_with_lz4(path: Path) -> object:
    tablefeed.append(path / "new", ROWS, properties={"delta.parquet.compression.codec": "zstd"})
    tablefeed.append(path / "new", ROWS)
    commit = path / "new" / "_delta_log" / f"{0:020d}.json"
    commit.write_text(commit.read_text().replace("zstd", "lz4"))
    return tablefeed.optimize(path / "new")


def in_splits(then: Callable[[Path], object]) -> Callable[[Path], object]:
    def made(path: Path) -> object:
        tablefeed.append(path / "splits", ROWS, table_format="indextables")
        return then(path / "splits")

    return made


EARLY = pa.table({"id": [3], "s": ["c"], "at": pa.array([-(10**17)], pa.timestamp("us", "UTC"))})


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        (write_with_rule("id > 1"), InvalidRowsError),
        (write_with_rule("rand() > 0"), UnsupportedExpressionError),
        (write(ROWS, "new", properties={"delta.dataSkippingStatsColumns": "x"}), SchemaMismatchError),
        (optimize_with_lz4, UnsupportedFeatureError),
        (read_after(Path.unlink, "*.parquet"), DataFileError),
        (read_after(lambda file: file.write_bytes(b"no Parquet"), "*.parquet"), DataFileError),
        (in_splits(read_after(Path.unlink, "*.split")), DataFileError),
        (in_splits(read_after(lambda file: file.write_bytes(b"no split"), "*.split")), DataFileError),
        (in_splits(write(EARLY)), SchemaMismatchError),
        (lambda path: tablefeed.append(path / "new", EARLY, table_format="indextables"), InvalidRowsError),
    ],
)
def test_an_error_about_rows_or_data_files_names_the_table(
    tmp_path: Path, call: Callable[[Path], object], kind: type[tablefeed.TablefeedError]
) -> None:
    tablefeed.append(tmp_path, ROWS)

    with pytest.raises(kind) as caught:
        call(tmp_path)

    assert str(tmp_path) in caught.value.message
    assert TABLE not in caught.value.message
    assert str(vars(caught.value)["url"]).startswith(str(tmp_path))


@pytest.mark.parametrize("ask", [tablefeed.open_table, lambda path: next(tablefeed.follow(path, after=0))])
def test_an_error_about_the_log_names_the_table(tmp_path: Path, ask: Callable[[Path], object]) -> None:
    for _ in range(2):
        tablefeed.append(tmp_path, ROWS)
    commit = tmp_path / "_delta_log" / f"{1:020d}.json"
    commit.write_bytes(commit.read_bytes()[:-40])

    with pytest.raises(LogError) as caught:
        ask(tmp_path)

    assert str(tmp_path) in caught.value.message
    assert TABLE not in caught.value.message
    assert caught.value.url == str(tmp_path)


def test_a_warning_about_a_checkpoint_that_cannot_be_read_names_the_table(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tablefeed.append(tmp_path, ROWS)
    tablefeed.checkpoint(tmp_path)
    (checkpoint,) = (tmp_path / "_delta_log").glob("*.checkpoint.parquet")
    checkpoint.write_bytes(b"no Parquet")

    assert tablefeed.open_table(tmp_path).to_arrow().num_rows == 2
    assert f"The log of {tmp_path} cannot be read at {checkpoint.name}" in caplog.text
    assert TABLE not in caplog.text
