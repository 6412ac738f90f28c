"""What Tantivy itself reads of a split, and writes into one, is what is read here."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from support.corpus_splits import index_of, read
from support.split_bytes import bundle
from support.split_indexes import files_of
from tablefeed.data.splits import SplitFile, chunks_of
from tablefeed.indextables.split.split_file import Chunk, read_split

if TYPE_CHECKING:
    import tantivy
else:
    tantivy = pytest.importorskip("tantivy")

UTC_US = pa.timestamp("us", "UTC")
TYPES = {
    "i64": pa.int64(),
    "u64": pa.int64(),
    "f64": pa.float64(),
    "bool": pa.bool_(),
    "text": pa.string(),
    "ip_addr": pa.string(),
    "json_object": pa.string(),
    "date": UTC_US,
    "bytes": pa.binary(),
}


def by_tantivy(folder: Path, schema: pa.Schema) -> list[dict[str, Any]]:
    searcher = tantivy.Index.open(str(folder)).searcher()
    if not searcher.num_docs:
        return []
    hits = searcher.search(tantivy.Query.all_query(), limit=searcher.num_docs).hits
    documents = [searcher.doc(address).to_dict() for _, address in hits]
    return [{name: in_our_words(found.get(name)) for name in schema.names} for found in documents]


def in_our_words(values: list[Any] | None) -> object:
    match values:
        case None:
            return None
        case [dict(value)]:
            return json.dumps(value, sort_keys=True)
        case [datetime() as value]:
            return value.astimezone(UTC).isoformat()
        case [list(value)]:
            return repr(bytes(value))
        case [bytes(value)]:
            return repr(value)
        case [str(value)]:
            return value.removeprefix("::ffff:")
        case [value]:
            return repr(value)
    raise AssertionError(values)


def in_their_words(row: dict[str, Any], kinds: dict[str, str]) -> dict[str, object]:
    told: dict[str, object] = {}
    for name, value in row.items():
        match value:
            case None | str() if kinds[name] != "json_object" or value is None:
                told[name] = value
            case str():
                told[name] = json.dumps(json.loads(value), sort_keys=True)
            case datetime():
                told[name] = value.isoformat()
            case _:
                told[name] = repr(value)
    return told


def test_every_split_of_the_corpus_is_read_as_tantivy_reads_it(index_tables: Path, tmp_path: Path) -> None:
    paths = sorted(index_tables.rglob("*.split"))
    assert len(paths) > 40
    for number, path in enumerate(paths):
        split = path.read_bytes()
        folder = tmp_path / str(number)
        folder.mkdir()
        for name, content in files_of(split).items():
            (folder / name).write_bytes(content)
        kinds = {field["name"]: field["type"] for field in index_of(split)}
        schema = pa.schema([(name, TYPES[kind]) for name, kind in kinds.items()])

        ours = [in_their_words(row, kinds) for row in read(split, schema).to_pylist()]

        assert sorted(map(repr, ours)) == sorted(map(repr, by_tantivy(folder, schema)))


FIRST = datetime(1969, 12, 31, tzinfo=UTC)
SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string()), ("at", UTC_US), ("tags", pa.list_(pa.string()))])


def written(number: int) -> dict[str, Any]:
    """The row `number` of a split that Tantivy writes; every seventh has no name."""
    name = None if number % 7 == 0 else f"name {number}" * (number % 50)
    tags = [f"t{i}" for i in range(number % 4)] or None
    return {"id": number, "name": name, "at": FIRST + timedelta(microseconds=number * 1_000_003), "tags": tags}


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A split of 30,000 documents in several segments of many blocks each."""
    builder = tantivy.SchemaBuilder().add_integer_field("id", stored=True)
    builder = builder.add_text_field("name", stored=True, tokenizer_name="raw").add_date_field("at", stored=True)
    folder = tmp_path_factory.mktemp("index")
    index = tantivy.Index(builder.add_text_field("tags", stored=True).build(), path=str(folder))
    for begin, end in ((0, 25_000), (25_000, 29_990), (29_990, 30_000)):
        writer = index.writer(30_000_000, 1)
        for number in range(begin, end):
            row = {name: value for name, value in written(number).items() if value is not None}
            writer.add_document(tantivy.Document(**row))
        writer.commit()
        writer.wait_merging_threads()
    return bundle({path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.suffix != ".lock"})


def test_rows_that_tantivy_wrote_are_read_back_from_blocks_and_segments_as_many_as_they_are(large: bytes) -> None:
    split = read_split(lambda at, n: large[at : at + n], size_bytes=len(large), footer=None)
    assert len(split.stores) > 1
    assert max(store.block_count for store in split.stores) > 8 * 8  # beyond two layers of the skip index

    rows = read(large, SCHEMA, num_records=30_000).to_pylist()

    assert sorted(rows, key=lambda row: int(row["id"])) == [written(number) for number in range(30_000)]


def test_blocks_that_are_read_by_themselves_have_the_rows_of_their_place(large: bytes) -> None:
    file = SplitFile(path="a.split", size_bytes=len(large), num_records=None)
    (first, *_) = chunks_of(lambda at, n: large[at : at + n], file)
    whole = read(large, SCHEMA).to_pylist()
    split = read_split(lambda at, n: large[at : at + n], size_bytes=len(large), footer=None)

    for block in range(0, first.block_count, 17):
        begin, end = split.stores[0].rows_before(block), split.stores[0].row_ends[block]
        one = Chunk(first_block=block, block_count=1, first_row=begin, row_count=end - begin, size_bytes=0)
        assert read(large, SCHEMA, chunks=[one]).to_pylist() == whole[begin:end]
