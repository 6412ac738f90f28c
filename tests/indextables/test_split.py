"""The bundle that a split is: where its files are, and what is no split, or none that is read, is refused."""

from __future__ import annotations

import json
from itertools import accumulate, pairwise
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from support.split_bytes import a_field, a_split, a_store, bundle, document
from tablefeed.indextables.split.damage import DamagedSplitError, UnsupportedSplitError
from tablefeed.indextables.split.doc_store import DocStore
from tablefeed.indextables.split.split_file import IndexField, SplitStores, chunks, read_split

SEGMENT = {"segment_id": "0a-0b", "max_doc": 1, "deletes": None}
NO_SEGMENTS = json.dumps({"segments": [], "schema": []}).encode()
STORE = a_store([[document([(0, "x")])]])


def opened(split: bytes, footer: tuple[int, int] | None = None) -> SplitStores:
    return read_split(lambda at, n: split[at : at + n], size_bytes=len(split), footer=footer)


def with_meta(**changed: Any) -> bytes:
    meta = {"segments": [SEGMENT], "schema": [a_field("s")], "opstamp": 0, **changed}
    return bundle({"0a0b.store": STORE, "meta.json": json.dumps(meta).encode()})


def test_a_split_tells_its_fields_by_number_and_its_rows_by_segment() -> None:
    split = opened(a_split(["a", a_field("b", stored=False)], [[[], []], [], [[]]]))

    assert split.fields == (IndexField(name="a", is_stored=True), IndexField(name="b", is_stored=False))
    assert [store.row_count for store in split.stores] == [2, 0, 1]
    assert split.row_count == 3


def test_the_footer_is_found_from_the_end_where_the_add_does_not_say_where_it_is() -> None:
    for cached in (b"", b"c" * 70_000):  # the second pushes the list of files out of the first look
        files = {"0a0b.store": STORE, "meta.json": json.dumps({"segments": [SEGMENT], "schema": []}).encode()}
        split = bundle(files, cached=cached)
        begin = len(STORE) + len(files["meta.json"])

        assert opened(split) == opened(split, (begin, len(split)))


def test_three_ranges_of_a_split_are_read_to_open_it() -> None:
    split = with_meta()
    reads: list[bytes] = []

    def read(at: int, length: int) -> bytes:
        reads.append(split[at : at + length])
        return reads[-1]

    begin = split.index(b'{"files"') - 8
    read_split(read, size_bytes=len(split), footer=(begin, len(split)))

    assert [len(part) for part in reads[:1]] == [len(split) - begin]
    assert reads[1].startswith(b'{"segments"')
    assert reads[2:] == [STORE]


def test_what_others_cache_in_a_large_footer_is_not_read() -> None:
    files = {"0a0b.store": STORE, "meta.json": json.dumps({"segments": [SEGMENT], "schema": []}).encode()}
    split = bundle(files, cached=bytes(5 << 20))
    read_bytes: list[int] = []

    def read(at: int, length: int) -> bytes:
        read_bytes.append(length)
        return split[at : at + length]

    begin = len(STORE) + len(files["meta.json"])
    assert read_split(read, size_bytes=len(split), footer=(begin, len(split))).row_count == 1
    assert sum(read_bytes) < 100_000


@pytest.mark.parametrize(
    ("split", "feature", "reason"),
    [
        (with_meta(segments=[{**SEGMENT, "deletes": {"opstamp": 3}}]), "deletes", "has deleted documents"),
        (bundle({"meta.json": NO_SEGMENTS, "_parquet_manifest.json": b""}), "companion", "refers to Parquet files"),
        (with_meta(schema=[a_field("s"), a_field("__pq_file_hash")]), "companion", "refers to Parquet files"),
        (bundle({}, version=2), "splitVersion", "footer of version 2"),
    ],
)
def test_a_split_of_a_kind_that_is_not_read_is_refused_by_name(split: bytes, feature: str, reason: str) -> None:
    with pytest.raises(UnsupportedSplitError, match=reason) as refused:
        opened(split)
    assert refused.value.feature == feature


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"segments": None}, "no segments"),
        ({"schema": {}}, "no schema"),
        ({"segments": [{**SEGMENT, "max_doc": -1}]}, "a segment that is"),
        ({"segments": [{**SEGMENT, "max_doc": "1"}]}, "a segment that is"),
        ({"segments": ["0a0b"]}, "a segment that is"),
        ({"segments": [{**SEGMENT, "max_doc": 2}]}, "segment of 2 rows whose doc store has 1"),
        ({"segments": [{**SEGMENT, "segment_id": "other"}]}, "no file other.store"),
        ({"schema": [{"name": 1, "type": "text", "options": {}}]}, "a field that is"),
        ({"schema": [a_field("s"), a_field("s")]}, "two fields with the same name"),
    ],
)
def test_a_list_of_segments_that_is_none_is_refused(changed: dict[str, Any], reason: str) -> None:
    with pytest.raises(DamagedSplitError, match=reason):
        opened(with_meta(**changed))


@pytest.mark.parametrize("meta", [b"", b"{", b"[]", b'{"segments": []'])
def test_a_list_of_segments_that_is_no_json_object_is_refused(meta: bytes) -> None:
    with pytest.raises(DamagedSplitError, match="list of segments that is not"):
        opened(bundle({"meta.json": meta}))


@pytest.mark.parametrize("footer", [(5, 4), (-1, 10), (0, 1 << 40), (0, 4), (0, 0)])
def test_a_footer_that_is_not_within_the_split_is_refused(footer: tuple[int, int]) -> None:
    with pytest.raises(DamagedSplitError, match="has a footer"):
        opened(with_meta(), footer)


@pytest.mark.parametrize("content", [b"", b"x", b"not a split at all" * 9, b"\xff" * 64, bytes(64)])
def test_bytes_that_are_no_split_are_refused(content: bytes) -> None:
    with pytest.raises(DamagedSplitError):
        opened(content)


def test_a_file_that_is_said_to_be_outside_the_split_is_refused() -> None:
    split = with_meta()
    moved = split.replace(b'{"start": 0,', b'{"start": -1')

    with pytest.raises(DamagedSplitError):
        opened(moved)


def test_a_split_that_is_cut_anywhere_is_refused() -> None:
    split = with_meta()

    for length in range(len(split)):
        with pytest.raises(DamagedSplitError):
            opened(split[:length])


@st.composite
def stores(draw: st.DrawFn) -> DocStore:
    blocks = draw(st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), max_size=6))
    row_ends, byte_ends = (list(accumulate(block[side] for block in blocks)) for side in (0, 1))
    return DocStore(offset=0, compressor=0, units_a_us=1, row_ends=row_ends, byte_ends=byte_ends, rest=b"", crc32=0)


@given(st.lists(stores(), max_size=3), st.lists(st.integers(0, 100), max_size=4), st.integers(1, 20))
def test_ranges_of_rows_that_follow_each_other_have_each_block_once(
    found: list[DocStore], cuts: list[int], most_rows: int
) -> None:
    split = SplitStores(fields=(), stores=tuple(found))
    edges = [0, *sorted(cut for cut in cuts if cut < split.row_count), split.row_count]
    whole = list(chunks(split, most_rows=1, most_bytes=1))

    shared = [
        (chunk.first_block, chunk.first_row, chunk.block_count, chunk.row_count, chunk.size_bytes)
        for begin, stop in pairwise(edges)
        for chunk in chunks(split, most_rows=most_rows, most_bytes=20, rows=range(begin, stop))
    ]
    assert [block + i for block, _, count, *_ in shared for i in range(count)] == list(range(len(whole)))
    for block, row, count, rows, size in shared:
        inside = whole[block : block + count]
        assert (row, rows, size) == (
            inside[0].first_row,
            sum(each.row_count for each in inside),
            sum(each.size_bytes for each in inside),
        )
