"""Splits that we write to a table index its columns as its other splits do: full text, JSON, addresses, in their order.

The other splits are those of the corpus, which IndexTables4Spark wrote in its versions 0.5.3 and 0.5.4.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("tantivy")

from support.corpus_splits import URL, index_of, read, table, written
from support.split_indexes import terms_of
from tablefeed.data.split_writer import SplitLayout
from tablefeed.errors import InvalidRowsError
from tablefeed.indextables.log import schema_registry
from tablefeed.indextables.split.indexing import Indexed, Indexing, Style
from tablefeed.indextables.split.table_indexing import indexing_of

TABLES = (
    "it053_events_avro",
    "it053_events_json",
    "it053_json_skip",
    "it053_tomb_avro",
    "it053_types_row",
    "itnative_events",
    "upstream_v0.5.4/01_single_write",
    "upstream_v0.5.4/03_with_removes",
    "upstream_v0.5.4/09_partitioned_multi_append",
    "upstream_v0.5.4/15_drop_then_purge",
)


@pytest.mark.parametrize("name", TABLES)
def test_our_split_has_the_very_fields_that_the_table_s_own_splits_have(index_tables: Path, name: str) -> None:
    theirs = table(index_tables, name)
    rows = read(theirs.split, theirs.schema).slice(0, 1)

    _, ours = written(rows, partition_by=theirs.partition_by, indexing=theirs.indexing())

    assert index_of(ours) == theirs.index


@pytest.mark.parametrize("name", [name for name in TABLES if "types" not in name])
def test_our_split_has_the_doc_mapping_of_the_table_s_own_splits(index_tables: Path, name: str) -> None:
    theirs = table(index_tables, name)
    rows = read(theirs.split, theirs.schema).slice(0, 1)

    split, _ = written(rows, partition_by=theirs.partition_by, indexing=theirs.indexing())

    assert split.split.doc_mapping is not None
    (mapping,) = theirs.doc_mappings
    assert json.loads(split.split.doc_mapping) == json.loads(mapping)
    assert split.split.doc_mapping_ref == schema_registry.doc_mapping_hash(mapping)


def test_our_doc_mapping_tells_integers_inside_of_values_as_signed_and_all_else_as_theirs(index_tables: Path) -> None:
    theirs = table(index_tables, "it053_types_row")
    rows = read(theirs.split, theirs.schema)

    split, _ = written(rows, indexing=theirs.indexing())

    # Theirs are of the values that are there, and JSON of Java's has integers without a sign as u64.
    (mapping,) = theirs.doc_mappings
    assert split.split.doc_mapping is not None
    assert in_order(json.loads(split.split.doc_mapping)) == in_order(json.loads(mapping.replace('"u64"', '"i64"')))


def in_order(mapping: list[dict[str, Any]]) -> list[dict[str, Any]]:
    def members(field: dict[str, Any]) -> dict[str, Any]:
        inside = sorted(field.get("field_mappings", []), key=lambda member: str(member["name"]))
        return {**field, "field_mappings": inside}

    return [members(field) for field in mapping]


def test_the_settings_of_the_table_of_all_types_are_found_out(index_tables: Path) -> None:
    indexing = table(index_tables, "it053_types_row").indexing()

    assert indexing.strings == {"js": Indexed.JSON, "txt": Indexed.TEXT, "ip": Indexed.IP}
    assert indexing.style is Style.ROWS


def test_the_writer_by_arrow_is_told_by_a_split_where_no_doc_mapping_tells_it(index_tables: Path) -> None:
    found = table(index_tables, "upstream_v0.5.4/01_single_write")

    assert found.indexing().style is Style.ARROW
    assert indexing_of(found.doc_mappings, found.schema, url=URL).style is Style.ROWS


# --- full text -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("style", list(Style))
def test_full_text_is_indexed_by_its_words_and_comes_back_whole(style: Style) -> None:
    rows = pa.table({"notes": ["The quick, brown FOX", None, "", "Zoë's fox"]})

    _, split = written(rows, indexing=Indexing(style=style, strings={"notes": Indexed.TEXT}))

    assert terms_of(split) == {0: [b"brown", b"fox", b"quick", b"s", b"the", "zoë".encode()]}
    assert read(split, rows.schema).equals(rows)


def test_words_are_indexed_up_to_the_length_of_indextables_own() -> None:
    """Tantivy's leaves out words of 40 bytes: IndexTables would look for them and find nothing."""
    rows = pa.table({"notes": ["a" * 40, "b" * 254, "c" * 255]})

    _, split = written(rows, indexing=Indexing(strings={"notes": Indexed.TEXT}))

    assert terms_of(split) == {0: [b"a" * 40, b"b" * 254]}
    assert read(split, rows.schema).equals(rows)


# --- JSON and addresses ----------------------------------------------------------------------------------------------


def test_json_is_stored_as_its_object_and_comes_back_without_its_spaces() -> None:
    texts = ['{"a": {"b": [1, 2.5, "x", null, true]}, "c":"d"}', None, "{}", "no JSON", "[1]", '"x"', "{1", ""]
    rows = pa.table({"js": texts})

    split, data = written(rows, indexing=Indexing(strings={"js": Indexed.JSON}))

    whole = '{"a":{"b":[1,2.5,"x",null,true]},"c":"d"}'
    assert read(data, rows.schema)["js"].to_pylist() == [whole, None, "{}", "no JSON", "[1]", '"x"', "{1", ""]
    assert index_of(data)[0]["type"] == "json_object"
    assert split.split.min_values is None


@pytest.mark.parametrize(
    "text", ['{"at": "2024-01-01T00:00:00.000Z"}', '{"n": 18446744073709551617}', '{"_raw": "no JSON"}']
)
def test_json_that_would_come_back_as_another_is_refused(text: str) -> None:
    with pytest.raises(InvalidRowsError, match="column js"):
        written(pa.table({"js": [text]}), indexing=Indexing(strings={"js": Indexed.JSON}))


def test_json_that_is_too_deep_to_be_read_back_is_refused() -> None:
    deep = '{"a":' * 200 + "1" + "}" * 200

    with pytest.raises(InvalidRowsError, match="nested more than 100 deep"):
        written(pa.table({"js": [deep]}), indexing=Indexing(strings={"js": Indexed.JSON}))


def test_addresses_are_stored_as_such_and_come_back_as_they_were_given() -> None:
    rows = pa.table({"ip": ["192.168.1.1", "::1", None, "2001:db8::ff"]})

    split, data = written(rows, indexing=Indexing(strings={"ip": Indexed.IP}))

    assert read(data, rows.schema).equals(rows)
    assert index_of(data)[0]["type"] == "ip_addr"
    assert split.split.min_values is None


@pytest.mark.parametrize("text", ["", "no address", "192.168.001.1", "2001:DB8::1", "::ffff:1.2.3.4", "fe80::1%eth0"])
def test_an_address_that_is_not_spelled_as_it_comes_back_is_refused(text: str) -> None:
    with pytest.raises(InvalidRowsError, match="column ip"):
        written(pa.table({"ip": [text]}), indexing=Indexing(strings={"ip": Indexed.IP}))


# --- which columns, and in which order -------------------------------------------------------------------------------

EVENTS = pa.table({"id": pa.array([1, 2], pa.int64()), "day": ["d", "d"], "name": ["a", "b"]})


def test_fields_are_in_the_order_of_the_table_s_other_splits() -> None:
    _, split = written(EVENTS, indexing=Indexing(columns=("name", "day", "id")))

    assert [field["name"] for field in index_of(split)] == ["name", "day", "id"]
    assert read(split, EVENTS.schema).equals(EVENTS)


def test_partition_columns_that_are_left_out_are_told_by_the_log_alone() -> None:
    indexing = Indexing(style=Style.ARROW, columns=("id", "name"))

    split, data = written(EVENTS, partition_by=("day",), indexing=indexing)

    assert [field["name"] for field in index_of(data)] == ["id", "name"]
    assert split.split.min_values == {"id": "1", "name": "a"}
    assert read(data, EVENTS.schema, constants=split.partition_values).equals(EVENTS)


@pytest.mark.parametrize("columns", [(), ("id", "id", "name"), ("id", "name", "other")])
def test_a_layout_whose_index_has_other_columns_than_the_rows_cannot_be_built(columns: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="the columns of an index"):
        SplitLayout(schema=EVENTS.schema, indexing=Indexing(columns=columns))


def test_a_layout_that_leaves_out_a_column_that_no_partition_tells_cannot_be_built() -> None:
    with pytest.raises(ValueError, match=r"\['name'\] would be neither in the index nor in the log"):
        SplitLayout(schema=EVENTS.schema, partition_by=("day",), indexing=Indexing(columns=("id",)))
