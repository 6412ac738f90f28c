"""What is certain of a split by what its log tells, writer by writer."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tablefeed.feed.snapshot.split_statistics import Told, statistics
from tablefeed.indextables.log.schema_registry import plain_texts
from tablefeed.model.schema import Field, Primitive, Struct

HIVE = "__HIVE_DEFAULT_PARTITION__"


def told(
    kind: str, low: str | None = None, high: str | None = None, *, plain: bool | None = True, rows: int | None = None
) -> dict[str, Any]:
    """The statistics of a column `c`."""
    facts = Told(
        row_count=rows,
        lows={} if low is None else {"c": low},
        highs={} if high is None else {"c": high},
        partition_values={},
        plain_texts=None if plain is None else {"c": plain},
    )
    return read(facts, kind)


def of_partition(
    kind: str, text: str | None, *, mapping: dict[str, bool] | None = None, rows: int | None = 5
) -> dict[str, Any]:
    """The statistics of a partition column `c`; `mapping` None: as the log has them that tells no mapping."""
    facts = Told(row_count=rows, lows={}, highs={}, partition_values={"c": text}, plain_texts=mapping)
    return {name: values for name, values in read(facts, kind).items() if name != "numRecords"}


def read(facts: Told, kind: str) -> dict[str, Any]:
    text = statistics(facts, Struct((Field("c", Primitive(kind), nullable=True),)))
    found: dict[str, Any] = {} if text is None else json.loads(text)
    return {name: values["c"] if isinstance(values, dict) else values for name, values in found.items()}


def exactly(value: object) -> dict[str, object]:
    return {"minValues": value, "maxValues": value, "nullCount": 0}


@pytest.mark.parametrize(
    ("kind", "low", "high", "expected"),
    [
        ("long", "-9", "10", (-9, 10)),
        ("integer", "9", "10", (9, 10)),
        ("double", "-1.5", "1.0E10", (-1.5, 1e10)),
        ("float", "0.1", "0.10000000149011612", (0.1, 0.10000000149011612)),
        ("double", "NaN", "NaN", (None, None)),
        ("double", "-Infinity", "Infinity", (None, None)),
        ("date", "1969-12-31", "2024-01-10", ("1969-12-31", "2024-01-10")),
        ("timestamp", "-1", "1704067200000000", ("1969-12-31T23:59:59.999999Z", "2024-01-01T00:00:00Z")),
        ("short", "1", "9", (None, None)),
        ("boolean", "false", "true", (None, None)),
        ("binary", "a", "b", (None, None)),
    ],
)
def test_extremes_are_read_by_the_type_of_their_column(
    kind: str, low: str, high: str, expected: tuple[object, object]
) -> None:
    found = told(kind, low, high)

    assert (found.get("minValues"), found.get("maxValues")) == expected


CUT = ["1" + "0" * 31, "0." + "0" * 29 + "1", "9" * 30]
"""Numbers of more digits than Java writes: they may have been cut."""


@pytest.mark.parametrize(
    ("kind", "text", "plain"),
    [
        *((kind, f"{sign}{digits}", True) for kind in ("double", "long") for digits in CUT for sign in ("-", "")),
        *(("long", text, True) for text in ("9" * 20, "1_0", " 1", "٣", "0x1", "", "1.0")),
        *(("date", text, True) for text in ("1704067200000000", "19723", "20240101", "2024-1-1", "yesterday")),
        # Characters that Java orders in another way.
        *(("string", text, True) for text in ("\U0001f600", "a\ue000")),
        # Texts of a split that is not known to store them as they are.
        *(("string", "a", plain) for plain in (None, False)),
    ],
)
def test_what_is_not_certain_bounds_nothing(kind: str, text: str, plain: bool | None) -> None:  # noqa: FBT001
    assert told(kind, text, text, plain=plain) == {}


def test_a_text_may_go_on_behind_its_maximum() -> None:
    found = told("string", "a", "x" * 32)

    assert found["minValues"] == "a"
    assert found["maxValues"] > "x" * 32 + "\U0010ffff"


def test_half_of_a_character_at_the_end_of_a_maximum_is_any() -> None:
    assert told("string", "a", "x" * 31 + "?")["maxValues"] > "x" * 31 + "\U0001f600"


def test_a_text_with_an_escape_in_it_is_a_text_where_it_is_no_partition_value() -> None:
    assert told("string", "a%20b", "b")["minValues"] == "a%20b"


def test_rows_are_counted_where_nothing_else_is_told() -> None:
    assert told("long", rows=7) == {"numRecords": 7}


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        ("long", "-9", exactly(-9)),
        ("short", "9", exactly(9)),
        ("double", "0.5", exactly(0.5)),
        ("date", "2024-01-09", exactly("2024-01-09")),
        ("timestamp", "1969-12-31 23:59:59", exactly("1969-12-31T23:59:59Z")),
        ("timestamp", "2024-01-01T00%3A00%3A00Z", {}),
        ("double", "NaN", {}),
        ("boolean", "true", {}),
        ("long", HIVE, {"nullCount": 5}),
        ("date", None, {"nullCount": 5}),
        ("long", "", {}),
    ],
)
def test_all_rows_of_a_partition_have_its_value(kind: str, text: str | None, expected: dict[str, object]) -> None:
    assert of_partition(kind, text) == expected


def test_that_all_rows_are_null_is_not_told_where_they_are_not_counted() -> None:
    assert of_partition("long", HIVE, rows=None) == {}


@pytest.mark.parametrize(
    ("text", "mapping", "expected"),
    [
        # Its split stores it as it is, or only the log has it.
        ("a", {"c": True}, exactly("a")),
        ("a", {}, exactly("a")),
        # It was escaped, or means null.
        *((text, {"c": True}, {}) for text in ("a%20b", "%", "", HIVE, None)),
        # Its split may change it.
        *(("::ffff:10.0.0.9", mapping, {}) for mapping in (None, {"c": False})),
    ],
)
def test_a_text_of_a_partition_is_its_value_where_that_is_certain(
    text: str | None, mapping: dict[str, bool] | None, expected: dict[str, object]
) -> None:
    assert of_partition("string", text, mapping=mapping) == expected


def test_a_doc_mapping_tells_which_texts_are_stored_as_they_are() -> None:
    mapping = json.dumps(
        [
            {"name": "id", "type": "i64"},
            {"name": "name", "type": "text", "tokenizer": "raw"},
            {"name": "words", "type": "text", "tokenizer": "default"},
            {"name": "json", "type": "object", "tokenizer": "raw"},
            {"name": "ip", "type": "ip"},
        ]
    )

    assert plain_texts(mapping) == {"id": False, "name": True, "words": False, "json": False, "ip": False}
    assert [plain_texts(text) for text in ("{}", "", "[1]", '{"fields": {}}', '[{"type": "text"}]')] == [None] * 5
