"""Days and times that a file counts in the Julian calendar are read as Spark reads them, or refused by name.

The files of tests/data/julian are Spark's (support/julian_files.py): each has beside its values what Spark reads there.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyroaring import BitMap64

from support.julian_files import COMMITTED, FOLDER, file_name
from tablefeed.data.julian import gregorian_micros, zone_called
from tablefeed.data.read import FileColumns, ReadPlan, RowSelection, read_batches
from tablefeed.data.retype import FIELD_ID
from tablefeed.errors import DataFileError

DATE, TIMESTAMP, WITHOUT_ZONE = pa.date32(), pa.timestamp("us", "UTC"), pa.timestamp("us")
TIMES = pa.list_(pa.field("element", TIMESTAMP))
NESTED = [("s", pa.struct([("d", DATE), ("t", TIMESTAMP)])), ("l", TIMES), ("m", pa.map_(DATE, TIMES))]
EXPECTED = [("day", pa.int32()), ("us", pa.int64()), ("n_us", pa.int64())]
SCHEMA = pa.schema([*EXPECTED, ("d", DATE), ("t", TIMESTAMP), ("n", WITHOUT_ZONE), *NESTED])

VERSION, LEGACY, LEGACY_INT96, ZONE = (
    f"org.apache.spark.{name}" for name in ("version", "legacyDateTime", "legacyINT96", "timeZone")
)
JULIAN_1582_10_04 = date(1582, 10, 14)
"""The day before 1582-10-15 by its number: what the Julian calendar calls 4 October."""


def read(
    file: Any, schema: pa.Schema, *, stored: pa.Schema | None = None, selection: RowSelection | None = None
) -> pa.Table:
    plan = ReadPlan(schema=schema, stored=stored, batch_rows=50)
    batches = list(read_batches(file, plan, FileColumns(path="a.parquet", selection=selection)))
    for batch in batches:
        batch.validate(full=True)
    return pa.Table.from_batches(batches, schema).combine_chunks()


def parquet(footer: Mapping[str, str], columns: Mapping[str, pa.Array], **options: Any) -> io.BytesIO:
    file, rows = io.BytesIO(), pa.table(dict(columns))
    with pq.ParquetWriter(file, rows.schema, store_schema=False, **options) as writer:
        writer.write_table(rows)
        writer.add_key_value_metadata(dict(footer))
    return file


def days(*values: date) -> pa.Array:
    return pa.array(values, DATE)


def times(*values: datetime, kind: pa.DataType = TIMESTAMP) -> pa.Array:
    return pa.array(values, kind)


@pytest.mark.parametrize(("kind", "zone"), COMMITTED)
def test_days_and_times_of_every_century_are_sparks_at_every_depth(kind: str, zone: str) -> None:
    rows = read(FOLDER / file_name(kind, zone), SCHEMA)

    day, us = rows["day"].chunk(0), rows["us"].chunk(0)
    struct, lists, maps = (rows[name].chunk(0) for name in "slm")
    assert len(rows) > 100
    assert day[0].as_py() < -719_162  # before the year 1
    for found in (rows["d"].chunk(0), struct.field("d"), maps.keys):
        assert found.cast(pa.int32()).equals(day)
    for found in (rows["t"].chunk(0), struct.field("t"), pc.list_element(lists, 0), maps.items.flatten()):
        assert found.cast(pa.int64()).equals(us)
    assert pc.list_element(lists, 1).null_count == len(rows)
    assert rows["n"].cast(pa.int64()).equals(rows["n_us"])


def test_rows_are_chosen_and_columns_found_in_such_a_file_as_in_any() -> None:
    file = FOLDER / file_name("INT96", "America/Los_Angeles")
    all_rows = read(file, SCHEMA)
    wanted = pa.schema([("mapped", pa.struct([("moment", TIMESTAMP)])), ("when", DATE)])
    stored = pa.schema([("s", pa.struct([("t", TIMESTAMP)])), ("d", DATE)])

    rows = read(file, wanted, stored=stored, selection=RowSelection(without=BitMap64(range(1, len(all_rows)))))

    assert rows["when"].equals(all_rows["d"][:1])
    assert pc.struct_field(rows["mapped"], "moment").equals(pc.struct_field(all_rows["s"], "t")[:1])


def test_a_column_mapped_by_id_is_rebased() -> None:
    schema = pa.schema([pa.field("col-1", DATE, metadata={FIELD_ID: b"1"})], {VERSION: "2.4.5"})
    file = io.BytesIO()
    pq.write_table(pa.table([days(JULIAN_1582_10_04)], schema=schema), file)

    rows = read(file, pa.schema([("d", DATE)]), stored=pa.schema([schema.field(0)]))

    assert rows["d"].to_pylist() == [date(1582, 10, 4)]


@pytest.mark.parametrize("texts", [pa.string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())])
def test_members_mapped_by_id_are_found_beside_any_form_of_texts(texts: pa.DataType) -> None:
    def member(name: str, kind: pa.DataType, field_id: bytes) -> pa.Field:
        return pa.field(name, kind, metadata={FIELD_ID: field_id})

    struct = pa.struct([member("col-2", texts, b"2"), member("col-3", DATE, b"3")])
    schema = pa.schema([member("col-1", struct, b"1")], {VERSION: "2.4.5"})
    file, values = io.BytesIO(), pa.array([{"col-2": "a", "col-3": JULIAN_1582_10_04}], struct)
    pq.write_table(pa.table([values], schema=schema), file)
    stored = pa.struct([member("col-2", pa.string(), b"2"), member("col-3", DATE, b"3")])

    rows = read(
        file,
        pa.schema([("s", pa.struct([("t", pa.string()), ("d", DATE)]))]),
        stored=pa.schema([member("col-1", stored, b"1")]),
    )

    assert rows["s"].to_pylist() == [{"t": "a", "d": date(1582, 10, 4)}]


@pytest.mark.parametrize(
    ("footer", "is_julian"),
    [
        ({}, False),
        ({LEGACY: ""}, False),  # no version: Spark asks its configuration, which says no
        ({VERSION: "4.3.0"}, False),
        ({VERSION: "4.3.0", LEGACY: ""}, True),
        ({VERSION: "4.3.0", LEGACY_INT96: ""}, False),
        ({VERSION: "3.0.0"}, False),
        ({VERSION: "2.4.8"}, True),
        ({VERSION: "10.0.0"}, True),  # Spark compares texts
    ],
)
def test_the_footer_says_whether_days_are_julian(footer: Mapping[str, str], is_julian: bool) -> None:  # noqa: FBT001
    rows = read(parquet(footer, {"d": days(JULIAN_1582_10_04, date(1582, 10, 15))}), pa.schema([("d", DATE)]))

    assert rows["d"].to_pylist() == [date(1582, 10, 4) if is_julian else JULIAN_1582_10_04, date(1582, 10, 15)]


@pytest.mark.parametrize(
    ("footer", "is_julian"),
    [
        ({ZONE: "UTC"}, False),  # of Hive, Impala and the like
        ({VERSION: "4.3.0", ZONE: "UTC"}, False),
        ({VERSION: "4.3.0", LEGACY: "", ZONE: "UTC"}, False),
        ({VERSION: "4.3.0", LEGACY_INT96: "", ZONE: "UTC"}, True),
        ({VERSION: "3.1.0", ZONE: "UTC"}, False),
        ({VERSION: "3.0.3", ZONE: "UTC"}, True),
    ],
)
def test_the_footer_says_whether_int96_is_julian(footer: Mapping[str, str], is_julian: bool) -> None:  # noqa: FBT001
    julian = datetime(1582, 10, 14, 12, tzinfo=UTC)
    file = parquet(footer, {"t": times(julian)}, use_deprecated_int96_timestamps=True)

    rows = read(file, pa.schema([("t", TIMESTAMP)]))

    assert rows["t"].to_pylist() == [datetime(1582, 10, 4, 12, tzinfo=UTC) if is_julian else julian]


def test_int96_is_known_by_its_bytes_where_arrow_keeps_the_type_beside_it() -> None:
    rows = pa.table({"t": times(datetime(1582, 10, 14, tzinfo=UTC))}).replace_schema_metadata(
        {VERSION: "4.3.0", LEGACY_INT96: "", ZONE: "UTC"}
    )
    file = io.BytesIO()
    pq.write_table(rows, file, use_deprecated_int96_timestamps=True, store_schema=True)

    assert read(file, pa.schema([("t", TIMESTAMP)]))["t"].to_pylist() == [datetime(1582, 10, 4, tzinfo=UTC)]


def test_int96_without_a_zone_in_the_table_is_never_julian() -> None:
    wall = datetime(1582, 10, 14)  # noqa: DTZ001
    file = parquet({VERSION: "2.4.5"}, {"t": times(wall, kind=WITHOUT_ZONE)}, use_deprecated_int96_timestamps=True)

    assert read(file, pa.schema([("t", WITHOUT_ZONE)]))["t"].to_pylist() == [wall]


def test_a_date_that_became_a_timestamp_is_rebased_first() -> None:
    file = parquet({VERSION: "2.4.5"}, {"d": days(JULIAN_1582_10_04)})

    assert read(file, pa.schema([("d", WITHOUT_ZONE)]))["d"].to_pylist() == [datetime(1582, 10, 4)]  # noqa: DTZ001


@pytest.mark.parametrize(
    ("footer", "reason"),
    [
        ({VERSION: "2.4.5"}, "the file does not name the time zone in which it was written"),
        ({VERSION: "2.4.5", ZONE: "Mars/Olympus"}, "it was written in the time zone Mars/Olympus"),
    ],
)
@pytest.mark.parametrize("nested", [False, True])
def test_a_time_before_1900_is_refused_where_its_zone_is_unknown(
    footer: Mapping[str, str], reason: str, *, nested: bool
) -> None:
    old = times(datetime(1899, 12, 31, 23, 59, 59, tzinfo=UTC))
    file = parquet(footer, {"c": pa.StructArray.from_arrays([old], names=["t"]) if nested else old})
    wanted = pa.struct([("t", TIMESTAMP)]) if nested else TIMESTAMP

    with pytest.raises(DataFileError) as refused:
        read(file, pa.schema([("c", wanted)]))

    assert refused.value.error_class == "INCONSISTENT_BEHAVIOR_CROSS_VERSION.READ_ANCIENT_DATETIME"
    assert reason in str(refused.value)
    assert f"in column {'c.t' if nested else 'c'}," in str(refused.value)


def test_times_since_1900_and_days_need_no_zone() -> None:
    new = [datetime(1900, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC), None]
    file = parquet({VERSION: "2.4.5"}, {"d": days(*[JULIAN_1582_10_04] * 3), "t": pa.array(new, TIMESTAMP)})

    rows = read(file, pa.schema([("d", DATE), ("t", TIMESTAMP)]))

    assert rows["d"].to_pylist() == [date(1582, 10, 4)] * 3
    assert rows["t"].to_pylist() == new


def test_what_an_empty_slot_holds_is_not_refused() -> None:
    old = times(datetime(1, 1, 1, tzinfo=UTC), datetime(2024, 1, 1, tzinfo=UTC))
    column = pa.StructArray.from_arrays([old], names=["t"], mask=pa.array([True, False]))

    rows = read(parquet({VERSION: "2.4.5"}, {"c": column}), pa.schema([("c", pa.struct([("t", TIMESTAMP)]))]))

    assert rows["c"].to_pylist() == [None, {"t": datetime(2024, 1, 1, tzinfo=UTC)}]


def spark_tables() -> list[dict[str, Any]]:
    """Spark's own: of each zone the seconds at which the calendars' difference changes, and the differences."""
    pyspark = pytest.importorskip("pyspark")
    (jar,) = Path(pyspark.__file__).parent.glob("jars/spark-sql-api_*.jar")
    with zipfile.ZipFile(jar) as opened:
        return json.loads(opened.read("julian-gregorian-rebase-micros.json"))  # type: ignore[no-any-return]  # JSON


def test_moments_of_every_zone_in_sparks_table_are_rebased_as_it_says() -> None:
    tables = spark_tables()
    assert len(tables) > 600
    for table in tables:
        switches, diffs = table["switches"], [0, *table["diffs"]]
        raw = [s for switch in switches for s in (switch - 1, switch, switch + 1)][1:]
        expected = [s + diffs[1 + max(i for i, switch in enumerate(switches) if switch <= s)] for s in raw]
        micros = pa.array([s * 1_000_000 + 123_456 for s in raw], pa.int64())

        zone = zone_called(table["tz"])

        assert zone is not None
        assert gregorian_micros(micros, zone).to_pylist() == [s * 1_000_000 + 123_456 for s in expected], table["tz"]
