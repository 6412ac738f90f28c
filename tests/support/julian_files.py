"""Parquet files of old days and times as Spark writes them in the Julian calendar, each with what Spark reads there.

`python -m support.julian_files`, in tests/ and with a JVM, makes the files of tests/data/julian anew.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FOLDER = Path(__file__).parents[1] / "data" / "julian"
"""The committed ones: `KIND-ZONE.parquet`, with `/` as `_`."""

COMMITTED = (
    ("INT96", "America/Los_Angeles"),
    ("TIMESTAMP_MICROS", "Asia/Kolkata"),  # whose offset changed three times before 1900
    ("TIMESTAMP_MICROS", "+05:30"),  # no zone to Java, which takes UTC
    ("TIMESTAMP_MILLIS", "Asia/Tokyo"),
)

_EDGES = (
    *("-0100-02-28", "-0044-03-15", "0000-12-31", "0001-01-02", "0001-01-03", "0100-02-28", "0100-03-01", "0100-03-02"),
    *("0400-02-29", "1000-02-28", "1000-03-01", "1500-02-28", "1500-03-01", "1500-03-10", "1500-03-11"),
    *("1582-10-03", "1582-10-04", "1582-10-05", "1582-10-14", "1582-10-15", "1582-10-16", "1700-02-28", "1700-03-01"),
    *("1853-12-31", "1854-01-01", "1869-12-31", "1870-01-01", "1883-11-17", "1883-11-18", "1883-11-19", "1887-12-31"),
    *("1888-01-01", "1891-03-15", "1891-03-16", "1899-12-31", "1900-01-01", "1900-01-02", "1911-03-11", "1945-08-15"),
    *("1970-01-01", "2024-02-29", "9999-12-31"),
)
DAYS = tuple(sorted({*_EDGES, *(f"{max(year, 1):04}-01-01" for year in range(0, 10_000, 100))}))
_TIMES = ("00:00:00", "23:59:59.999", "12:07:01.123456", "00:09:20")


@contextmanager
def julian(session: SparkSession, *, kind: str, zone: str) -> Iterator[None]:
    """Within, `session` writes the Julian calendar, timestamps as `kind`, in the time zone `zone`."""
    conf = {
        "spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY",
        "spark.sql.parquet.int96RebaseModeInWrite": "LEGACY",
        "spark.sql.parquet.outputTimestampType": kind,
        "spark.sql.session.timeZone": zone,
    }
    before = {key: session.conf.get(key) for key in conf}
    try:
        for key, value in conf.items():
            session.conf.set(key, value)
        yield
    finally:
        for key, old in before.items():
            session.conf.set(key, str(old))


def write_file(session: SparkSession, to: Path, *, kind: str, zone: str) -> None:
    """Writes one file. `day` and `us` are the days and microseconds since 1970 that Spark reads in `d` and `t`.

    Of the other columns `s`, `l` and `m` hold `d` and `t` in a struct, a list and a map; `n` is a timestamp without a
    zone, which counts no Julian day; `n_us` is its microseconds.
    """
    texts = [(i, day, f"{day} {_TIMES[i % len(_TIMES)]}") for i, day in enumerate(DAYS)]
    with julian(session, kind=kind, zone=zone), tempfile.TemporaryDirectory() as scratch:
        plain = session.createDataFrame(texts, "id int, day string, time string")
        # Written and read once: 1582-10-05 is no day of that calendar, so what was meant is not what is read.
        columns = ("id", "cast(day as date) d", "cast(time as timestamp) t", "cast(time as timestamp_ntz) n")
        _only_file(plain.selectExpr(*columns), scratch, "once")
        again = session.read.parquet(f"{scratch}/once").selectExpr(
            *("id", "unix_date(d) day", "unix_micros(t) us", "d", "t"),
            *("named_struct('d', d, 't', t) s", "array(t, null, t) l", "map(d, array(t)) m"),
            *("n", "timestampdiff(MICROSECOND, timestamp_ntz'1970-01-01 00:00:00', n) n_us"),
        )
        to.write_bytes(_only_file(again, scratch, "again").read_bytes())


def _only_file(rows: DataFrame, scratch: str, name: str) -> Path:
    rows.coalesce(1).write.option("compression", "zstd").parquet(f"{scratch}/{name}")
    (file,) = Path(scratch, name).glob("*.parquet")
    return file


def file_name(kind: str, zone: str) -> str:
    """The name of a committed file."""
    return f"{kind}-{zone.replace('/', '_').replace(':', '')}.parquet"


if __name__ == "__main__":
    from support.session import start_session

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    with tempfile.TemporaryDirectory() as folder:
        spark = start_session("files of the Julian calendar", scratch=Path(folder))
        FOLDER.mkdir(exist_ok=True)
        for kind, zone in COMMITTED:
            write_file(spark, FOLDER / file_name(kind, zone), kind=kind, zone=zone)
        spark.stop()
