"""Deletion vectors in every storage type, and what is wrong with one that is not what it says."""

from __future__ import annotations

import dataclasses
import struct
import uuid
import zlib
from typing import Literal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pyroaring import BitMap, BitMap64

from tablefeed.delta.deletion_vectors import (
    BadVectorError,
    Stored,
    decode_inline,
    decode_stored,
    encode,
    stored_at,
)
from tablefeed.model.actions import DeletionVector


def a_vector(
    kind: Literal["u", "i", "p"], text: str, *, size: int = 36, cardinality: int = 2, offset: int | None = 1
) -> DeletionVector:
    return DeletionVector(
        storage_type=kind, path_or_inline=text, offset=offset, size_bytes=size, cardinality=cardinality
    )


def inline(text: str, *, size: int, cardinality: int) -> DeletionVector:
    return a_vector("i", text, size=size, cardinality=cardinality, offset=None)


def payload(*positions: int) -> bytes:
    return struct.pack("<I", 1681511377) + BitMap64(positions).serialize()


def block(data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + data + struct.pack(">I", zlib.crc32(data))


def stored(data: bytes, *, cardinality: int) -> DeletionVector:
    return a_vector("u", "vBn[lx{q8@P<9BNH/isA", size=len(data), cardinality=cardinality)


def test_the_protocols_own_example_of_an_inline_vector_is_read() -> None:
    text = "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L"
    assert list(decode_inline(inline(text, size=40, cardinality=6))) == [3, 4, 7, 11, 18, 29]


def test_the_protocols_own_example_of_a_path_is_found() -> None:
    assert stored_at(a_vector("u", "ab^-aqEH.-t@S}K{vb[*k^", size=40, offset=4)) == Stored(
        path="ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin", start=4, end=52
    )


def test_a_path_without_a_prefix_lies_in_the_tables_root_and_no_offset_means_its_begin() -> None:
    found = stored_at(a_vector("u", "vBn[lx{q8@P<9BNH/isA", size=36, offset=None))
    assert found is not None
    assert (found.path, found.start, found.end) == ("deletion_vector_61d16c75-6994-46b7-a15b-8b538852e50e.bin", 0, 44)


def test_an_absolute_path_is_decoded_once() -> None:
    found = stored_at(a_vector("p", "s3://bucket/a%20b%2525.bin", size=36))
    assert found == Stored(path="s3://bucket/a b%25.bin", start=1, end=45)


def test_a_last_group_of_fewer_than_four_bytes_may_be_padded_with_number_signs() -> None:
    text = "^Bg9^0rr910000000000iXQKl0rr91000005c8Xg##093"
    assert list(decode_inline(inline(text, size=34, cardinality=1))) == [3]


@given(st.sets(st.integers(0, 2**40), max_size=50))
@example(set())
def test_what_is_stored_in_a_file_comes_back(positions: set[int]) -> None:
    data = payload(*positions)
    assert set(decode_stored(block(data), stored(data, cardinality=len(positions)))) == positions


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda whole: whole[:-1], "is cut off"),
        (lambda _: b"", "is cut off"),
        (lambda whole: b"\0\0\0\1" + whole[4:], "is 1 bytes by its file"),
        (lambda whole: whole[:-1] + bytes([whole[-1] ^ 1]), "does not match its checksum"),
        (lambda whole: whole[:20] + bytes([whole[20] ^ 1]) + whole[21:], "does not match its checksum"),
    ],
)
def test_a_damaged_file_is_told_by_what_is_wrong_with_it(damage: object, said: str) -> None:
    data = payload(1, 2)
    with pytest.raises(BadVectorError, match=said):
        decode_stored(damage(block(data)), stored(data, cardinality=2))  # type: ignore[operator]  # one of the lambdas


def test_another_magic_number_is_another_format() -> None:
    data = struct.pack("<I", 1681511378) + payload(1)[4:]
    with pytest.raises(BadVectorError, match="magic number 1681511378"):
        decode_stored(block(data), stored(data, cardinality=1))


def test_delta_sparks_older_format_is_read() -> None:
    bitmaps = [BitMap([1, 7]).serialize(), BitMap().serialize(), BitMap([2]).serialize()]
    framed = b"".join(struct.pack("<I", len(bitmap)) + bitmap for bitmap in bitmaps)
    data = struct.pack("<II", 1681511376, 3) + framed
    assert list(decode_stored(block(data), stored(data, cardinality=3))) == [1, 7, 2**33 + 2]

    cut = data[:-1]
    with pytest.raises(BadVectorError, match="not a roaring bitmap"):
        decode_stored(block(cut), stored(cut, cardinality=3))


def test_the_cardinality_must_be_that_of_the_log() -> None:
    data = payload(1, 2)
    with pytest.raises(BadVectorError, match="deletes 2 rows instead of 3"):
        decode_stored(block(data), stored(data, cardinality=3))


@pytest.mark.parametrize("text", ["abcd", "ab\x00de", "abcdé", "#####", "%nSc1" + "0" * 5])
def test_a_text_that_is_no_base85_is_no_vector(text: str) -> None:
    with pytest.raises(BadVectorError, match="Base85"):
        decode_inline(inline(text, size=4, cardinality=1))


def test_a_uuid_that_is_cut_off_names_no_file() -> None:
    with pytest.raises(BadVectorError, match="without a UUID"):
        stored_at(a_vector("u", "vBn[l"))


@pytest.mark.parametrize(("text", "length"), [("", 0), ("00000", 4)])
def test_an_inline_vector_is_as_long_as_it_says(text: str, length: int) -> None:
    with pytest.raises(BadVectorError, match=f"has {length} bytes in the log instead of 5"):
        decode_inline(inline(text, size=5, cardinality=0))


@given(st.binary(max_size=60), st.integers(0, 100))
def test_any_bytes_are_a_vector_or_an_error_of_its_own(noise: bytes, cut: int) -> None:
    data = (payload(1, 5, 2**33) + noise)[cut:] if cut else struct.pack("<I", 1681511377) + noise
    vector = dataclasses.replace(stored(data, cardinality=3), size_bytes=len(data))
    try:
        assert len(decode_stored(block(data), vector)) == 3
    except BadVectorError as error:
        assert str(error)  # noqa: PT017 - either outcome is right, no other is


FILE_ID = uuid.UUID("d2c639aa-8816-431a-aaf6-d3fe2512ff61")


@given(st.lists(st.sets(st.integers(0, 2**40), min_size=1, max_size=300), min_size=1, max_size=5))
@example([{0}])
@example([set(range(10_000)), {2**40}])
def test_the_vectors_of_a_commit_come_back_from_one_file(vectors: list[set[int]]) -> None:
    described, file = encode([BitMap64(positions) for positions in vectors], file_id=FILE_ID, folder="ab")
    found = []
    for vector in described:
        at = stored_at(vector)
        assert at is not None
        assert at.path == file.path
        found.append(decode_stored(file.data[at.start : at.end], vector))
    assert [set(each) for each in found] == vectors


def test_a_file_of_vectors_is_named_as_the_protocol_says_and_begins_with_its_version() -> None:
    (vector,), file = encode([BitMap64(range(0, 20_000, 3))], file_id=FILE_ID, folder="ab")
    assert (vector.path_or_inline, vector.offset) == ("ab^-aqEH.-t@S}K{vb[*k^", 1)
    assert file.path == "ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"
    assert file.data[0] == 1
