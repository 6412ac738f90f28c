"""Every version of tables that the JAR wrote, with what its features do to files: the JAR's rows are ours."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

import tablefeed
from peer.tables import read, rows, run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

DELETION_VECTORS = (
    "CREATE TABLE {t} (id LONG, p STRING) USING delta PARTITIONED BY (p) "
    "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')",
    "INSERT INTO {t} SELECT id, CAST(id % 2 AS STRING) FROM range(0, 300, 1, 2)",
    "DELETE FROM {t} WHERE id % 7 = 0",
    "UPDATE {t} SET id = id + 1000 WHERE id % 5 = 0",
    "DELETE FROM {t} WHERE p = '1' AND id < 50",
    "RESTORE TABLE {t} TO VERSION AS OF 2",
    "DELETE FROM {t} WHERE id % 2 = 0",
    "REORG TABLE {t} APPLY (PURGE)",
)

MAPPED_BY_NAME = (
    "CREATE TABLE {t} (id INT, who STRUCT<name: STRING, age: INT>, tags ARRAY<STRUCT<k: STRING, v: INT>>, "
    "props MAP<STRING, STRUCT<n: INT>>, p STRING) USING delta PARTITIONED BY (p)",
    "INSERT INTO {t} VALUES (1, struct('ann', 30), array(struct('a', 1)), map('x', struct(5)), 'one'), "
    "(2, NULL, NULL, NULL, NULL)",
    "ALTER TABLE {t} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name', 'delta.minReaderVersion' = '2', "
    "'delta.minWriterVersion' = '5')",
    "INSERT INTO {t} VALUES (3, struct('bob', 31), array(struct('b', 2)), map('y', struct(6)), 'two')",
    "ALTER TABLE {t} RENAME COLUMN who TO person",
    "ALTER TABLE {t} RENAME COLUMN person.name TO `full name`",
    "ALTER TABLE {t} RENAME COLUMN p TO part",
    "INSERT INTO {t} VALUES (4, struct('cid', 32), array(struct('c', 3)), map('z', struct(7)), 'three')",
    "ALTER TABLE {t} DROP COLUMN person.age",
    "ALTER TABLE {t} ADD COLUMNS (person.age STRING, `a.b, c` LONG FIRST)",
    "INSERT INTO {t} VALUES (9, 5, struct('dan', 'old'), array(), map(), 'four')",
    "ALTER TABLE {t} RENAME COLUMN tags.element.k TO v2",
    "DELETE FROM {t} WHERE id = 3",
)

MAPPED_BY_ID = (
    "CREATE TABLE {t} (id INT, who STRUCT<name: STRING, age: INT>, p DATE) USING delta PARTITIONED BY (p) "
    "TBLPROPERTIES ('delta.columnMapping.mode' = 'id')",
    "INSERT INTO {t} VALUES (1, struct('ann', 30), DATE'2026-01-31'), (2, NULL, NULL)",
    "ALTER TABLE {t} RENAME COLUMN id TO number",
    "ALTER TABLE {t} ADD COLUMNS (id STRING)",
    "INSERT INTO {t} VALUES (3, struct('bob', 31), DATE'1969-12-31', 'x')",
    "ALTER TABLE {t} DROP COLUMN who.age",
    "INSERT INTO {t} VALUES (4, struct('cid'), DATE'2026-02-01', 'y')",
)

WIDENED = (
    "CREATE TABLE {t} (b BYTE, s SHORT, i INT, l LONG, f FLOAT, bd BYTE, sd SHORT, id DOUBLE, d DATE, "
    "m DECIMAL(10,2), a ARRAY<BYTE>, n STRUCT<x: SHORT>, p INT) USING delta PARTITIONED BY (p) "
    "TBLPROPERTIES ('delta.enableTypeWidening' = 'true', 'delta.feature.timestampNtz' = 'supported')",
    "INSERT INTO {t} VALUES (127Y, -32768S, 2147483647, 9223372036854775807L, float(0.1), -128Y, 7S, 1.5D, "
    "DATE'1969-12-31', 12345678.90BD, array(1Y, NULL), struct(5S), 3), "
    "(NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
    "ALTER TABLE {t} ALTER COLUMN b TYPE SHORT",
    "ALTER TABLE {t} ALTER COLUMN b TYPE LONG",
    "ALTER TABLE {t} ALTER COLUMN s TYPE INT",
    "ALTER TABLE {t} ALTER COLUMN i TYPE LONG",
    "ALTER TABLE {t} ALTER COLUMN l TYPE DECIMAL(22,2)",
    "ALTER TABLE {t} ALTER COLUMN f TYPE DOUBLE",
    "ALTER TABLE {t} ALTER COLUMN bd TYPE DOUBLE",
    "ALTER TABLE {t} ALTER COLUMN sd TYPE DECIMAL(12,2)",
    "ALTER TABLE {t} ALTER COLUMN d TYPE TIMESTAMP_NTZ",
    "ALTER TABLE {t} ALTER COLUMN m TYPE DECIMAL(14,4)",
    "ALTER TABLE {t} ALTER COLUMN a.element TYPE INT",
    "ALTER TABLE {t} ALTER COLUMN n.x TYPE LONG",
    "ALTER TABLE {t} ALTER COLUMN p TYPE LONG",
    "INSERT INTO {t} VALUES (1L << 40, 100000, 1L << 40, 12345678901234567890.12BD, 0.1D, 0.5D, 1234567890.12BD, 2.5D, "
    "TIMESTAMP_NTZ'2026-01-31 12:34:56.789', 1234567890.1234BD, array(70000), struct(1L << 40), 1L << 40)",
)

ALL_AT_ONCE = (
    "CREATE TABLE {t} (id INT, v STRING, p STRING) USING delta PARTITIONED BY (p) TBLPROPERTIES ("
    "'delta.columnMapping.mode' = 'name', 'delta.enableDeletionVectors' = 'true', 'delta.enableTypeWidening' = 'true', "
    "'delta.enableChangeDataFeed' = 'true', 'delta.enableRowTracking' = 'true', "
    "'delta.checkpointPolicy' = 'v2', 'delta.checkpointInterval' = '3')",
    "INSERT INTO {t} SELECT id, concat('v', id), CAST(id % 3 AS STRING) FROM range(60)",
    "DELETE FROM {t} WHERE id % 4 = 0",
    "ALTER TABLE {t} RENAME COLUMN v TO w",
    "ALTER TABLE {t} ALTER COLUMN id TYPE LONG",
    "MERGE INTO {t} t USING (SELECT id, concat('n', id) w, '9' p FROM range(50, 70)) s ON t.id = s.id "
    "WHEN MATCHED THEN UPDATE SET w = s.w WHEN NOT MATCHED THEN INSERT *",
    "UPDATE {t} SET w = 'u' WHERE p = '1'",
    "ALTER TABLE {t} DROP COLUMN w",
    "INSERT INTO {t} VALUES (1L << 40, 'late')",
    "OPTIMIZE {t}",
    "ALTER TABLE {t} ADD COLUMNS (w LONG)",
    "INSERT OVERWRITE {t} SELECT id, '5', id FROM range(3)",
)

PLAIN_BUT_ODD = (
    "CREATE TABLE {t} (c CHAR(5), v VARCHAR(5), d INT DEFAULT 7, g INT GENERATED ALWAYS AS (d * 2), "
    "i LONG GENERATED ALWAYS AS IDENTITY, `Ünï cöde` BINARY) USING delta "
    "TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported', 'delta.columnMapping.mode' = 'name')",
    "INSERT INTO {t} (c, v, `Ünï cöde`) VALUES ('abcde', 'ab ', X'00FF')",
    "INSERT INTO {t} (c, v, d) VALUES (NULL, NULL, NULL)",
    "ALTER TABLE {t} ALTER COLUMN d SET DEFAULT 8",
    "INSERT INTO {t} (c) VALUES ('xyzzy')",
)


@pytest.mark.in_turn
@pytest.mark.parametrize(
    "story",
    [
        pytest.param(DELETION_VECTORS, id="deletion vectors"),
        pytest.param(MAPPED_BY_NAME, id="columns mapped by name"),
        pytest.param(MAPPED_BY_ID, id="columns mapped by id"),
        pytest.param(WIDENED, id="widened types"),
        pytest.param(ALL_AT_ONCE, id="all at once"),
        pytest.param(PLAIN_BUT_ODD, id="odd columns"),
    ],
)
def test_every_version_has_the_jars_rows(delta_spark: SparkSession, tmp_path: Path, story: Sequence[str]) -> None:
    run(delta_spark, tmp_path / "t", *story)
    newest = tablefeed.open_table(tmp_path / "t").version
    assert newest >= len(story) - 1

    for version in range(newest + 1):
        theirs = read(delta_spark, tmp_path / "t", versionAsOf=version)
        assert rows(tablefeed.open_table(tmp_path / "t", version=version).to_arrow()) == rows(theirs), version
    in_spark = delta_spark.read.format("tablefeed").load(f"{tmp_path}/t")
    assert fields(in_spark.schema) == fields(delta_spark.read.format("delta").load(f"{tmp_path}/t").schema)
    assert rows(in_spark.toArrow()) == rows(read(delta_spark, tmp_path / "t"))


def test_a_variant_is_the_jars(delta_spark: SparkSession, tmp_path: Path) -> None:
    table = f"delta.`{tmp_path}/t`"
    delta_spark.sql(f"CREATE TABLE {table} (id INT, v VARIANT) USING delta")
    documents = ("{}", "[1, null, 2.5]", '{"a": {"b": "text"}, "c": [true]}', "null", "12345678901234567890")
    values = ", ".join(f"({n}, parse_json('{text}'))" for n, text in enumerate(documents))
    delta_spark.sql(f"INSERT INTO {table} VALUES {values}, (9, NULL)")  # noqa: S608 - our own words

    ours, theirs = (delta_spark.read.format(name).load(f"{tmp_path}/t") for name in ("tablefeed", "delta"))
    told = [side.orderBy("id").selectExpr("id", "to_json(v)").collect() for side in (ours, theirs)]
    assert told[0] == told[1]
    parts = tablefeed.open_table(tmp_path / "t").to_arrow().sort_by("id")["v"].to_pylist()
    assert [part is None for part in parts] == [False] * 5 + [True]


SHREDDED_BY = {
    "spark.sql.variant.writeShredding.enabled": "true",
    "spark.sql.variant.forceShreddingSchemaForTest": "n DECIMAL(9,2), t STRING, l ARRAY<INT>, o STRUCT<x: LONG>",
}


def test_a_variant_that_the_jar_shredded_is_the_jars(delta_spark: SparkSession, tmp_path: Path) -> None:
    """Fields have the type of their column, another type, or are absent, and some have no column."""
    create = "CREATE TABLE {t} (id INT, v VARIANT) USING delta TBLPROPERTIES ('delta.enableVariantShredding' = 'true')"
    insert = (
        "INSERT INTO {t} SELECT /*+ COALESCE(1) */ CAST(id AS INT), CASE "
        "WHEN id % 25 = 7 THEN NULL WHEN id % 25 = 8 THEN parse_json('[1, {{\"n\": 2}}]') "
        "ELSE to_variant_object(named_struct("
        "'n', IF(id % 3 = 0, parse_json('null'), CAST(id * 1.25BD AS VARIANT)), "
        "'t', IF(id % 4 = 0, CAST(id AS VARIANT), CAST(concat('text', id) AS VARIANT)), "
        "'l', parse_json(IF(id % 5 = 0, '[1, null, \"x\"]', '[1, 2]')), "
        "'o', IF(id % 6 = 0, parse_json('{{}}'), to_variant_object(named_struct('x', id, 'y', id))), "
        "'more', parse_json(concat('{{\"k', id, '\": true}}')))) END FROM range(50)"
    )
    for name, value in SHREDDED_BY.items():
        delta_spark.conf.set(name, value)
    try:
        run(delta_spark, tmp_path / "t", create, insert)
    finally:
        for name in SHREDDED_BY:
            delta_spark.conf.unset(name)

    (file,) = (tmp_path / "t").glob("*.parquet")
    typed = pq.read_schema(file).field("v").type.field("typed_value").type
    assert sorted(field.name for field in typed) == ["l", "n", "o", "t"]
    ours, theirs = (delta_spark.read.format(name).load(f"{tmp_path}/t") for name in ("tablefeed", "delta"))
    told = [side.orderBy("id").selectExpr("id", "to_json(v)").collect() for side in (ours, theirs)]
    assert told[0] == told[1]
    assert len(told[0]) == 50


def fields(schema: StructType) -> list[dict[str, Any]]:  # Any: Spark's JSON
    """What a DataFrame's columns are; but for a column's default, which concerns its writers alone."""
    told: list[dict[str, Any]] = schema.jsonValue()["fields"]
    for field in told:
        field["metadata"].pop("CURRENT_DEFAULT", None)
    return told
