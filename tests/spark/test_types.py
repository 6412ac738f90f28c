"""Values of every type come through a stream, a batch read and both writers as they were."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from spark.streams import copy, reader, refusal, write_out

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NESTED = pa.struct([pa.field("n", pa.int32()), pa.field("words", pa.list_(pa.string()))])

EVERY_TYPE = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("byte", pa.int8()),
        pa.field("short", pa.int16()),
        pa.field("int", pa.int32()),
        pa.field("float", pa.float32()),
        pa.field("double", pa.float64()),
        pa.field("small", pa.decimal128(5, 2)),
        pa.field("large", pa.decimal128(38, 18)),
        pa.field("boolean", pa.bool_()),
        pa.field("string", pa.string()),
        pa.field("binary", pa.binary()),
        pa.field("date", pa.date32()),
        pa.field("timestamp", pa.timestamp("us", tz="UTC")),
        pa.field("timestamp_ntz", pa.timestamp("us")),
        pa.field("struct", NESTED),
        pa.field("array", pa.list_(NESTED)),
        pa.field("map", pa.map_(pa.string(), pa.list_(pa.int64()))),
    ]
)

ROWS = [
    {
        "id": 1,
        "byte": -128,
        "short": 32767,
        "int": -(2**31),
        "float": 1.5,
        "double": float("-inf"),
        "small": Decimal("-999.99"),
        "large": Decimal("12345678901234567890.123456789012345678"),
        "boolean": False,
        "string": "ü\n𝄞 'quoted'",
        "binary": b"\x00\xff",
        "date": dt.date(1582, 10, 4),
        "timestamp": dt.datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=dt.UTC),
        "timestamp_ntz": dt.datetime(2024, 3, 31, 2, 30),  # noqa: DTZ001 - no zone is this type's point
        "struct": {"n": None, "words": ["a", None]},
        "array": [{"n": 1, "words": []}, None],
        "map": [("k", [1, None]), ("", None)],
    },
    {
        "id": 2,
        **dict.fromkeys(EVERY_TYPE.names[1:]),
        "string": "",
        "binary": b"",
        "array": [],
        "map": [],
        "struct": {"n": 0, "words": None},
    },
    {"id": 3, **dict.fromkeys(EVERY_TYPE.names[1:])},
]


def test_rows_of_every_type_come_through_a_stream_as_they_were(spark: SparkSession, tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    rows = pa.Table.from_pylist(ROWS, schema=EVERY_TYPE)
    write_deltalake(str(source), rows)

    copy(spark, source, target, tmp_path / "checkpoint")

    assert DeltaTable(str(target)).to_pyarrow_table().sort_by("id").to_pylist() == rows.to_pylist()
    assert [(f.name, f.type) for f in DeltaTable(str(target)).schema().fields] == [
        (f.name, f.type) for f in DeltaTable(str(source)).schema().fields
    ]


def test_rows_of_every_type_come_through_a_batch_as_they_were(spark: SparkSession, tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    rows = pa.Table.from_pylist(ROWS, schema=EVERY_TYPE)
    write_deltalake(str(source), rows)

    found = spark.read.format("tablefeed").load(str(source))
    found.write.format("tablefeed").mode("append").save(str(target))

    assert found.toArrow().sort_by("id").to_pylist() == rows.to_pylist()
    assert DeltaTable(str(target)).to_pyarrow_table().sort_by("id").to_pylist() == rows.to_pylist()


def test_a_char_column_is_padded_as_spark_pads_it(spark: SparkSession, tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    write_deltalake(str(source), pa.table({"code": pa.array(["ü", "abcd", None])}))
    log = source / "_delta_log" / f"{0:020d}.json"
    before, declared = r"\"name\":\"code\",\"type\":\"string\",\"nullable\":true,\"metadata\":{", ""
    declared = before + r"\"__CHAR_VARCHAR_TYPE_STRING\":\"char(3)\""
    assert before in log.read_text()
    log.write_text(log.read_text().replace(before, declared))

    refused = refusal(lambda: copy(spark, source, tmp_path / "of the same type", tmp_path / "refused"))
    stream = reader(spark, source).selectExpr("concat(code, '') AS code")
    write_out(stream, target, tmp_path / "checkpoint")

    assert "[DELTA_EXCEED_CHAR_VARCHAR_LIMIT]" in refused
    padded = [None, "abcd", "ü  "]
    assert sorted(DeltaTable(str(target)).to_pyarrow_table()["code"].to_pylist(), key=str) == sorted(padded, key=str)
    batch = spark.read.format("tablefeed").load(str(source)).toArrow()
    assert sorted(batch["code"].to_pylist(), key=str) == sorted(padded, key=str)
