"""What a rival's metadata changed, in words."""

from __future__ import annotations

import json

import pytest

from tablefeed.delta.schema.metadata_difference import difference
from tablefeed.delta.schema.schema_string import parse_schema
from tablefeed.model.actions import Metadata


def schema(*columns: tuple[str, str, dict[str, object]]) -> str:
    fields = [{"name": name, "type": kind, "nullable": True, "metadata": more} for name, kind, more in columns]
    return json.dumps({"type": "struct", "fields": fields})


def said(
    *columns: tuple[str, str, dict[str, object]],
    partition_columns: tuple[str, ...] = (),
    configuration: dict[str, str] | None = None,
) -> str:
    after = Metadata(
        table_id="t",
        schema_string=schema(*columns),
        partition_columns=partition_columns,
        configuration={"owner": "me"} if configuration is None else configuration,
    )
    before = schema(("id", "long", {"delta.identity.highWaterMark": 1}), ("x", "long", {}))
    known = parse_schema(before)
    return difference(after, schema=known, partition_columns=(), configuration={"owner": "me"})


Column = tuple[str, str, dict[str, object]]
ID: Column = ("id", "long", {"delta.identity.highWaterMark": 1})
MOVED: Column = ("id", "long", {"delta.identity.highWaterMark": 9})
X: Column = ("x", "long", {})


@pytest.mark.parametrize(
    ("columns", "text"),
    [
        ([MOVED, X], "it made values for the identity column id"),
        ([ID, X, ("y", "date", {})], "its schema has the new column y"),
        ([ID], "its schema has lost the column x"),
        ([MOVED, ("x", "string", {})], "it made values for the identity column id and its schema changed the column x"),
        ([ID, X], "its metadata was written again"),
    ],
)
def test_columns_are_told_by_what_became_of_them(columns: list[Column], text: str) -> None:
    assert said(*columns) == text


def test_a_partitioning_is_told_and_properties_by_their_names_alone() -> None:
    text = said(ID, X, partition_columns=("x",), configuration={"owner": "you", "secret": "pa55"})

    assert text == "its partitioning is by (x) and its properties changed: owner, secret"
