"""IndexTables' own library opens the splits that we write, finds their rows by every kind of query, and merges them."""

from __future__ import annotations

import platform
import uuid
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

pytest.importorskip("tantivy")

from peer.jvm_splits import Library, Searched
from support.corpus_splits import Table, all_written, index_of, read, table, written
from tablefeed.indextables.split.indexing import Indexed, Indexing, Style
from tablefeed.indextables.split.table_indexing import indexing_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

UTC_US = pa.timestamp("us", "UTC")
MOMENT = datetime(2024, 2, 29, 1, 2, 3, 456_789, UTC)
COLUMNS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "i": (pa.int32(), [1, -5, None]),
    "l": (pa.int64(), [2**62, -(2**63), None]),
    "f": (pa.float32(), [1.5, 0.25, None]),
    "d": (pa.float64(), [-0.5, 2.5, None]),
    "b": (pa.bool_(), [True, False, None]),
    "s": (pa.string(), ["two words", "", None]),
    "day": (pa.date32(), [date(2024, 2, 29), date(1969, 12, 31), None]),
    "at": (UTC_US, [MOMENT, MOMENT.replace(microsecond=456_790), None]),
    "bin": (pa.binary(), [b"\0\xff", b"", None]),
    "txt": (pa.string(), ["The quick brown fox", "lazy dog, quick dog", None]),
    "js": (pa.string(), ['{"a":{"b":5},"c":"hello world"}', '{"a":{"b":-7}}', None]),
    "ip": (pa.string(), ["192.168.1.1", "::1", None]),
    "st": (
        pa.struct([("a", pa.int64()), ("b", pa.string()), ("c", pa.struct([("d", pa.bool_())]))]),
        [{"a": 7, "b": "x y", "c": {"d": True}}, {"a": None, "b": "y", "c": None}, None],
    ),
    "arr": (pa.list_(pa.string()), [["p", "q"], [], None]),
    "mp": (pa.map_(pa.string(), pa.int32()), [[("k", 2), ("other", 3)], [("k", 5)], None]),
}
ROWS = pa.table({name: pa.array(values, kind) for name, (kind, values) in COLUMNS.items()})
STRINGS = {"txt": Indexed.TEXT, "js": Indexed.JSON, "ip": Indexed.IP}


@pytest.fixture(scope="module")
def library(delta_spark: SparkSession, pytestconfig: pytest.Config) -> Library:
    if not list(pytestconfig.getoption("--peer-jars").glob("tantivy4java-*.jar")):
        if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
            pytest.skip("tantivy4java is published for Linux on x86_64 alone")
        pytest.fail("the folder of JARs has no tantivy4java: scripts/peer_jars.sh adds it")
    return Library(delta_spark)


@pytest.fixture(scope="module", params=list(Style), ids=str)
def every_type(library: Library, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Searched:
    """A split of three rows of every type, the last one null, by the options of each of the two writers."""
    indexing = Indexing(style=request.param, strings=STRINGS)
    return opened(library, tmp_path_factory.mktemp("types"), ROWS, indexing=indexing)


def opened(library: Library, folder: Path, rows: pa.Table, **layout: Any) -> Searched:
    split, data = written(rows, **layout)
    return library.open(kept(folder, data), split.split)


def kept(folder: Path, *splits: bytes) -> Any:  # Any: a path, or as many as there are splits
    """The splits under names that no other has: the library keeps what it read by the name alone, of any folder."""
    paths = [a_name(folder) for _ in splits]
    for path, data in zip(paths, splits, strict=True):
        path.write_bytes(data)
    return paths if len(paths) > 1 else paths[0]


def a_name(folder: Path) -> Path:
    return folder / f"{uuid.uuid4()}.split"


# --- every type ------------------------------------------------------------------------------------------------------


def test_all_rows_are_there_and_their_values_are_the_ones_that_were_written(every_type: Searched) -> None:
    last, second, first = every_type.rows(ROWS.schema.names)

    assert every_type.count() == 3
    assert last == dict.fromkeys(ROWS.schema.names)
    assert first == {
        "i": 1,
        "l": 2**62,
        "f": 1.5,
        "d": -0.5,
        "b": True,
        "s": "two words",
        "day": datetime(2024, 2, 29, tzinfo=UTC),
        "at": MOMENT,
        "bin": b"\0\xff",
        "txt": "The quick brown fox",
        "js": {"a": {"b": 5}, "c": "hello world"},
        "ip": "192.168.1.1",
        "st": {"a": 7, "b": "x y", "c": {"d": True}},
        "arr": {"_values": ["p", "q"]},
        "mp": {"k": 2, "other": 3},
    }
    assert (second["l"], second["day"], second["bin"]) == (-(2**63), datetime(1969, 12, 31, tzinfo=UTC), b"")
    assert second["st"] == {"a": None, "b": "y", "c": None}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("i", "1"),
        ("i", "-5"),
        ("l", str(2**62)),
        ("l", str(-(2**63))),
        ("f", "0.25"),
        ("d", "-0.5"),
        ("b", "true"),
        ("s", "two words"),
        ("s", ""),
        ("day", "2024-02-29"),
        ("bin", "AP8="),
        ("txt", "brown"),
        ("ip", "192.168.1.1"),
        ("ip", "::1"),
        ("js.a.b", "5"),
        ("js.a.b", "-7"),
        ("st.a", "7"),
        ("st.c.d", "true"),
        ("arr._values", "q"),
        ("mp.k", "2"),
    ],
)
def test_a_term_finds_the_one_row_that_has_it(every_type: Searched, field: str, value: str) -> None:
    assert every_type.term(field, value) == 1


def test_a_term_that_no_row_has_finds_none(every_type: Searched) -> None:
    assert [every_type.term(*each) for each in (("s", "two"), ("i", "2"), ("mp.k", "3"), ("txt", "fo"))] == [0] * 4


@pytest.mark.parametrize(
    ("field", "kind", "least", "below"),
    [
        ("i", "i64", "0", "2"),
        ("l", "i64", "0", str(2**62 + 1)),
        ("d", "f64", "-1", "0"),
        ("s", "str", "t", "u"),
        ("day", "date", "2024-02-29", "2024-03-01"),
        ("at", "date", "2024-02-29T01:02:03.456789Z", "2024-02-29T01:02:03.456790Z"),
        ("ip", "ip", "192.168.1.0", "192.168.1.255"),
        ("js.a.b", "i64", "0", "9"),
        ("st.a", "i64", "1", "8"),
        ("mp.k", "i64", "3", "9"),
    ],
)
def test_a_range_finds_the_one_row_in_it(every_type: Searched, field: str, kind: str, least: str, below: str) -> None:
    assert every_type.between(field, kind, least, below) == 1


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ("txt:quick", 2),
        ("txt:(quick AND dog)", 1),
        ('txt:"brown fox"', 1),
        ('txt:"fox brown"', 0),
        ("txt:qui*", 2),
        ("s:two*", 1),
        ("mp.k:2", 1),
        ('st.b:"x y"', 1),
    ],
)
def test_a_query_in_words_finds_full_text_phrases_and_beginnings(every_type: Searched, query: str, count: int) -> None:
    assert every_type.parsed(query) == count


def test_a_row_exists_in_a_column_where_it_is_not_null(every_type: Searched) -> None:
    columns = [name for name in ROWS.schema.names if name not in ("bin", "txt", "st", "arr", "mp", "js")]

    assert {name: every_type.exist(name) for name in columns} == dict.fromkeys(columns, 2)
    assert every_type.exist("st.a") == 1


# --- many rows, several splits ---------------------------------------------------------------------------------------


def test_each_of_a_hundred_thousand_terms_is_found_in_their_one_block(library: Library, tmp_path: Path) -> None:
    count = 100_000
    names = [f"user {number * 7919 % 1_000_003:07}" for number in range(count)]
    notes = [f"note {number} of word{number % 977}" for number in range(count)]
    rows = pa.table({"id": pa.array(range(count), pa.int64()), "name": names, "notes": notes})

    split = opened(library, tmp_path, rows, indexing=Indexing(strings={"notes": Indexed.TEXT}))

    assert split.count() == count
    assert split.total("id") == count * (count - 1) / 2
    assert {split.term("name", name) for name in [*names[::997], min(names), max(names)]} == {1}
    assert [split.term("name", name) for name in ("", "user", "user 9999999")] == [0, 0, 0]
    assert split.between("id", "i64", "100", "2000") == 1900
    assert split.parsed("notes:word5") == len(range(5, count, 977))
    assert split.parsed('notes:"982 of word5"') == 1


def test_the_splits_of_several_partitions_have_each_its_own_rows(library: Library, tmp_path: Path) -> None:
    rows = pa.table({"id": list(range(9)), "day": [f"day {number % 3}" for number in range(9)]})

    for number, (split, data) in enumerate(all_written(rows, partition_by=("day",))):
        found = library.open(kept(tmp_path, data), split.split)
        day = split.partition_values["day"].as_py()
        assert (found.count(), found.term("day", day)) == (3, 3)
        assert sorted(row["id"] for row in found.rows(["id"])) == [number, number + 3, number + 6]


def test_words_are_searched_as_they_were_indexed(library: Library, tmp_path: Path) -> None:
    text = f"The Quick-brown {'x' * 200} {'y' * 300}"

    split = opened(library, tmp_path, pa.table({"txt": [text]}), indexing=Indexing(strings={"txt": Indexed.TEXT}))

    assert {word: split.term("txt", word) for word in ("the", "quick", "brown", "x" * 200)} == {
        "the": 1,
        "quick": 1,
        "brown": 1,
        "x" * 200: 1,
    }
    assert split.words("txt", "The Quick-brown") == ["the", "quick", "brown"]


# --- merges ----------------------------------------------------------------------------------------------------------


def test_two_of_our_splits_are_merged_to_the_rows_of_both(library: Library, tmp_path: Path) -> None:
    twice = pa.concat_tables([ROWS, ROWS])
    (_, one), (_, other) = all_written(twice, indexing=Indexing(strings=STRINGS), most_rows=3)

    merged = library.merged(kept(tmp_path, one, other), path := a_name(tmp_path))

    assert in_words(read(path.read_bytes(), ROWS.schema)) == in_words(twice)
    assert (merged.term("s", "two words"), merged.parsed('txt:"brown fox"'), merged.term("mp.k", "2")) == (2, 2, 2)


@pytest.mark.parametrize("ours_first", [True, False])
@pytest.mark.parametrize(
    "name",
    [
        "it053_types_row",
        "it053_events_json",
        "it053_tomb_avro",
        "upstream_v0.5.4/01_single_write",
        "upstream_v0.5.4/09_partitioned_multi_append",
    ],
)
def test_a_split_of_ours_is_merged_with_one_of_indextables_own(
    library: Library, index_tables: Path, tmp_path: Path, name: str, *, ours_first: bool
) -> None:
    theirs = table(index_tables, name)
    constants = {column: pa.scalar("p", theirs.schema.field(column).type) for column in left_out(theirs)}
    rows = read(theirs.split, theirs.schema, constants=constants)
    _, ours = written(rows, partition_by=theirs.partition_by, indexing=theirs.indexing())
    both = kept(tmp_path, ours, theirs.split)

    merged = library.merged(both if ours_first else both[::-1], path := a_name(tmp_path))

    assert merged.count() == 2 * rows.num_rows
    found = read(path.read_bytes(), theirs.schema, constants=constants)
    assert in_words(found) == in_words(pa.concat_tables([rows, rows]))


def test_a_merge_takes_fields_by_their_place_so_ours_have_the_places_of_the_others(
    library: Library, tmp_path: Path
) -> None:
    """In two orders of columns of one type a merge would put the values of one into the other."""
    rows = pa.table({"a": ["a1", "a2"], "b": ["b1", "b2"]})
    _, (_, theirs) = all_written(rows, indexing=Indexing(columns=("b", "a")), most_rows=1)
    _, ours = written(rows, indexing=indexing_of((), rows.schema, index=index_of(theirs), url="memory://t"))

    merged = library.merged(kept(tmp_path, ours, theirs), path := a_name(tmp_path))

    assert in_words(read(path.read_bytes(), rows.schema)) == in_words(pa.concat_tables([rows, rows.slice(1)]))
    assert [merged.term("a", value) for value in ("a1", "a2", "b1", "b2")] == [1, 2, 0, 0]


@pytest.mark.parametrize("count", [1, 100])
def test_floats_in_a_split_of_the_library_are_those_whose_texts_its_row_writer_gave(
    library: Library, tmp_path: Path, count: int
) -> None:
    texts = ["0.1", "-2.7182817", "3.4028235E38", "1.4E-45", "1.6777216E7"]  # as Java writes floats
    kind = pa.struct([("a", pa.float32()), ("l", pa.list_(pa.float32()))])

    split = library.made(tmp_path, "c", [f'{{"a": {text}, "l": [{text}]}}' for text in texts] * count)

    floats = pa.array([float(text) for text in texts] * count, pa.float32()).to_pylist()
    found = read(split, pa.schema([("c", kind)])).column("c").to_pylist()
    assert sorted(map(repr, found)) == sorted(repr({"a": each, "l": [each]}) for each in floats)


def left_out(theirs: Table) -> set[str]:
    return set(theirs.partition_by).difference(field["name"] for field in theirs.index)


def in_words(rows: pa.Table) -> list[str]:
    """The rows in no order; a NaN is as another."""
    return sorted(repr(row) for row in rows.to_pylist(maps_as_pydicts="strict"))
