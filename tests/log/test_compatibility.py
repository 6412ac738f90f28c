"""When rows of one schema can be read with another: what a running stream survives, and what stops it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablefeed.log.compatibility import added_columns, can_read, can_read_older
from tablefeed.model.schema import Array, DataType, Decimal, Field, Map, Primitive, Struct, widens

LONG, INT, STRING, VOID = (Primitive(name) for name in ("long", "integer", "string", "void"))


def col(name: str, kind: DataType = LONG, *, nullable: bool = True) -> Field:
    return Field(name=name, type=kind, nullable=nullable)


def table(*fields: Field) -> Struct:
    return Struct(fields)


def test_a_column_that_is_read_and_not_there_is_fine_and_one_that_is_there_and_not_read_is_not() -> None:
    old, new = table(col("id")), table(col("id"), col("added"))

    assert can_read(new, old)
    assert not can_read(old, new)


def test_the_order_of_columns_does_not_matter() -> None:
    assert can_read(table(col("a"), col("b", STRING)), table(col("b", STRING), col("a")))


def test_a_column_under_another_spelling_cannot_be_read() -> None:
    assert not can_read(table(col("ID")), table(col("id")))


def test_a_reader_may_not_promise_values_where_the_data_has_nulls() -> None:
    strict, loose = table(col("id", nullable=False)), table(col("id"))

    assert can_read(loose, strict)
    assert not can_read(strict, loose)


def test_what_field_metadata_says_does_not_matter() -> None:
    commented = table(Field(name="id", type=LONG, nullable=True, metadata={"comment": "the key"}))

    assert can_read(table(col("id")), commented)


@pytest.mark.parametrize(
    ("read", "data"),
    [
        (LONG, INT),
        (INT, LONG),
        (STRING, LONG),
        (Decimal(10, 2), Decimal(9, 2)),
        (Array(LONG, contains_null=True), LONG),
        (Array(LONG, contains_null=True), Array(INT, contains_null=True)),
        (Array(LONG, contains_null=False), Array(LONG, contains_null=True)),
        (Map(STRING, LONG, value_contains_null=True), Map(LONG, LONG, value_contains_null=True)),
        (Map(STRING, LONG, value_contains_null=True), Map(STRING, INT, value_contains_null=True)),
        (Map(STRING, LONG, value_contains_null=False), Map(STRING, LONG, value_contains_null=True)),
        (table(col("x")), table(col("x"), col("y"))),
        (table(col("X")), table(col("x"))),
        (VOID, LONG),
    ],
)
def test_a_type_that_differs_anywhere_down_to_the_leaves_cannot_be_read(read: DataType, data: DataType) -> None:
    assert not can_read(table(col("c", read)), table(col("c", data)))
    assert not can_read(
        table(col("c", Array(read, contains_null=True))), table(col("c", Array(data, contains_null=True)))
    )


@pytest.mark.parametrize(
    ("read", "data"),
    [
        (Array(LONG, contains_null=True), Array(LONG, contains_null=False)),
        (Map(STRING, LONG, value_contains_null=True), Map(STRING, LONG, value_contains_null=False)),
        (table(col("x"), col("y")), table(col("x"))),
        (table(col("x")), table(col("x", nullable=False))),
        (LONG, VOID),
        (Array(LONG, contains_null=True), VOID),
    ],
)
def test_what_holds_for_columns_holds_for_members_elements_and_values(read: DataType, data: DataType) -> None:
    assert can_read(table(col("c", read)), table(col("c", data)))
    assert can_read(
        table(col("c", Map(STRING, read, value_contains_null=True))),
        table(col("c", Map(STRING, data, value_contains_null=True))),
    )


NAMES = st.sampled_from(["a", "b", "c", "d"])
LEAVES: st.SearchStrategy[DataType] = st.sampled_from([LONG, INT, STRING, VOID, Decimal(10, 2)])


def structs(types: st.SearchStrategy[DataType]) -> st.SearchStrategy[Struct]:
    field = st.builds(Field, name=NAMES, type=types, nullable=st.booleans())
    return st.lists(field, max_size=4, unique_by=lambda f: f.name).map(lambda fields: Struct(tuple(fields)))


TYPES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.builds(Array, inner, contains_null=st.booleans()),
        st.builds(Map, LEAVES, inner, value_contains_null=st.booleans()),
        structs(inner),
    ),
    max_leaves=6,
)
SCHEMAS = structs(TYPES)


@given(SCHEMAS)
def test_every_schema_reads_itself(schema: Struct) -> None:
    assert can_read(schema, schema)


@given(SCHEMAS, TYPES)
def test_a_schema_that_gained_a_column_reads_what_it_read_before(schema: Struct, kind: DataType) -> None:
    gained = Struct((*schema.fields, col("gained", kind)))

    assert can_read(gained, schema)
    assert not can_read(schema, gained)


@given(SCHEMAS, SCHEMAS, SCHEMAS)
def test_what_reads_a_reader_of_some_data_reads_the_data(a: Struct, b: Struct, c: Struct) -> None:
    assert not (can_read(a, b) and can_read(b, c)) or can_read(a, c)


def test_an_older_type_may_be_any_that_the_protocol_lets_widen_to_the_newer() -> None:
    integers = [Primitive(name) for name in ("byte", "short", "integer", "long")]
    for position, narrow in enumerate(integers):
        assert [widens(narrow, wide) for wide in integers] == [p > position for p in range(4)]
        assert widens(narrow, Primitive("double")) is (narrow != Primitive("long"))
        digits = 20 if narrow == Primitive("long") else 10
        assert widens(narrow, Decimal(digits + 2, 2))
        assert not widens(narrow, Decimal(digits + 1, 2))
    assert widens(Primitive("float"), Primitive("double"))
    assert widens(Primitive("date"), Primitive("timestamp_ntz"))
    assert not widens(Primitive("date"), Primitive("timestamp"))
    assert widens(Decimal(5, 2), Decimal(7, 4))
    assert not widens(Decimal(5, 2), Decimal(6, 4))
    assert not widens(Decimal(5, 2), Decimal(5, 1))
    assert not widens(Primitive("string"), Primitive("long"))


def test_a_widened_column_reads_older_rows_and_no_newer_ones_at_any_depth() -> None:
    def nested(kind: str) -> Struct:
        return table(col("a", Array(table(col("x", Primitive(kind))), contains_null=True)))

    assert can_read_older(nested("long"), nested("integer"))
    assert not can_read_older(nested("integer"), nested("long"))
    assert not can_read(nested("long"), nested("integer"))


def test_what_is_added_at_any_depth_is_told_by_its_path() -> None:
    def nested(*more: Field) -> Struct:
        inner = table(col("x"), *more)
        return table(
            col("s", inner),
            col("l", Array(inner, contains_null=True)),
            col("m", Map(STRING, inner, value_contains_null=True)),
        )

    assert added_columns(nested(), table(*nested(col("y")), col("z"))) == ("s.y", "l.element.y", "m.value.y", "z")
    assert added_columns(nested(), nested()) == ()


def test_an_element_or_a_value_that_may_be_null_from_now_on_is_more_than_an_addition() -> None:
    def columns(*, nulls: bool) -> Struct:
        return table(col("l", Array(LONG, contains_null=nulls)), col("m", Map(STRING, LONG, value_contains_null=nulls)))

    loose, strict = columns(nulls=True), columns(nulls=False)
    assert added_columns(loose, strict) == ()
    for i in (0, 1):
        assert added_columns(table(strict.fields[i]), table(loose.fields[i], col("new"))) is None


@given(SCHEMAS, SCHEMAS)
def test_a_schema_to_which_nothing_is_added_is_read_as_before(a: Struct, b: Struct) -> None:
    assert added_columns(a, Struct((*a.fields, col("gained")))) == ("gained",)
    assert added_columns(a, b) != () or can_read(a, b)
