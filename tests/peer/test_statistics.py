"""What we say of a table and its files is what the JAR says of the same rows, but for what is written out here."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import tablefeed
from peer.tables import commit_actions, in_spark
from support.tables import TABLES, ATable
from tablefeed.errors import SchemaMismatchError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Action = dict[str, Any]  # Any: JSON


def by_the_jar(session: SparkSession, table: ATable, path: Path) -> Path:
    writer = in_spark(session, table.rows).write.format("delta").partitionBy(*table.partition_by)
    writer.options(**table.properties).save(str(path))
    return path


def by_us(table: ATable, path: Path) -> Path:
    tablefeed.append(path, table.rows, partition_by=table.partition_by, properties=table.properties)
    return path


def told(path: Path, version: int = 0) -> dict[str, Action]:
    """The actions of a version with one file, drawn names numbered as they come."""
    actions = commit_actions(path, version)
    found = {kind: action for kind, action in actions if kind in ("protocol", "metaData", "add")}
    drawn: dict[str, str] = {}
    text = json.dumps(found.get("metaData", {})) + json.dumps(found["add"])
    for name in re.findall(r"col-[0-9a-f-]{36}", text):
        drawn.setdefault(name, f"col-{len(drawn) + 1}")
    for name, number in drawn.items():
        found = json.loads(json.dumps(found).replace(name, number))
    return found


def statistics(path: Path, version: int = 0) -> Any:  # Any: JSON
    """Of the version's one file, numbers to the last digit."""
    return json.loads(told(path, version)["add"]["stats"], parse_float=Decimal)


def described(path: Path) -> Action:
    """What the table is: its protocol and metadata, but for what is drawn."""
    actions = told(path)
    protocol, metadata = actions["protocol"], actions["metaData"]
    for features in ("readerFeatures", "writerFeatures"):
        if features in protocol:
            protocol[features] = sorted(protocol[features])
    for one_off in ("id", "createdTime"):
        assert metadata.pop(one_off)
    return {"protocol": protocol, **metadata, "schemaString": json.loads(metadata["schemaString"])}


@pytest.mark.in_turn
@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_a_new_table_and_its_statistics_are_told_as_the_jar_tells_them(
    delta_spark: SparkSession, tmp_path: Path, table: ATable
) -> None:
    theirs, ours = by_the_jar(delta_spark, table, tmp_path / "theirs"), by_us(table, tmp_path / "ours")

    assert statistics(ours) == statistics(theirs)
    assert described(ours) == described(theirs)


def test_bounds_are_wider_than_the_jars_where_its_own_lose_rows_to_other_readers(
    delta_spark: SparkSession, tmp_path: Path
) -> None:
    moments = [datetime(2024, 2, 29, 23, 59, 59, 999_999, UTC), datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC)]
    table = ATable(
        rows=pa.table(
            {
                "moment": pa.array(moments, pa.timestamp("us", "UTC")),
                "clock": pa.array([each.replace(tzinfo=None) for each in moments], pa.timestamp("us")),
                "single": pa.array([0.1, 1e10], pa.float32()),
                "text": ["ü" * 40, "a"],
            }
        )
    )

    theirs = statistics(by_the_jar(delta_spark, table, tmp_path / "theirs"))
    ours = statistics(by_us(table, tmp_path / "ours"))

    assert theirs["minValues"] == {
        "moment": "1969-12-31T23:59:59.999Z",
        "clock": "1969-12-31T23:59:59.999",
        "single": Decimal("0.1"),
        "text": "a",
    }
    assert ours["minValues"] == {**theirs["minValues"], "single": Decimal("0.10000000149011612")}
    assert (theirs["maxValues"]["moment"], ours["maxValues"]["moment"]) == (
        "2024-02-29T23:59:59.999Z",
        "2024-03-01T00:00:00.000Z",
    )
    assert (theirs["maxValues"]["clock"], ours["maxValues"]["clock"]) == (
        "2024-02-29T23:59:59.999",
        "2024-03-01T00:00:00.000",
    )
    assert theirs["maxValues"]["single"] == ours["maxValues"]["single"] == Decimal(10**10)
    assert theirs["maxValues"]["text"] == ours["maxValues"]["text"]


MADE_BY_THE_JAR: Mapping[str, tuple[str, pa.Table]] = {
    "clustered": (
        "(id LONG, st STRUCT<x: LONG, y: STRING>) USING delta CLUSTER BY (st.x)",
        pa.table({"id": [1, 2], "st": [{"x": 1, "y": "a"}, {"x": None, "y": None}]}),
    ),
    "clustered, and named": (
        "(id LONG, name STRING) USING delta CLUSTER BY (name) "
        "TBLPROPERTIES ('delta.dataSkippingStatsColumns' = 'name')",
        pa.table({"id": [1, 2], "name": ["a", "b"]}),
    ),
    "without a type": (
        "(id LONG, nothing VOID, name STRING) USING delta TBLPROPERTIES ('delta.dataSkippingNumIndexedCols' = '2')",
        pa.table({"id": [1, 2], "name": ["a", "b"]}),
    ),
    "generated": (
        "(id LONG, twice LONG GENERATED ALWAYS AS (id * 2)) USING delta",
        pa.table({"id": pa.array([1, 2], pa.int64())}),
    ),
    "lengths": (
        "(c CHAR(3), v VARCHAR(50)) USING delta",
        pa.table({"c": ["a", "bcd"], "v": ["v" * 40, None]}),
    ),
    "required": (
        "(id LONG NOT NULL, st STRUCT<x: LONG NOT NULL>) USING delta",
        pa.table({"id": [1, 2], "st": [{"x": 1}, {"x": 2}]}),
    ),
}


@pytest.mark.parametrize(("made", "rows"), MADE_BY_THE_JAR.values(), ids=MADE_BY_THE_JAR)
def test_statistics_of_rows_for_a_table_that_the_jar_made_are_its_own(
    delta_spark: SparkSession, tmp_path: Path, made: str, rows: pa.Table
) -> None:
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    delta_spark.sql(f"CREATE TABLE delta.`{theirs}` {made}")
    shutil.copytree(theirs, ours)

    in_spark(delta_spark, rows).write.format("delta").mode("append").save(str(theirs))
    tablefeed.append(ours, rows)

    assert statistics(ours, 1) == statistics(theirs, 1)


def test_values_that_an_identity_column_is_made_are_bounded_although_the_properties_leave_it_out(
    delta_spark: SparkSession, tmp_path: Path
) -> None:
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    delta_spark.sql(
        f"CREATE TABLE delta.`{theirs}` (name STRING, n LONG GENERATED ALWAYS AS IDENTITY) USING delta "
        "TBLPROPERTIES ('delta.dataSkippingNumIndexedCols' = '1')"
    )
    shutil.copytree(theirs, ours)
    rows = pa.table({"name": ["a", "b"]})

    in_spark(delta_spark, rows).write.format("delta").mode("append").save(str(theirs))
    tablefeed.append(ours, rows)

    by_name = {"numRecords": 2, "minValues": {"name": "a"}, "maxValues": {"name": "b"}, "nullCount": {"name": 0}}
    assert statistics(theirs, 1) == by_name
    # By them the commit finds how far the column's mark moved.
    assert statistics(ours, 1) == {
        "numRecords": 2,
        "minValues": {"name": "a", "n": 1},
        "maxValues": {"name": "b", "n": 2},
        "nullCount": {"name": 0, "n": 0},
    }


REFUSED: Mapping[str, tuple[str, str]] = {
    "partition column": ("p", "DELTA_COLUMN_DATA_SKIPPING_NOT_SUPPORTED_PARTITIONED_COLUMN"),
    "no order": ("flag", "DELTA_COLUMN_DATA_SKIPPING_NOT_SUPPORTED_TYPE"),
    "gone": ("gone", "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA"),
    "twice": ("id, id", "DELTA_DUPLICATE_DATA_SKIPPING_COLUMNS"),
}


@pytest.mark.parametrize(("named", "error_class"), REFUSED.values(), ids=REFUSED)
def test_both_refuse_to_make_a_table_whose_named_columns_can_have_no_statistics(
    delta_spark: SparkSession, tmp_path: Path, named: str, error_class: str
) -> None:
    rows = pa.table({"id": [1], "flag": [True], "p": ["a"]})
    table = ATable(rows=rows, partition_by=("p",), properties={"delta.dataSkippingStatsColumns": named})

    with pytest.raises(Exception, match=error_class):
        by_the_jar(delta_spark, table, tmp_path / "theirs")
    with pytest.raises(SchemaMismatchError) as refused:
        by_us(table, tmp_path / "ours")
    assert refused.value.error_class == error_class
