"""The walks through types that all of the readers and writers of schemas share."""

from __future__ import annotations

import pickle
from dataclasses import replace

from tablefeed.model.schema import (
    Array,
    DataType,
    Field,
    Map,
    Primitive,
    Struct,
    fields_along,
    fields_at,
    leaves,
    paired,
    plain,
    pruned,
    rebuilt,
    walk,
)

INT, LONG, TEXT = Primitive("integer"), Primitive("long"), Primitive("string")


def a(name: str, kind: DataType) -> Field:
    return Field(name, kind, nullable=False, metadata={"comment": name})


POINT = Struct((a("x", INT), a("y", TEXT)))
POINTS = Array(POINT, contains_null=False)
TABLE = Struct((a("id", INT), a("at", POINT), a("by", Map(TEXT, POINTS, value_contains_null=True))))


def test_a_walk_gives_a_type_before_its_parts_with_the_path_to_each() -> None:
    assert [(".".join(part.path), part.field and part.field.name) for part in walk(TABLE)] == [
        ("", None),
        ("id", "id"),
        ("at", "at"),
        ("at.x", "x"),
        ("at.y", "y"),
        ("by", "by"),
        ("by.key", None),
        ("by.value", None),
        ("by.value.element", None),
        ("by.value.element.x", "x"),
        ("by.value.element.y", "y"),
    ]


def test_a_walk_enters_only_the_types_that_it_is_asked_to() -> None:
    assert [".".join(path) for path, _ in fields_at(TABLE, into=Struct)] == ["id", "at", "at.x", "at.y", "by"]
    assert list(leaves(TABLE)) == [
        (("id",), INT),
        (("at", "x"), INT),
        (("at", "y"), TEXT),
        (("by",), TABLE.fields[2].type),
    ]


def test_the_fields_along_a_path_end_where_the_schema_has_no_more() -> None:
    def along(*path: str) -> list[str]:
        return [field.name for field in fields_along(TABLE, path, is_named=lambda field, name: field.name == name)]

    assert (along("at", "y"), along("at", "z"), along("by", "value"), along("at", "y", "z")) == (
        ["at", "y"],
        ["at"],
        ["by"],
        ["at", "y"],
    )


def test_two_types_are_paired_down_to_where_their_shapes_differ() -> None:
    other = Struct((a("BY", Map(TEXT, LONG, value_contains_null=True)), a("at", Struct((a("X", LONG),)))))

    assert [(".".join(one.path), one.type, their.type) for one, their in paired(TABLE, other, fold=str.lower)] == [
        ("at.x", INT, LONG),
        ("by.key", TEXT, TEXT),
        ("by.value", POINTS, LONG),
    ]
    assert [one.path for one, _ in paired(TABLE, other)] == []


def test_a_rebuilt_schema_has_each_field_changed_before_its_members() -> None:
    changed: list[str] = []

    def upper(path: tuple[str, ...], field: Field) -> Field:
        changed.append(".".join(path))
        return replace(field, name=field.name.upper())

    after = rebuilt(TABLE, upper)

    assert [".".join(path) for path, _ in fields_at(after)] == [
        "ID",
        "AT",
        "AT.X",
        "AT.Y",
        "BY",
        "BY.value.element.X",
        "BY.value.element.Y",
    ]
    assert changed == [".".join(path) for path, _ in fields_at(TABLE)]


def test_a_struct_that_loses_all_its_leaves_is_pruned_too() -> None:
    def no_text(path: tuple[str, ...], kind: DataType) -> DataType | None:
        return LONG if kind == INT and path != ("at", "x") else None

    assert pruned(TABLE, no_text) == Struct((a("id", LONG),))


def test_plain_types_are_nullable_at_every_depth_and_have_no_metadata() -> None:
    members = (Field("x", INT, nullable=True), Field("y", TEXT, nullable=True))
    several = Array(Struct(members), contains_null=True)

    assert plain(Struct((a("p", POINTS),))) == Struct((Field("p", several, nullable=True),))


def test_a_schema_crosses_to_a_task_as_it_is() -> None:
    assert pickle.loads(pickle.dumps(TABLE)) == TABLE  # noqa: S301 - our own bytes
    assert pickle.loads(pickle.dumps(plain(TABLE))) == plain(TABLE)  # noqa: S301 - our own bytes
