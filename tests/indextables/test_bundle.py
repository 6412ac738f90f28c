"""Splits that we bundle, against those that IndexTables bundled of the same files."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.split_indexes import files_of, hotcache_of
from tablefeed.indextables.split.bundle import Bundle, CachedFile, encode_bundle, encode_hotcache
from tablefeed.indextables.split.split_file import SplitStores, read_split
from tablefeed.indextables.split.tantivy_file import Marked, Part, encode_marked, encode_parts


def opened(split: bytes, footer: tuple[int, int] | None) -> SplitStores:
    return read_split(lambda at, n: split[at : at + n], size_bytes=len(split), footer=footer)


def bundled(split: bytes) -> Bundle:
    """A split of the same files; the empty list of fields is always added."""
    return encode_bundle({name: content for name, content in files_of(split).items() if name != "split_fields"})


@pytest.fixture(scope="module")
def splits(index_tables: Path) -> list[bytes]:
    found = [path.read_bytes() for path in sorted(index_tables.rglob("*.split"))]
    assert len(found) > 40
    return found


def test_a_bundle_of_the_files_of_a_split_has_them_and_ends_where_its_footer_does(splits: list[bytes]) -> None:
    for theirs in splits:
        ours = bundled(theirs)

        assert files_of(ours.data) == files_of(theirs)
        assert ours.footer_start == sum(map(len, files_of(ours.data).values()))
        found, same = opened(ours.data, (ours.footer_start, len(ours.data))), opened(theirs, None)
        assert (found.fields, found.row_count) == (same.fields, same.row_count)


def test_what_indextables_caches_of_a_split_is_cached_too(splits: list[bytes]) -> None:
    for theirs in splits:
        ours = hotcache_of(bundled(theirs).data)
        for name, file in hotcache_of(theirs).items():
            if name not in files_of(theirs):
                continue  # a merged split's cache has a file that the split itself has not
            assert ours[name].size_bytes == file.size_bytes
            assert bytes_of(file) <= bytes_of(ours[name])


def test_what_is_not_read_at_once_is_not_cached(splits: list[bytes]) -> None:
    for theirs in splits:
        cached = hotcache_of(bundled(theirs).data)
        for name, file in hotcache_of(theirs).items():
            if name in cached and name.endswith((".store", ".idx", ".pos")):
                # Theirs leave out some marks at the ends of files besides.
                assert len(bytes_of(cached[name]) - bytes_of(file)) <= 100


def test_of_postings_the_head_of_each_field_is_cached_and_of_positions_none() -> None:
    postings = [b"0123456789", b"", b"abcde", b"ABCDEFGHIJ"]
    body = encode_parts([Part(field=field, index=0, data=data) for field, data in enumerate(postings)])
    file = encode_marked(Marked(body=body, version={}))

    cached = hotcache_of(encode_bundle({"a.idx": file, "a.pos": file}).data)

    end = (25, file[25:])  # the list of the parts, and the marks
    assert list(cached["a.idx"].slices) == [(0, b"01234567"), (10, b"abcde"), (15, b"ABCDEFGH"), end]
    assert list(cached["a.pos"].slices) == [end]


def bytes_of(file: CachedFile) -> set[int]:
    """The places in the file of what is cached of it."""
    return {place for start, data in file.slices for place in range(start, start + len(data))}


def as_footer(cache: bytes) -> bytes:
    return cache + len(cache).to_bytes(4, "little")


def test_every_cache_of_the_corpus_is_of_the_files_of_its_split_and_is_encoded_again(splits: list[bytes]) -> None:
    for split in splits:
        cached, files = hotcache_of(split), files_of(split)

        assert files.keys() - cached.keys() == {"split_fields"}
        for name, content in files.items() - {("split_fields", b"")}:
            assert cached[name].size_bytes == len(content)
            assert all(content[start:][: len(data)] == data for start, data in cached[name].slices)
        assert hotcache_of(as_footer(encode_hotcache(cached))) == cached


SLICES = st.lists(st.tuples(st.integers(0, 300), st.binary(max_size=300)), max_size=4)


@given(files=st.dictionaries(st.text(max_size=200), SLICES, max_size=5))
def test_a_cache_that_is_encoded_is_decoded(files: dict[str, list[tuple[int, bytes]]]) -> None:
    cached = {}
    for name, steps in files.items():
        slices, at = [], 0
        for gap, data in steps:
            slices.append((at + gap, data))
            at += gap + len(data)
        cached[name] = CachedFile(size_bytes=at + 1, slices=tuple(slices))

    assert hotcache_of(as_footer(encode_hotcache(cached))) == cached


def test_the_bytes_of_a_cache_are_these() -> None:
    cached = {"meta.json": CachedFile(size_bytes=300, slices=[(2, b"ab")])}

    assert encode_hotcache(cached) == (
        b"\x32\xfc\x75\x98\x01\x00\x00\x00\x19\x00\x00\x00"  # the mark, the version, 25 bytes
        b"\x01\x09meta.json\xac\x02"  # one file of 300 bytes
        b"\x01\x09meta.json\x00"  # its slices begin at 0
        b"ab\xac\x02\x01\x02\x04\x00\x02\x00\x00\x00\x00\x00\x00\x00"  # of 300 bytes one slice, 2 to 4, at 0
    )
