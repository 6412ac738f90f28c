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
from tablefeed.errors import SchemaMismatchError
from tablefeed.spark.sink import BatchWriter, StreamWriter

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

    _, variant, struct, entries = types_in(plan.schema_string)
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

    assert [kind["type"] for kind in types_in(plan.schema_string)] == ["struct"]
