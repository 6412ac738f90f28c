"""What a split says is to be cached, against what IndexTables wrote."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.examples import examples
from tablefeed.indextables.split.damage import DamagedSplitError, UnsupportedSplitError
from tablefeed.indextables.split.hotcache import CachedFile, Slice, decode_hotcache, encode_hotcache


def test_every_cache_of_the_corpus_holds_slices_of_the_files_of_its_split(index_tables: Path) -> None:
    paths = sorted(index_tables.rglob("*.split"))
    assert len(paths) > 40
    for path in paths:
        split = path.read_bytes()
        length = int.from_bytes(split[-4:], "little")
        cached = decode_hotcache(split[-4 - length : -4])
        end = len(split) - 8 - length
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
        assert decode_hotcache(encode_hotcache(cached)) == cached


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

    assert decode_hotcache(encode_hotcache(cached)) == cached


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


def test_a_slice_that_goes_on_into_what_is_told_of_it_is_damage() -> None:
    good = encode_hotcache({"a": CachedFile(size_bytes=9, slices=(Slice(start=2, data=b"ab"),))})
    with pytest.raises(DamagedSplitError, match="outside of its file"):
        decode_hotcache(good.replace(b"ab\x09\x01\x02\x04", b"ab\x09\x01\x02\x05"))


def test_a_cache_of_another_version_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedSplitError, match="version 2"):
        decode_hotcache(b"\x32\xfc\x75\x98\x02\x00\x00\x00\x00\x00\x00\x00")


@examples(2_000)
@given(data=st.data())
def test_a_damaged_cache_is_refused_or_read_and_fails_with_nothing_else(data: st.DataObject) -> None:
    slices = (Slice(start=2, data=b"ab"), Slice(start=200, data=b"c" * 40))
    damaged = bytearray(encode_hotcache({"a": CachedFile(size_bytes=300, slices=slices)}))
    damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    try:
        decode_hotcache(bytes(damaged[: len(damaged) - data.draw(st.integers(0, 9))]))
    except (DamagedSplitError, UnsupportedSplitError):
        return
