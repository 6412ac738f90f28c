"""Tables that we create, alter and restore, in the hands of the JAR, and tables that the JAR alters, in ours."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import tablefeed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False, metadata={"comment": "the key"}),
        pa.field("name", pa.string()),
        pa.field("home", pa.struct([("street", pa.string())])),
    ]
)


def rows_of(session: SparkSession, table: Path, *columns: str) -> list[tuple[Any, ...]]:
    """The rows, which the JAR and we read alike."""
    ours = tablefeed.open_table(table).to_arrow(columns=list(columns)).to_pylist()
    theirs = [tuple(row) for row in session.read.format("delta").load(str(table)).select(*columns).collect()]
    assert sorted(map(str, theirs)) == sorted(str(tuple(row.values())) for row in ours)
    return sorted(theirs, key=str)


def insert(session: SparkSession, table: Path, values: str, *, columns: str = "") -> None:
    session.sql(f"INSERT INTO delta.`{table}` {columns} VALUES {values}")  # noqa: S608 - a test's own table


def test_the_jar_keeps_the_rules_of_a_table_that_we_create(delta_spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "t"
    tablefeed.create(
        table,
        SCHEMA,
        partition_by=["name"],
        constraints={"Positive": "id > 0"},
        properties={"delta.enableChangeDataFeed": "true"},
    )
    name = f"delta.`{table}`"

    insert(delta_spark, table, "(1, 'a', named_struct('street', 's'))")
    for broken in ("(NULL, 'a', NULL)", "(0, 'a', NULL)"):
        with pytest.raises(Exception, match=r"NOT_NULL_CONSTRAINT|VIOLATE_CONSTRAINT|NOT NULL"):
            insert(delta_spark, table, broken)
    tablefeed.append(table, pa.table({"id": [2], "name": ["b"]}))

    assert rows_of(delta_spark, table, "id", "name") == [(1, "a"), (2, "b")]
    comments = {row["col_name"]: row["comment"] for row in delta_spark.sql(f"DESCRIBE {name}").collect()}
    assert comments["id"] == "the key"


def test_the_jar_reads_and_appends_after_each_of_our_changes(delta_spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "t"
    name = f"delta.`{table}`"
    tablefeed.create(table, pa.schema([("id", pa.int32()), ("name", pa.string())]))
    insert(delta_spark, table, "(1, 'a')")

    tablefeed.alter(table, set_properties={"delta.enableDeletionVectors": "true", "delta.columnMapping.mode": "name"})
    insert(delta_spark, table, "(2, 'b'), (3, 'c')")
    delta_spark.sql(f"DELETE FROM {name} WHERE id = 2")  # noqa: S608 - a test's own table
    tablefeed.alter(
        table,
        set_properties={"delta.enableTypeWidening": "true", "delta.enableInCommitTimestamps": "true"},
        widen_columns={"id": pa.int64()},
        rename_columns={"name": "label"},
        add_columns=[pa.field("note", pa.string())],
        set_not_null=["id"],
    )
    tablefeed.alter(table, add_constraints={"c": "id <> 2"})
    insert(delta_spark, table, f"({2**40}, 'd', 'n')")
    with pytest.raises(Exception, match="VIOLATE_CONSTRAINT"):
        insert(delta_spark, table, "(2, 'd', 'n')")
    tablefeed.alter(table, set_defaults={"note": "'none'"}, enable_features=["allowColumnDefaults"])
    insert(delta_spark, table, "(5, 'e')", columns="(id, label)")
    tablefeed.alter(table, drop_columns=["label"], drop_not_null=["id"], drop_constraints=["c"])
    insert(delta_spark, table, "(NULL, 'f')")

    assert rows_of(delta_spark, table, "id", "note") == [
        (1, None),
        (1099511627776, "n"),
        (3, None),
        (5, "none"),
        (None, "f"),
    ]
    operations = [row["operation"] for row in delta_spark.sql(f"DESCRIBE HISTORY {name}").collect()]
    assert operations.count("ALTER TABLE") == 3


def test_we_read_and_append_to_what_the_jar_altered(delta_spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "t"
    name = f"delta.`{table}`"
    tablefeed.create(table, pa.schema([("id", pa.int32()), ("name", pa.string())]))
    tablefeed.append(table, pa.table({"id": pa.array([1], pa.int32()), "name": ["a"]}))

    delta_spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
    delta_spark.sql(f"ALTER TABLE {name} RENAME COLUMN name TO label")
    delta_spark.sql(f"ALTER TABLE {name} ADD COLUMNS (note STRING)")
    delta_spark.sql(f"ALTER TABLE {name} ADD CONSTRAINT c CHECK (id > 0)")
    tablefeed.append(table, pa.table({"id": pa.array([2], pa.int32()), "label": ["b"], "note": ["n"]}))
    tablefeed.alter(table, drop_columns=["label"])

    assert rows_of(delta_spark, table, "id", "note") == [(1, None), (2, "n")]


def test_the_jar_reads_and_appends_to_what_we_restored_from_its_commits(
    delta_spark: SparkSession, tmp_path: Path
) -> None:
    table = tmp_path / "t"
    name = f"delta.`{table}`"
    properties = {"delta.enableDeletionVectors": "true", "delta.enableRowTracking": "true"}
    tablefeed.create(table, pa.schema([("id", pa.int32()), ("name", pa.string())]), properties=properties)
    insert(delta_spark, table, "(1, 'a'), (2, 'b'), (3, 'c')")
    delta_spark.sql(f"DELETE FROM {name} WHERE id = 2")  # noqa: S608 - a test's own table
    before = tablefeed.open_table(table).version
    delta_spark.sql(f"UPDATE {name} SET name = 'x'")  # noqa: S608 - a test's own table
    delta_spark.sql(f"ALTER TABLE {name} ADD COLUMNS (note STRING)")

    tablefeed.restore(table, version=before)
    assert rows_of(delta_spark, table, "id", "name") == [(1, "a"), (3, "c")]
    insert(delta_spark, table, "(4, 'd')")
    tablefeed.restore(table, version=1)
    assert rows_of(delta_spark, table, "id", "name") == [(1, "a"), (2, "b"), (3, "c")]
    delta_spark.sql(f"RESTORE TABLE {name} TO VERSION AS OF {before}")

    assert rows_of(delta_spark, table, "id", "name") == [(1, "a"), (3, "c")]


PROPERTIES = (
    "delta.enableChangeDataFeed",
    "delta.enableDeletionVectors",
    "delta.appendOnly",
    "delta.enableTypeWidening",
    "delta.enableInCommitTimestamps",
)


@pytest.mark.parametrize("name", PROPERTIES)
def test_a_property_brings_the_protocol_that_the_jar_brings(
    delta_spark: SparkSession, tmp_path: Path, name: str
) -> None:
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    for table in (ours, theirs):
        tablefeed.create(table, pa.schema([("id", pa.int32())]))

    tablefeed.alter(ours, set_properties={name: "true"})
    delta_spark.sql(f"ALTER TABLE delta.`{theirs}` SET TBLPROPERTIES ('{name}' = 'true')")

    assert tablefeed.open_table(ours).protocol == tablefeed.open_table(theirs).protocol
