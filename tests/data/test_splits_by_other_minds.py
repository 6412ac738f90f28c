"""Splits that IndexTables4Spark and Tantivy wrote are read as they read them themselves."""

from __future__ import annotations

import base64
import gzip
import json
import math
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from support.corpus_splits import read
from tablefeed.delta.schema.arrow_schema import to_arrow
from tablefeed.delta.schema.schema_string import parse_schema


def actions(table: Path, *, checkpoint: str | None = None) -> Iterator[tuple[str, dict[str, Any]]]:
    """The actions of a table's JSON log, from the checkpoint on where one is named."""
    log = table / "_transaction_log"
    for path in sorted(path for path in log.glob("*.json") if path.stem.isdecimal() or path.name == checkpoint):
        if checkpoint is not None and path.name < checkpoint:
            continue
        data = path.read_bytes().removeprefix(b"\x01\x01")
        text = gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data
        for line in text.decode().splitlines():
            ((kind, action),) = json.loads(line).items()
            yield kind, action


def schema_of(table: Path) -> pa.Schema:
    (schema,) = {action["schemaString"] for kind, action in actions(table) if kind == "metaData"}
    return to_arrow(parse_schema(schema))


def rows_of(split: Path, schema: pa.Schema, **told: Any) -> list[dict[str, Any]]:
    rows = read(split.read_bytes(), schema, **told)
    return rows.to_pylist(maps_as_pydicts="strict")  # type: ignore[no-any-return]  # as pyarrow gives them


def in_their_words(value: object) -> object:
    """A value as the expected rows have it: Java's JSON."""
    match value:
        case datetime():
            return value.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        case float() if not math.isfinite(value):
            return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[str(value)]
        case bytes():
            return base64.b64encode(value).decode()
        case _ if hasattr(value, "isoformat"):
            return value.isoformat()
        case _:
            return value


@pytest.mark.parametrize(
    ("name", "checkpoint"),
    [
        ("it053_events_json", None),
        ("it053_events_json_nockpt", None),
        ("it053_json_skip", f"{5:020}.checkpoint.json"),
        ("itnative_events", None),
    ],
)
def test_the_live_splits_hold_the_rows_that_indextables_reads_in_as_many_as_their_adds_say(
    index_tables: Path, name: str, checkpoint: str | None
) -> None:
    table, live = index_tables / name, dict[str, dict[str, Any]]()
    for kind, action in actions(table, checkpoint=checkpoint):
        if kind == "add":
            live[action["path"]] = action
        elif kind == "remove":
            live.pop(action["path"], None)

    rows = []
    for path, add in live.items():
        footer = (add["footerStartOffset"], add["footerEndOffset"])
        rows += rows_of(table / path, schema_of(table), num_records=add["numRecords"], footer=footer)

    assert_same_rows(rows, expected(index_tables, name))


def test_every_type_is_read_as_indextables_reads_it(index_tables: Path) -> None:
    (split,) = (index_tables / "it053_types_row").glob("*.split")

    read = [
        {name: value for name, value in row.items() if name != "st"} for row in rows_of(split, schema_of(split.parent))
    ]

    assert_same_rows(read, expected(index_tables, "it053_types_row"))


def test_a_nested_timestamp_which_indextables_itself_reads_wrong_is_the_one_that_was_written(
    index_tables: Path,
) -> None:
    (split,) = (index_tables / "it053_types_row").glob("*.split")

    (structs,) = [[row["st"]] for row in rows_of(split, schema_of(split.parent)) if row["i"] == 1]

    assert structs[0]["t"] == datetime(2020, 1, 2, 3, 4, 5, 678_901, UTC)
    assert structs[0]["d"].isoformat() == "2020-01-02"


def expected(index_tables: Path, name: str) -> list[dict[str, Any]]:
    path = index_tables / f"{name}.expected_final.jsonl"
    if not path.exists():  # the native log holds the commits of the JSON one
        path = index_tables / "it053_events_json.expected_final.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def assert_same_rows(read: list[dict[str, Any]], told: list[dict[str, Any]]) -> None:
    words = [{name: in_their_words(value) for name, value in row.items() if value is not None} for row in read]
    key = json.dumps
    assert sorted(map(key, words)) == sorted(map(key, told))
