"""What a DataFrame's types and column metadata are in the table that it is written to: the JAR's and ours alike."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from peer.tables import actions_of_kind
from support.variants import told, variants

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def write(rows: DataFrame, writer: str, table: Path, mode: str = "append", **options: str) -> None:
    rows.coalesce(1).write.format(writer).mode(mode).options(**options).save(str(table))


def last(table: Path, kind: str) -> dict[str, Any]:
    return dict(actions_of_kind(table, kind)[-1])


@pytest.mark.parametrize("first", ["delta", "tablefeed"])
def test_variants_of_ours_are_the_jars_and_the_jars_ours(delta_spark: SparkSession, tmp_path: Path, first: str) -> None:
    rows, second = variants(delta_spark), "tablefeed" if first == "delta" else "delta"
    write(rows, first, tmp_path)
    write(rows, second, tmp_path)

    assert last(tmp_path, "protocol")["readerFeatures"] == ["variantType"]
    for reader in ("delta", "tablefeed"):
        there = delta_spark.read.format(reader).load(str(tmp_path))
        assert told(there) == sorted(told(rows) * 2), reader
    one, other = (json.loads(add["stats"]) for add in actions_of_kind(tmp_path, "add"))
    assert one["nullCount"] == other["nullCount"]


@pytest.mark.parametrize("how", [("append", "mergeSchema"), ("overwrite", "overwriteSchema")], ids=str)
def test_a_first_variant_leaves_the_protocol_and_schema_that_the_jar_leaves(
    delta_spark: SparkSession, tmp_path: Path, how: tuple[str, str]
) -> None:
    mode, option = how
    for writer in ("delta", "tablefeed"):
        write(delta_spark.range(1).selectExpr("CAST(id AS INT) AS id"), "delta", tmp_path / writer)
        write(variants(delta_spark), writer, tmp_path / writer, mode, **{option: "true"})

    theirs, ours = ([last(tmp_path / w, "protocol"), last(tmp_path / w, "metaData")] for w in ("delta", "tablefeed"))
    assert {k: sorted(v) if isinstance(v, list) else v for k, v in ours[0].items()} == {
        k: sorted(v) if isinstance(v, list) else v for k, v in theirs[0].items()
    }
    assert json.loads(ours[1]["schemaString"]) == json.loads(theirs[1]["schemaString"])


ABOUT = {"comment": "a", "unit": "m", "scale": 2, "__CHAR_VARCHAR_TYPE_STRING": "varchar(9)"}


def described(spark: SparkSession, *columns: str, **about: object) -> DataFrame:
    """Columns of texts, each in a struct too, with that metadata."""
    from pyspark.sql.types import StringType, StructField, StructType

    fields = [StructField(name, StringType(), metadata=about) for name in columns]
    schema = StructType([*fields, StructField("s", StructType(fields), metadata={"comment": "a struct"})])
    return spark.createDataFrame([(*("x" for _ in columns), tuple("y" for _ in columns))], schema)


def test_what_a_dataframe_says_of_its_columns_is_in_our_table_what_it_is_in_the_jars(
    delta_spark: SparkSession, tmp_path: Path
) -> None:
    for writer in ("delta", "tablefeed"):
        table = tmp_path / writer
        write(described(delta_spark, "t", **ABOUT), writer, table)
        write(described(delta_spark, "t", comment="another"), writer, table)
        write(described(delta_spark, "t", "u", comment="new"), writer, table, mergeSchema="true")
        write(described(delta_spark, "t", comment="kept out"), writer, table, "overwrite")
        write(
            described(delta_spark, "t", comment="now", **{"delta.columnMapping.id": 7}),
            writer,
            table,
            "overwrite",
            overwriteSchema="true",
        )

    theirs, ours = (
        [json.loads(metadata["schemaString"]) for metadata in actions_of_kind(tmp_path / writer, "metaData")]
        for writer in ("delta", "tablefeed")
    )
    assert len(theirs) == 3
    assert ours == theirs


def test_a_column_of_char_comes_to_our_table_as_to_the_jars(delta_spark: SparkSession, tmp_path: Path) -> None:
    delta_spark.sql(f"CREATE TABLE delta.`{tmp_path}/source` (c CHAR(3), v VARCHAR(4)) USING delta")
    delta_spark.sql(f"INSERT INTO delta.`{tmp_path}/source` VALUES ('a', 'b')")  # noqa: S608 - our own words
    for writer in ("delta", "tablefeed"):
        write(delta_spark.read.format(writer).load(f"{tmp_path}/source"), writer, tmp_path / writer)

    theirs, ours = (last(tmp_path / writer, "metaData")["schemaString"] for writer in ("delta", "tablefeed"))
    assert json.loads(ours) == json.loads(theirs)
