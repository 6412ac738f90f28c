"""A table with files of the Julian calendar: every call sees the days that Spark sees, and writes them as they are.

How such a file is read is tested in tests/data/test_julian.py.
"""

from __future__ import annotations

import json
import shutil
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import tablefeed
from support.julian_files import FOLDER, file_name
from support.logs import add, info, protocol
from support.maintained import live
from support.recorded import cdc, log, recorded, schema

FILE = FOLDER / file_name("INT96", "America/Los_Angeles")
SCHEMA = schema(("day", "integer"), ("us", "long"), ("d", "date"), ("t", "timestamp"))
OLD_SPARK = {"org.apache.spark.version": "2.4.5"}


def a_table(table: Path, *, stats: str = "{}") -> Path:
    """Version 1 has Spark's file, version 2 a file of changes that deletes 4 October 1582 from it."""
    shutil.copy(FILE, table / "a.parquet")
    change = pa.table({"d": pa.array([date(1582, 10, 14)]), "_change_type": ["delete"]})
    with pq.ParquetWriter(table / "cdc.parquet", change.schema) as writer:
        writer.write_table(change)
        writer.add_key_value_metadata(OLD_SPARK)
    return log(
        table,
        v0=[info(timestamp=1), protocol(1, 4), recorded(SCHEMA)],
        v1=[info(timestamp=2), add("a.parquet", size=FILE.stat().st_size, stats=stats)],
        v2=[info(timestamp=3), cdc("cdc.parquet")],
    )


def is_right(rows: pa.Table) -> bool:
    """Whether every row has the day and the moment that Spark reads in it."""
    days, moments = rows["d"].cast(pa.int32()), rows["t"].cast(pa.int64())
    return bool(rows.num_rows and days.equals(rows["day"]) and moments.equals(rows["us"]))


def marks(table: Path) -> set[bytes]:
    """What footers of live files say of Spark."""
    keys = {key for path in live(table) for key in pq.read_metadata(table / path).metadata or {}}
    return {key for key in keys if b"spark" in key}


def test_a_table_its_appends_and_its_changes_have_the_days_that_spark_reads(tmp_path: Path) -> None:
    table = a_table(tmp_path)

    assert is_right(tablefeed.open_table(table).to_arrow())
    assert is_right(tablefeed.appends(table, start_version=1).read_all())
    assert is_right(tablefeed.changes(table, start_version=1, end_version=1).read_all())
    assert tablefeed.changes(table, start_version=2).read_all()["d"].to_pylist() == [date(1582, 10, 4)]


@pytest.mark.parametrize(
    ("condition", "count"),
    [
        (pc.field("d") == date(1582, 10, 4), 1),
        (pc.field("d") == date(1582, 10, 14), 0),
        (pc.field("d") < date(1, 1, 1), 3),  # 28 February -100, 15 March -44, 31 December 0
    ],
)
def test_a_filter_asks_of_the_days_that_are_meant(tmp_path: Path, condition: pc.Expression, count: int) -> None:
    bounds = {"minValues": {"d": "-0100-02-28"}, "maxValues": {"d": "9999-12-31"}}
    table = tablefeed.open_table(a_table(tmp_path, stats=json.dumps({"numRecords": 155, **bounds})))

    assert table.to_arrow(filter=condition).num_rows == count


def test_no_file_is_pruned_by_the_days_in_its_footer_or_the_numbers_of_an_old_writers_log(tmp_path: Path) -> None:
    # By their numbers both days are of the Gregorian calendar, 10 days later.
    bounds = {"minValues": {"d": "1582-10-14"}, "maxValues": {"d": "1582-10-14"}}
    table = a_table(tmp_path, stats=json.dumps({"numRecords": 155, **bounds}))

    rows = tablefeed.open_table(table).to_arrow(filter=pc.field("d") == date(1582, 10, 4))

    assert rows["d"].to_pylist() == [date(1582, 10, 4)]


def test_what_is_folded_or_replaced_is_written_as_what_it_means_and_bears_no_mark(tmp_path: Path) -> None:
    table = a_table(tmp_path)
    before = tablefeed.open_table(table).to_arrow()
    assert {b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96"} < marks(table)

    none = before.slice(0, 0)
    tablefeed.append(table, none, mode="overwrite", replace_where="d = DATE'1582-10-04'")
    replaced = tablefeed.open_table(table).to_arrow()
    tablefeed.append(table, before.slice(before.num_rows - 1))
    folded = tablefeed.optimize(table)

    assert is_right(replaced)
    assert replaced.num_rows == before.num_rows - 1
    assert folded.files_added == 1
    assert is_right(tablefeed.open_table(table).to_arrow())
    assert marks(table) == set()


def test_marks_on_the_schema_of_rows_do_not_come_into_a_file(tmp_path: Path) -> None:
    rows = pa.table({"d": [date(1582, 10, 4)]}).replace_schema_metadata(OLD_SPARK)

    tablefeed.append(tmp_path, rows)
    tablefeed.append(tmp_path, rows)

    assert marks(tmp_path) == set()
    assert tablefeed.open_table(tmp_path).to_arrow()["d"].to_pylist() == [date(1582, 10, 4)] * 2
