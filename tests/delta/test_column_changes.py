"""Columns that are added and widened: what the new schema is (tests/feed/api/test_alter.py has the calls)."""

from __future__ import annotations

import pytest

from tablefeed.delta.schema.column_changes import check_not_null_enforced, with_columns, with_wider_types
from tablefeed.errors import SchemaMismatchError
from tablefeed.model.schema import ELEMENT, KEY, VALUE, Array, DataType, Field, Map, Primitive, Struct

LONG, STRING = Primitive("long"), Primitive("string")


def of(**kinds: DataType) -> Struct:
    return Struct(tuple(Field(name, kind, nullable=True) for name, kind in kinds.items()))


def test_a_member_is_added_to_the_struct_that_is_named_and_to_no_other() -> None:
    before, after, b = of(a=LONG), of(a=LONG, b=STRING), Field("b", STRING, nullable=True)

    def schema(element: Struct, key: Struct, value: Struct) -> Struct:
        lists = Array(Array(element, contains_null=True), contains_null=True)
        maps = Map(key, Map(before, value, value_contains_null=True), value_contains_null=True)
        return of(lists=lists, maps=maps)

    plain = schema(before, before, before)
    assert with_columns(plain, {("lists", ELEMENT, ELEMENT, "b"): b}) == schema(after, before, before)
    assert with_columns(plain, {("maps", KEY, "b"): b}) == schema(before, after, before)
    assert with_columns(plain, {("maps", VALUE, VALUE, "b"): b}) == schema(before, before, after)


def test_a_list_or_map_may_say_that_it_has_no_nulls_and_its_parts_may_not() -> None:
    lists, maps = Array(LONG, contains_null=False), Map(LONG, LONG, value_contains_null=False)
    check_not_null_enforced(of(lists=lists, maps=maps))

    for inner in (lists, maps, Struct((Field("a", LONG, nullable=False),))):
        with pytest.raises(SchemaMismatchError, match="c has a NOT NULL member inside a list or map"):
            check_not_null_enforced(of(c=Array(inner, contains_null=True)))


def test_a_type_that_is_not_wider_is_refused() -> None:
    with pytest.raises(SchemaMismatchError, match="column a is long, which cannot be widened to integer") as caught:
        with_wider_types(of(a=LONG), {("a",): Primitive("integer")})

    assert caught.value.error_class == "DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP"


def test_a_new_column_whose_name_is_there_in_another_case_is_refused() -> None:
    with pytest.raises(SchemaMismatchError) as caught:
        with_columns(of(st=of(name=LONG)), {("ST", "NAME"): Field("NAME", STRING, nullable=True)})

    assert caught.value.error_class == "DELTA_DUPLICATE_COLUMNS_FOUND"
