"""Files of the Julian calendar are read as this Spark reads them; and what we write, it reads as we mean it."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import tablefeed
from support.julian_files import write_file
from tablefeed.data.julian import gregorian_micros, zone_called
from tablefeed.data.read import FileColumns, ReadPlan, read_batches

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DATE, TIMESTAMP = pa.date32(), pa.timestamp("us", "UTC")
TIMES = pa.list_(pa.field("element", TIMESTAMP))
STRUCT = pa.struct([("d", DATE), ("t", TIMESTAMP)])
COLUMNS: list[tuple[str, pa.DataType]] = [("d", DATE), ("t", TIMESTAMP), ("n", pa.timestamp("us")), ("s", STRUCT)]
SCHEMA = pa.schema([("id", pa.int32()), *COLUMNS, ("l", TIMES), ("m", pa.map_(DATE, TIMES))])
CENTURIES = [1, *range(100, 10_000, 100)]


def read(file: Path, schema: pa.Schema) -> pa.Table:
    plan = ReadPlan(schema=schema, batch_rows=50)
    return pa.Table.from_batches(read_batches(file, plan, FileColumns(path=file.name)), schema).combine_chunks()


@pytest.mark.parametrize(
    ("kind", "zone"),
    [
        ("INT96", "UTC"),
        ("INT96", "Africa/Algiers"),
        ("INT96", "Pacific/Bougainville"),
        ("TIMESTAMP_MICROS", "America/Los_Angeles"),
        ("TIMESTAMP_MICROS", "Europe/Paris"),
        ("TIMESTAMP_MICROS", "GMT+05:30"),
        ("TIMESTAMP_MILLIS", "Australia/Broken_Hill"),
        ("TIMESTAMP_MILLIS", "-11:45"),
    ],
)
def test_days_and_times_of_every_century_are_those_that_spark_reads(
    spark: SparkSession, tmp_path: Path, kind: str, zone: str
) -> None:
    file = tmp_path / "a.parquet"
    write_file(spark, file, kind=kind, zone=zone)
    sparks = spark.read.parquet(str(file)).selectExpr(
        *("id", "unix_date(d) d", "unix_micros(t) t"),
        "timestampdiff(MICROSECOND, timestamp_ntz'1970-01-01 00:00:00', n) n",
        *("unix_date(s.d) sd", "unix_micros(s.t) st", "unix_micros(l[0]) l", "unix_micros(map_values(m)[0][0]) m"),
        "unix_date(map_keys(m)[0]) k",
    )

    rows = read(file, SCHEMA)

    structs, maps = rows["s"].chunk(0), rows["m"].chunk(0)
    ours = {
        "id": rows["id"],
        **{name: rows[name] for name in "dtn"},
        "sd": structs.field("d"),
        "st": structs.field("t"),
        "l": pc.list_element(rows["l"], 0),
        "m": maps.items.flatten(),
        "k": maps.keys,
    }
    numbers = {
        name: ints.cast(pa.int32() if pa.types.is_date(ints.type) else pa.int64()) for name, ints in ours.items()
    }
    assert sorted(zip(*(column.to_pylist() for column in numbers.values()), strict=True)) == sorted(
        tuple(row) for row in sparks.collect()
    )


@pytest.mark.parametrize(
    "zone",
    [
        *(
            "UTC",
            "GMT",
            "Z",
            "+05:30",
            "-18:00",
            "UTC+01:00",
            "UTC-3",
            "UT+8",
            "GMT+5",
            "GMT-11:45",
            "GMT+0530",
            "GMT+530",
        ),
        *("Etc/GMT+5", "Asia/Kolkata", "Europe/Amsterdam", "America/New_York", "US/Pacific", "Africa/Monrovia"),
    ],
)
def test_a_zone_is_what_it_is_to_spark_in_every_spelling(spark: SparkSession, zone: str) -> None:
    jvm = spark._jvm
    assert jvm is not None
    rebase = jvm.org.apache.spark.sql.catalyst.util.RebaseDateTime.rebaseJulianToGregorianMicros
    hours = [-4_000_000, -719_164 * 24, -682_945 * 24, -171_595 * 24, -141_427 * 24, -1_000_000, -700_000, -613_608]
    micros = [(hour + around) * 3_600_000_000 + 123_456 for hour in hours for around in range(-14, 15, 2)]

    known = zone_called(zone)

    assert known is not None
    assert gregorian_micros(pa.array(micros), known).to_pylist() == [rebase(zone, moment) for moment in micros]


def test_days_of_spark_2_are_what_spark_reads(spark: SparkSession, tmp_path: Path) -> None:
    file, rows = tmp_path / "a.parquet", pa.table({"d": pa.array(range(-719_170, -141_400, 97), pa.int32()).cast(DATE)})
    with pq.ParquetWriter(file, rows.schema) as writer:
        writer.write_table(rows)
        writer.add_key_value_metadata({"org.apache.spark.version": "2.4.8"})

    sparks = [row[0] for row in spark.read.parquet(str(file)).selectExpr("unix_date(d)").collect()]

    assert read(file, rows.schema)["d"].cast(pa.int32()).to_pylist() == sparks


@pytest.mark.parametrize("vectorised", ["true", "false"])
def test_spark_reads_the_days_of_every_century_in_our_files_as_they_are(
    spark: SparkSession, tmp_path: Path, vectorised: str
) -> None:
    rows = pa.table(
        {
            "d": [date(year, 3, 1) for year in CENTURIES],
            "t": pa.array([datetime(year, 3, 1, 12, tzinfo=UTC) for year in CENTURIES], TIMESTAMP),
        }
    )
    tablefeed.append(tmp_path, rows)
    (file,) = tmp_path.glob("*.parquet")
    option = "spark.sql.parquet.enableVectorizedReader"
    before = str(spark.conf.get(option))
    spark.conf.set(option, vectorised)
    try:
        read = spark.read.parquet(str(file)).selectExpr("cast(d as string)", "cast(t as string)").collect()
    finally:
        spark.conf.set(option, before)

    assert [tuple(row) for row in read] == [(f"{year:04}-03-01", f"{year:04}-03-01 12:00:00") for year in CENTURIES]
