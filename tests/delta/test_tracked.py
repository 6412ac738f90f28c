"""Entries of the log of tracked metadata: Delta-Spark's bytes, and what is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.logs import col, struct
from tablefeed.delta.tracked import TrackedMetadata, decode_entry, encode_entry
from tablefeed.errors import TABLE, SchemaLogError, UnsupportedFeatureError
from tablefeed.model.actions import Metadata, Protocol, Version


def schema(*columns: dict[str, object]) -> str:
    return json.dumps(struct(*columns), separators=(",", ":"))


ID, DAY = schema(col("id", "integer")), schema(col("day", "date"))
ID_AND_DAY = schema(col("id", "integer"), col("day", "date"))

ENTRY = TrackedMetadata(
    table_id="7f3c",
    version=Version(3),
    schema_string=ID_AND_DAY,
    partition_columns=("day",),
    source_path="file:/checkpoint/sources/0",
    configuration={"delta.appendOnly": "true"},
    protocol=Protocol(
        min_reader_version=3,
        min_writer_version=7,
        reader_features=frozenset({"columnMapping"}),
        writer_features=frozenset({"columnMapping", "appendOnly"}),
    ),
    previous=-1,
)
FIELDS: dict[str, Any] = {
    "tableId": "7f3c",
    "deltaCommitVersion": 3,
    "dataSchemaJson": ID_AND_DAY,
    "partitionSchemaJson": DAY,
    "sourceMetadataPath": "file:/checkpoint/sources/0",
    "tableConfigurations": {"delta.appendOnly": "true"},
    "protocolJson": '{"protocol":{"minReaderVersion":3,"minWriterVersion":7,"readerFeatures":["columnMapping"],'
    '"writerFeatures":["appendOnly","columnMapping"]}}',
    "previousMetadataSeqNum": -1,
}


def bytes_of(**changed: object) -> bytes:
    return b"v1\n" + json.dumps({**FIELDS, **changed}).encode()


def test_an_entry_is_a_line_with_its_format_and_one_with_delta_sparks_fields_in_their_order() -> None:
    first, line = encode_entry(ENTRY).split(b"\n")

    assert first == b"v1"
    assert list(json.loads(line).items()) == list(FIELDS.items())
    assert decode_entry(encode_entry(ENTRY)) == ENTRY


def test_what_an_entry_does_not_tell_is_left_out() -> None:
    plain = replace(ENTRY, configuration=None, protocol=None, previous=None)

    assert list(json.loads(encode_entry(plain).split(b"\n")[1])) == list(FIELDS)[:5]
    assert decode_entry(encode_entry(plain)) == plain


@pytest.mark.parametrize("data", [bytes_of(later={"x": 1}), bytes_of() + b"\n", bytes_of().replace(b"v1\n", b"v1\r\n")])
def test_what_is_not_known_and_how_lines_end_does_not_matter(data: bytes) -> None:
    assert decode_entry(data) == ENTRY


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"v1",
        b"v1\n",
        b"v2\n" + bytes_of()[3:],
        bytes_of()[3:],
        bytes_of()[:-9],
        b"v1\n[]",
        b"v1\n" + b"[" * 100_000,
        bytes_of(tableId=None),
        bytes_of(deltaCommitVersion=-1),
        bytes_of(deltaCommitVersion="3"),
        bytes_of(deltaCommitVersion=True),
        bytes_of(partitionSchemaJson=DAY.replace("day", "night")),
        bytes_of(tableConfigurations=["delta.appendOnly"]),
        bytes_of(tableConfigurations={"delta.appendOnly": True}),
        bytes_of(protocolJson={}),
        bytes_of(protocolJson="{}"),
        bytes_of(protocolJson="[]"),
        bytes_of(protocolJson="{"),
        bytes_of(protocolJson='{"protocol":{"minReaderVersion":"x"}}'),
        bytes_of(previousMetadataSeqNum="1"),
    ],
)
def test_bytes_that_are_no_entry_are_refused_by_the_file_that_holds_them(data: bytes) -> None:
    with pytest.raises(SchemaLogError, match="Restore it from a copy") as caught:
        decode_entry(data)

    assert caught.value.error_class == "DELTA_STREAMING_SCHEMA_LOG_DESERIALIZE_FAILED"
    assert TABLE in caught.value.message


@pytest.mark.parametrize("key", ["dataSchemaJson", "partitionSchemaJson"])
@pytest.mark.parametrize("text", ["", "{", "[]", '{"type":"struct"}', '"integer"'])
def test_a_schema_that_is_none_is_refused_as_such(key: str, text: str) -> None:
    with pytest.raises(SchemaLogError, match="DELTA_STREAMING_SCHEMA_LOG_PARSE_SCHEMA_FAILED"):
        decode_entry(bytes_of(**{key: text}))


def test_a_schema_with_a_type_that_is_not_handled_is_no_damage() -> None:
    with pytest.raises(UnsupportedFeatureError, match="geometry"):
        decode_entry(bytes_of(dataSchemaJson=ID_AND_DAY.replace("integer", "geometry")))


@given(st.binary() | st.binary().map(lambda rest: b"v1\n" + rest))
def test_any_bytes_are_an_entry_or_an_error_of_ours(data: bytes) -> None:
    try:
        decode_entry(data)
    except SchemaLogError:
        return


VALUES = (
    st.none() | st.booleans() | st.integers() | st.text() | st.lists(st.text()) | st.dictionaries(st.text(), st.text())
)


@given(st.dictionaries(st.sampled_from(sorted(FIELDS)), VALUES))
def test_any_fields_are_an_entry_or_an_error_of_ours(changed: dict[str, Any]) -> None:
    try:
        entry = decode_entry(bytes_of(**changed))
    except (SchemaLogError, UnsupportedFeatureError):
        return
    assert decode_entry(encode_entry(entry)) == entry


def test_a_table_is_read_with_the_schema_partitioning_and_properties_of_the_entry() -> None:
    newest = Metadata(table_id="7f3c", schema_string=ID, configuration={"delta.x": "1"}, name="orders")

    assert ENTRY.over(newest) == Metadata(
        table_id="7f3c",
        schema_string=ID_AND_DAY,
        partition_columns=("day",),
        configuration={"delta.appendOnly": "true"},
        name="orders",
    )
    assert replace(ENTRY, configuration=None).over(newest).configuration == {"delta.x": "1"}
