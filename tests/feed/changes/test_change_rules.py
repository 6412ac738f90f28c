"""What a table must be, and stay, for its changes to be read; and changes that only the log's text can show."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import example, given, settings

import tablefeed
from support.logs import LONG_ID, Action, add, info, metadata, protocol
from support.recorded import RECORDED, VECTORS, cdc, changed_ids, data_file, log, recorded, removed, schema, vector
from tablefeed.errors import (
    ChangeDataError,
    DataFileError,
    SchemaChangedError,
    SchemaMismatchError,
    TablefeedError,
    UnsupportedFeatureError,
)

ErrorT = TypeVar("ErrorT", bound=TablefeedError)
ID_PRICE = schema(("id", "long"), ("price", "double"))


def refusal(path: Path, kind: type[ErrorT], **bounds: int) -> ErrorT:
    with pytest.raises(kind) as caught:
        changed_ids(path, **bounds)
    return caught.value


# --- recorded or not -----------------------------------------------------------------------------------------------


def on_and_off(path: Path, *switches: dict[str, str]) -> Path:
    """A row a version, 0, 1, ..., each with the properties given for it."""
    versions = {}
    for number, properties in enumerate(switches):
        file = data_file(path, f"{number}.parquet", id=[number])
        first = [protocol()] if number == 0 else []
        versions[f"v{number}"] = [*first, metadata(configuration=properties), add(file)]
    return log(path, **versions)


OFF: dict[str, str] = {}


def test_the_version_at_which_the_feed_is_off_is_named(tmp_path: Path) -> None:
    table = on_and_off(tmp_path, OFF, RECORDED, RECORDED, OFF, RECORDED)

    for bounds, version in (((0, 2), 0), ((1, 3), 3), ((1, 4), 3), ((3, 4), 3)):
        error = refusal(table, ChangeDataError, start_version=bounds[0], end_version=bounds[1])

        assert (error.error_class, error.version) == ("DELTA_MISSING_CHANGE_DATA", version)
    assert changed_ids(table, start_version=1, end_version=2) == [(1, "insert", 1), (2, "insert", 2)]


@pytest.mark.parametrize(
    "properties", [{"delta.enableChangeDataCapture": "true"}, {"delta.enableChangeDataFeed": "TRUE"}]
)
def test_the_property_counts_under_its_older_name_and_in_any_case(tmp_path: Path, properties: dict[str, str]) -> None:
    assert changed_ids(on_and_off(tmp_path, properties)) == [(0, "insert", 0)]


def test_the_newer_name_goes_before_the_older(tmp_path: Path) -> None:
    both = {"delta.enableChangeDataCapture": "true", "delta.enableChangeDataFeed": "false"}

    assert refusal(on_and_off(tmp_path, both), ChangeDataError).error_class == "DELTA_MISSING_CHANGE_DATA"


def test_a_start_is_refused_before_a_row_is_asked_for(tmp_path: Path) -> None:
    with pytest.raises(ChangeDataError):
        tablefeed.changes(on_and_off(tmp_path, OFF, RECORDED))


@pytest.mark.parametrize("mode", [None, "dropCarryovers"])
@pytest.mark.parametrize("name", ["_change_type", "_Commit_Version", "_commit_timestamp"])
def test_a_table_that_has_a_column_of_the_feeds_names_is_refused(tmp_path: Path, name: str, mode: Any) -> None:
    table = log(tmp_path, v0=[protocol(), recorded(schema(("id", "long"), (name, "string")))])

    with pytest.raises(SchemaMismatchError, match=name) as caught:
        tablefeed.changes(table, deduplication_mode=mode)
    assert caught.value.error_class == "DELTA_TABLE_ALREADY_CONTAINS_CDC_COLUMNS"


# --- files of changes ----------------------------------------------------------------------------------------------


def test_a_file_of_changes_says_of_each_row_what_became_of_it(tmp_path: Path) -> None:
    types = ["update_preimage", "update_postimage", "delete", "insert"]
    changes = data_file(tmp_path, "_change_data/c.parquet", id=[1, 2, 3, 4], _change_type=types)
    table = log(tmp_path, v0=[protocol(), recorded()], v1=[cdc(changes), add("rewritten"), removed("before")])

    assert changed_ids(table) == sorted((1, kind, row) for row, kind in enumerate(types, 1))


@pytest.mark.parametrize("column", [{}, {"_change_type": ["insert", None]}])
@pytest.mark.parametrize("columns", [None, ["id"]])
def test_a_file_of_changes_that_does_not_say_so_is_refused(
    tmp_path: Path, column: dict[str, Any], columns: list[str] | None
) -> None:
    changes = data_file(tmp_path, "_change_data/c.parquet", id=[1, 2], **column)
    table = log(tmp_path, v0=[protocol(), recorded(), cdc(changes)])

    with pytest.raises(DataFileError, match="does not say of each row what became of it"):
        tablefeed.changes(table, columns=columns).read_all()


def test_a_data_file_that_says_something_of_its_rows_is_not_asked(tmp_path: Path) -> None:
    file = data_file(tmp_path, "a.parquet", id=[1], _change_type=["update_postimage"], _commit_version=[9])
    table = log(tmp_path, v0=[protocol(), recorded(), add(file)])

    assert changed_ids(table) == [(0, "insert", 1)]


# --- tables and schemas -----------------------------------------------------------------------------------------------


def test_changes_go_on_where_a_replaced_table_got_another_id(tmp_path: Path) -> None:
    files = [data_file(tmp_path, f"{n}.parquet", id=[n]) for n in range(2)]
    table = log(
        tmp_path,
        v0=[protocol(), recorded(), add(files[0])],
        v1=[recorded(table_id="another"), removed(files[0]), add(files[1])],
    )

    assert changed_ids(table) == [(0, "insert", 0), (1, "delete", 0), (1, "insert", 1)]


def schemas(path: Path, *texts: str) -> Path:
    """A row a version, 0, 1, ..., each of which brings its schema."""
    versions = {}
    for number, text in enumerate(texts):
        file = data_file(path, f"{number}.parquet", id=[number])
        versions[f"v{number}"] = [*([] if number else [protocol()]), recorded(text), add(file)]
    return log(path, **versions)


def test_rows_come_in_the_newest_schema_even_where_the_range_ends_before_it(tmp_path: Path) -> None:
    table = schemas(tmp_path, LONG_ID, LONG_ID, ID_PRICE)

    rows = tablefeed.changes(table, end_version=1).read_all()

    assert rows.select(["id", "price"]).to_pydict() == {"id": [0, 1], "price": [None, None]}


@pytest.mark.parametrize(
    "newer",
    [
        schema(("id", "string")),
        schema(("ID", "long")),
        schema(("other", "long")),
        schema(("id", "long"), nullable=False),
    ],
)
def test_a_schema_that_cannot_read_all_rows_is_refused(tmp_path: Path, newer: str) -> None:
    table = schemas(tmp_path, LONG_ID, newer, newer)

    error = refusal(table, SchemaChangedError)

    assert (error.error_class, error.version) == ("DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_DATA_SCHEMA", 0)
    tablefeed.changes(table, start_version=2)  # of the new schema alone


@pytest.mark.parametrize("newest", [LONG_ID, schema(("other", "long"))], ids=["as the first", "like none"])
def test_a_schema_in_between_that_the_newest_cannot_read_is_named(tmp_path: Path, newest: str) -> None:
    table = schemas(tmp_path, LONG_ID, ID_PRICE, newest)

    error = refusal(table, SchemaChangedError)

    assert (error.error_class, error.version) == ("DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_SCHEMA_CHANGE", 1)
    assert "call tablefeed.changes with an earlier end_version and deduplication_mode='dropCarryovers'" in str(error)
    earlier = tablefeed.changes(table, end_version=1, deduplication_mode="dropCarryovers").read_all()
    assert earlier.select(["id", "price"]).to_pydict() == {"id": [0, 1], "price": [None, None]}


def test_rows_that_the_first_version_removes_and_cannot_be_read_are_refused_by_that_version(tmp_path: Path) -> None:
    recorded_changes = {"delta.enableChangeDataFeed": "true"}
    tablefeed.append(tmp_path, pa.table({"id": [1], "kind": [1]}), properties=recorded_changes)
    tablefeed.append(tmp_path, pa.table({"id": [2], "kind": ["b"]}), mode="overwrite", overwrite_schema=True)
    tablefeed.delete(tmp_path, "id = 2")

    error = refusal(tmp_path, SchemaChangedError, start_version=1)

    assert "The older rows that version 1 removes cannot be read with it" in str(error)
    assert "start at version 2" in str(error)
    assert changed_ids(tmp_path, start_version=2) == [(2, "delete", 2)]


def test_a_feature_that_comes_in_the_middle_and_is_not_handled_is_refused(tmp_path: Path) -> None:
    newer = protocol(3, 7, readerFeatures=["timeMachine"], writerFeatures=["timeMachine"])
    back = protocol(1, 7, writerFeatures=["changeDataFeed"])
    file = data_file(tmp_path, "1.parquet", id=[1])
    table = log(tmp_path, v0=[protocol(), recorded()], v1=[newer], v2=[add(file)], v3=[back])

    refusal(table, UnsupportedFeatureError)
    assert changed_ids(table, start_version=3) == []


# --- column mapping ------------------------------------------------------------------------------------------------


def mapped(*columns: tuple[str, str], **more: Any) -> Action:
    """The metadata of a table whose columns, all long, are called otherwise in files."""
    fields = [
        {
            "name": name,
            "type": "long",
            "nullable": True,
            "metadata": {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": physical},
        }
        for number, (name, physical) in enumerate(columns, 1)
    ]
    return recorded(
        json.dumps({"type": "struct", "fields": fields}), configuration={"delta.columnMapping.mode": "name"}, **more
    )


MAPPING = protocol(2, 5)


def test_mapped_columns_are_found_in_every_kind_of_file(tmp_path: Path) -> None:
    file = data_file(tmp_path, "a.parquet", **{"col-1": [1]})
    changes = data_file(tmp_path, "_change_data/c.parquet", **{"col-1": [2], "_change_type": ["delete"]})
    table = log(tmp_path, v0=[MAPPING, mapped(("id", "col-1")), add(file)], v1=[cdc(changes)], v2=[removed(file)])

    assert changed_ids(table) == [(0, "insert", 1), (1, "delete", 2), (2, "delete", 1)]


def test_a_mapped_partition_column_has_its_value_under_the_name_in_files(tmp_path: Path) -> None:
    file = data_file(tmp_path, "a.parquet", **{"col-1": [1]})
    both = mapped(("id", "col-1"), ("day", "col-2"), partition_columns=["day"])
    table = log(tmp_path, v0=[MAPPING, both], v1=[removed(file, partitionValues={"col-2": "31"})])

    assert tablefeed.changes(table, columns=["id", "day"]).read_all().to_pydict() == {"id": [1], "day": [31]}


def test_a_mapped_table_is_read_in_the_schema_of_the_end(tmp_path: Path) -> None:
    file = data_file(tmp_path, "a.parquet", **{"col-1": [1]})
    table = log(
        tmp_path, v0=[MAPPING, mapped(("id", "col-1")), add(file)], v1=[add(file)], v2=[mapped(("renamed", "col-1"))]
    )

    assert changed_ids(table, end_version=1) == [(0, "insert", 1), (1, "insert", 1)]
    assert refusal(table, SchemaChangedError).error_class == "DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_DATA_SCHEMA"


def test_a_mapped_range_that_one_schema_cannot_read_is_read_in_the_parts_that_the_error_names(tmp_path: Path) -> None:
    file = data_file(tmp_path, "a.parquet", **{"col-1": [1]})
    renamed = [mapped(("renamed", "col-1")), add(file)]
    table = log(tmp_path, v0=[MAPPING, mapped(("id", "col-1"))], v1=[add(file)], v2=renamed, v3=[removed(file)])

    assert "Read versions 0 to 1 and those from 2 on separately" in str(refusal(table, SchemaChangedError))
    assert tablefeed.changes(table, end_version=1).read_all()["id"].to_pylist() == [1]
    assert tablefeed.changes(table, start_version=2).read_all()["renamed"].to_pylist() == [1, 1]


def test_a_mapped_column_that_was_dropped_and_came_again_is_another(tmp_path: Path) -> None:
    before, after = (data_file(tmp_path, f"{name}.parquet", **{name: [1]}) for name in ("col-1", "col-2"))
    again = mapped(("id", "col-2"))
    table = log(tmp_path, v0=[MAPPING, mapped(("id", "col-1")), add(before)], v1=[again, removed(before), add(after)])

    refusal(table, SchemaChangedError)
    assert "start at version 2" in str(refusal(table, SchemaChangedError, start_version=1))


def test_a_mapped_column_that_a_commit_drops_is_left_out_of_the_rows_that_it_removes(tmp_path: Path) -> None:
    before = data_file(tmp_path, "a.parquet", **{"col-1": [1], "col-2": ["x"]})
    dropped = mapped(("id", "col-1"))
    table = log(
        tmp_path, v0=[MAPPING, mapped(("id", "col-1"), ("v", "col-2")), add(before)], v1=[dropped, removed(before)]
    )

    assert changed_ids(table, start_version=1) == [(1, "delete", 1)]


def test_rows_from_before_the_columns_were_mapped_are_read(tmp_path: Path) -> None:
    file = data_file(tmp_path, "a.parquet", id=[1])
    table = log(tmp_path, v0=[protocol(), recorded(), add(file)], v1=[MAPPING, mapped(("id", "id"))])

    assert changed_ids(table) == [(0, "insert", 1)]


# --- whatever the log says -----------------------------------------------------------------------------------------

json_values: st.SearchStrategy[object] = (
    st.none() | st.booleans() | st.integers(-(2**64), 2**64) | st.text(max_size=5) | st.just({}) | st.just([])
)
change_actions = st.sampled_from(
    [
        cdc("c.parquet"),
        add("a.parquet", deletionVector=vector(0)),
        removed("a.parquet", deletionVector=vector(1)),
        {"commitInfo": {"operation": "MERGE", "operationMetrics": {}, "inCommitTimestamp": 1}},
        recorded(),
        VECTORS,
    ]
)


def altered(action: Action, field: int, value: object) -> Action:
    """The action with one of its fields, or of its deletion vector's, made `value`."""
    ((kind, fields),) = action.items()
    name = sorted(fields)[field % len(fields)]
    inner = fields[name]
    if isinstance(inner, dict) and inner and field % 2:
        value = {**inner, sorted(inner)[field % len(inner)]: value}
    return {kind: {**fields, name: value}}


@settings(max_examples=100, deadline=None)
@given(st.lists(st.builds(altered, change_actions, st.integers(0, 40), json_values) | change_actions, max_size=4))
@example([info(inCommitTimestamp=2**62), add("a.parquet")])
def test_whatever_a_commit_says_nothing_but_our_errors_escapes(
    tmp_path_factory: pytest.TempPathFactory, actions: list[Action]
) -> None:
    path = tmp_path_factory.mktemp("table")
    data_file(path, "a.parquet", id=[1, 2])
    data_file(path, "c.parquet", id=[1], _change_type=["insert"])
    log(path, v0=[VECTORS, recorded()], v1=[*actions, {"commitInfo": {}}])

    try:
        tablefeed.changes(path).read_all()
    except TablefeedError as error:
        assert str(path) in str(error)  # noqa: PT017 - it may also be fine


# --- when ----------------------------------------------------------------------------------------------------------


def test_a_commit_that_says_when_it_was_made_is_dated_so(tmp_path: Path) -> None:
    file = data_file(tmp_path, "a.parquet", id=[1])
    table = log(tmp_path, v0=[info(inCommitTimestamp=1_704_067_200_123), protocol(), recorded(), add(file)])

    (at,) = tablefeed.changes(table, columns=["_commit_timestamp"]).read_all()["_commit_timestamp"]

    assert at == pa.scalar(datetime(2024, 1, 1, 0, 0, 0, 123000, tzinfo=UTC), pa.timestamp("us", tz="UTC"))
