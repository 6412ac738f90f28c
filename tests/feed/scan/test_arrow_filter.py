"""A filter is read as what it is made of, or not at all."""

from __future__ import annotations

import functools
import operator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tablefeed.data.predicate import (
    And,
    Column,
    Comparison,
    Constant,
    In,
    IsNan,
    IsNull,
    Not,
    Or,
    Predicate,
    Unknown,
    arrow,
    columns_in,
)
from tablefeed.feed.scan.arrow_filter import predicate, read_filter

x, name_ = pc.field("x"), pc.field("s", "name")
X, NAME, OK, END = Column(("x",)), Column(("s", "name")), Column(("ok",)), Column(("end",))
FIVE = pa.scalar(5)


def unknown(*columns: Column) -> Unknown:
    return Unknown(frozenset(columns))


def written(value: object) -> str | None:
    """A filter as the name of its test; what is read of it can have an address in it, by which no run knows a test."""
    return str(value) if isinstance(value, pc.Expression) else None


@pytest.mark.parametrize(
    ("condition", "read"),
    [
        (x > 5, Comparison("greater", X, FIVE)),
        (pc.scalar(5) > x, Comparison("less", X, FIVE)),
        (pc.scalar(5) <= x, Comparison("greater_equal", X, FIVE)),
        (pc.scalar(5) == x, Comparison("equal", X, FIVE)),
        (x > 5.5, Comparison("greater", X, pa.scalar(5.5))),
        (name_ == "é", Comparison("equal", NAME, pa.scalar("é"))),
        (name_ < pa.scalar(None, pa.string()), Comparison("less", NAME, pa.scalar(None, pa.string()))),
        (x, X),
        (pc.scalar(value=True), Constant(value=True)),
        (
            (x.is_valid() & ~pc.field("ok")) | pc.field("end") | (x < 5),
            Or((And((Not(IsNull(X)), Not(OK))), END, Comparison("less", X, FIVE))),
        ),
        (x.isin([1, None]), In(X, pa.array([1, None]))),
        (x.is_null(nan_is_null=True), IsNull(X, nan_is_null=True)),
        (pc.is_nan(x), IsNan(X)),
    ],
    ids=written,
)
def test_a_filter_is_a_tree_and_makes_the_expression_that_it_was_read_from(
    condition: pc.Expression, read: Predicate
) -> None:
    assert predicate(condition) == read
    assert predicate(arrow(read)) == read


@pytest.mark.parametrize(
    ("condition", "read"),
    [
        (pc.field("a.b") == x, unknown(Column(("a.b",)), X)),
        (pc.is_null(x > 5), unknown(X)),
        (pc.scalar(3) > 5, unknown()),
        ((x + 1 > 5) & pc.field("ok"), And((unknown(X), OK))),
        (pc.index_in(x, pa.array([1])) == 0, unknown(X)),
        (pc.is_in(x, pa.array([1]), skip_nulls=True), unknown(X)),
    ],
    ids=written,
)
def test_a_part_that_has_no_node_is_unknown_with_its_columns(condition: pc.Expression, read: Predicate) -> None:
    assert predicate(condition) == read


def test_a_filter_that_cannot_be_read_may_name_any_column() -> None:
    schema = pa.schema([("x", pa.int64()), ("y", pa.int64())])

    assert read_filter(x > 5, schema).fields.names == ["x"]
    assert read_filter(pc.field(0) > 5, schema).fields.names == ["x", "y"]
    assert read_filter(pc.field(0) > 5, schema).predicate == unknown()


def test_columns_are_found_below_functions_that_nobody_knows() -> None:
    read = predicate(
        (pc.utf8_length(pc.field("a")) > 3) & (name_.cast("int64") + x < 5) & pc.starts_with(pc.field("b"), "c")
    )

    assert read is not None
    assert columns_in(read) == {Column(("a",)), Column(("s", "name")), Column(("x",)), Column(("b",))}


def test_names_that_look_like_the_form_itself_are_names() -> None:
    names = ["end", "call", "x'\nfield_ref: 'y", "", "0", "\x00", "ü"]
    read = predicate(functools.reduce(operator.and_, (pc.field(name) == name for name in names)))

    assert read is not None
    assert columns_in(read) == {Column((name,)) for name in names}


BY_CHANCE = pc.Expression._call("random", [], pc.RandomOptions()) > 0.5
"""It gives another value at each call."""


@pytest.mark.parametrize(
    "condition", [pc.field(0) > 5, (x > 5) & (pc.field(1) > 5), BY_CHANCE, (x > 5) & BY_CHANCE, "x > 5", None], ids=str
)
def test_columns_by_number_functions_of_chance_and_what_is_no_expression_are_not_read(condition: Any) -> None:
    assert predicate(condition) is None


def test_a_chain_longer_than_the_stack_is_deep_is_read() -> None:
    read = predicate(functools.reduce(operator.or_, (x > i for i in range(3000))))

    assert read is not None
    assert columns_in(read) == {Column(("x",))}


class Forged:
    """Something that pickles as `steps` do, with one constant."""

    def __init__(self, *steps: tuple[str, str]) -> None:
        schema = pa.schema([pa.field("", pa.int64())], metadata=pa.KeyValueMetadata(list(steps)))
        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, schema) as writer:
            writer.write_batch(pa.record_batch([pa.array([7])], schema=schema))
        self._form = sink.getvalue()

    def __reduce__(self) -> tuple[Any, ...]:
        return Forged, (self._form,)


LESS = [("call", "less"), ("field_ref", "x"), ("literal", "0"), ("end", "less")]


def test_the_form_is_read_as_it_is_known() -> None:
    assert predicate(Forged(*LESS)) == Comparison("less", X, pa.scalar(7))


@pytest.mark.parametrize(
    "steps",
    [
        [],
        LESS[:-1],
        LESS[1:],
        [*LESS, *LESS],
        [*LESS, ("end", "less")],
        [*LESS[:-1], ("end", "greater")],
        [*LESS[:2], ("literal", "1"), LESS[3]],
        [*LESS[:2], ("literal", "-1"), LESS[3]],
        [*LESS[:2], ("literal", "one"), LESS[3]],
        [*LESS[:2], ("something_new", "0"), LESS[3]],
        [LESS[0], ("nested_field_ref", "2"), ("field_ref", "x"), *LESS[2:]],
        [LESS[0], ("nested_field_ref", "many"), *LESS[1:]],
        [("nested_field_ref", "1")],
        [("nested_field_ref", "0")],
        [("options", "0")],
        [*LESS[:3], ("options", "0"), ("options", "0"), LESS[3]],
        [("field_ref", "x"), ("field_ref", "y")],
    ],
    ids=written,
)
def test_a_form_that_is_not_exactly_as_known_is_not_read(steps: list[tuple[str, str]]) -> None:
    assert predicate(Forged(*steps)) is None
