"""A copy of a table whose schema changes, on Spark: the schema of its source is tracked, its own is merged.

The stories are those that Delta-Spark's suites tell of a stream from table to table
(delta-source-schema-evolution.md, type-widening-streaming-source.md in docs/reference/scenarios). delta-rs reads
the copy, and Spark by us where a type was widened, as delta-rs reads no such table.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from scenarios.tables import Column, Table
from spark.streams import actions, newest_version, reader, refusal, write_out
from support.logs import protocol, put
from tablefeed.store import LocalStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# What stops and changes is the feed's. That Spark ends such a query and starts it again is test_tracked_metadata.py's.
pytestmark = pytest.mark.one_spark

Row = tuple[object, ...]
OTHERS = pytest.mark.every_stream
FEEDS = [
    pytest.param("name", False, id="name-rows"),
    pytest.param("name", True, id="name-changes", marks=OTHERS),
    pytest.param("id", False, id="id-rows", marks=OTHERS),
    pytest.param("id", True, id="id-changes"),
]
TRACKING = [pytest.param(False, id="untracked"), pytest.param(True, id="tracked")]
WIDENING = protocol(3, 7, readerFeatures=["typeWidening"], writerFeatures=["typeWidening"])
LARGEST = 2**31 - 1


def by_number(copied: pa.Table) -> list[Row]:
    rows = zip(*copied.to_pydict().values(), strict=True)
    return sorted(rows, key=lambda row: int(str(row[0])))


def columns_and_rows(table: Path) -> tuple[list[str], list[Row]]:
    copied = DeltaTable(str(table)).to_pyarrow_table()
    return copied.column_names, by_number(copied)


def texts(numbers: range, *columns: str) -> list[Row]:
    """Rows of a, b and c that have the number as text in a and these columns, and null elsewhere."""
    return [tuple(str(number) if name in ("a", *columns) else None for name in "abc") for number in numbers]


@pytest.mark.parametrize(("mapping", "of_changes"), FEEDS)
def test_a_copy_keeps_each_column_that_it_ever_had_while_those_of_its_source_come_and_go(
    spark: SparkSession,
    tmp_path: Path,
    mapping: str,
    of_changes: bool,  # noqa: FBT001
) -> None:
    source, target, checkpoint = tmp_path / "source", tmp_path / "target", tmp_path / "checkpoint"
    table = Table(source).create("a", "b", mapping=mapping, enableChangeDataFeed="true")
    start = table.append(*range(5))
    table.rename("b", "c")
    table.append(*range(5, 10))
    table.rename("c", "b")
    table.append(*range(10, 15))
    table.drop("b")
    table.append(*range(15, 20))
    table.add_column("b")
    table.append(*range(20, 25))

    def copy() -> None:
        stream = reader(
            spark,
            source,
            startingVersion=start,
            schemaTrackingLocation=checkpoint / "tracked",
            allowSourceColumnRename="always",
            allowSourceColumnDrop="always",
            **({"readChangeFeed": "true"} if of_changes else {}),
        )
        write_out(
            stream.drop("_change_type", "_commit_version", "_commit_timestamp"), target, checkpoint, mergeSchema="true"
        )

    def copy_up_to_a_change() -> None:
        assert "[DELTA_STREAMING_METADATA_EVOLUTION]" in refusal(copy)

    copy_up_to_a_change()
    assert newest_version(target) == -1
    copy_up_to_a_change()
    assert columns_and_rows(target) == (["a", "b"], [("4", "4")])
    copy_up_to_a_change()
    expected = [*texts(range(4, 5), "b"), *texts(range(5, 10), "c")]
    assert columns_and_rows(target) == (["a", "b", "c"], expected)
    copy_up_to_a_change()
    expected += texts(range(10, 15), "b")
    assert columns_and_rows(target) == (["a", "b", "c"], expected)
    copy_up_to_a_change()
    expected += texts(range(15, 20))
    assert columns_and_rows(target) == (["a", "b", "c"], expected)
    copy()
    expected += texts(range(20, 25), "b")
    assert columns_and_rows(target) == (["a", "b", "c"], expected)


def let_types_widen(table: Path) -> None:
    """Another writer's commit, as ALTER TABLE makes it."""
    next_version = newest_version(table) + 1
    *_, before = (made for v in range(next_version) for kind, made in actions(table, v) if kind == "metaData")
    after = before | {"configuration": {"delta.enableTypeWidening": "true"}}
    put(LocalStore(str(table)), next_version, [WIDENING, {"metaData": after}])


@pytest.mark.parametrize("tracks", TRACKING)
def test_a_copy_takes_a_wider_type_where_its_table_and_the_write_let_it_and_else_what_fits(
    spark: SparkSession,
    tmp_path: Path,
    tracks: bool,  # noqa: FBT001
) -> None:
    source, target, checkpoint = tmp_path / "source", tmp_path / "target", tmp_path / "checkpoint"
    table = Table(source, columns=(Column(name="a", kind="byte"),), configuration={"delta.enableTypeWidening": "true"})
    table.commit(WIDENING, table.metadata)
    Table(target).create("a", kind="byte")

    def copy(*, merge_schema: bool) -> None:
        tracking = {"schemaTrackingLocation": checkpoint / "tracked", "allowSourceColumnTypeChange": "always"}
        stream = reader(spark, source, **(tracking if tracks else {}))
        write_out(stream, target, checkpoint, mergeSchema=str(merge_schema).lower())

    def types_and_rows() -> tuple[dict[str, str], list[Row]]:
        copied = spark.read.format("tablefeed").load(str(target))
        return dict(copied.dtypes), by_number(copied.toArrow())

    table.append((1,))
    copy(merge_schema=False)
    assert types_and_rows() == ({"a": "tinyint"}, [(1,)])

    table.widen("a", "integer")
    table.add_column("b", "integer")
    table.append((2, 2))
    if tracks:
        assert "[DELTA_STREAMING_METADATA_EVOLUTION]" in refusal(lambda: copy(merge_schema=True))
    copy(merge_schema=True)
    assert types_and_rows() == ({"a": "tinyint", "b": "int"}, [(1, None), (2, 2)])

    let_types_widen(target)
    table.append((LARGEST, LARGEST))
    assert "[CAST_OVERFLOW_IN_TABLE_INSERT]" in refusal(lambda: copy(merge_schema=False))
    copy(merge_schema=True)
    assert types_and_rows() == ({"a": "int", "b": "int"}, [(1, None), (2, 2), (LARGEST, LARGEST)])
