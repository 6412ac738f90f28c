"""Kinds of schema changes, before a stream begins and under it (DeltaV2MicroBatchStreamTest)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from support.logs import Action, a_log, a_source, add, at, delivered, metadata, protocol, put
from tablefeed.errors import SchemaChangedError
from tablefeed.log.plan import Limits

CHANGED = "DELTA_SCHEMA_CHANGED_WITH_VERSION"
INCOMPATIBLE = "DELTA_STREAMING_INCOMPATIBLE_SCHEMA_CHANGE_USE_SCHEMA_LOG"
FEATURES = ["columnMapping", "typeWidening"]
CREATED = protocol(3, 7, readerFeatures=FEATURES, writerFeatures=FEATURES)


def field(name: str, number: int, kind: object, *, nullable: bool = True) -> Action:
    physical = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": f"col-{number}"}
    return {"name": name, "type": kind, "nullable": nullable, "metadata": physical}


def struct(*fields: Action) -> Action:
    return {"type": "struct", "fields": list(fields)}


ID, NAME, VALUE = field("id", 1, "integer", nullable=False), field("name", 2, "string"), field("value", 3, "integer")
COL1, COL2 = field("col1", 5, "integer"), field("col2", 6, "string")
INFO = field("info", 4, struct(COL1, COL2))
ADDRESS, AGE = field("address", 7, "string"), field("age", 8, "integer")
MAYBE_ID = field("id", 1, "integer")
COUNTRY = field("address", 7, struct(field("country", 9, "string"), field("zip", 10, "integer")))
REST = (NAME, VALUE, INFO)


def columns(*fields: Action) -> Action:
    mapping = {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "12"}
    properties = mapping | {"delta.enableTypeWidening": "true"}
    return metadata(json.dumps(struct(*fields)), configuration=properties)


BEFORE = columns(ID, *REST)
ADDITIVE: dict[str, list[Action]] = {
    "Add nullable STRING column": [columns(ID, *REST, ADDRESS)],
    "Add nullable STRUCT column": [columns(ID, *REST, COUNTRY)],
    "Add multiple nullable columns": [columns(ID, *REST, ADDRESS, AGE, field("time", 11, "timestamp"))],
    "Make non-nullable column nullable": [columns(MAYBE_ID, *REST)],
    "Make nullable, then add": [columns(MAYBE_ID, *REST), columns(MAYBE_ID, *REST, AGE)],
    "Add, then make nullable": [columns(ID, *REST, AGE), columns(MAYBE_ID, *REST, AGE)],
    "Widen INT column to BIGINT": [columns(field("id", 1, "long", nullable=False), *REST)],
}
NON_ADDITIVE: dict[str, list[Action]] = {
    "Drop column": [columns(ID, NAME, INFO)],
    "Drop nullable, non-nullable and struct columns": [columns(NAME)],
    "Rename column": [columns(field("userId", 1, "integer", nullable=False), *REST)],
    "Drop column in nested struct": [columns(ID, NAME, VALUE, field("info", 4, struct(COL2)))],
    "Rename column in nested struct": [
        columns(ID, NAME, VALUE, field("info", 4, struct(field("newCol1", 5, "integer"), COL2)))
    ],
}


def a_table() -> dict[str, Any]:
    return {"v0": [CREATED, BEFORE], "v1": [add("1")]}


@pytest.mark.parametrize("changes", [pytest.param(changes, id=name) for name, changes in ADDITIVE.items()])
def test_a_forward_additive_change_stops_the_stream(changes: list[Action]) -> None:
    log = a_log(**a_table())
    source = a_source(log)
    start = source.initial()
    for version, change in enumerate(changes, 2):
        put(log.store, version, [change])

    with pytest.raises(SchemaChangedError) as caught:
        source.latest(start, Limits())
    assert caught.value.error_class == CHANGED


@pytest.mark.parametrize("changes", [pytest.param(changes, id=name) for name, changes in ADDITIVE.items()])
def test_a_backfill_over_additive_changes_delivers_every_file(changes: list[Action]) -> None:
    versions: dict[str, Any] = {f"v{version}": [change] for version, change in enumerate(changes, 2)}
    log = a_log(**a_table(), **versions)
    newest = len(changes) + 2
    put(log.store, newest, [add("last")])
    source = a_source(log, starting_version=0)

    end = source.latest(source.initial(), Limits())

    assert end == at(newest + 1)
    assert delivered(source, at(0), end) == ["1", "last"]


@pytest.mark.parametrize("changes", [pytest.param(changes, id=name) for name, changes in NON_ADDITIVE.items()])
def test_a_forward_non_additive_change_stops_the_stream(changes: list[Action]) -> None:
    log = a_log(**a_table())
    source = a_source(log)
    start = source.initial()
    put(log.store, 2, changes)

    with pytest.raises(SchemaChangedError) as caught:
        source.latest(start, Limits())
    assert caught.value.error_class == INCOMPATIBLE


@pytest.mark.parametrize("changes", [pytest.param(changes, id=name) for name, changes in NON_ADDITIVE.items()])
def test_a_backfill_over_non_additive_changes_is_refused(changes: list[Action]) -> None:
    source = a_source(a_log(**a_table(), v2=changes), starting_version=0)

    with pytest.raises(SchemaChangedError) as caught:
        source.latest(source.initial(), Limits())
    assert caught.value.error_class == INCOMPATIBLE


def test_a_stream_is_checked_once_at_its_start_for_a_name_that_was_changed_and_changed_back() -> None:
    renamed = columns(field("userId", 1, "integer", nullable=False), *REST)
    log = a_log(**a_table(), v2=[renamed], v3=[add("3")], v4=[BEFORE], v5=[add("5")])

    with pytest.raises(SchemaChangedError) as caught:
        a_source(log).latest(at(3), Limits())
    assert caught.value.error_class == INCOMPATIBLE
