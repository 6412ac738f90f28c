"""The doc store of a segment: blocks and documents by its index, and what is no store is refused."""

from __future__ import annotations

import struct

import pytest

from support.split_bytes import LZ4, NONE, ZSTD, a_store, block, marks, packed, vint
from tablefeed.indextables.split import doc_store
from tablefeed.indextables.split.damage import DamagedSplitError, UnsupportedSplitError
from tablefeed.indextables.split.doc_store import DocStore, Documents, read_blocks, read_store, unpacked

BLOCKS = [[b"one", b"two"], [b"three"], [b"four", b"five", b"six"]]


def opened(store: bytes) -> DocStore:
    """The store, with other bytes before and behind it."""
    around = b"before" + store + b"behind"
    return read_store(lambda at, n: around[at : at + n], 6, 6 + len(store))


def documents(store: bytes, blocks: range | None = None) -> list[bytes]:
    around = b"before" + store + b"behind"
    found = opened(store)
    chosen = range(found.block_count) if blocks is None else blocks
    packed_blocks = read_blocks(lambda at, n: around[at : at + n], found, chosen)
    return [document for some in unpacked(found, chosen, packed_blocks) for document in each(some)]


def each(some: Documents) -> list[bytes]:
    begins = [0, *some.ends[:-1]]
    return [some.data[begin:end] for begin, end in zip(begins, some.ends, strict=True)]


@pytest.mark.parametrize("compressor", [NONE, LZ4, ZSTD])
def test_documents_come_in_the_order_of_their_blocks(compressor: int) -> None:
    store = a_store(BLOCKS, compressor=compressor)

    assert documents(store) == [b"one", b"two", b"three", b"four", b"five", b"six"]
    assert documents(store, range(1, 2)) == [b"three"]
    assert documents(store, range(1, 3)) == [b"three", b"four", b"five", b"six"]


def test_documents_that_unpack_to_much_more_than_they_take_come_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doc_store, "_BYTES_AT_ONCE", 1 << 20)
    store = a_store([[bytes(300_000)] * 2, [bytes(300_000)] * 2, [b"last"]])
    found = opened(store)

    parts = list(unpacked(found, range(3), store[: found.byte_ends[-1]]))

    assert len(store) < 10_000
    assert [[len(document) for document in each(part)] for part in parts] == [[300_000] * 4, [4]]


def test_the_index_tells_rows_and_bytes_before_each_block() -> None:
    store = opened(a_store(BLOCKS, compressor=NONE))

    assert list(store.row_ends) == [2, 3, 6]
    assert [store.bytes_before(i) for i in range(4)] == [0, 18, 31, 58]
    assert (store.row_count, store.block_count, store.offset) == (6, 3, 6)


def test_a_store_of_no_documents_has_no_blocks() -> None:
    assert opened(a_store([])).row_count == 0


def test_an_index_that_is_longer_than_one_look_is_read_by_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doc_store, "_TAIL_BYTES", 120)  # of the marks, the footer, and not all of the index
    blocks = [[b"%d" % i] for i in range(100)]

    assert documents(a_store(blocks)) == [b"%d" % i for i in range(100)]


@pytest.mark.parametrize("compressor", [LZ4, ZSTD])
def test_a_block_of_no_bytes_is_not_given_to_the_codec(compressor: int) -> None:
    # Arrow takes no empty LZ4 payload; but no writer leaves a block without the count of its documents.
    with pytest.raises(DamagedSplitError, match="number of documents differs"):
        documents(with_payload(struct.pack("<I", 0), compressor=compressor))


def with_payload(payload: bytes, *, compressor: int, rows: int = 1) -> bytes:
    """A store of one block, whose bytes are these."""
    entry = vint(1) + vint(0) + vint(0) + vint(rows) + vint(len(payload))
    body = payload + vint(1) + vint(len(entry)) + entry
    body += struct.pack("<IQB15x", 2, len(payload), compressor)
    return body + marks(body)


def with_index(index: bytes, *, blocks: bytes = b"") -> bytes:
    body = blocks + index + struct.pack("<IQB15x", 2, len(blocks), NONE)
    return body + marks(body)


def test_a_block_that_claims_more_than_its_bytes_can_become_takes_no_memory_for_it() -> None:
    for compressor in (LZ4, ZSTD):
        with pytest.raises(DamagedSplitError, match="claims 4294967295 bytes"):
            documents(with_payload(b"\xff\xff\xff\xff" + b"x" * 10, compressor=compressor))


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"", "claims 1 documents"),
        (struct.pack("<I", 0), "number of documents differs"),
        (b"ab" + struct.pack("<II", 0, 2), "number of documents differs"),
        (b"ab" + struct.pack("<II", 1, 1), "do not follow each other"),
        (b"ab" + struct.pack("<II", 3, 1), "do not follow each other"),
    ],
)
def test_a_block_whose_documents_are_not_where_it_says_is_refused(raw: bytes, reason: str) -> None:
    with pytest.raises(DamagedSplitError, match=reason):
        documents(with_payload(raw, compressor=NONE))


@pytest.mark.parametrize("compressor", [LZ4, ZSTD])
def test_a_block_that_is_none_of_its_compressor_is_refused(compressor: int) -> None:
    whole = packed(block([b"a document of some length, of some length"] * 9), compressor)

    for payload in (whole[:3], whole[:9], whole[:-1], whole[:4] + b"\xff" * (len(whole) - 4)):
        with pytest.raises(DamagedSplitError):
            documents(with_payload(payload, compressor=compressor, rows=9))


@pytest.mark.parametrize(
    ("index", "reason"),
    [
        (b"", "index is cut"),
        (b"\x00" * 12, "more than 64 bits"),
        (vint(1) + vint(99), "does not fit"),
        (vint(2) + vint(5) + vint(4) + b"\x80" * 9, "does not fit"),
        (vint(1) + vint(2) + vint(9) + vint(0), "index is cut"),
        (vint(1) + vint(5) + vint(1) + vint(1) + vint(0) + vint(1) + vint(1), "follow each other"),
        (vint(1) + vint(5) + vint(1) + vint(0) + vint(1) + vint(1) + vint(1), "follow each other"),
        (vint(1) + vint(5) + vint(1) + vint(0) + vint(0) + vint(1) + vint(1), "not where its index says"),
    ],
)
def test_an_index_that_is_none_of_its_blocks_is_refused(index: bytes, reason: str) -> None:
    with pytest.raises(DamagedSplitError, match=reason):
        opened(with_index(index))


@pytest.mark.parametrize(("compressor", "most"), [(NONE, 3), (LZ4, 12 * 255 // 4), (ZSTD, (1 << 28) // 4)])
def test_an_index_that_claims_more_documents_than_the_bytes_of_a_block_can_hold_is_refused(
    compressor: int, most: int
) -> None:
    def claims(rows: int) -> int:
        layer = vint(1) + vint(0) + vint(0) + vint(rows) + vint(12)
        body = b"x" * 12 + vint(1) + vint(len(layer)) + layer + struct.pack("<IQB15x", 2, 12, compressor)
        return opened(body + marks(body)).row_count

    assert claims(most) == most
    for rows in (most + 1, 10**15):
        with pytest.raises(DamagedSplitError, match=f"has a block of 12 bytes that claims {rows} documents"):
            claims(rows)


def test_bytes_that_are_in_no_block_are_refused() -> None:
    with pytest.raises(DamagedSplitError, match="not where its index says"):
        opened(with_index(vint(0), blocks=b"lost"))


def test_a_version_or_a_compressor_that_is_not_known_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedSplitError, match="doc store of version 3"):
        opened(a_store(BLOCKS, version=3))
    for compressor in (2, 3, 5):
        with pytest.raises(UnsupportedSplitError, match=f"with compressor {compressor}"):
            opened(a_store(BLOCKS, compressor=compressor))


def test_a_store_that_is_cut_anywhere_is_refused() -> None:
    store = a_store(BLOCKS)

    for length in range(len(store)):
        with pytest.raises(DamagedSplitError):
            opened(store[:length])
        with pytest.raises(DamagedSplitError):
            opened(store[len(store) - length :])


def test_a_split_that_ends_before_its_store_does_is_refused() -> None:
    store = a_store(BLOCKS)
    found = read_store(lambda at, n: store[at : at + n], 0, len(store))

    with pytest.raises(DamagedSplitError, match="ends before the byte"):
        read_blocks(lambda at, n: store[at : at + n][:10], found, range(1))
