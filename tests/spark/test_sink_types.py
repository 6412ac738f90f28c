"""Rows of Spark's own types, which Arrow has under other names: written as what they are, or refused by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import tablefeed
from spark.streams import copy, reader, refusal, write_out
from support.variants import told, variants

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_variants_come_through_both_writers_and_both_readers_as_they_were(spark: SparkSession, tmp_path: Path) -> None:
    rows, first, second = variants(spark), tmp_path / "first", tmp_path / "second"

    rows.write.format("tablefeed").mode("append").save(str(first))
    copy(spark, first, second, tmp_path / "checkpoint")

    for table in (first, second):
        there = spark.read.format("tablefeed").load(str(table))
        assert there.schema["v"].dataType.simpleString() == "variant"
        assert there.schema == rows.schema.fromJson(json.loads(tablefeed.open_table(table).metadata.schema_string))
        assert told(there) == told(rows)


def test_a_table_gets_its_first_variant_from_a_stream_that_merges_it(spark: SparkSession, tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    variants(spark).select("id", "v").write.format("tablefeed").mode("append").save(str(source))
    spark.range(1).write.format("tablefeed").mode("append").save(str(target))

    refused = refusal(lambda: write_out(reader(spark, source), target, tmp_path / "refused"))
    write_out(reader(spark, source), target, tmp_path / "checkpoint", mergeSchema="true")

    assert "[DELTA_METADATA_MISMATCH]" in refused
    assert "variantType" in (tablefeed.open_table(target).protocol.reader_features or ())
    there = spark.read.format("tablefeed").load(str(target)).where("v IS NOT NULL").selectExpr("to_json(v) AS v")
    assert sorted(row.v for row in there.collect()) == sorted(
        row.v for row in variants(spark).where("v IS NOT NULL").selectExpr("to_json(v) AS v").collect()
    )


@pytest.mark.parametrize(
    ("column", "name"),
    [
        ("INTERVAL '1' YEAR", "interval year"),
        ("INTERVAL '1' DAY", "interval day"),
        ("named_struct('s', 'a' COLLATE UNICODE_CI)", "a string with the collation icu.UNICODE_CI"),
        ("ST_GeomFromWKB(X'0101000000000000000000F03F0000000000000040')", "geometry(SRID:0)"),
    ],
    ids=lambda value: value[:12],
)
def test_a_type_that_no_table_holds_is_refused_by_name_in_a_batch_and_in_a_stream(
    spark: SparkSession, tmp_path: Path, column: str, name: str
) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    spark.range(1).write.format("tablefeed").mode("append").save(str(source))

    batch = spark.range(1).selectExpr("id", f"{column} AS odd").write.format("tablefeed").mode("append")
    refused = refusal(lambda: batch.save(str(target)))
    stream = reader(spark, source).selectExpr("id", f"{column} AS odd")
    refused_stream = refusal(lambda: write_out(stream, target, tmp_path / "checkpoint"))

    for text in (refused, refused_stream):
        assert "[DELTA_UNSUPPORTED_DATA_TYPES]" in text
        assert f" is {name}, which tablefeed cannot write" in text
    assert not target.exists()
