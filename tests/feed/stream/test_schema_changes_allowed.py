"""Which words a change of a tracked schema needs: the cases of Delta-Spark's own tests of that rule."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson
import pytest

from support.tracking import ALWAYS
from tablefeed.delta.tracked import TrackedMetadata
from tablefeed.errors import SchemaChangedError
from tablefeed.feed.stream.schema_unblock import check_allowed
from tablefeed.feed.stream.source_options import DROP, RENAME, TYPE_CHANGE, Allowed
from tablefeed.model.actions import Version

Columns = Mapping[str, Any] | str
"""By "name", "name@name in files", or "name@" for one without a name in files: a type, members, an element, a map.

As a text: names and their types.
"""

WAITS = "DELTA_STREAMING_CANNOT_CONTINUE_PROCESSING_POST_SCHEMA_EVOLUTION"
NEVER = "DELTA_SCHEMA_CHANGED_WITH_VERSION"
WORDS = {"rename": RENAME, "drop": DROP, "type": TYPE_CHANGE}


def kind(of: Any) -> Any:
    if isinstance(of, dict):
        return {"type": "struct", "fields": [field(*column) for column in of.items()]}
    if isinstance(of, list):
        return {"type": "array", "elementType": kind(of[0]), "containsNull": True}
    if isinstance(of, tuple):
        key, value = of
        return {"type": "map", "keyType": kind(key), "valueType": kind(value), "valueContainsNull": True}
    name = of.removesuffix("!")
    return "integer" if name == "int" else name


def field(name: str, of: Any) -> dict[str, Any]:
    logical, at, physical = name.partition("@")
    physical = physical if at else name
    metadata = {"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": physical} if physical else {}
    return {"name": logical, "type": kind(of), "nullable": not str(of).endswith("!"), "metadata": metadata}


def tracked(version: int, columns: Columns) -> TrackedMetadata:
    named = dict(column.split() for column in columns.split(", ")) if isinstance(columns, str) else columns
    return TrackedMetadata(
        table_id="t",
        version=Version(version),
        schema_string=orjson.dumps(kind(named)).decode(),
        partition_columns=(),
        source_path="",
    )


def refusal(then: Columns, now: Columns, allowed: Allowed) -> SchemaChangedError | None:
    try:
        check_allowed(previous=tracked(3, then), current=tracked(5, now), allowed=allowed, url="/orders")
    except SchemaChangedError as error:
        return error
    return None


CASES: dict[str, tuple[Columns, Columns, str]] = {
    "no schema change, use logical names": ("a int", "a int", ""),
    "no schema change, use physical names": ("a@x int", "a@x int", ""),
    "schema overwrite, different column name": ("a int", "b string", "drop"),
    "schema overwrite, same column name, non-widening type change": ("a int", "a@b string", "drop"),
    "schema overwrite, same column name, widening type change": ("a byte", "a@b int", "drop"),
    "column rename, use logical names": ("a int", "b@a int", "rename"),
    "column rename, use physical names": ("a@x int", "b@x int", "rename"),
    "column rename with widening type change": ("a@x byte", "b@x int", "rename type"),
    "column rename with non-widening type change": ("a@x int", "b@x string", "never"),
    "swap columns": ("a int, b int", "b@a int, a@b int", "rename"),
    "swap columns with widening type change": ("a byte, b byte", "b@a byte, a@b int", "rename type"),
    "swap columns with non-widening type change": ("a int, b int", "b@a int, a@b string", "never"),
    "swap columns with widening and non-widening type change": ("a byte, b int", "b@a int, a@b string", "never"),
    "drop column, use logical names": ("a int, b int", "b int", "drop"),
    "drop column, use physical names": ("a@x int, b@y int", "b@y int", "drop"),
    "drop column with widening type change": ("a@x byte, b@y byte", "b@y int", "drop type"),
    "drop column with non-widening type change": ("a@x int, b@y int", "b@y string", "never"),
    "drop column, swapped physical names": ("a@b int, b@a int", "b@a int", "drop"),
    "drop column, swapped physical names with widening type change": ("a@b byte, b@a byte", "b@a int", "drop type"),
    "drop column, swapped physical names with non-widening type change": ("a@b int, b@a int", "b@a float", "never"),
    "drop column, rename to other column name": ("a int, b int", "c@b int", "rename drop"),
    "drop column, rename to other column name with widening type change": (
        "a byte, b byte",
        "c@b int",
        "rename drop type",
    ),
    "drop column, rename to other column name with non-widening type change": ("a int, b int", "c@b string", "never"),
    "drop column, rename to same column name": ("a int, b int", "a@b int", "rename drop"),
    "drop column, rename to same column name with widening type change": (
        "a byte, b byte",
        "a@b int",
        "rename drop type",
    ),
    "drop column, rename to same column name with non-widening type change": ("a int, b int", "a@b string", "never"),
    "widen single column": ("a byte", "a int", "type"),
    "widening and non-widening type changes": ("a byte, b int", "a int, b byte", "never"),
    "narrow single column": ("a long", "a int", "never"),
    "change to nullable": ("a int!", "a int", ""),
    "change to non-nullable": ("a int", "a int!", "never"),
    "widen and change to nullable": ("a byte!", "a int", "type"),
    "widen change to non-nullable": ("a byte", "a int!", "never"),
    "widen map": ({"a": ("byte", "short")}, {"a": ("short", "int")}, "type"),
    "widen array": ({"a": ["byte"]}, {"a": ["short"]}, "type"),
    "widen struct": ({"a": {"x": "byte"}}, {"a": {"x": "short"}}, "type"),
    "widen struct and struct field rename": (
        {"a": {"x": "byte", "y": "int"}},
        {"a": {"x": "short", "z@y": "int"}},
        "rename type",
    ),
    "widen struct and struct field drop": ({"a": {"x": "byte", "y": "int"}}, {"a": {"x": "short"}}, "drop type"),
    "widen struct and struct field rename and drop": (
        {"a": {"x": "byte", "y": "int", "z": "int"}},
        {"a": {"x": "short", "w@y": "int"}},
        "rename drop type",
    ),
}
"""The table of DeltaSourceMetadataEvolutionSupportSuite, under its names."""

OWN_CASES: dict[str, tuple[Columns, Columns, str]] = {
    "a column added": ("a int", "b int, a int", ""),
    "a member added": ({"a": {"x": "byte"}}, {"a": {"x": "byte", "y": "byte"}}, ""),
    "dropped of columns without names in files": ("a@ int, b@ int", "a@ int", "drop"),
    "widened to a decimal": ("a int", "a decimal(12,2)", "type"),
    "an array that is a map now": ({"a": ["byte"]}, {"a": ("byte", "byte")}, "never"),
    "a member renamed": ({"a": {"x": "byte"}}, {"a": {"y@x": "byte"}}, "rename"),
    "a member dropped": ({"a": {"x": "byte", "y": "byte"}}, {"a": {"x": "byte"}}, "drop"),
    "a member of an element dropped": ({"a": [{"x": "byte", "y": "byte"}]}, {"a": [{"x": "byte"}]}, "drop"),
    "mapping turned on": ("a@ int", "a int", ""),
    "mapping turned on, and renamed": ("a@ int", "b@a int", "rename"),
    "mapping turned off": ("a@col-1 int", "a@ int", "drop"),
}


@pytest.mark.parametrize(("then", "now", "needs"), [*CASES.values(), *OWN_CASES.values()], ids=[*CASES, *OWN_CASES])
def test_a_change_goes_on_with_the_words_that_it_needs_and_with_no_less(
    then: Columns, now: Columns, needs: str
) -> None:
    words = needs.split()
    if words == ["never"]:
        assert [getattr(refusal(then, now, each), "error_class", None) for each in ({}, ALWAYS)] == [NEVER] * 2
        return

    given: dict[str, Any] = {WORDS[word]: 5 if word == "drop" else "always" for word in words}
    assert refusal(then, now, given) is None
    for word in words:
        error = refusal(then, now, {**given, WORDS[word]: 3})
        assert error is not None
        assert (error.error_class, error.version) == (WAITS, 5)
        assert [name for name in WORDS.values() if f"{name} " in error.message] == [WORDS[word]]


@pytest.mark.parametrize(
    ("word", "then", "now"),
    [
        pytest.param("drop", "a int, b int", "a int", id="column drop"),
        pytest.param("rename", "a int", "b@a int", id="column rename"),
        pytest.param("type", "a byte", "a int", id="column type change"),
    ],
)
def test_a_word_that_is_a_version_does_for_the_change_of_that_version(word: str, then: Columns, now: Columns) -> None:
    assert refusal(then, now, {WORDS[word]: 5}) is None
    error = refusal(then, now, {WORDS[word]: 3})
    assert error is not None
    assert error.error_class == WAITS


def test_a_refusal_names_each_column_and_what_became_of_it() -> None:
    then = {"a": {"x": "byte"}, "b": "integer", "c": "date"}
    now = {"z@a": {"x": "short"}, "b": "long"}

    error = refusal(then, now, {})

    assert error is not None
    for said in ("a is now z", "c", "a.x: byte to short", "b: integer to long", "between versions 3 and 5", "set to 5"):
        assert said in error.message
