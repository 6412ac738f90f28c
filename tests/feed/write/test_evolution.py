"""What schema a table has after rows of another: Delta-Spark's merging of schemas, type by type."""

from __future__ import annotations

import pytest

from tablefeed.data.assignment import Policy
from tablefeed.errors import SchemaMismatchError
from tablefeed.feed.write.evolution import Merging, merged, widened_columns, with_type_changes
from tablefeed.model.schema import Array, DataType, Decimal, Field, Map, Primitive, Struct

LONG, INT, TEXT, VOID = Primitive("long"), Primitive("integer"), Primitive("string"), Primitive("void")
LONG_TO_LONG = Map(LONG, LONG, value_contains_null=True)
MERGE = Merging(policy=Policy.ANSI, adds=True)
WIDEN = Merging(policy=Policy.ANSI, adds=True, widens=True)
FIXED = Merging(policy=Policy.ANSI)


def required(name: str, kind: DataType, **metadata: object) -> Field:
    return Field(name, kind, nullable=False, metadata=metadata)


def a(name: str, kind: DataType, **metadata: object) -> Field:
    return Field(name, kind, nullable=True, metadata=metadata)


def struct(*fields: Field) -> Struct:
    return Struct(fields)


def several(kind: DataType) -> Array:
    return Array(kind, contains_null=False)


def by_text(kind: DataType) -> Map:
    return Map(TEXT, kind, value_contains_null=False)


def test_columns_of_the_table_stay_as_they_are_in_spelling_order_nullability_and_metadata() -> None:
    table = struct(required("Id", LONG, comment="key"), a("name", TEXT))

    assert merged(table, struct(a("NAME", TEXT), a("id", INT)), MERGE) == table


def test_new_columns_come_last_and_may_be_null_at_every_depth() -> None:
    inner = struct(required("x", several(LONG)))

    after = merged(struct(a("id", LONG)), struct(required("new", inner), a("ID", LONG)), MERGE)

    assert after == struct(a("id", LONG), a("new", struct(a("x", Array(LONG, contains_null=True)))))


def test_new_members_come_last_in_structs_in_arrays_and_in_maps() -> None:
    before, rows = struct(a("x", LONG)), struct(a("y", TEXT), a("X", LONG))
    after = struct(a("x", LONG), a("y", TEXT))

    table = struct(a("s", before), a("l", several(before)), a("m", by_text(before)))
    incoming = struct(a("s", rows), a("l", several(rows)), a("m", by_text(rows)))

    assert merged(table, incoming, MERGE) == struct(a("s", after), a("l", several(after)), a("m", by_text(after)))


@pytest.mark.parametrize("nest", [lambda s: s, several, by_text], ids=["struct", "array", "map"])
def test_a_column_or_member_too_many_is_refused_by_name_without_merging(nest: type) -> None:
    table, rows = struct(a("s", nest(struct(a("x", LONG))))), struct(a("s", nest(struct(a("x", LONG), a("y", LONG)))))

    with pytest.raises(SchemaMismatchError, match=r"DELTA_METADATA_MISMATCH.* a column 'y'.*mergeSchema=true"):
        merged(table, rows, FIXED)


@pytest.mark.parametrize("kind", [VOID, several(VOID), struct(a("n", VOID))], ids=str)
def test_no_column_is_made_of_no_type(kind: DataType) -> None:
    with pytest.raises(SchemaMismatchError, match=r"DELTA_NULL_SCHEMA_IN_STREAMING_WRITE.*'new'"):
        merged(struct(a("id", LONG)), struct(a("new", kind)), MERGE)


@pytest.mark.parametrize(
    ("table", "incoming"),
    [
        (Primitive("boolean"), INT),
        (Primitive("date"), INT),
        (INT, struct(a("x", INT))),
        (several(INT), INT),
        (several(INT), several(Primitive("boolean"))),
        (by_text(INT), by_text(Primitive("boolean"))),
        (struct(a("x", INT)), several(INT)),
    ],
    ids=str,
)
def test_types_that_do_not_meet_are_refused_whether_columns_are_added_or_not(
    table: DataType, incoming: DataType
) -> None:
    for how in (FIXED, MERGE, WIDEN):
        with pytest.raises(SchemaMismatchError, match=r"DELTA_FAILED_TO_MERGE_FIELDS.* but the rows have"):
            merged(struct(a("c", table)), struct(a("c", incoming)), how)


def test_what_could_lose_something_is_refused_by_the_strict_policy() -> None:
    strict = Merging(policy=Policy.STRICT)

    assert merged(struct(a("c", LONG)), struct(a("c", INT)), strict) == struct(a("c", LONG))
    with pytest.raises(SchemaMismatchError, match=r"CANNOT_UP_CAST_DATATYPE.*is integer, but the rows have long"):
        merged(struct(a("c", INT)), struct(a("c", LONG)), strict)


@pytest.mark.parametrize(
    ("table", "incoming", "after"),
    [
        (INT, LONG, LONG),
        (Primitive("byte"), Primitive("short"), Primitive("short")),
        (LONG, INT, LONG),
        (Primitive("float"), Primitive("double"), Primitive("double")),
        (Primitive("date"), Primitive("timestamp_ntz"), Primitive("timestamp_ntz")),
        (Decimal(10, 2), Decimal(12, 3), Decimal(12, 3)),
        (Decimal(10, 2), Decimal(11, 4), Decimal(10, 2)),
        (several(INT), several(LONG), several(LONG)),
        (Map(INT, INT, value_contains_null=True), Map(LONG, LONG, value_contains_null=True), LONG_TO_LONG),
        (struct(a("x", INT)), struct(a("x", LONG)), struct(a("x", LONG))),
        (INT, Primitive("double"), Primitive("double")),
        (LONG, Primitive("double"), LONG),
        (INT, Primitive("float"), INT),
        (Primitive("byte"), Decimal(11, 1), Decimal(11, 1)),
        (Primitive("byte"), Decimal(9, 0), Primitive("byte")),
        (LONG, Decimal(20, 0), Decimal(20, 0)),
        (LONG, Decimal(20, 1), LONG),
        (INT, TEXT, INT),
        (Primitive("date"), Primitive("timestamp"), Primitive("date")),
    ],
    ids=str,
)  # fmt: skip
def test_types_become_wider_where_the_table_allows_it_and_are_cast_to_else(
    table: DataType, incoming: DataType, after: DataType
) -> None:
    assert merged(struct(a("c", table)), struct(a("c", incoming)), WIDEN) == struct(a("c", after))
    assert merged(struct(a("c", table)), struct(a("c", incoming)), MERGE) == struct(a("c", table))


def test_a_wider_column_tells_what_it_was_after_what_it_told_before() -> None:
    told = {"fromType": "byte", "toType": "integer"}
    before = struct(
        a("n", INT, **{"delta.typeChanges": [told], "comment": "kept"}),
        a("m", Map(INT, several(Decimal(5, 2)), value_contains_null=True)),
        a("s", struct(a("x", INT), a("y", INT))),
        a("p", several(struct(a("x", INT)))),
        a("same", INT),
    )
    after = struct(
        a("n", LONG, **{"delta.typeChanges": [told], "comment": "kept"}),
        a("m", Map(LONG, several(Decimal(6, 2)), value_contains_null=True)),
        a("s", struct(a("x", LONG), a("y", INT))),
        a("p", several(struct(a("x", LONG)))),
        a("same", INT),
    )

    to_long = {"fromType": "integer", "toType": "long"}
    in_values = {"fromType": "decimal(5,2)", "toType": "decimal(6,2)", "fieldPath": "value.element"}
    assert widened_columns(before, after) == ["n", "m", "s.x", "p.element.x"]
    assert with_type_changes(before, after) == struct(
        a("n", LONG, **{"delta.typeChanges": [told, to_long], "comment": "kept"}),
        a("m", after.fields[1].type, **{"delta.typeChanges": [{**to_long, "fieldPath": "key"}, in_values]}),
        a("s", struct(a("x", LONG, **{"delta.typeChanges": [to_long]}), a("y", INT))),
        a("p", several(struct(a("x", LONG, **{"delta.typeChanges": [to_long]})))),
        a("same", INT),
    )
