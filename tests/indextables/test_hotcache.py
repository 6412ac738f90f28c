"""What a split says is to be cached, against what IndexTables wrote."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.split_indexes import hotcache_of
from tablefeed.indextables.split.hotcache import CachedFile, Slice, encode_hotcache


def as_footer(cache: bytes) -> bytes:
    return cache + len(cache).to_bytes(4, "little")


def test_every_cache_of_the_corpus_holds_slices_of_the_files_of_its_split(index_tables: Path) -> None:
    paths = sorted(index_tables.rglob("*.split"))
    assert len(paths) > 40
    for path in paths:
        split = path.read_bytes()
        cached = hotcache_of(split)
        end = len(split) - 8 - int.from_bytes(split[-4:], "little")
        layout = split[end - int.from_bytes(split[end : end + 4], "little") : end]
        places = json.loads(layout[8:])["files"]

        assert places.keys() - cached.keys() == {"split_fields"}
        for name, file in cached.items():
            # a merged split's cache has a file that the split itself has not
            if name not in places:
                assert name == ".managed.json"
                continue
            whole = split[places[name]["start"] : places[name]["end"]]
            assert file.size_bytes == len(whole)
            assert [whole[each.start :][: len(each.data)] for each in file.slices] == [s.data for s in file.slices]
        assert hotcache_of(as_footer(encode_hotcache(cached))) == cached


SLICES = st.lists(st.tuples(st.integers(0, 300), st.binary(max_size=300)), max_size=4)


@given(files=st.dictionaries(st.text(max_size=200), SLICES, max_size=5))
def test_what_is_encoded_is_decoded(files: dict[str, list[tuple[int, bytes]]]) -> None:
    cached = {}
    for name, steps in files.items():
        slices, at = [], 0
        for gap, data in steps:
            slices.append(Slice(start=at + gap, data=data))
            at += gap + len(data)
        cached[name] = CachedFile(size_bytes=at + 1, slices=tuple(slices))

    assert hotcache_of(as_footer(encode_hotcache(cached))) == cached


def test_the_bytes_of_a_cache_are_these() -> None:
    cached = {"meta.json": CachedFile(size_bytes=300, slices=(Slice(start=2, data=b"ab"),))}

    assert encode_hotcache(cached) == (
        b"\x32\xfc\x75\x98\x01\x00\x00\x00\x19\x00\x00\x00"  # the mark, the version, 25 bytes
        b"\x01\x09meta.json\xac\x02"  # one file of 300 bytes
        b"\x01\x09meta.json\x00"  # its slices begin at 0
        b"ab\xac\x02\x01\x02\x04\x00\x02\x00\x00\x00\x00\x00\x00\x00"  # of 300 bytes one slice, 2 to 4, at 0
    )


def test_slices_that_overlap_are_not_encoded() -> None:
    slices = (Slice(start=0, data=b"abc"), Slice(start=2, data=b"c"))
    with pytest.raises(ValueError, match="not in order"):
        encode_hotcache({"a": CachedFile(size_bytes=9, slices=slices)})
