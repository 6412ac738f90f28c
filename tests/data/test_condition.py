"""A filter is read as what it is made of, or not at all."""

from __future__ import annotations

import functools
import operator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tablefeed.data.condition import Call, Column, Literal, columns_in, tree

x, name_ = pc.field("x"), pc.field("s", "name")


def call(function: str, *arguments: Any) -> Call:
    return Call(function, arguments, None)


@pytest.mark.parametrize(
    ("condition", "made_of"),
    [
        (x > 5, call("greater", Column(("x",)), Literal(pa.scalar(5)))),
        (pc.scalar(5) > x, call("greater", Literal(pa.scalar(5)), Column(("x",)))),
        (x > 5.5, call("greater", Column(("x",)), Literal(pa.scalar(5.5)))),
        (name_ == "é", call("equal", Column(("s", "name")), Literal(pa.scalar("é")))),
        (pc.field("a.b") == x, call("equal", Column(("a.b",)), Column(("x",)))),
        (x, Column(("x",))),
        (pc.scalar(value=True), Literal(pa.scalar(value=True))),
        (
            (x.is_valid() & ~pc.field("ok")) | pc.field("end"),
            call(
                "or_kleene",
                call("and_kleene", call("is_valid", Column(("x",))), call("invert", Column(("ok",)))),
                Column(("end",)),
            ),
        ),
        (
            name_ < pa.scalar(None, pa.string()),
            call("less", Column(("s", "name")), Literal(pa.scalar(None, pa.string()))),
        ),
    ],
    ids=str,
)
def test_a_filter_is_made_of_calls_of_columns_and_literals(condition: pc.Expression, made_of: object) -> None:
    assert tree(condition) == made_of


def test_options_come_with_their_call() -> None:
    read = tree(x.isin([1, None]) & x.is_null(nan_is_null=True))

    assert isinstance(read, Call)
    options = [part.options.as_py() for part in read.arguments if isinstance(part, Call) and part.options is not None]
    assert [{k: v for k, v in o.items() if k != "_type_name"} for o in options] == [
        {"value_set": [1, None], "null_matching_behavior": 0},
        {"nan_is_null": True},
    ]


def test_columns_are_found_below_functions_that_nobody_knows() -> None:
    read = tree(
        (pc.utf8_length(pc.field("a")) > 3) & (name_.cast("int64") + x < 5) & pc.starts_with(pc.field("b"), "c")
    )

    assert read is not None
    assert columns_in(read) == {Column(("a",)), Column(("s", "name")), Column(("x",)), Column(("b",))}


def test_names_that_look_like_the_form_itself_are_names() -> None:
    names = ["end", "call", "x'\nfield_ref: 'y", "", "0", "\x00", "ü"]
    read = tree(functools.reduce(operator.and_, (pc.field(name) == name for name in names)))

    assert read is not None
    assert columns_in(read) == {Column((name,)) for name in names}


def test_a_column_by_its_number_is_not_read() -> None:
    assert tree(pc.field(0) > 5) is None
    assert tree((x > 5) & (pc.field(1) > 5)) is None


def test_a_function_that_answers_anew_whenever_it_is_asked_is_not_read() -> None:
    by_chance = pc.Expression._call("random", [], pc.RandomOptions())

    assert tree(by_chance > 0.5) is None
    assert tree((x > 5) & (by_chance > 0.5)) is None


def test_what_is_no_expression_is_not_read() -> None:
    assert tree("x > 5") is None
    assert tree(None) is None


def test_a_chain_longer_than_the_stack_is_deep_is_read() -> None:
    read = tree(functools.reduce(operator.or_, (x > i for i in range(3000))))

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
    assert tree(Forged(*LESS)) == call("less", Column(("x",)), Literal(pa.scalar(7)))


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
    ids=str,
)
def test_a_form_that_is_not_exactly_as_known_is_not_read(steps: list[tuple[str, str]]) -> None:
    assert tree(Forged(*steps)) is None
