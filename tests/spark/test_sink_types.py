"""Rows of Spark's own types, which Arrow has under other names: written as what they are, or refused by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import tablefeed
from spark.streams import copy
from support.variants import told, variants

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_variants_come_through_both_writers_and_both_readers_as_they_were(spark: SparkSession, tmp_path: Path) -> None:
    rows, first, second = variants(spark), tmp_path / "first", tmp_path / "second"

    rows.write.format("tablefeed").mode("append").save(str(first))
    copy(spark, first, second, tmp_path / "checkpoint")

    for table in (first, second):
        there = spark.read.format("tablefeed").load(str(table))
        assert there.schema["v"].dataType.simpleString() == "variant"
        assert there.schema == rows.schema.fromJson(json.loads(tablefeed.open_table(table).metadata.schema_string))
        assert told(there) == told(rows)
