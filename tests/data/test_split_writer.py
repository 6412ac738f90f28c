"""Splits that we write are read back as they were given: by our own reader, and by Tantivy."""

from __future__ import annotations

import json
import math
import resource
import sys
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.corpus_splits import Kept, all_written, read, written
from support.split_indexes import files_of, hotcache_of, terms_of
from tablefeed.data.split_writer import SplitLayout, write_splits
from tablefeed.errors import InvalidRowsError, StoreConfigError, StoreError, UnsupportedFeatureError
from tablefeed.indextables.log.schema_registry import doc_mapping_hash
from tablefeed.indextables.split.tantivy_file import decode_marked, decode_parts
from tablefeed.model.split import Split

if TYPE_CHECKING:
    import tantivy
else:
    tantivy = pytest.importorskip("tantivy")


UTC_US = pa.timestamp("us", "UTC")


def read_back(split: bytes, facts: Split, schema: pa.Schema) -> pa.Table:
    """The rows of a split, read as its add says."""
    assert facts.footer_end == len(split)
    return read(split, schema, num_records=facts.num_records, footer=(facts.footer_start, facts.footer_end))


def there_and_back(rows: pa.Table) -> pa.Table:
    split, data = written(rows)
    return read_back(data, split.split, rows.schema)


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
MOMENTS = st.datetimes(datetime(1678, 1, 1), datetime(2262, 1, 1)).map(lambda at: at.replace(tzinfo=UTC))  # noqa: DTZ001
DAYS = st.dates(date(1678, 1, 1), date(2262, 1, 1))
VALUES: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "i": (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    "l": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "f": (pa.float32(), st.floats(width=32)),
    "d": (pa.float64(), st.floats()),
    "b": (pa.bool_(), st.booleans()),
    "s": (pa.string(), TEXTS),
    "day": (pa.date32(), DAYS),
    "at": (UTC_US, MOMENTS),
    "bin": (pa.binary(), st.binary(max_size=12)),
}
STRUCT = pa.struct([(name, kind) for name, (kind, _) in VALUES.items()])
STRUCTS = st.fixed_dictionaries({name: st.none() | values for name, (_, values) in VALUES.items()})
NESTED: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "st": (STRUCT, STRUCTS),
    "texts": (pa.list_(pa.string()), st.lists(st.none() | TEXTS, max_size=3)),
    "structs": (pa.list_(STRUCT), st.lists(st.none() | STRUCTS, max_size=2)),
    "lists": (pa.list_(pa.list_(pa.int64())), st.lists(st.lists(VALUES["l"][1], max_size=2), max_size=2)),
    "map": (pa.map_(pa.string(), pa.int32()), st.dictionaries(TEXTS, st.none() | VALUES["i"][1], max_size=3)),
    "days": (pa.map_(pa.date32(), pa.string()), st.dictionaries(DAYS, TEXTS, max_size=3)),
    "ids": (pa.map_(pa.int64(), pa.float64()), st.dictionaries(VALUES["l"][1], VALUES["d"][1], max_size=3)),
}
SCHEMA = pa.schema([(name, kind) for name, (kind, _) in {**VALUES, **NESTED}.items()])
ROWS = st.lists(
    st.fixed_dictionaries({name: st.none() | values for name, (_, values) in {**VALUES, **NESTED}.items()}),
    min_size=1,
    max_size=5,
)


def in_words(value: object) -> str:
    """A value in words: NaN is as another, and a map, dict or pairs, has no order."""
    match value:
        case dict():
            return repr(sorted((repr(key), in_words(item)) for key, item in value.items()))
        case list():
            return repr([in_words(each) for each in value])
    return repr(value)


@settings(deadline=None, max_examples=60)
@given(rows=ROWS)
def test_rows_of_every_type_come_back_as_they_were_given(rows: list[dict[str, Any]]) -> None:
    maps = ("map", "days", "ids")
    table = pa.table(
        {
            name: pa.array(
                [list(row[name].items()) if name in maps and row[name] is not None else row[name] for row in rows], kind
            )
            for name, kind in zip(SCHEMA.names, SCHEMA.types, strict=True)
        },
        SCHEMA,
    )

    found = there_and_back(table).to_pylist(maps_as_pydicts="strict")

    assert [in_words(row) for row in found] == [in_words(row) for row in table.to_pylist(maps_as_pydicts="strict")]


def test_the_odd_values_of_every_type_come_back() -> None:
    odd = {
        "i": [-(2**31), 2**31 - 1, None],
        "l": [-(2**63), 2**63 - 1, None],
        "f": [-math.inf, math.inf, None],
        "d": [5e-324, -1.7976931348623157e308, None],
        "s": ["", "a\0b", "x" * 70_000],
        "day": [date(1969, 12, 31), date(1677, 9, 22), None],
        "at": [datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC), datetime(2262, 4, 11, tzinfo=UTC), None],
        "bin": [b"", b"\0\xff", None],
    }
    table = pa.table({name: pa.array(values, VALUES[name][0]) for name, values in odd.items()})

    assert there_and_back(table).to_pydict() == odd


def test_nan_and_the_negative_zero_come_back_as_themselves() -> None:
    inside = pa.array([{"x": math.nan}, {"x": -0.0}, {"x": math.inf}], pa.struct([("x", pa.float64())]))
    table = pa.table({"d": [math.nan, -0.0, math.inf], "st": inside})

    found = there_and_back(table)

    assert repr(found["d"].to_pylist()) == "[nan, -0.0, inf]"
    assert repr([each["x"] for each in found["st"].to_pylist()]) == "[nan, -0.0, inf]"


def test_where_the_temporary_folder_has_no_room_the_error_says_what_to_do() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_024, hard))
    try:
        with pytest.raises(StoreError, match="free space there, or set TMPDIR"):
            written(pa.table({"id": list(range(1_000))}))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_null_an_empty_value_and_a_null_inside_of_one_are_three_things() -> None:
    table = pa.table(
        {
            "list": pa.array([None, [], [None], ["a", None]], pa.list_(pa.string())),
            "map": pa.array([None, [], [("k", None)], [("", 1)]], pa.map_(pa.string(), pa.int64())),
            "st": pa.array([None, {"a": None}, {"a": 1}, None], pa.struct([("a", pa.int64())])),
        }
    )

    assert there_and_back(table).equals(table)


# --- what a split is -------------------------------------------------------------------------------------------------

EVENTS = pa.table(
    {
        "id": pa.array([1, 2, 3], pa.int64()),
        "day": ["2024-01-01", "2024-01-01", "2024-01-02"],
        "name": ["user_1", "user_2", "user_3"],
        "score": [1.5, None, -2.0],
        "flag": [True, False, None],
    }
)


def test_the_schema_and_the_doc_mapping_are_those_that_indextables_makes_of_such_a_table(index_tables: Path) -> None:
    theirs = next((index_tables / "it053_events_json").rglob("*.split"))

    split, data = written(EVENTS)

    ours = json.loads(files_of(data)["meta.json"])
    meta = json.loads(files_of(theirs.read_bytes())["meta.json"])
    assert ours["schema"] == meta["schema"]
    assert ours["index_settings"] == meta["index_settings"]
    assert split.split.doc_mapping_ref == "1VaJSuu3ytkWlBL5"  # the one in that table's log


def test_a_doc_mapping_tells_the_members_of_structs_and_arrays_by_their_types() -> None:
    st_ = pa.array(
        [{"a": 1, "b": "x", "c": None}], pa.struct([("a", pa.int64()), ("b", pa.string()), ("c", pa.bool_())])
    )
    table = pa.table({"st": st_, "none": pa.array([None], pa.map_(pa.string(), pa.int64())), "tags": [[1.5]]})

    split, _ = written(table)

    assert split.split.doc_mapping is not None
    assert split.split.doc_mapping_ref == doc_mapping_hash(split.split.doc_mapping)
    inside = {"indexed": True, "stored": False}
    whole = {"indexed": True, "stored": True, "fast": True, "type": "object", "tokenizer": "default"}
    assert json.loads(split.split.doc_mapping) == [
        {
            **whole,
            "name": "st",
            "expand_dots": True,
            "field_mappings": [
                {**inside, "name": "a", "type": "i64", "fast": True},
                {**inside, "name": "b", "type": "text", "fast": False},
                {**inside, "name": "c", "type": "bool", "fast": True},
            ],
        },
        {
            **whole,
            "name": "tags",
            "expand_dots": True,
            "field_mappings": [{**inside, "name": "_values", "type": "f64", "fast": True}],
        },
    ]


def test_a_doc_mapping_tells_some_members_of_maps_by_what_they_hold() -> None:
    entries = [[(f"k{i:03}", 1)] for i in range(150)]
    table = pa.table(
        {
            "m": pa.array([[("a", 1.5), ("b", None)]] * 150, pa.map_(pa.string(), pa.float64())),
            "n": pa.array(entries, pa.map_(pa.string(), pa.int64())),
        }
    )

    split, _ = written(table)

    assert split.split.doc_mapping is not None
    m, n = (column["field_mappings"] for column in json.loads(split.split.doc_mapping))
    assert [(each["name"], each["type"]) for each in m] == [("a", "f64"), ("b", "text")]
    assert [each["name"] for each in n] == [f"k{i:03}" for i in range(100)]


def test_splits_of_other_values_share_their_doc_mapping() -> None:
    kind = pa.struct([("a", pa.int64()), ("b", pa.list_(pa.string()))])
    one, other = (pa.table({"x": pa.array([value], kind)}) for value in (None, {"a": 1, "b": ["t"]}))

    (first, _), (second, _) = written(one), written(other)

    assert first.split.doc_mapping_ref == second.split.doc_mapping_ref


def test_a_split_tells_its_rows_and_the_extremes_of_its_columns() -> None:
    split, _ = written(EVENTS)

    told = split.split
    assert told.num_records == 3
    assert told.min_values == {"id": "1", "day": "2024-01-01", "name": "user_1", "score": "-2.0", "flag": "false"}
    assert told.max_values == {"id": "3", "day": "2024-01-02", "name": "user_3", "score": "1.5", "flag": "true"}
    assert told.uncompressed_size_bytes == told.footer_start


def test_extremes_that_java_orders_otherwise_are_not_told() -> None:
    table = pa.table(
        {
            "nan": [1.0, math.nan],
            "zero": [0.0, -0.0],
            "far": ["\U0001f600", "\uff5e"],
            "null": pa.array([None, None], pa.int64()),
            "near": ["é", "z"],
            "at": pa.array([1_000_000_000_000_001, 1_709_210_096_123_456], UTC_US),
            "dt": [date(1969, 12, 31), date(2024, 2, 29)],
            "inf": [-math.inf, 1e300],
        }
    )

    split, _ = written(table)

    assert split.split.min_values == {"near": "z", "at": "1000000000000001", "dt": "1969-12-31", "inf": "-Infinity"}
    assert split.split.max_values == {"near": "é", "at": "1709210096123456", "dt": "2024-02-29", "inf": "1e+300"}


def test_terms_are_in_the_form_that_indextables_opens_and_the_cache_knows_every_file() -> None:
    _, data = written(EVENTS)

    inside = files_of(data)
    (term_file,) = (content for name, content in inside.items() if name.endswith(".term"))
    kinds = [int.from_bytes(part.data[-4:], "little") for part in decode_parts(decode_marked(term_file).body)]
    assert kinds == [2] * 5
    assert terms_of(data)[2] == [b"user_1", b"user_2", b"user_3"]
    assert inside["split_fields"] == b""
    cached = hotcache_of(data)
    assert cached.keys() == inside.keys() - {"split_fields"}
    assert {name: file.size_bytes for name, file in cached.items()} == {name: len(inside[name]) for name in cached}
    whole = {name for name, file in cached.items() if sum(len(part) for _, part in file.slices) == len(inside[name])}
    assert {name for name in cached if name not in whole} == {n for n in inside if n.endswith((".store", ".idx"))}


def test_tantivy_finds_the_documents_of_a_split(tmp_path: Path) -> None:
    _, data = written(EVENTS)
    for name, content in files_of(data).items():
        (tmp_path / name).write_bytes(content)

    searcher = tantivy.Index.open(str(tmp_path)).searcher()

    hits = searcher.search(tantivy.Query.all_query(), limit=10).hits
    found = [{name: values[0] for name, values in searcher.doc(at).to_dict().items()} for _, at in hits]
    rows = [{name: value for name, value in row.items() if value is not None} for row in EVENTS.to_pylist()]
    assert sorted(found, key=lambda row: int(row["id"])) == rows


def test_the_same_rows_under_the_same_names_are_the_same_bytes() -> None:
    table = pa.table(
        {
            "id": list(range(500)),
            "name": [f"n{i % 17}" for i in range(500)],
            "map": pa.array([[(f"k{i % 7}", i)] for i in range(500)], pa.map_(pa.string(), pa.int64())),
        }
    )

    assert written(table)[1] == written(table)[1]


# --- how many splits -------------------------------------------------------------------------------------------------


def test_each_partition_has_splits_of_its_own_which_store_the_partition_columns() -> None:
    written_by_day = all_written(EVENTS, partition_by=("day",))
    splits = [split for split, _ in written_by_day]

    assert [split.path for split in splits] == ["day=2024-01-01/part-00000.split", "day=2024-01-02/part-00001.split"]
    assert [split.partition_values["day"].as_py() for split in splits] == ["2024-01-01", "2024-01-02"]
    found = [read_back(data, split.split, EVENTS.schema) for split, data in written_by_day]
    assert pa.concat_tables(found).equals(EVENTS)


def test_no_split_has_more_rows_than_the_layout_says_and_the_order_of_the_rows_stays() -> None:
    table = pa.table({"id": list(range(25))})
    batches = [batch for start in range(0, 25, 4) for batch in table.slice(start, 4).to_batches()]
    kept = Kept()

    splits = write_splits(batches, SplitLayout(schema=table.schema, most_rows=10), kept.open)

    assert [split.split.num_records for split in splits] == [8, 8, 9]
    assert pa.concat_tables([read(kept.splits[split.path], table.schema) for split in splits]).equals(table)


def test_no_rows_are_no_split() -> None:
    assert all_written(EVENTS.slice(0, 0)) == []


# --- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "named"),
    [
        (pa.decimal128(10, 2), r"column x is decimal128\(10, 2\)"),
        (pa.int16(), "column x is int16"),
        (pa.int8(), "column x is int8"),
        (pa.timestamp("us"), r"column x is timestamp\[us\]"),
        (pa.null(), "column x is null"),
        (pa.struct([("a", pa.list_(pa.int16()))]), r"column x\.a\.element is int16"),
        (pa.map_(pa.struct([("a", pa.int64())]), pa.int64()), r"column x\.key is struct"),
    ],
)
def test_a_type_that_indextables_does_not_write_is_refused_by_name_before_a_file_is_opened(
    kind: pa.DataType, named: str
) -> None:
    kept = Kept()
    rows = pa.table({"x": pa.nulls(1, kind)})

    with pytest.raises(UnsupportedFeatureError, match=named):
        write_splits(rows.to_batches(), SplitLayout(schema=rows.schema), kept.open)

    assert kept.opened == []


def test_without_tantivy_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tantivy", None)
    kept = Kept()

    with pytest.raises(StoreConfigError, match=r'pip install "tablefeed\[indextables\]"'):
        write_splits(EVENTS.to_batches(), SplitLayout(schema=EVENTS.schema), kept.open)

    assert kept.opened == []


@pytest.mark.parametrize(
    ("column", "named"),
    [
        (pa.array([datetime(2262, 4, 12, tzinfo=UTC)], UTC_US), "outside of 1677-09-21"),
        (pa.array([date(1677, 9, 21)], pa.date32()), "outside of 1677-09-21"),
        (pa.array([2**62], UTC_US), "outside of 1677-09-21"),
        (pa.array([[("a", 1), ("a", 2)]], pa.map_(pa.string(), pa.int64())), "the same key twice"),
        (
            pa.array([["a"], ["2024-01-01T00:00:00.000Z"]], pa.list_(pa.string())),
            r"row 1 of the split, \['2024-01-01T00:00:00.000Z'\], would be read as \['2024-01-01T00:00:00Z'\]. Inside",
        ),
        (pa.array([[2**62]], pa.list_(UTC_US)), "column x"),
        (
            pa.array([b"a", b"caf\xe9"]).view(pa.string()),
            r"column x, string: b'caf\\xe9' in row 1 of the split is not UTF-8",
        ),
        (
            pa.StructArray.from_arrays([pa.array([b"a", b"\xff"]).view(pa.string())], ["s"]),
            r"column x, struct<s: string>: a text in row 1 of the split is not UTF-8",
        ),
    ],
)
def test_a_value_that_a_split_would_not_give_back_is_refused_and_no_file_is_left(column: pa.Array, named: str) -> None:
    kept = Kept()
    rows = pa.table({"x": column})

    with pytest.raises(InvalidRowsError, match=named):
        write_splits(rows.to_batches(), SplitLayout(schema=rows.schema), kept.open)

    assert kept.splits == {}


def test_a_text_that_is_a_moment_as_tantivy_spells_it_comes_back() -> None:
    table = pa.table({"x": pa.array([["2024-01-01T00:00:00Z", "2024-01-01"]], pa.list_(pa.string()))})

    assert there_and_back(table).equals(table)


def test_a_null_in_a_required_column_is_refused() -> None:
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False)])
    rows = pa.record_batch([pa.array([1, None], pa.int64())], schema=schema)

    with pytest.raises(InvalidRowsError, match="NOT NULL constraint violated for column: id"):
        write_splits([rows], SplitLayout(schema=schema), Kept().open)


def test_a_layout_with_two_columns_of_one_name_cannot_be_built() -> None:
    with pytest.raises(ValueError, match="two columns of one name"):
        SplitLayout(schema=pa.schema([("a", pa.int64()), ("a", pa.string())]))
