"""Which words a change of a tracked schema needs: the cases of Delta-Spark's own tests of that rule."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson
import pytest

from tablefeed.delta.tracked import TrackedMetadata
from tablefeed.errors import SchemaChangedError
from tablefeed.feed.schema_unblock import Allowed, check_allowed
from tablefeed.model.actions import Version

Columns = Mapping[str, Any]  # by "name", or "name@name in files": a type, a nested mapping, or a list with an element

WAITS = "DELTA_STREAMING_CANNOT_CONTINUE_PROCESSING_POST_SCHEMA_EVOLUTION"
NEVER = "DELTA_SCHEMA_CHANGED_WITH_VERSION"
WORDS = {"rename": "allowSourceColumnRename", "drop": "allowSourceColumnDrop", "type": "allowSourceColumnTypeChange"}


def kind(of: Any) -> Any:
    if isinstance(of, dict):
        return {"type": "struct", "fields": [field(*column) for column in of.items()]}
    if isinstance(of, list):
        return {"type": "array", "elementType": kind(of[0]), "containsNull": True}
    if isinstance(of, tuple):
        key, value = of
        return {"type": "map", "keyType": kind(key), "valueType": kind(value), "valueContainsNull": True}
    return of.removesuffix("!")


def field(name: str, of: Any) -> dict[str, Any]:
    logical, _, physical = name.partition("@")
    metadata = {"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": physical} if physical else {}
    return {"name": logical, "type": kind(of), "nullable": not str(of).endswith("!"), "metadata": metadata}


def tracked(version: int, columns: Columns) -> TrackedMetadata:
    return TrackedMetadata(
        table_id="t",
        version=Version(version),
        schema_string=orjson.dumps(kind(columns)).decode(),
        partition_columns=(),
        source_path="",
    )


def refusal(then: Columns, now: Columns, allowed: Allowed) -> SchemaChangedError | None:
    try:
        check_allowed(previous=tracked(3, then), current=tracked(5, now), allowed=allowed, url="/orders")
    except SchemaChangedError as error:
        return error
    return None


CASES: list[tuple[str, Columns, Columns, str]] = [
    ("nothing", {"a": "integer"}, {"a": "integer"}, ""),
    ("nothing, by names in files", {"a@x": "integer"}, {"a@x": "integer"}, ""),
    ("a column added", {"a": "integer"}, {"b": "integer", "a": "integer"}, ""),
    ("a member added", {"a": {"x": "byte"}}, {"a": {"x": "byte", "y": "byte"}}, ""),
    ("another column in its place", {"a@x": "integer"}, {"b@y": "integer"}, "drop"),
    ("another of its name, of another type", {"a@x": "integer"}, {"a@y": "string"}, "drop"),
    ("another of its name, of a wider type", {"a@x": "byte"}, {"a@y": "integer"}, "drop"),
    ("renamed", {"a@a": "integer"}, {"b@a": "integer"}, "rename"),
    ("renamed and widened", {"a@a": "byte"}, {"b@a": "integer"}, "rename type"),
    ("renamed, and another type", {"a@a": "integer"}, {"b@a": "string"}, "never"),
    ("swapped", {"a@a": "integer", "b@b": "integer"}, {"a@b": "integer", "b@a": "integer"}, "rename"),
    ("swapped and widened", {"a@a": "byte", "b@b": "byte"}, {"a@b": "byte", "b@a": "long"}, "rename type"),
    ("swapped, and another type", {"a@a": "integer", "b@b": "integer"}, {"a@b": "byte", "b@a": "integer"}, "never"),
    ("dropped", {"a": "integer", "b": "integer"}, {"a": "integer"}, "drop"),
    ("dropped, and one widened", {"a": "byte", "b": "byte"}, {"a": "integer"}, "drop type"),
    ("dropped, and one of another type", {"a": "integer", "b": "integer"}, {"a": "string"}, "never"),
    ("dropped, and one has its name", {"a@a": "integer", "b@b": "integer"}, {"b@a": "integer"}, "rename drop"),
    ("dropped, renamed and widened", {"a@a": "byte", "b@b": "byte"}, {"c@a": "integer"}, "rename drop type"),
    ("widened", {"a": "byte"}, {"a": "integer"}, "type"),
    ("widened to a decimal", {"a": "integer"}, {"a": "decimal(12,2)"}, "type"),
    ("one widened and one narrowed", {"a": "byte", "b": "integer"}, {"a": "integer", "b": "byte"}, "never"),
    ("narrowed", {"a": "long"}, {"a": "integer"}, "never"),
    ("nullable now", {"a": "integer!"}, {"a": "integer"}, ""),
    ("not nullable any more", {"a": "integer"}, {"a": "integer!"}, "never"),
    ("widened and nullable now", {"a": "byte!"}, {"a": "integer"}, "type"),
    ("widened and not nullable any more", {"a": "byte"}, {"a": "integer!"}, "never"),
    ("a map widened", {"a": ("byte", "short")}, {"a": ("short", "integer")}, "type"),
    ("an array widened", {"a": ["byte"]}, {"a": ["short"]}, "type"),
    ("an array that is a map now", {"a": ["byte"]}, {"a": ("byte", "byte")}, "never"),
    ("a struct widened", {"a": {"x": "byte"}}, {"a": {"x": "short"}}, "type"),
    ("a member renamed", {"a@a": {"x@x": "byte"}}, {"a@a": {"y@x": "byte"}}, "rename"),
    ("a member dropped", {"a": {"x": "byte", "y": "byte"}}, {"a": {"x": "byte"}}, "drop"),
    ("a member of an element dropped", {"a": [{"x": "byte", "y": "byte"}]}, {"a": [{"x": "byte"}]}, "drop"),
    (
        "members widened, renamed and dropped",
        {"a@a": {"x@x": "byte", "y@y": "byte", "z@z": "byte"}},
        {"a@a": {"x@x": "short", "w@y": "byte"}},
        "rename drop type",
    ),
    ("mapping turned on", {"a": "integer"}, {"a@a": "integer"}, ""),
    ("mapping turned on, and renamed", {"a": "integer"}, {"b@a": "integer"}, "rename"),
    ("mapping turned off", {"a@col-1": "integer"}, {"a": "integer"}, "drop"),
]


@pytest.mark.parametrize(("then", "now", "needs"), [pytest.param(*case[1:], id=case[0]) for case in CASES])
def test_a_change_goes_on_with_the_words_that_it_needs_and_with_no_less(
    then: Columns, now: Columns, needs: str
) -> None:
    words = needs.split()
    every = Allowed(rename="always", drop="always", type_change=5)
    if words == ["never"]:
        assert [getattr(refusal(then, now, each), "error_class", None) for each in (Allowed(), every)] == [NEVER] * 2
        return

    allowed = {
        "rename": "rename" in words and "always",
        "drop": "drop" in words and 5,
        "type_change": "type" in words and "always",
    }
    given: dict[str, Any] = {name: word or None for name, word in allowed.items()}
    assert refusal(then, now, Allowed(**given)) is None
    for word in words:
        short = {**given, "type_change" if word == "type" else word: 3}
        error = refusal(then, now, Allowed(**short))
        assert error is not None
        assert (error.error_class, error.version) == (WAITS, 5)
        assert [name for name in WORDS.values() if f"{name} " in error.message] == [WORDS[word]]


def test_a_refusal_names_each_column_and_what_became_of_it() -> None:
    then = {"a@a": {"x@x": "byte"}, "b@b": "integer", "c@c": "date"}
    now = {"z@a": {"x@x": "short"}, "b@b": "long"}

    error = refusal(then, now, Allowed())

    assert error is not None
    for said in ("a is now z", "c", "a.x: byte to short", "b: integer to long", "between versions 3 and 5", "set to 5"):
        assert said in error.message
