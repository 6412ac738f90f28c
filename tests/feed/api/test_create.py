"""`tablefeed.create`: an empty table as it is declared. delta-rs reads what was made."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

import tablefeed
from support.commits import committed
from support.logs import a_log, a_table, said
from tablefeed import errors
from tablefeed.feed.api.table_changes import create_table
from tablefeed.feed.write.write_rules import WriteRules
from tablefeed.model.schema import Field, Primitive, Struct

INNER = pa.struct([pa.field("street", pa.string(), nullable=False), pa.field("zip", pa.string())])
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False, metadata={"comment": "the key", "other": "dropped"}),
        pa.field("day", pa.date32()),
        pa.field("home", INNER, nullable=False),
        pa.field("tags", pa.list_(pa.string())),
    ]
)


def columns_of(path: Path, version: int = 0) -> dict[str, dict[str, Any]]:
    (metadata,) = said(path, version, "metaData")
    return {column["name"]: column for column in json.loads(metadata["schemaString"])["fields"]}


def test_a_table_has_the_not_null_and_the_comments_of_its_schema_at_every_depth(tmp_path: Path) -> None:
    assert tablefeed.create(tmp_path, SCHEMA) == committed(0)

    columns = columns_of(tmp_path)
    assert {name: column["nullable"] for name, column in columns.items()} == {
        "id": False,
        "day": True,
        "home": False,
        "tags": True,
    }
    assert [member["nullable"] for member in columns["home"]["type"]["fields"]] == [False, True]
    assert columns["id"]["metadata"] == {"comment": "the key"}
    assert tablefeed.open_table(tmp_path).to_arrow().num_rows == 0
    assert [field.nullable for field in DeltaTable(str(tmp_path)).schema().fields] == [False, True, False, True]


def test_rows_without_a_required_value_are_refused_from_the_first_write_on(tmp_path: Path) -> None:
    tablefeed.create(tmp_path, pa.schema([pa.field("id", pa.int64(), nullable=False)]))

    with pytest.raises(errors.InvalidRowsError, match="DELTA_NOT_NULL_CONSTRAINT_VIOLATED"):
        tablefeed.append(tmp_path, pa.table({"id": pa.array([None], pa.int64())}))


def test_the_protocol_is_the_lowest_that_properties_constraints_and_columns_need(tmp_path: Path) -> None:
    tablefeed.create(tmp_path / "plain", SCHEMA)
    tablefeed.create(
        tmp_path / "rich",
        pa.schema([pa.field("id", pa.int64()), pa.field("at", pa.timestamp("us"))]),
        properties={"delta.enableChangeDataFeed": "true", "delta.feature.allowColumnDefaults": "supported"},
        constraints={"Positive": "id > 0"},
    )

    assert said(tmp_path / "plain", 0, "protocol") == [{"minReaderVersion": 1, "minWriterVersion": 2}]
    (protocol,) = said(tmp_path / "rich", 0, "protocol")
    assert (protocol["minReaderVersion"], protocol["readerFeatures"]) == (3, ["timestampNtz"])
    assert set(protocol["writerFeatures"]) == {
        "appendOnly",
        "invariants",
        "checkConstraints",
        "changeDataFeed",
        "timestampNtz",
        "allowColumnDefaults",
    }
    (metadata,) = said(tmp_path / "rich", 0, "metaData")
    assert metadata["configuration"] == {
        "delta.enableChangeDataFeed": "true",
        "delta.constraints.positive": "id > 0",
    }


def test_the_commit_says_what_delta_sparks_says(tmp_path: Path) -> None:
    tablefeed.create(tmp_path, SCHEMA, partition_by=["DAY"], properties={"delta.appendOnly": "true"})

    (info,) = said(tmp_path, 0, "commitInfo")
    assert (info["operation"], info["isBlindAppend"]) == ("CREATE TABLE", True)
    assert info["operationParameters"] == {
        "isManaged": "false",
        "description": None,
        "partitionBy": '["day"]',
        "clusterBy": "[]",
        "properties": '{"delta.appendOnly":"true"}',
    }


def test_a_table_may_be_clustered(tmp_path: Path) -> None:
    tablefeed.create(tmp_path, SCHEMA, cluster_by=["home.zip"])

    (domain,) = said(tmp_path, 0, "domainMetadata")
    assert json.loads(domain["configuration"])["clusteringColumns"] == [["home", "zip"]]


def test_a_table_that_is_there_is_kept(tmp_path: Path) -> None:
    write_deltalake(str(tmp_path), pa.table({"id": [1]}))

    with pytest.raises(errors.TableError, match="DELTA_TABLE_ALREADY_EXISTS"):
        tablefeed.create(tmp_path, SCHEMA)

    assert tablefeed.open_table(tmp_path).version == 0


def test_of_two_that_make_one_table_the_second_is_refused() -> None:
    log = a_log()
    a_table(log.store)  # another writer, after `log` was found empty
    columns = Struct((Field("id", Primitive("long"), nullable=True),))

    with pytest.raises(errors.TableError, match="DELTA_TABLE_ALREADY_EXISTS"):
        create_table(log, columns, partition_by=(), rules=WriteRules())

    assert log.load().version == 0


def test_a_constraint_that_is_given_as_a_property_has_its_name_in_lower_case_and_can_be_dropped(tmp_path: Path) -> None:
    tablefeed.create(tmp_path, SCHEMA, properties={"delta.constraints.Positive": "id > 0"})
    assert tablefeed.open_table(tmp_path).metadata.configuration == {"delta.constraints.positive": "id > 0"}

    tablefeed.alter(tmp_path, drop_constraints=["Positive"])
    assert tablefeed.open_table(tmp_path).metadata.configuration == {}


def test_not_null_has_its_feature_under_any_protocol_that_is_asked_for(tmp_path: Path) -> None:
    required = pa.schema([("s", pa.struct([pa.field("x", pa.int64(), nullable=False)]))])

    tablefeed.create(tmp_path, required, properties={"delta.minWriterVersion": "7"})

    assert said(tmp_path, 0, "protocol") == [
        {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["invariants"]}
    ]


NESTED = pa.schema([pa.field("l", pa.list_(pa.struct([pa.field("x", pa.int64(), nullable=False)])))])
BAD: dict[str, tuple[dict[str, Any], type[errors.TablefeedError], str]] = {
    "no schema": ({"schema": {"id": "long"}}, errors.IllegalOptionError, "must be a pyarrow schema"),
    "no columns": ({"schema": pa.schema([])}, errors.SchemaMismatchError, "no columns"),
    "unknown type": ({"schema": pa.schema([("t", pa.time64("us"))])}, errors.SchemaMismatchError, "/t is time64"),
    "NOT NULL in a list": ({"schema": NESTED}, errors.SchemaMismatchError, "DELTA_NESTED_NOT_NULL_CONSTRAINT"),
    "bad name in a struct": (
        {"schema": pa.schema([("s", pa.struct([("a b", pa.int64())]))])},
        errors.SchemaMismatchError,
        r"the column s\.a b, because its name has one of the characters",
    ),
    "bad partition": ({"partition_by": ["x"]}, errors.SchemaMismatchError, "DELTA_PARTITION_COLUMN_NOT_FOUND"),
    "bad property": ({"properties": {"delta.x": "1"}}, errors.IllegalOptionError, "DELTA_UNKNOWN_CONFIGURATION"),
    "bad constraint": ({"constraints": {"c": "id +"}}, errors.UnsupportedExpressionError, "its constraint c"),
    "no condition": ({"constraints": {"c": "id"}}, errors.UnsupportedExpressionError, "DELTA_NON_BOOLEAN_CHECK"),
    "unknown column": ({"constraints": {"c": "x > 1"}}, errors.UnsupportedExpressionError, "DELTA_INVALID_CHECK"),
    "a column of the feed": (
        {"schema": pa.schema([("_change_type", pa.string())]), "properties": {"delta.enableChangeDataFeed": "true"}},
        errors.SchemaMismatchError,
        "RESERVED_CDC_COLUMNS_ON_WRITE",
    ),
    "property twice": (
        {"properties": {"delta.appendOnly": "true", "DELTA.appendonly": "false"}},
        errors.IllegalOptionError,
        "'DELTA.appendonly': it is for a property that is given twice",
    ),
    "nameless": ({"constraints": {" ": "id > 1"}}, errors.IllegalOptionError, "DELTA_INVALID_CONSTRAINT_NAME"),
    "constraint twice": (
        {"constraints": {"C": "id > 1"}, "properties": {"delta.constraints.c": "id < 9"}},
        errors.ConflictingOptionsError,
        "'properties' and 'constraints'",
    ),
}


@pytest.mark.parametrize(("arguments", "error", "said"), BAD.values(), ids=BAD)
def test_what_no_table_can_be_is_refused_and_leaves_nothing(
    tmp_path: Path, arguments: dict[str, Any], error: type[errors.TablefeedError], said: str
) -> None:
    with pytest.raises(error, match=said):
        tablefeed.create(tmp_path / "t", **{"schema": SCHEMA, **arguments})

    assert not (tmp_path / "t").exists()
