"""The JAR's tables with Julian days have the same rows here, and the JAR reads our files as we mean them."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import tablefeed
from support.julian_files import DAYS, julian

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PROPERTIES = (
    "'delta.enableDeletionVectors' = 'true', 'delta.enableChangeDataFeed' = 'true', "
    "'delta.columnMapping.mode' = 'name', 'delta.checkpointInterval' = '3', "
    "'delta.checkpoint.writeStatsAsStruct' = 'true', 'delta.checkpoint.writeStatsAsJson' = 'false'"
)
OF_OUR_ERA = [day for day in DAYS if day >= "0001-01-02"]
NUMBERS = ("id", "unix_date(d)", "unix_micros(t)", "unix_date(s.d)", "unix_micros(s.t)")


def numbers(rows: pa.Table) -> list[tuple[int, ...]]:
    rows = rows.combine_chunks()
    inner = [pc.struct_field(rows["s"], name) for name in "dt"]
    days = [column.cast(pa.int32()) for column in (rows["d"], inner[0])]
    times = [column.cast(pa.int64()) for column in (rows["t"], inner[1])]
    columns = [rows["id"], days[0], times[0], days[1], times[1]]
    return sorted(zip(*(column.to_pylist() for column in columns), strict=True))


def of_the_jar(rows: DataFrame) -> list[tuple[int, ...]]:
    return sorted(tuple(row) for row in rows.selectExpr(*NUMBERS).collect())


def rows_of_every_century(session: SparkSession) -> DataFrame:
    texts = session.createDataFrame(
        [(i, f"{day} 12:34:56.789") for i, day in enumerate(OF_OUR_ERA)], "id int, x string"
    )
    plain = texts.selectExpr("id", "cast(x as date) d", "cast(x as timestamp) t")
    return plain.selectExpr("*", "named_struct('d', d, 't', t) s").coalesce(1)


@pytest.mark.parametrize("kind", ["INT96", "TIMESTAMP_MICROS"])
def test_a_table_of_the_julian_calendar_has_the_jars_rows(delta_spark: SparkSession, tmp_path: Path, kind: str) -> None:
    table, name = tmp_path / "t", f"delta.`{tmp_path / 't'}`"
    with julian(delta_spark, kind=kind, zone="Europe/Paris"):
        delta_spark.sql(
            f"CREATE TABLE {name} (id INT, d DATE, t TIMESTAMP, s STRUCT<d: DATE, t: TIMESTAMP>) "
            f"USING delta TBLPROPERTIES ({PROPERTIES})"
        )
        rows = rows_of_every_century(delta_spark)
        for part in range(3):
            rows.where(f"id % 3 = {part}").coalesce(1).write.format("delta").mode("append").save(str(table))
        delta_spark.sql(f"DELETE FROM {name} WHERE id % 7 = 0")  # noqa: S608 - a path
        delta_spark.sql(f"UPDATE {name} SET d = DATE'1582-10-03' WHERE d = DATE'1582-10-04'")  # noqa: S608 - a path
    assert list(table.glob("_delta_log/*.checkpoint*.parquet"))
    jars = delta_spark.read.format("delta").load(str(table))
    changes = delta_spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", "1")

    ours = tablefeed.open_table(table)

    assert numbers(ours.to_arrow()) == of_the_jar(jars)
    assert numbers(tablefeed.changes(table, start_version=1).read_all()) == of_the_jar(changes.load(str(table)))
    for text, condition in {
        "d = DATE'1582-10-03'": pc.field("d") == date(1582, 10, 3),
        "d <= DATE'0100-03-01'": pc.field("d") <= date(100, 3, 1),
        "t < TIMESTAMP'1899-12-31 12:25:00Z'": pc.field("t") < datetime(1899, 12, 31, 12, 25, tzinfo=UTC),
        "t BETWEEN TIMESTAMP'1800-01-01 00:00:00Z' AND TIMESTAMP'1883-11-18 12:25:35.789Z'": (
            (pc.field("t") >= datetime(1800, 1, 1, tzinfo=UTC))
            & (pc.field("t") <= datetime(1883, 11, 18, 12, 25, 35, 789_000, tzinfo=UTC))
        ),
    }.items():
        assert numbers(ours.to_arrow(filter=condition)) == of_the_jar(jars.where(text))


def test_the_jar_reads_what_was_folded_here_as_before(delta_spark: SparkSession, tmp_path: Path) -> None:
    with julian(delta_spark, kind="INT96", zone="America/Los_Angeles"):
        rows = rows_of_every_century(delta_spark)
        for _ in range(2):
            rows.coalesce(1).write.format("delta").mode("append").save(str(tmp_path))
    before = of_the_jar(delta_spark.read.format("delta").load(str(tmp_path)))

    assert tablefeed.optimize(tmp_path).files_removed == 2

    folded = delta_spark.read.format("delta").load(str(tmp_path))
    assert of_the_jar(folded) == before
    assert folded.where("d = DATE'1582-10-04'").count() == 2
    assert folded.where("t < TIMESTAMP'0001-01-04 00:00:00Z'").count() == 4


def test_the_jar_reads_the_days_of_every_century_in_our_files_as_they_are(
    delta_spark: SparkSession, tmp_path: Path
) -> None:
    years = [1, *range(100, 10_000, 100)]
    moments = pa.array([datetime(year, 3, 1, 12, tzinfo=UTC) for year in years], pa.timestamp("us", "UTC"))
    tablefeed.append(tmp_path, pa.table({"d": [date(year, 3, 1) for year in years], "t": moments}))

    table = delta_spark.read.format("delta").load(str(tmp_path))

    rows = table.selectExpr("cast(d as string)", "cast(t as string)").collect()
    assert [tuple(row) for row in rows] == [(f"{year:04}-03-01", f"{year:04}-03-01 12:00:00") for year in years]
    assert table.where("d = DATE'1500-03-01' AND t = TIMESTAMP'1500-03-01 12:00:00Z'").count() == 1
