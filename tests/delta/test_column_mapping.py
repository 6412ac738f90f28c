"""What files call columns in each mapping mode, and which changes of a mapping part two schemas."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from tablefeed.delta.properties import TableProperties
from tablefeed.delta.schema.column_mapping import MappedSchema, MappingMode, has_mapping_change, mapping_mode
from tablefeed.delta.schema.stored_schema import FIELD_ID, stored_schema
from tablefeed.errors import LogError
from tablefeed.model.actions import Metadata
from tablefeed.model.schema import Array, DataType, Field, Map, Primitive, Struct

NESTED = "delta.columnMapping.nested.ids"
LONG, STRING = Primitive("long"), Primitive("string")
NONE, NAME, ID = MappingMode.NONE, MappingMode.NAME, MappingMode.ID


def column(name: str, physical: str | None = None, *, kind: DataType = LONG, number: int | None = None) -> Field:
    metadata: dict[str, object] = {}
    if physical is not None:
        metadata["delta.columnMapping.physicalName"] = physical
    if number is not None:
        metadata["delta.columnMapping.id"] = number
    return Field(name, kind, nullable=True, metadata=metadata)


def struct(*fields: Field) -> Struct:
    return Struct(fields)


def test_without_a_mode_files_have_the_tables_own_names() -> None:
    assert stored_schema(struct(column("a", "col-1")), NONE) is None


def test_in_mode_name_every_member_at_any_depth_has_its_physical_name() -> None:
    inner = struct(column("x", "col-3"))
    schema = struct(
        column("a", "col-1"),
        column("b", "col-2", kind=Array(inner, contains_null=True)),
        column("c", "col-4", kind=Map(STRING, inner, value_contains_null=True)),
    )
    element = pa.struct([("col-3", pa.int64())])
    assert stored_schema(schema, NAME) == pa.schema(
        [
            ("col-1", pa.int64()),
            ("col-2", pa.list_(pa.field("element", element))),
            ("col-4", pa.map_(pa.field("key", pa.string(), nullable=False), pa.field("value", element))),
        ]
    )


def test_a_column_without_a_physical_name_goes_by_its_own_as_after_an_upgrade() -> None:
    assert stored_schema(struct(column("a")), NAME) == pa.schema([("a", pa.int64())])


def test_in_mode_id_every_member_has_its_field_id() -> None:
    inner = struct(column("x", "col-3", number=3))
    stored = stored_schema(struct(column("a", "col-1", kind=Array(inner, contains_null=True), number=1)), ID)
    assert stored is not None
    assert stored.field(0).metadata == {FIELD_ID: b"1"}
    assert stored.field(0).type.value_type.field(0).metadata == {FIELD_ID: b"3"}


def test_elements_keys_and_values_have_the_ids_that_the_column_around_them_names() -> None:
    members = column("m", "col-2", kind=Map(STRING, LONG, value_contains_null=True), number=2)
    members = replace(members, metadata={**members.metadata, NESTED: {"col-2.key": 5, "col-2.value": 6}})
    table = column("a", "col-1", kind=Array(struct(members), contains_null=True), number=1)
    table = replace(table, metadata={**table.metadata, NESTED: {"col-1": 9, "col-1.element": 4}})

    stored = stored_schema(struct(table), ID)

    assert stored is not None
    element = stored.field(0).type.value_field
    entries = element.type.field(0)
    found = (stored.field(0), element, entries, entries.type.key_field, entries.type.item_field)
    assert [field.metadata[FIELD_ID] for field in found] == [b"1", b"4", b"2", b"5", b"6"]


def test_in_mode_id_a_column_without_an_id_is_an_error_of_the_log() -> None:
    inner = struct(column("x", "col-3"))
    with pytest.raises(LogError, match=r"column 'x' has no delta\.columnMapping\.id"):
        stored_schema(struct(column("a", "col-1", kind=inner, number=1)), ID)


def test_two_columns_of_one_physical_name_are_an_error_of_the_log_at_any_depth() -> None:
    twins = struct(column("x", "col-1", number=1), column("y", "col-1", number=2))
    for schema in (twins, struct(column("a", "col-9", kind=Array(twins, contains_null=True), number=3))):
        for mode in (NAME, ID):
            with pytest.raises(LogError, match=r"have the same delta\.columnMapping\.physicalName, 'col-1'"):
                stored_schema(schema, mode)
    with pytest.raises(LogError, match="'a' and 'b' have the same"):  # a column without one goes by its own name
        stored_schema(struct(column("a", "b"), column("b")), NAME)


def test_columns_of_one_physical_name_in_different_columns_are_two() -> None:
    inner = struct(column("x", "col-1"))
    schema = struct(column("a", "col-1", kind=inner), column("b", "col-2", kind=inner))

    assert stored_schema(schema, NAME) is not None


def test_two_columns_of_one_id_are_an_error_of_the_log_in_mode_id_alone() -> None:
    schema = struct(column("a", "col-1", number=1), column("b", "col-2", number=1))

    assert stored_schema(schema, NAME) is not None
    with pytest.raises(LogError, match=r"'a' and 'b' have the same delta\.columnMapping\.id, 1"):
        stored_schema(schema, ID)


def test_a_physical_name_that_is_no_text_is_an_error_of_the_log() -> None:
    schema = struct(Field("a", LONG, nullable=True, metadata={"delta.columnMapping.physicalName": 7}))

    with pytest.raises(LogError, match=r"of column 'a' is not a string"):
        stored_schema(schema, NAME)


def test_the_mode_is_a_property_and_no_other_word_is_one() -> None:
    def of(word: str) -> MappingMode:
        metadata = Metadata(table_id="t", schema_string="", configuration={"delta.columnMapping.mode": word})
        return mapping_mode(TableProperties.of(metadata))

    assert [of("none"), of("NAME"), of("id")] == [NONE, NAME, ID]
    assert mapping_mode(TableProperties({})) is NONE
    with pytest.raises(LogError, match="'byName', which is neither"):
        of("byName")


def changed(older: Struct, newer: Struct, *, modes: tuple[MappingMode, MappingMode] = (NAME, NAME)) -> bool:
    return has_mapping_change(
        older=MappedSchema(schema=older, mode=modes[0]), newer=MappedSchema(schema=newer, mode=modes[1])
    )


def test_a_rename_a_drop_and_a_column_dropped_and_made_anew_are_changes() -> None:
    before = struct(column("a", "col-1"), column("b", "col-2"))
    assert changed(before, struct(column("c", "col-1"), column("b", "col-2")))
    assert changed(before, struct(column("a", "col-1")))
    assert changed(before, struct(column("a", "col-1"), column("b", "col-9")))
    assert changed(before, struct(column("b", "col-1"), column("a", "col-2")))
    assert not changed(before, struct(column("new", "col-3"), *before))


def test_a_rename_inside_a_list_is_a_change() -> None:
    def listed(name: str) -> Struct:
        return struct(column("a", "col-1", kind=Array(struct(column(name, "col-2")), contains_null=True)))

    assert not changed(listed("x"), listed("x"))
    assert changed(listed("x"), listed("y"))


def test_mapping_turned_on_is_no_change_and_turned_off_is_one() -> None:
    assert not changed(struct(column("a")), struct(column("a", "a")), modes=(NONE, NAME))
    assert changed(struct(column("a")), struct(column("b", "a")), modes=(NONE, NAME))
    assert changed(struct(column("a", "a")), struct(column("a")), modes=(NAME, NONE))
    assert not changed(struct(column("a")), struct(column("b")), modes=(NONE, NONE))
