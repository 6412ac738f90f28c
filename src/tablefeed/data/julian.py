"""Converts dates and times that a file stores in the Julian calendar to the Gregorian one, which tables use.

Spark wrote such files before 3.0 (INT96: 3.1), and still does where `datetimeRebaseModeInWrite` is LEGACY; the footer
says so. In such files a date before 1582-10-15 is stored as the Julian day with that year, month and day, and a
timestamp before 1900 uses the offset that its zone has had since. The rules are Spark's:
`DataSourceUtils.datetimeRebaseSpec`, `int96RebaseSpec` and `RebaseDateTime`, whose table
julian-gregorian-rebase-micros.json is condensed in julian_zones.txt. A footer without `org.apache.spark.version` is
read as Spark 4.0 and newer read it by default: nothing in it is Julian.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tablefeed.data.retype import Conversion, Leaf, LossyConversionError, Rereading, lossless
from tablefeed.model.spark_texts import DAY_US

_VERSION = b"org.apache.spark.version"
_LEGACY_DATETIME = b"org.apache.spark.legacyDateTime"
_LEGACY_INT96 = b"org.apache.spark.legacyINT96"
_TIME_ZONE = b"org.apache.spark.timeZone"
_INSTANT = "Timestamp(isAdjustedToUTC=true"

_SECOND_US = 1_000_000
_FIRST_GREGORIAN_DAY = -141_427  # 1582-10-15
_LAST_SWITCH_US = -2_208_988_800_000_000  # 1900-01-01, from which on both calendars agree in all zones


class UnknownZoneError(LossyConversionError):
    """A time before 1900 in the Julian calendar, in a zone that the file does not name or that Spark's table lacks."""


def leaf_for(file: pq.ParquetFile) -> Leaf:
    """How the values of `file` are read: as they are, except those that its footer says are Julian."""
    footer: Mapping[bytes, bytes] = file.metadata.metadata or {}
    version = footer.get(_VERSION)
    if version is None:
        return lossless
    # Spark compares versions as texts, and so do we.
    datetime = version < b"3.0.0" or _LEGACY_DATETIME in footer
    int96 = version < b"3.1.0" or _LEGACY_INT96 in footer
    if not datetime and not int96:
        return lossless
    columns = [file.schema.column(i) for i in range(len(file.schema))]
    has_int96 = any(column.physical_type == "INT96" for column in columns)
    has_instants = any(str(column.logical_type).startswith(_INSTANT) for column in columns)
    zone = footer.get(_TIME_ZONE)
    return _Julian(
        days=datetime,
        with_zone=datetime if has_instants or not has_int96 else int96,
        without_zone=int96 if has_int96 else datetime,
        zone=None if zone is None else zone.decode(errors="replace"),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Julian(Rereading):
    """Which values are Julian, by their Arrow type. INT96 comes without a zone, except from a file that Arrow wrote.

    `zone` is the footer's text. Columns of type timestamp_ntz are never Julian: no old Spark had that type.
    """

    days: bool
    with_zone: bool
    without_zone: bool
    zone: str | None

    def __call__(self, found: pa.DataType, wanted: pa.DataType) -> Conversion:
        convert = lossless(found, wanted)
        if not self.rereads(found):
            return convert
        if pa.types.is_date(found):
            return lambda array: _gregorian_days(array.cast(pa.date32())).cast(wanted)
        if not pa.types.is_timestamp(wanted) or wanted.tz is None:
            return convert

        def gregorian(array: pa.Array) -> pa.Array:
            times = convert(array)
            least = pc.min(times.cast(pa.int64())).as_py()
            if least is None or least >= _LAST_SWITCH_US:
                return times
            zone = None if self.zone is None else zone_called(self.zone)
            if zone is None:
                raise UnknownZoneError(found, wanted, reason=self._why_unknown())
            return gregorian_micros(times.cast(pa.int64()), zone).cast(wanted)

        return gregorian

    def rereads(self, kind: pa.DataType) -> bool:
        if pa.types.is_timestamp(kind):
            return self.without_zone if kind.tz is None else self.with_zone
        return self.days and bool(pa.types.is_date(kind))

    def _why_unknown(self) -> str:
        if self.zone is None:
            return "the file does not name the time zone in which it was written"
        return f"it was written in the time zone {self.zone}, whose offsets before 1900 are not known here"


def _gregorian_days(array: pa.Array) -> pa.Array:
    """Converts dates up to 1582-10-04 from the Julian calendar to the same year, month and day in the Gregorian one."""
    days = array.cast(pa.int32()).cast(pa.int64())
    return pc.add(days, _days_between(days)).cast(pa.int32()).cast(array.type)


_CYCLE_DAYS = 146_100  # 400 Julian years
_CYCLES = 20_000  # moves any day of 32 bits above 0, where dividing rounds down
_FIRST_OF_MARCH_0 = -719_470  # in the Julian calendar: a leap day ends the year that begins so


def _days_between(days: pa.Array) -> pa.Array:
    """What to add to Julian days, counted from 1970, to get Gregorian ones; 0 from 1582-10-15 on.

    A leap day that only the Julian calendar has becomes 1 March.
    """
    moved = pc.add(days, _CYCLES * _CYCLE_DAYS - _FIRST_OF_MARCH_0)
    year = pc.divide(pc.add(pc.multiply(moved, 4), 3), 1461)
    leap_days_apart = pc.subtract(pc.divide(year, 100), pc.divide(year, 400))  # 3 in 400 years
    between = pc.subtract(3 * _CYCLES + 2, leap_days_apart)
    return pc.if_else(pc.less(days, _FIRST_GREGORIAN_DAY), between, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Zone:
    """The time zone of a file's writer: its offset from UTC until 1582, and corrections to the times that it wrote.

    `first_us` is added to early times. From each moment in `later`, in ascending order, the value beside it is added.
    """

    offset_us: int = 0
    first_us: int = 0
    later: tuple[tuple[int, int], ...] = ()


def gregorian_micros(micros: pa.Array, zone: Zone) -> pa.Array:
    """Converts Julian timestamps to those at which clocks of `zone` show the same time in the Gregorian calendar."""
    local = pc.min_element_wise(pc.add_checked(micros, zone.offset_us), -1, skip_nulls=False)
    days = pc.subtract(pc.divide(pc.add(local, 1), DAY_US), 1)  # rounded down: dividing rounds towards 0
    added = pa.scalar(zone.first_us, pa.int64())
    for begin_us, added_us in zone.later:
        added = pc.if_else(pc.greater_equal(micros, begin_us), added_us, added)
    return pc.add(pc.add(micros, pc.multiply(_days_between(days), DAY_US)), added)


_OFFSET = re.compile(r"GMT([+-])([01]?[0-9]|2[0-3])(?::?([0-5][0-9]))?")
_NO_ZONE_OF_JAVA = re.compile(r"Z|(?:UTC|UT)?[+-][0-9:]+")


@lru_cache(maxsize=64)
def zone_called(name: str) -> Zone | None:
    """The zone that Spark uses for `name`; None where that depends on its JVM."""
    from importlib import resources  # few files need it, and it brings modules that no query imports

    for line in resources.files(__package__).joinpath("julian_zones.txt").read_text("utf-8").splitlines():
        offset, steps, names = line.split("|")
        if name in names.split(" "):
            first, *later = steps.split(" ")
            pairs = (step.split(":") for step in later)
            return Zone(
                offset_us=int(offset) * _SECOND_US,
                first_us=int(first) * _SECOND_US,
                later=tuple((int(begin) * _SECOND_US, int(added) * _SECOND_US) for begin, added in pairs),
            )
    if (custom := _OFFSET.fullmatch(name)) is not None:
        minutes = int(custom[2]) * 60 + int(custom[3] or 0)
        return Zone(offset_us=(-minutes if custom[1] == "-" else minutes) * 60 * _SECOND_US)
    # Spark looks these up in an older Java class (java.util.TimeZone), which uses UTC for a name that it does not know.
    return Zone() if _NO_ZONE_OF_JAVA.fullmatch(name) else None
