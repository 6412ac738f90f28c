"""What table a DataFrame makes, by Spark's schema of it: its types are kept, or refused by name. No JVM."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.ml.linalg import VectorUDT
from pyspark.sql.types import (
    ArrayType,
    CalendarIntervalType,
    CharType,
    DataType,
    DayTimeIntervalType,
    GeographyType,
    GeometryType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimeType,
    VarcharType,
    VariantType,
    YearMonthIntervalType,
)

import tablefeed
from tablefeed.delta.schema.schema_string import format_schema
from tablefeed.errors import SchemaMismatchError
from tablefeed.spark.sink import BatchWriter, StreamWriter
from tablefeed.spark.written import Written

NO_TABLES: list[tuple[DataType, str]] = [
    (YearMonthIntervalType(), "interval year to month"),
    (DayTimeIntervalType(), "interval day to second"),
    (CalendarIntervalType(), "interval"),
    (TimeType(), "time(6)"),
    (GeometryType(4326), "geometry(OGC:CRS84)"),
    (GeographyType("ANY"), "geography(SRID:ANY, SPHERICAL)"),
    (VectorUDT(), "the user-defined type org.apache.spark.ml.linalg.VectorUDT"),
    (CharType(3), "char(3)"),
    (VarcharType(3), "varchar(3)"),
    (StringType("UNICODE_CI"), "a string with the collation icu.UNICODE_CI"),
]


def alone(kind: DataType) -> DataType:
    return kind


def in_a_struct(kind: DataType) -> DataType:
    return StructType([StructField("inside", kind)])


def in_a_list(kind: DataType) -> DataType:
    return ArrayType(kind)


def in_a_map(kind: DataType) -> DataType:
    return MapType(StringType(), in_a_struct(kind))


@pytest.mark.parametrize("writer", [StreamWriter, BatchWriter])
@pytest.mark.parametrize("where", [alone, in_a_struct, in_a_list, in_a_map])
@pytest.mark.parametrize(("kind", "name"), NO_TABLES, ids=[name for _, name in NO_TABLES])
def test_a_type_that_no_table_holds_is_refused_by_name_before_anything_is_written(
    tmp_path: Path, writer: type[StreamWriter | BatchWriter], where: Any, kind: DataType, name: str
) -> None:
    schema = StructType([StructField("id", LongType()), StructField("odd", where(kind))])

    with pytest.raises(SchemaMismatchError) as refused:
        writer({"path": str(tmp_path / "t")}, schema, overwrite=False)

    assert refused.value.error_class == "DELTA_UNSUPPORTED_DATA_TYPES"
    assert "odd" in str(refused.value)
    assert f" is {name}, " in str(refused.value)
    assert not (tmp_path / "t").exists()


@pytest.mark.parametrize("options", [{}, {"mergeSchema": "true"}, {"overwriteSchema": "true"}], ids=str)
@pytest.mark.parametrize("overwrite", [False, True])
def test_it_is_refused_whatever_the_table_there_has_in_its_place(
    tmp_path: Path, options: dict[str, str], *, overwrite: bool
) -> None:
    vector = pa.struct([("type", pa.int8()), ("size", pa.int32()), ("values", pa.list_(pa.float64()))])
    tablefeed.append(tmp_path, pa.table({"odd": pa.array([None], vector)}))
    schema = StructType([StructField("odd", VectorUDT())])

    with pytest.raises(SchemaMismatchError, match="VectorUDT"):
        BatchWriter({"path": str(tmp_path), **options}, schema, overwrite=overwrite)

    assert tablefeed.open_table(tmp_path).version == 0


def described(comment: str, **others: object) -> StructType:
    """A column, and a member in it at three depths, each with that comment and what else its metadata has."""
    about = {"comment": comment, **others}
    member = StructType([StructField("x", LongType(), metadata=about)])
    return StructType(
        [
            StructField("id", LongType(), metadata=about),
            StructField("s", member, metadata=about),
            StructField("l", ArrayType(member)),
            StructField("m", MapType(StringType(), member)),
        ]
    )


def metadata_in(kind: Any) -> list[dict[str, Any]]:
    """The metadata of every field of a schema in JSON, parents first; of those that have one."""
    if isinstance(kind, list):
        return [about for part in kind for about in metadata_in(part)]
    if not isinstance(kind, dict):
        return []
    inner = metadata_in([kind.get(key) for key in ("fields", "type", "elementType", "keyType", "valueType")])
    return [kind["metadata"], *inner] if kind.get("metadata") else inner


def written(table: Path, schema: StructType, *, overwrite: bool = False, **options: str) -> list[dict[str, Any]]:
    """What metadata the columns of a table have after a write without rows."""
    writer = BatchWriter({"path": str(table), **options}, schema, overwrite=overwrite)
    writer.commit([Written(plan=writer._plan, files=())])
    return metadata_in(json.loads(tablefeed.open_table(table).metadata.schema_string))


def test_what_a_dataframe_says_of_its_columns_is_kept_in_a_new_table_at_every_depth(tmp_path: Path) -> None:
    about = {"comment": "a", "unit": "m", "scale": 2, "__CHAR_VARCHAR_TYPE_STRING": "varchar(9)"}
    assert (
        written(tmp_path / "described", described("a", unit="m", scale=2))
        == [{"comment": "a", "unit": "m", "scale": 2}] * 5
    )
    text = StructType([StructField("t", StringType(), metadata=about)])
    assert written(tmp_path / "declared", text) == [about]
    number = StructType([StructField("t", LongType(), metadata=about)])
    assert written(tmp_path / "number", number) == [{"comment": "a", "unit": "m", "scale": 2}]


def test_an_append_leaves_the_tables_own_words_and_a_merge_takes_those_of_new_columns_alone(tmp_path: Path) -> None:
    written(tmp_path, described("mine"))

    assert written(tmp_path, described("theirs")) == [{"comment": "mine"}] * 5
    assert tablefeed.open_table(tmp_path).version == 1
    assert "metaData" not in (tmp_path / "_delta_log" / f"{1:020d}.json").read_text()

    wider = described("theirs").add(StructField("new", LongType(), metadata={"comment": "new"}))
    wider["s"].dataType.add(StructField("y", LongType(), metadata={"comment": "inside"}))  # type: ignore[attr-defined]
    after = written(tmp_path, wider, mergeSchema="true")
    member = [{"comment": "mine"}, {"comment": "inside"}]  # one type, in all three of them
    assert after == [{"comment": "mine"}] * 2 + member * 3 + [{"comment": "new"}]


def test_an_overwritten_schema_has_the_words_of_the_dataframe(tmp_path: Path) -> None:
    written(tmp_path, described("mine"))

    assert written(tmp_path, described("theirs"), overwrite=True) == [{"comment": "mine"}] * 5
    assert written(tmp_path, described("theirs"), overwrite=True, overwriteSchema="true") == [{"comment": "theirs"}] * 5


@pytest.mark.parametrize(
    "key",
    [
        "delta.columnMapping.id",
        "delta.columnMapping.physicalName",
        "delta.identity.start",
        "delta.generationExpression",
        "delta.invariants",
        "delta.typeChanges",
        "parquet.field.id",
        "CURRENT_DEFAULT",
        "EXISTS_DEFAULT",
        "__autoGeneratedAlias",
        "__metadata_col",
        "spark.watermarkDelayMs",
        "spark.timeWindow",
    ],
)
def test_no_rule_mapping_or_mark_of_another_table_or_of_spark_comes_with_a_dataframe(tmp_path: Path, key: str) -> None:
    assert written(tmp_path, described("a", **{key: 1})) == [{"comment": "a"}] * 5
    assert tablefeed.open_table(tmp_path).protocol.min_writer_version == 2


VARIANTS = StructType(
    [
        StructField("id", LongType()),
        StructField("v", VariantType()),
        StructField("s", StructType([StructField("v", VariantType()), StructField("l", ArrayType(VariantType()))])),
        StructField("m", MapType(IntegerType(), VariantType())),
    ]
)


def types_in(schema_string: str) -> list[Any]:
    return [field["type"] for field in json.loads(schema_string)["fields"]]


def test_a_variant_is_one_in_the_table_that_is_made_for_it_at_every_depth(tmp_path: Path) -> None:
    plan = BatchWriter({"path": str(tmp_path)}, VARIANTS, overwrite=False)._plan

    _, variant, struct, entries = types_in(format_schema(plan.schema))
    assert variant == "variant"
    assert [member["type"] for member in struct["fields"]] == [
        "variant",
        {"type": "array", "elementType": "variant", "containsNull": True},
    ]
    assert entries == {"type": "map", "keyType": "integer", "valueType": "variant", "valueContainsNull": True}


def test_a_struct_with_the_members_of_a_variant_is_no_variant(tmp_path: Path) -> None:
    # As PySpark hands both over they differ by a mark alone.
    from pyspark.sql.types import BinaryType

    binary = BinaryType()
    members = [StructField("value", binary, nullable=False), StructField("metadata", binary, nullable=False)]
    plan = BatchWriter(
        {"path": str(tmp_path)}, StructType([StructField("s", StructType(members))]), overwrite=False
    )._plan

    assert [kind["type"] for kind in types_in(format_schema(plan.schema))] == ["struct"]
