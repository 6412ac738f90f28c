"""Of every type both writers leave the same on disk and in the log, and each reads the other's rows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import tablefeed
from peer.every_type import AWKWARD, awkward_rows, nested_rows
from peer.tables import actions_of_kind, in_spark, read

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

# Bytes that are no text: Delta-Spark writes U+FFFD for each and cannot read them back, ours are escaped.
NO_TEXT = b"\xff\xfe"


def by_the_jar(session: SparkSession, rows: pa.Table, path: Path, *partition_by: str) -> Path:
    in_spark(session, rows).write.format("delta").partitionBy(*partition_by).save(str(path))
    return path


def by_us(rows: pa.Table, path: Path, *partition_by: str) -> Path:
    tablefeed.append(path, rows, partition_by=partition_by)
    return path


def rows_by_id(rows: pa.Table) -> list[str]:
    """Rows as text, for NaN is not equal to itself; times of day as instants in UTC."""
    return [repr(row) for row in rows.cast(rows.schema).sort_by("id").to_pylist()]


def described(table: Path) -> list[tuple[str, dict[str, str | None], str]]:
    """Of each file its directory in the log, its partition values in column order, and its directory on disk."""
    on_disk = {file.name: file.parent for file in table.rglob("*.parquet") if "_delta_log" not in file.parts}
    return sorted(
        (
            (directory, dict(sorted(add["partitionValues"].items())), str(on_disk[name].relative_to(table)))
            for add in actions_of_kind(table, "add")
            for directory, _, name in [add["path"].rpartition("/")]
        ),
        key=str,
    )


def statistics(table: Path) -> Iterator[tuple[str, Any]]:
    (add,) = actions_of_kind(table, "add")
    return flat("", json.loads(add["stats"]))


def flat(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for name in sorted(value):
            yield from flat(f"{path}/{name}", value[name])
    else:
        yield path, value


@pytest.fixture(scope="module")
def partitioned(delta_spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The same rows partitioned by columns of every type: the JAR's table and ours."""
    rows, folder = awkward_rows(leave_out=NO_TEXT), tmp_path_factory.mktemp("partitioned")
    return by_the_jar(delta_spark, rows, folder / "theirs", *AWKWARD), by_us(rows, folder / "ours", *AWKWARD)


def test_partitions_of_every_type_have_the_jars_directories_and_values(partitioned: tuple[Path, Path]) -> None:
    theirs, ours = partitioned

    assert described(ours) == described(theirs)


def test_each_reads_the_others_partitions_of_every_type(
    delta_spark: SparkSession, partitioned: tuple[Path, Path]
) -> None:
    theirs, ours = partitioned
    rows = awkward_rows(leave_out=NO_TEXT)

    assert rows_by_id(tablefeed.open_table(theirs).to_arrow()) == rows_by_id(rows)
    assert rows_by_id(read(delta_spark, ours)) == rows_by_id(rows)


def test_statistics_of_every_type_are_the_jars_but_for_wider_bounds(delta_spark: SparkSession, tmp_path: Path) -> None:
    rows = awkward_rows()

    theirs = dict(statistics(by_the_jar(delta_spark, rows, tmp_path / "theirs")))
    ours = dict(statistics(by_us(rows, tmp_path / "ours")))

    # Theirs is below the largest value, by microseconds. Rounded up as ours are, this one leaves the calendar.
    assert theirs.pop("/maxValues/moment") == "9999-12-31T23:59:59.999Z"
    assert ours == theirs


def test_statistics_of_nested_columns_are_the_jars(delta_spark: SparkSession, tmp_path: Path) -> None:
    theirs = by_the_jar(delta_spark, nested_rows(), tmp_path / "theirs")
    ours = by_us(nested_rows(), tmp_path / "ours")

    assert dict(statistics(ours)) == dict(statistics(theirs))


def test_the_jar_finds_the_rows_of_a_value_of_every_type_in_the_files_that_it_does_not_skip(
    delta_spark: SparkSession, tmp_path: Path
) -> None:
    rows = awkward_rows(leave_out=NO_TEXT)
    for index in range(rows.num_rows):
        tablefeed.append(tmp_path / "ours", rows.slice(index, 1))
    ours = delta_spark.read.format("delta").load(str(tmp_path / "ours"))

    found, files = {}, {}
    for name, (_, values) in AWKWARD.items():
        matching = ours.where(equals(ours, name, values[0]))
        found[name] = sorted(row["id"] for row in matching.select("id").collect())
        files[name] = len(matching.inputFiles())

    assert found == {name: ids_of(rows, name, values[0]) for name, (_, values) in AWKWARD.items()}
    # Skipped for true and for bytes are only files of nulls; two files have no largest moment that can be told.
    no_bounds = {"flag": rows["flag"], "bytes": rows["bytes"]}
    assert files == {
        **{name: len(ids) for name, ids in found.items()},
        **{name: rows.num_rows - column.null_count for name, column in no_bounds.items()},
        "moment": len(found["moment"]) + 2,
    }


def test_the_jar_reads_and_adds_to_data_pages_of_version_2_of_every_type(
    delta_spark: SparkSession, tmp_path: Path
) -> None:
    rows, nested = awkward_rows(leave_out=NO_TEXT), nested_rows()
    for name, each in (("rows", rows), ("nested", nested)):
        properties = {"delta.parquet.format.version": "2.12.0"}
        tablefeed.append(tmp_path / name, each, properties=properties)

    assert rows_by_id(read(delta_spark, tmp_path / "rows")) == rows_by_id(rows)
    assert rows_by_id(read(delta_spark, tmp_path / "nested")) == rows_by_id(nested)
    in_spark(delta_spark, rows).write.format("delta").mode("append").save(str(tmp_path / "rows"))
    both = pa.concat_tables([rows, rows])
    assert rows_by_id(tablefeed.open_table(tmp_path / "rows").to_arrow()) == rows_by_id(both)


def equals(table: DataFrame, name: str, value: Any) -> Column:
    from pyspark.sql import functions as F  # noqa: N812 (Spark's own custom)

    # py4j knows no years below 1000, and takes a datetime without zone for one in the session's.
    literal = value.isoformat() if isinstance(value, date) else value
    return F.col(name).eqNullSafe(F.lit(literal).cast(table.schema[name].dataType))


def ids_of(rows: pa.Table, name: str, value: Any) -> list[int]:
    return [row["id"] for row in rows.to_pylist() if str(row[name]) == str(value)]
