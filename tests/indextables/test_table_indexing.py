"""How a table's splits index its columns is found out of what is told of them, and refused where we do not do so."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from tablefeed.errors import LogError, UnsupportedFeatureError
from tablefeed.indextables.split.doc_mapping import doc_mapping
from tablefeed.indextables.split.index_schema import fields
from tablefeed.indextables.split.indexing import Indexed, Indexing, Style
from tablefeed.indextables.split.table_indexing import indexing_of

URL = "memory://t"
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("day", pa.string()),
        ("name", pa.string()),
        ("notes", pa.string()),
        ("raw", pa.binary()),
        ("st", pa.struct([("a", pa.int64())])),
    ]
)
ID = {"name": "id", "type": "i64", "stored": True, "indexed": True, "fast": True}
NAME = {"name": "name", "type": "text", "tokenizer": "raw", "stored": True, "indexed": True, "fast": True}
NOTES = {"name": "notes", "type": "text", "tokenizer": "default", "stored": True, "indexed": True, "fast": False}


def found(*mappings: Sequence[dict[str, Any]], **told: Any) -> Indexing:
    return indexing_of((json.dumps(mapping) for mapping in mappings), SCHEMA, url=URL, **told)


def test_of_a_table_that_tells_nothing_all_is_as_indextables_does_it_by_itself() -> None:
    assert found() == Indexing(columns=("id", "day", "name", "notes", "raw", "st"))


def test_full_text_json_and_addresses_are_told_by_the_doc_mapping() -> None:
    js = {"name": "day", "type": "object", "tokenizer": "default", "expand_dots": True, "field_mappings": []}
    ip = {"name": "name", "type": "ip", "stored": True, "indexed": True, "fast": True}

    indexing = found([ID, {**js, "stored": True, "indexed": True, "fast": True}, ip, NOTES])

    assert indexing.strings == {"day": Indexed.JSON, "name": Indexed.IP, "notes": Indexed.TEXT}
    assert indexing.style is Style.ROWS


def test_columns_are_gathered_from_all_mappings_and_the_others_are_as_by_default() -> None:
    indexing = found([ID, NOTES], [ID, NAME])

    assert indexing.strings == {"notes": Indexed.TEXT}
    assert indexing.columns == ("id", "day", "name", "notes", "raw", "st")


def test_full_text_that_is_fast_tells_the_writer_by_arrow() -> None:
    assert found([{**NOTES, "fast": True}]).style is Style.ARROW


def test_partition_columns_that_no_split_has_in_its_index_are_left_out() -> None:
    indexing = found([ID, NAME], partition_by=("day",))

    assert indexing.columns == ("id", "name", "notes", "raw", "st")
    assert indexing.style is Style.ARROW


def test_partition_columns_in_the_index_stay_there() -> None:
    indexing = found([ID, {**NAME, "name": "day"}], partition_by=("day",))

    assert indexing.columns == ("id", "day", "name", "notes", "raw", "st")
    assert indexing.style is Style.ROWS


@pytest.mark.parametrize("style", list(Style))
def test_the_fields_of_a_split_tell_the_writer_and_the_order(style: Style) -> None:
    theirs = Indexing(style=style, strings={"notes": Indexed.TEXT}, columns=("st", "name", "notes", "id", "raw", "day"))

    assert indexing_of((), SCHEMA, index=fields(SCHEMA, theirs), url=URL) == theirs


@pytest.mark.parametrize("style", list(Style))
def test_what_we_tell_of_our_splits_is_found_out_again(style: Style) -> None:
    strings = {"day": Indexed.IP, "name": Indexed.JSON, "notes": Indexed.TEXT}
    ours = Indexing(style=style, strings=strings, columns=tuple(SCHEMA.names))

    told = doc_mapping(SCHEMA, ours, {"name": [{"a": 1}]})

    assert indexing_of([told], SCHEMA, url=URL) == ours


@pytest.mark.parametrize(
    ("told", "feature"),
    [
        ({**NAME, "tokenizer": "en_stem"}, "tokenizer"),
        ({**NAME, "tokenizer": "default_limit_40", "fast": False}, "tokenizer"),
        ({**NAME, "stored": False}, "indexonlyfields"),
        ({**NAME, "indexed": False}, "storeonlyfields"),
        ({**NAME, "fast": False}, "fastfields"),
        ({**ID, "fast": False}, "fastfields"),
        ({**ID, "type": "u64"}, "typemap"),
        ({"name": "name", "type": "u64", "stored": False, "indexed": True, "fast": True}, "typemap"),
        ({**NAME, "name": "_phash_name"}, "unknownField"),
    ],
)
def test_a_column_that_is_indexed_as_we_do_not_is_refused_by_name(told: dict[str, Any], feature: str) -> None:
    with pytest.raises(UnsupportedFeatureError, match=told["name"]) as refused:
        found([told])

    assert refused.value.features == (feature,)


def test_a_column_that_splits_index_in_two_ways_is_refused() -> None:
    with pytest.raises(UnsupportedFeatureError, match="notes is both text and string"):
        found([NOTES], [{**NAME, "name": "notes"}])


def test_splits_of_both_writers_are_refused() -> None:
    with pytest.raises(UnsupportedFeatureError) as refused:
        found([NOTES], [{**NOTES, "fast": True}])

    assert refused.value.features == ("twoWriters",)


def test_options_that_no_doc_mapping_tells_are_refused_too() -> None:
    (name,) = fields(SCHEMA, Indexing(columns=("name",)))
    frequent = {**name, "options": {**name["options"], "indexing": {**name["options"]["indexing"], "record": "freq"}}}

    with pytest.raises(UnsupportedFeatureError, match="name") as refused:
        found([NAME], index=[frequent])

    assert refused.value.features == ("indexOptions",)


@pytest.mark.parametrize("text", ["", "{}", "[1]", '[{"name":1}]', '"id"'])
def test_a_doc_mapping_that_is_none_is_an_error_of_the_log(text: str) -> None:
    with pytest.raises(LogError, match="doc mapping"):
        indexing_of([text], SCHEMA, url=URL)
