"""`tablefeed.alter`: each change in one commit, what it needs, what it refuses. delta-rs reads the altered tables."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder, write_deltalake

import tablefeed
from support.commits import committed
from support.logs import a_log, add, col, meta, metadata, protocol, put, remove, said
from tablefeed import errors
from tablefeed.delta.alteration import Alteration
from tablefeed.feed.api.table_changes import alter_table
from tablefeed.store import LocalStore

MODE, WIDENING = "delta.columnMapping.mode", "delta.enableTypeWidening"
HOME = pa.struct([("street", pa.string()), ("zip", pa.string())])
ROWS = pa.table(
    {
        "id": pa.array([1, 2], pa.int32()),
        "name": ["a", None],
        "home": pa.array([{"street": "s", "zip": "z"}, {"street": "t", "zip": None}], HOME),
        "tags": pa.array([[1], None], pa.list_(pa.int32())),
    }
)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    tablefeed.append(tmp_path, ROWS)
    return tmp_path


def mapped(path: Path, **more: Any) -> Path:
    tablefeed.append(path, ROWS, properties={MODE: "name"}, **more)
    return path


def columns_of(path: Path) -> dict[str, dict[str, Any]]:
    text = tablefeed.open_table(path).metadata.schema_string
    return {column["name"]: column for column in json.loads(text)["fields"]}


def features_of(path: Path) -> set[str]:
    found = tablefeed.open_table(path).protocol
    return {*(found.writer_features or ()), *(found.reader_features or ())}


def rows_of(path: Path, *columns: str) -> list[dict[str, Any]]:
    """The rows, which delta-rs and we read alike."""
    rows = tablefeed.open_table(path).to_arrow(columns=list(columns)).to_pylist()
    listed = ", ".join(f'"{name}"' for name in columns)
    theirs = QueryBuilder().register("t", DeltaTable(str(path))).execute(f"SELECT {listed} FROM t").read_all()  # noqa: S608
    assert sorted(map(str, pa.table(theirs).to_pylist())) == sorted(map(str, rows))
    return sorted(rows, key=str)


def operation(path: Path) -> tuple[str, dict[str, Any]]:
    (info,) = said(path, tablefeed.open_table(path).version, "commitInfo")
    return info["operation"], info["operationParameters"]


def refused(path: Path, error: type[errors.TablefeedError], match: str, **changes: Any) -> None:
    """Checks that the call is refused, and that no commit was made."""
    before = tablefeed.open_table(path).version
    with pytest.raises(error, match=match):
        tablefeed.alter(path, **changes)
    assert tablefeed.open_table(path).version == before


# --- properties and features -----------------------------------------------------------------------------------------

RAISES: dict[str, tuple[dict[str, str], str]] = {
    "change data feed": ({"delta.enableChangeDataFeed": "true"}, "changeDataFeed"),
    "deletion vectors": ({"delta.enableDeletionVectors": "true"}, "deletionVectors"),
    "type widening": ({WIDENING: "true"}, "typeWidening"),
    "in-commit timestamps": ({"delta.enableInCommitTimestamps": "true"}, "inCommitTimestamp"),
    "checkpoints": ({"delta.checkpointPolicy": "v2"}, "v2Checkpoint"),
    "column mapping": ({MODE: "name"}, "columnMapping"),
    "a feature by itself": ({"delta.feature.vacuumProtocolCheck": "supported"}, "vacuumProtocolCheck"),
}


@pytest.mark.parametrize(("properties", "feature"), RAISES.values(), ids=RAISES)
def test_a_property_brings_the_feature_that_it_needs(table: Path, properties: dict[str, str], feature: str) -> None:
    assert tablefeed.alter(table, set_properties=properties) == committed(1)

    kept = {name: value for name, value in properties.items() if not name.startswith("delta.feature.")}
    assert kept.items() <= tablefeed.open_table(table).metadata.configuration.items()
    assert features_of(table) == {"appendOnly", "invariants", feature}
    assert operation(table) == ("SET TBLPROPERTIES", {"properties": json.dumps(properties, separators=(",", ":"))})
    assert tablefeed.append(table, ROWS) == committed(2)
    if feature not in ("typeWidening", "vacuumProtocolCheck"):  # which delta-rs refuses to read
        assert len(rows_of(table, "id", "name")) == 4


def test_a_property_without_a_feature_leaves_the_protocol_and_the_schema_as_they_are(table: Path) -> None:
    before = tablefeed.open_table(table)

    tablefeed.alter(table, set_properties={"DELTA.LOGRETENTIONDURATION": "interval 2 days", "mine": "x"})

    assert said(table, 1, "protocol") == []
    after = tablefeed.open_table(table).metadata
    assert after.configuration == {"delta.logRetentionDuration": "interval 2 days", "mine": "x"}
    assert (after.table_id, after.schema_string) == (before.table_id, before.metadata.schema_string)


def test_a_change_feed_that_is_turned_on_later_is_read_from_there_on(table: Path) -> None:
    tablefeed.alter(table, set_properties={"delta.enableChangeDataFeed": "true"})
    tablefeed.append(table, ROWS.slice(0, 1))

    changes = tablefeed.changes(table, start_version=2, columns=["id", "_change_type"]).read_all()
    assert changes.to_pylist() == [{"id": 1, "_change_type": "insert"}]


def test_a_property_is_removed(table: Path) -> None:
    tablefeed.alter(table, set_properties={"delta.appendOnly": "true", "mine": "x"})

    tablefeed.alter(table, unset_properties=["delta.APPENDonly"])

    assert tablefeed.open_table(table).metadata.configuration == {"mine": "x"}
    assert operation(table) == ("UNSET TBLPROPERTIES", {"properties": '["delta.APPENDonly"]', "ifExists": False})


def test_commit_times_begin_with_the_commit_that_turns_them_on(table: Path) -> None:
    tablefeed.alter(table, set_properties={"delta.enableInCommitTimestamps": "true"})

    (info,) = said(table, 1, "commitInfo")
    assert tablefeed.open_table(table).metadata.configuration == {
        "delta.enableInCommitTimestamps": "true",
        "delta.inCommitTimestampEnablementVersion": "1",
        "delta.inCommitTimestampEnablementTimestamp": str(info["inCommitTimestamp"]),
    }


def test_row_ids_that_are_asked_for_have_names_for_their_columns_and_later_rows_get_ids(table: Path) -> None:
    tablefeed.alter(table, enable_features=["ROWTRACKING"])
    tablefeed.append(table, ROWS)

    assert features_of(table) == {"appendOnly", "invariants", "rowTracking", "domainMetadata"}
    assert "delta.rowTracking.materializedRowIdColumnName" in tablefeed.open_table(table).metadata.configuration
    assert [file["baseRowId"] for file in said(table, 2, "add")] == [0]


PROPERTIES_REFUSED: dict[str, tuple[dict[str, Any], type[errors.TablefeedError], str]] = {
    "unknown": ({"set_properties": {"delta.x": "1"}}, errors.IllegalOptionError, "DELTA_UNKNOWN_CONFIGURATION"),
    "value": ({"set_properties": {"delta.appendOnly": "yes"}}, errors.IllegalOptionError, "must be 'true' or 'false'"),
    "constraint": ({"set_properties": {"delta.constraints.c": "1"}}, errors.IllegalOptionError, "DELTA_ADD_CONSTR"),
    "constraint unset": ({"unset_properties": ["delta.constraints.c"]}, errors.IllegalOptionError, "drop_constraints"),
    "not there": ({"unset_properties": ["mine"]}, errors.TableError, "DELTA_UNSET_NON_EXISTENT_PROPERTY"),
    "row tracking": ({"set_properties": {"delta.enableRowTracking": "true"}}, errors.UnsupportedFeatureError, "ids"),
    "Iceberg": ({"set_properties": {"delta.enableIcebergCompatV2": "true"}}, errors.UnsupportedFeatureError, "REORG"),
    "mapping by id": ({"set_properties": {MODE: "id"}}, errors.UnsupportedFeatureError, "MAPPING_MODE_CHANGE"),
    "writers' own": ({"unset_properties": ["delta.columnMapping.maxColumnId"]}, errors.IllegalOptionError, "writers"),
    "no feature": ({"enable_features": ["flying"]}, errors.IllegalOptionError, "DELTA_UNSUPPORTED_FEATURES_IN_CONFIG"),
    "clustering": ({"enable_features": ["clustering"]}, errors.IllegalOptionError, "no table feature that can be"),
    "not handled": ({"enable_features": ["catalogManaged"]}, errors.UnsupportedFeatureError, "no longer write"),
    "nothing": ({}, errors.IllegalOptionError, "at least one change"),
    "no mapping": ({"set_properties": ["a"]}, errors.IllegalOptionError, "must map names to values"),
    "set and removed": (
        {"set_properties": {"delta.appendOnly": "true"}, "unset_properties": ["delta.appendonly"]},
        errors.ConflictingOptionsError,
        "Both name delta.appendOnly",
    ),
    "no text": ({"set_properties": {"a": 1}}, errors.IllegalOptionError, "must be a text"),
}


@pytest.mark.parametrize(("changes", "error", "match"), PROPERTIES_REFUSED.values(), ids=PROPERTIES_REFUSED)
def test_a_property_that_cannot_be_changed_is_refused(
    table: Path, changes: dict[str, Any], error: type[errors.TablefeedError], match: str
) -> None:
    refused(table, error, match, **changes)


def test_a_change_feed_is_refused_beside_a_column_of_its_name(tmp_path: Path) -> None:
    tablefeed.append(tmp_path, pa.table({"_change_type": ["x"]}))

    feed = {"delta.enableChangeDataFeed": "true"}
    refused(tmp_path, errors.SchemaMismatchError, "DELTA_TABLE_ALREADY_CONTAINS_CDC_COLUMNS", set_properties=feed)


def test_a_change_feed_is_refused_beside_a_column_that_has_its_name_in_files(tmp_path: Path) -> None:
    tablefeed.append(tmp_path, pa.table({"id": [1], "_change_type": ["x"]}))
    mapped = {"delta.columnMapping.mode": "name"}
    tablefeed.alter(tmp_path, set_properties=mapped, rename_columns={"_change_type": "kind"})

    feed = {"delta.enableChangeDataFeed": "true"}
    named = "'kind' has a name, in the table or in its files"
    refused(tmp_path, errors.SchemaMismatchError, named, set_properties=feed)


def test_mapping_is_turned_off_and_changed_by_no_call(tmp_path: Path) -> None:
    mapped(tmp_path)

    for change in ({"set_properties": {MODE: "none"}}, {"unset_properties": [MODE]}, {"set_properties": {MODE: "id"}}):
        refused(tmp_path, errors.UnsupportedFeatureError, "DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE", **change)


# --- columns ---------------------------------------------------------------------------------------------------------


def test_columns_and_members_of_structs_are_added_last_and_are_null_in_old_rows(table: Path) -> None:
    total = pa.field("total", pa.float64(), metadata={"comment": "in euro"})

    tablefeed.alter(table, add_columns=[total, pa.field("HOME.city", pa.string())])

    assert list(columns_of(table)) == ["id", "name", "home", "tags", "total"]
    assert columns_of(table)["total"]["metadata"] == {"comment": "in euro"}
    assert rows_of(table, "total", "home") == [
        {"total": None, "home": {"street": "s", "zip": "z", "city": None}},
        {"total": None, "home": {"street": "t", "zip": None, "city": None}},
    ]
    name, parameters = operation(table)
    assert (name, [each["column"]["name"] for each in json.loads(parameters["columns"])]) == (
        "ADD COLUMNS",
        ["total", "HOME.city"],
    )


def test_columns_are_renamed_and_dropped_once_they_are_mapped_and_old_files_are_still_read(table: Path) -> None:
    tablefeed.alter(
        table,
        set_properties={MODE: "name"},
        rename_columns={"name": "id", "id": "name", "home.zip": "code"},
        drop_columns=["home.street"],
    )

    assert rows_of(table, "id", "name", "home") == [
        {"id": "a", "name": 1, "home": {"code": "z"}},
        {"id": None, "name": 2, "home": {"code": None}},
    ]
    name, parameters = operation(table)
    assert name == "ALTER TABLE"
    assert [change["operation"] for change in json.loads(parameters["changes"])] == [
        "SET TBLPROPERTIES",
        "DROP COLUMNS",
        *["RENAME COLUMN"] * 3,
    ]


def test_a_column_that_takes_the_name_of_a_dropped_one_has_none_of_its_values(tmp_path: Path) -> None:
    mapped(tmp_path)

    tablefeed.alter(tmp_path, drop_columns=["name"], add_columns=[pa.field("name", pa.string())])

    assert rows_of(tmp_path, "name") == [{"name": None}, {"name": None}]


def test_a_renamed_partition_column_still_partitions_and_keeps_its_place_in_the_list_of_statistics(
    tmp_path: Path,
) -> None:
    rows = pa.table({"p": ["x", "y"], "a": [1, 2], "b c": [3, 4]})
    properties = {MODE: "name", "delta.dataSkippingStatsColumns": "a,`b c`"}
    tablefeed.append(tmp_path, rows, partition_by=["p"], properties=properties)

    tablefeed.alter(tmp_path, rename_columns={"p": "q", "b c": "d e"}, drop_columns=["a"])

    opened = tablefeed.open_table(tmp_path)
    assert opened.partition_columns == ("q",)
    assert opened.metadata.configuration["delta.dataSkippingStatsColumns"] == "`d e`"
    assert rows_of(tmp_path, "q", "d e") == [{"q": "x", "d e": 3}, {"q": "y", "d e": 4}]


def test_types_are_widened_at_every_depth_and_old_files_are_still_read(table: Path) -> None:
    wider = {"id": pa.int64(), "tags.element": pa.int64()}

    tablefeed.alter(table, set_properties={WIDENING: "true"}, widen_columns=wider)

    assert columns_of(table)["id"]["metadata"]["delta.typeChanges"] == [{"fromType": "integer", "toType": "long"}]
    assert columns_of(table)["tags"]["metadata"]["delta.typeChanges"] == [
        {"fromType": "integer", "toType": "long", "fieldPath": "element"}
    ]
    tablefeed.append(table, pa.table({"id": [2**40], "tags": [[2**41]]}))
    rows = tablefeed.open_table(table).to_arrow(columns=["id", "tags"])
    assert sorted(rows["id"].to_pylist()) == [1, 2, 2**40]


def test_a_default_fills_rows_to_come_and_its_feature_must_be_asked_for(table: Path) -> None:
    default = {"name": "'none'"}
    refused(table, errors.UnsupportedFeatureError, "DEFAULTS_FOR_DELTA_FEATURE_NOT_ENABLED", set_defaults=default)

    tablefeed.alter(table, set_defaults=default, enable_features=["allowColumnDefaults"])
    tablefeed.append(table, pa.table({"id": pa.array([3], pa.int32())}))
    tablefeed.alter(table, drop_defaults=["NAME"])
    tablefeed.append(table, pa.table({"id": pa.array([4], pa.int32())}))

    rows = tablefeed.open_table(table).to_arrow(columns=["id", "name"]).to_pylist()
    assert {row["id"]: row["name"] for row in rows} == {1: "a", 2: None, 3: "none", 4: None}


def test_a_comment_is_set_and_removed(table: Path) -> None:
    tablefeed.alter(table, set_comments={"id": "the key", "home.zip": "code"})
    tablefeed.alter(table, set_comments={"ID": None})

    columns = columns_of(table)
    assert columns["id"]["metadata"] == {}
    assert columns["home"]["type"]["fields"][1]["metadata"] == {"comment": "code"}
    assert operation(table)[0] == "CHANGE COLUMN"


NEW, LIST = pa.field("x", pa.int64()), pa.list_(pa.int64())
COLUMNS_REFUSED: dict[str, tuple[dict[str, Any], type[errors.TablefeedError], str]] = {
    "there": ({"add_columns": [pa.field("NAME", LIST)]}, errors.SchemaMismatchError, "DELTA_DUPLICATE_COLUMNS_FOUND"),
    "member there": ({"add_columns": [pa.field("home.ZIP", LIST)]}, errors.SchemaMismatchError, "DUPLICATE_COLUMNS"),
    "twice": ({"add_columns": [NEW, NEW]}, errors.IllegalOptionError, "names a column twice"),
    "NOT NULL": ({"add_columns": [pa.field("x", LIST, nullable=False)]}, errors.SchemaMismatchError, "is NOT NULL"),
    "no struct": ({"add_columns": [pa.field("name.x", LIST)]}, errors.SchemaMismatchError, "ADD_COLUMN_PARENT_NOT_STR"),
    "bad name": ({"add_columns": [pa.field("a b", LIST)]}, errors.SchemaMismatchError, "DELTA_INVALID_CHARACTERS"),
    "bad member": ({"add_columns": [pa.field("home.a b", LIST)]}, errors.SchemaMismatchError, "INVALID_CHARACTERS"),
    "comment twice": ({"set_comments": {"id": "x", "ID": "y"}}, errors.IllegalOptionError, "names a column twice"),
    "constraint twice": (
        {"add_constraints": {"c": "id > 0", "C": "id < 9"}},
        errors.IllegalOptionError,
        "names a constraint twice",
    ),
    "void": ({"add_columns": [pa.field("x", pa.null())]}, errors.SchemaMismatchError, "void"),
    "no type": ({"add_columns": [pa.field("x", pa.time64("us"))]}, errors.SchemaMismatchError, "for /.* is time64"),
    "no wider type": ({"widen_columns": {"id": pa.uint64()}}, errors.SchemaMismatchError, "for /.* is uint64"),
    "no field": ({"add_columns": ["x"]}, errors.IllegalOptionError, "list of pyarrow fields"),
    "time without zone": (
        {"add_columns": [pa.field("x", pa.timestamp("us"))]},
        errors.UnsupportedFeatureError,
        "DELTA_FEATURES_REQUIRE_MANUAL_ENABLEMENT",
    ),
    "not mapped, drop": ({"drop_columns": ["id"]}, errors.UnsupportedFeatureError, "DELTA_UNSUPPORTED_DROP_COLUMN"),
    "not mapped": ({"rename_columns": {"id": "x"}}, errors.UnsupportedFeatureError, "DELTA_UNSUPPORTED_RENAME_COLUMN"),
    "no column": ({"set_comments": {"x": "y"}}, errors.SchemaMismatchError, "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA"),
    "no member": ({"set_not_null": ["tags.element"]}, errors.SchemaMismatchError, "is an element, a key or a value"),
    "not widening": ({"widen_columns": {"id": pa.int64()}}, errors.SchemaMismatchError, "enableTypeWidening is not"),
    "narrower": ({"widen_columns": {"id": pa.int8()}}, errors.SchemaMismatchError, "CHANGE_COL_OP.*cannot be widened"),
    "no arrow type": ({"widen_columns": {"id": "long"}}, errors.IllegalOptionError, "pyarrow types"),
    "default of a member": (
        {"set_defaults": {"home.zip": "'x'"}, "enable_features": ["allowColumnDefaults"]},
        errors.SchemaMismatchError,
        "no member, has a default",
    ),
    "bad default": (
        {"set_defaults": {"id": "'x'"}, "enable_features": ["allowColumnDefaults"]},
        errors.TableError,
        "default",
    ),
    "set and dropped": (
        {"set_not_null": ["id"], "drop_not_null": ["ID"]},
        errors.ConflictingOptionsError,
        "'set_not_null' and 'drop_not_null'",
    ),
    "no name": ({"rename_columns": {"id": ""}}, errors.IllegalOptionError, "must give each column a name"),
    "a blank at the end of a name": (
        {"add_columns": [pa.field("note ", pa.string())]},
        errors.IllegalOptionError,
        "between backticks",
    ),
    "bad path": ({"drop_columns": ["a,b"]}, errors.IllegalOptionError, "one column in each text"),
}


@pytest.mark.parametrize(("changes", "error", "match"), COLUMNS_REFUSED.values(), ids=COLUMNS_REFUSED)
def test_a_change_of_columns_that_cannot_be_is_refused(
    table: Path, changes: dict[str, Any], error: type[errors.TablefeedError], match: str
) -> None:
    refused(table, error, match, **changes)


def test_mapping_is_not_turned_on_again_over_the_names_of_an_earlier_one() -> None:
    log = a_log(v0=[protocol(), meta(col("id", id=1, physicalName="col-1"))])
    wanted = Alteration(assigned={MODE: "name"})

    with pytest.raises(errors.SchemaMismatchError, match="DISALLOWED_WHEN_COLUMN_MAPPING_METADATA_ALREADY_EXISTS"):
        alter_table(log, log.load(), wanted)


def test_a_column_on_which_something_depends_is_not_dropped(tmp_path: Path) -> None:
    partitioned, clustered, one = tmp_path / "p", tmp_path / "c", tmp_path / "one"
    mapped(partitioned, partition_by=["name"])
    mapped(clustered, cluster_by=["home.zip"])
    tablefeed.append(one, pa.table({"a": [1]}), properties={MODE: "name"})
    tablefeed.alter(partitioned, add_constraints={"c": "id > 0 AND coalesce(home.zip, '') <> 'name'"})

    drop = "DELTA_UNSUPPORTED_DROP"
    refused(partitioned, errors.SchemaMismatchError, f"{drop}_PARTITION_COLUMN", drop_columns=["NAME"])
    refused(clustered, errors.SchemaMismatchError, f"{drop}_CLUSTERING_COLUMN", drop_columns=["home"])
    refused(one, errors.SchemaMismatchError, "DELTA_DROP_COLUMN_ON_SINGLE_FIELD_SCHEMA", drop_columns=["a"])
    for change in ({"drop_columns": ["id"]}, {"rename_columns": {"home.zip": "x"}}, {"rename_columns": {"home": "x"}}):
        refused(partitioned, errors.SchemaMismatchError, "DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE", **change)
    tablefeed.alter(partitioned, drop_constraints=["c"], drop_columns=["id"])


GENERATED = {"delta.generationExpression": "id + 1"}
IDENTITY = {"delta.identity.start": 1, "delta.identity.step": 1, "delta.identity.allowExplicitInsert": True}


def test_generated_and_identity_columns_keep_what_makes_their_values() -> None:
    configuration = {MODE: "name", "delta.columnMapping.maxColumnId": "3"}
    columns = [
        col("id", id=1, physicalName="id"),
        col("g", notes=GENERATED, id=2, physicalName="g"),
        col("n", notes=IDENTITY, id=3, physicalName="n"),
    ]
    log = a_log(v0=[protocol(2, 6), meta(*columns, configuration=configuration)])

    def altered(**columns: Any) -> Callable[[], object]:
        return lambda: alter_table(log, log.load(), Alteration(**columns))

    for change, error_class in (
        (altered(dropped=(("id",),)), "DELTA_GENERATED_COLUMNS_DEPENDENT_COLUMN_CHANGE"),
        (altered(renamed={("id",): "x"}), "DELTA_GENERATED_COLUMNS_DEPENDENT_COLUMN_CHANGE"),
        (altered(nullable={("n",): False}), "DELTA_IDENTITY_COLUMNS_ALTER_COLUMN_NOT_SUPPORTED"),
    ):
        with pytest.raises(errors.SchemaMismatchError, match=error_class):
            change()
    assert altered(dropped=(("g",),))() == committed(1)


# --- rules for rows --------------------------------------------------------------------------------------------------


def test_a_constraint_holds_for_the_rows_that_are_there_before_it_is_added(table: Path) -> None:
    refused(
        table,
        errors.InvalidRowsError,
        "DELTA_NEW_CHECK_CONSTRAINT_VIOLATION.*\n - id : 2",
        add_constraints={"c": "id < 2"},
    )
    refused(table, errors.InvalidRowsError, "name : null", add_constraints={"c": "name = 'a'"})
    refused(table, errors.UnsupportedExpressionError, "its constraint c", add_constraints={"c": "id +"})

    tablefeed.alter(table, add_constraints={"Small": "id < 3"})

    assert tablefeed.open_table(table).metadata.configuration == {"delta.constraints.small": "id < 3"}
    assert features_of(table) == set()
    assert tablefeed.open_table(table).protocol.min_writer_version == 3
    assert operation(table) == ("ADD CONSTRAINT", {"name": "Small", "expr": "id < 3"})
    with pytest.raises(errors.InvalidRowsError, match="DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"):
        tablefeed.append(table, pa.table({"id": pa.array([3], pa.int32())}))


def test_a_constraint_is_dropped_and_another_takes_its_name_in_one_commit(table: Path) -> None:
    tablefeed.alter(table, add_constraints={"c": "id < 3"})
    refused(table, errors.TableError, "DELTA_CONSTRAINT_ALREADY_EXISTS", add_constraints={"C": "id < 9"})
    refused(table, errors.TableError, "DELTA_CONSTRAINT_DOES_NOT_EXIST", drop_constraints=["d"])

    tablefeed.alter(table, drop_constraints=["C"], add_constraints={"c": "id < 9"})

    assert tablefeed.open_table(table).metadata.configuration == {"delta.constraints.c": "id < 9"}


def test_a_constraint_that_another_writer_spells_in_upper_case_is_found(tmp_path: Path) -> None:
    told = meta(col("id"), configuration={"delta.constraints.C": "id < 3"})
    a_log(LocalStore(str(tmp_path)), v0=[protocol(1, 3), told])
    refused(tmp_path, errors.TableError, "DELTA_CONSTRAINT_ALREADY_EXISTS", add_constraints={"c": "id < 9"})

    tablefeed.alter(tmp_path, drop_constraints=["c"])

    assert tablefeed.open_table(tmp_path).metadata.configuration == {}


def test_not_null_is_set_where_every_row_has_a_value_and_is_taken_away_again(table: Path) -> None:
    violation = "DELTA_NEW_NOT_NULL_VIOLATION"
    for path in ("name", "home.zip"):
        refused(table, errors.InvalidRowsError, violation, set_not_null=[path])

    tablefeed.alter(table, set_not_null=["id", "home", "home.street"])

    with pytest.raises(errors.InvalidRowsError, match=r"home\.street"):
        tablefeed.append(table, pa.table({"id": pa.array([3], pa.int32()), "home": pa.array([{"zip": "z"}], HOME)}))
    tablefeed.alter(table, drop_not_null=["home", "home.street"])
    tablefeed.append(table, pa.table({"id": pa.array([3], pa.int32())}))
    assert [columns_of(table)[name]["nullable"] for name in ("id", "home")] == [False, True]


def test_rows_that_a_deletion_vector_deletes_break_no_new_rule(tmp_path: Path) -> None:
    properties = {"delta.enableDeletionVectors": "true"}
    write_deltalake(str(tmp_path), pa.table({"id": [1, 2, 3]}), configuration=properties)
    DeltaTable(str(tmp_path)).delete("id = 3")

    assert tablefeed.alter(tmp_path, add_constraints={"c": "id < 3"}) == committed(2)


CHECKED = Alteration(new_constraints={"c": "id IS NULL OR id > 0"})
UNCHECKED = Alteration(assigned={"mine": "x"})

RIVALS: dict[str, tuple[Alteration, dict[str, Any], str | None]] = {
    "rows, and a rule to check": (CHECKED, add("a"), "DELTA_CONCURRENT_APPEND"),
    "folded rows, and a rule to check": (CHECKED, add("a", data_change=False), None),
    "deletes, and a rule to check": (CHECKED, remove("a"), None),
    "rows, and a property": (UNCHECKED, add("a"), None),
    "metadata": (UNCHECKED, metadata(configuration={"theirs": "y"}), "DELTA_METADATA_CHANGED"),
    "a feature that does no harm to rows": (
        UNCHECKED,
        protocol(3, 7, readerFeatures=["deletionVectors"], writerFeatures=["deletionVectors"]),
        "DELTA_PROTOCOL_CHANGED",
    ),
}


@pytest.mark.parametrize(("wanted", "theirs", "error_class"), RIVALS.values(), ids=RIVALS)
def test_what_another_writer_commits_meanwhile_conflicts_as_in_delta_spark(
    wanted: Alteration, theirs: dict[str, Any], error_class: str | None
) -> None:
    log = a_log(v0=[protocol(), metadata()])
    seen = log.load()
    put(log.store, 1, [theirs])

    if error_class is None:
        assert alter_table(log, seen, wanted) == committed(2)
        return
    with pytest.raises(errors.ConflictError, match=error_class):
        alter_table(log, seen, wanted)
    assert log.load().version == 1


def test_an_index_tables_table_is_refused_by_name(tmp_path: Path) -> None:
    tablefeed.append(tmp_path, pa.table({"id": [1]}), table_format="indextables")

    refused(tmp_path, errors.UnsupportedFeatureError, "INDEXTABLES_MAINTENANCE", set_properties={"a": "b"})
    with pytest.raises(errors.UnsupportedFeatureError, match="INDEXTABLES_MAINTENANCE"):
        tablefeed.create(tmp_path, pa.schema([("id", pa.int64())]))


def test_a_table_that_is_not_there_is_not_altered(tmp_path: Path) -> None:
    with pytest.raises(errors.TableNotFoundError, match="DELTA_TABLE_NOT_FOUND"):
        tablefeed.alter(tmp_path / "t", set_properties={"a": "b"})
