"""Rows with variants at every depth, and what is in them as texts: for the tests of writers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DOCUMENTS = ("{}", "[1, null, 2.5]", '{"a": {"b": "text"}, "c": [true]}', "null", "12345678901234567890")


def variants(spark: SparkSession) -> DataFrame:
    texts = spark.createDataFrame([*enumerate(DOCUMENTS), (9, None)], "id INT, text STRING")
    return texts.selectExpr(
        "id",
        "parse_json(text) AS v",
        "IF(id = 9, NULL, named_struct('v', parse_json(text), 'l', array(parse_json(text), NULL))) AS s",
        "map(id, parse_json(text)) AS m",
    )


def told(rows: DataFrame) -> list[str]:
    texts = rows.selectExpr("id", "to_json(v) AS v", "to_json(s) AS s", "to_json(m[id]) AS m", "s IS NULL AS no_s")
    return sorted(json.dumps(row.asDict()) for row in texts.collect())
