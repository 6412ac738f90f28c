"""The rules of a table are read from its metaData in every spelling that tables have."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tablefeed.delta.schema.rules import table_rules
from tablefeed.errors import UnsupportedFeatureError
from tablefeed.model.rules import Check, TableRules
from tablefeed.model.schema import Array, DataType, Decimal, Field, Map, Primitive, Struct

_INT, _STRING = Primitive("integer"), Primitive("string")


def _rules(*fields: Field, configuration: Mapping[str, str] | None = None) -> TableRules:
    return table_rules(Struct(fields), configuration or {})


def _field(name: str, kind: DataType = _INT, **metadata: object) -> Field:
    return Field(name, kind, nullable=True, metadata={_KEYS[key]: value for key, value in metadata.items()})


_KEYS = {
    "invariant": "delta.invariants",
    "generated": "delta.generationExpression",
    "default": "CURRENT_DEFAULT",
    "declared": "__CHAR_VARCHAR_TYPE_STRING",
}


def test_check_constraints_are_the_properties_with_the_prefix_by_their_names_in_order() -> None:
    configuration = {"delta.constraints.z": "x > 0", "delta.constraints.a": "x < 9", "delta.appendOnly": "true"}

    rules = _rules(_field("x"), configuration=configuration)

    assert rules.checks == (Check(name="a", expression="x < 9"), Check(name="z", expression="x > 0"))


@pytest.mark.parametrize("written", ['{"expression":{"expression":"x > 3"}}', "x > 3"])
def test_an_invariant_is_read_bare_and_within_json(written: str) -> None:
    rules = _rules(_field("x", invariant=written))

    assert rules.checks == (Check(name="EXPRESSION(x > 3)", expression="x > 3"),)


def test_an_invariant_of_a_struct_s_member_is_one() -> None:
    member = _field("x", invariant="s.x > 3")

    assert _rules(_field("s", Struct((member,)))).checks == (Check(name="EXPRESSION(s.x > 3)", expression="s.x > 3"),)


def test_generation_expressions_and_defaults_are_kept_by_column() -> None:
    rules = _rules(_field("y", generated="YEAR(d)"), _field("n", default="7"), _field("x"))

    assert (rules.generated, rules.defaults) == ({"y": "YEAR(d)"}, {"n": "7"})
    assert rules.needs_sql


_TEXTS = Map(_STRING, _STRING, value_contains_null=True)


def _struct(**members: DataType) -> Struct:
    return Struct(tuple(_field(name, kind) for name, kind in members.items()))


@pytest.mark.parametrize(
    ("declared", "kind", "limits"),
    [
        ("varchar(5)", _STRING, [(("c",), 5, "varchar")]),
        ("char(2)", _STRING, [(("c",), 2, "char")]),
        ("array<varchar(5)>", Array(_STRING, contains_null=True), [(("c", "element"), 5, "varchar")]),
        (
            "map<char(1),decimal(10,2)>",
            Map(_STRING, Decimal(10, 2), value_contains_null=True),
            [(("c", "key"), 1, "char")],
        ),
        (
            "struct<a:int,b:map<string,varchar(3)>,`odd:``name`:char(4)>",
            _struct(a=_INT, b=_TEXTS, **{"odd:`name": _STRING}),
            [(("c", "b", "value"), 3, "varchar"), (("c", "odd:`name"), 4, "char")],
        ),
    ],
)
def test_the_lengths_of_char_and_varchar_are_read_at_every_depth(
    declared: str, kind: DataType, limits: list[tuple[tuple[str, ...], int, str]]
) -> None:
    rules = _rules(_field("c", kind, declared=declared))

    assert [(one.path, one.length, one.kind) for one in rules.limits] == limits
    assert not rules.needs_sql


@pytest.mark.parametrize(
    ("kind", "limited"),
    [
        (_struct(b=_STRING, new=_STRING), "new"),  # renamed: the place counts
        (_struct(b=_STRING, a=_STRING), "a"),
        (_struct(b=_STRING, a=_STRING, c=_STRING), "a"),  # one was added
    ],
)
def test_a_declared_length_is_that_of_the_member_though_it_was_renamed(kind: DataType, limited: str) -> None:
    (limit,) = _rules(_field("c", kind, declared="struct<b:string,a:varchar(3)>")).limits

    assert limit.path == ("c", limited)


def test_a_member_that_was_dropped_has_no_length_any_more() -> None:
    kind = _struct(b=_STRING)

    (limit,) = _rules(_field("c", kind, declared="struct<a:varchar(3),b:char(2)>")).limits

    assert (limit.path, limit.length) == (("c", "b"), 2)


@pytest.mark.parametrize(
    ("field", "named"),
    [
        *(
            (_field("x", invariant=written), "the invariant of column x")
            for written in ('{"rule": 1}', '{"expression": "x > 3"}', 7, "{")
        ),
        *(
            (_field("c", _STRING, declared=declared), "the declared type of column c")
            for declared in (
                "varchar",
                "varchar(x)",
                "array<varchar(5)",
                "struct<a>",
                "varchar(5) x",
                "struct<a:char(1)>",
            )
        ),
        *(
            (_field("c", kind, declared="struct<a:varchar(3),b:int>"), "the declared type of column c")
            for kind in (_INT, _struct(x=_STRING), _struct(x=_INT, b=_INT), _struct(a=_INT, b=_INT))
        ),
        (
            _field("s", Array(Struct((_field("n", default="7"),)), contains_null=True)),
            "CURRENT_DEFAULT of column s",  # a default below the top
        ),
    ],
)
def test_a_rule_in_a_form_that_cannot_be_read_is_refused_by_its_column(field: Field, named: str) -> None:
    with pytest.raises(UnsupportedFeatureError, match=named):
        _rules(field)


def test_a_table_without_rules_has_none() -> None:
    assert _rules(_field("x")) == TableRules()
