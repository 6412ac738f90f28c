"""Reads the doc store of a segment (a `.store` file of Tantivy): finds its blocks, and splits them into documents.

From the end the file has: the marks that end every file of Tantivy, a footer, a skip index, and before these the
blocks, each compressed by itself. Here documents are bytes; walk.py decodes them.
"""

from __future__ import annotations

import struct
import zlib
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from tablefeed.indextables.split.damage import DamagedSplitError, UnsupportedSplitError
from tablefeed.indextables.split.tantivy_file import split_marks, vint

Read = Callable[[int, int], bytes]
"""Takes an offset and a length, and gives these bytes of a file; fewer where the file ends before."""

_TAIL_BYTES = 64 << 10  # the index of some 10,000 blocks: one read is enough for all but the largest stores
_FOOTER = struct.Struct("<IQB15x")
_UNITS_A_US = {1: 1, 2: 1000}
"""By the store's version: version 1 has dates in microseconds, version 2 in nanoseconds."""
_NONE, _LZ4, _ZSTD = 0, 1, 4
_MOST_RAW_BYTES = 1 << 28
"""Of one block. A block has 16 KiB or is one larger document; a block that claims more than this is damaged."""
_BYTES_AT_ONCE = 8 << 20
"""Of unpacked documents, plus at most one block. So 32 bits are enough to count the bytes."""
_BEGIN_BYTES = 4  # in a block, for each document, where it begins
_MOST_LZ4_RATIO = 255  # a byte of an LZ4 block unpacks to at most so many


@dataclass(frozen=True, slots=True, kw_only=True)
class DocStore:
    """Where the blocks of a store are: block `i` ends before the row `row_ends[i]` and the byte `byte_ends[i]`.

    `offset` is the store's first byte in its split; rows and bytes are counted from there. `units_a_us`: how many units
    of its dates make a microsecond. `rest` is what follows the blocks and is covered by the checksum `crc32`.
    """

    offset: int
    compressor: int
    units_a_us: int
    row_ends: Sequence[int]
    byte_ends: Sequence[int]
    rest: bytes
    crc32: int

    @property
    def block_count(self) -> int:
        """How many blocks there are."""
        return len(self.row_ends)

    @property
    def row_count(self) -> int:
        """How many documents there are."""
        return self.row_ends[-1] if self.row_ends else 0

    def rows_before(self, block: int) -> int:
        """How many documents are in the blocks before `block`."""
        return self.row_ends[block - 1] if block else 0

    def bytes_before(self, block: int) -> int:
        """How many bytes the blocks before `block` have."""
        return self.byte_ends[block - 1] if block else 0


def read_store(read: Read, begin: int, end: int) -> DocStore:
    """The store in the bytes from `begin` to before `end`. Only its tail is read.

    Raises DamagedSplitError, and UnsupportedSplitError for an unknown version or compressor.
    """
    size = end - begin
    first = max(0, size - _TAIL_BYTES)
    tail = exactly(read, begin + first, size - first)
    body, _, crc32 = split_marks(tail)
    if body < _FOOTER.size:
        raise DamagedSplitError("has a doc store that is shorter than its footer")
    version, index, compressor = _FOOTER.unpack_from(tail, body - _FOOTER.size)
    if version not in _UNITS_A_US:
        raise UnsupportedSplitError(f"has a doc store of version {version}", feature="docStoreVersion")
    if compressor not in (_NONE, _LZ4, _ZSTD):
        raise UnsupportedSplitError(f"has a doc store with compressor {compressor}", feature="docStoreCompressor")
    index_end = first + body - _FOOTER.size
    if index > index_end:
        raise DamagedSplitError("has a doc store whose index begins after its end")
    rest = tail[index - first : body] if index >= first else exactly(read, begin + index, first + body - index)
    row_ends, byte_ends = _block_ends(rest[: index_end - index], index, compressor)
    return DocStore(
        offset=begin,
        compressor=compressor,
        units_a_us=_UNITS_A_US[version],
        row_ends=row_ends,
        byte_ends=byte_ends,
        rest=rest,
        crc32=crc32,
    )


def exactly(read: Read, offset: int, length: int) -> bytes:
    """The `length` bytes that `read` gives. Raises DamagedSplitError where they are fewer: the split is cut."""
    found = read(offset, length) if length else b""
    if len(found) != length:
        raise DamagedSplitError(f"ends before the byte {offset + length}")
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Documents:
    """Documents one after the other in `data`: document `i` ends before the byte `ends[i]`.

    `ends` (64-bit integers) is in ascending order.
    """

    data: bytes
    ends: array[int]


def read_blocks(read: Read, store: DocStore, blocks: range) -> bytes:
    """The bytes of `blocks`, from a single read. Raises DamagedSplitError where the file has fewer bytes."""
    begin = store.bytes_before(blocks.start)
    return exactly(read, store.offset + begin, store.bytes_before(blocks.stop) - begin)


def unpacked(store: DocStore, blocks: range, packed: bytes) -> Iterator[Documents]:
    """Yield the documents of `blocks`, whose bytes are `packed`, about `_BYTES_AT_ONCE` unpacked bytes at a time.

    Raises DamagedSplitError where a block is damaged.
    """
    begin = store.bytes_before(blocks.start)
    bytes_ = memoryview(packed)
    raw: list[bytes] = []
    ends = array("q")
    size = 0
    for i in blocks:
        block = _raw(bytes_[store.bytes_before(i) - begin : store.byte_ends[i] - begin], store.compressor)
        ends_here, base = _document_ends(block, store.row_ends[i] - store.rows_before(i))
        ends.extend([size + end for end in ends_here])
        raw.append(block[:base])
        size += base
        if size >= _BYTES_AT_ONCE or i == blocks[-1]:
            yield Documents(data=b"".join(raw), ends=ends)
            raw, ends, size = [], array("q"), 0


class Checksum:
    """Checks the checksum of each store that is read from its first block to its last in order, and of no other."""

    def __init__(self) -> None:
        self._next: tuple[DocStore, int] | None = None
        self._crc32 = 0

    def add(self, store: DocStore, blocks: range, packed: bytes) -> None:
        """Adds the next `blocks`. Raises DamagedSplitError where they end a store whose checksum does not match."""
        if blocks.start == 0:
            self._crc32 = 0
        elif self._next is None or self._next[0] is not store or self._next[1] != blocks.start:
            self._next = None
            return
        self._crc32 = zlib.crc32(packed, self._crc32)
        self._next = store, blocks.stop
        if blocks.stop == store.block_count and zlib.crc32(store.rest, self._crc32) != store.crc32:
            raise DamagedSplitError("has a doc store that does not match its checksum")


def _block_ends(index: bytes, size: int, compressor: int) -> tuple[array[int], array[int]]:
    """Where each block ends, in rows and in bytes, from the lowest layer of the skip index.

    The blocks fill all bytes before the index, which begins at `size`; each begins where the one before ends.
    """
    row_ends, byte_ends = array("q"), array("q")
    try:
        position, end = _lowest_layer(index)
        row = byte = 0
        while position < end:
            count, position = vint(index, position)
            if not count:
                continue
            first_row, position = vint(index, position)
            first_byte, position = vint(index, position)
            if (first_row, first_byte) != (row, byte):
                raise DamagedSplitError("has a doc store whose blocks do not follow each other")
            for _ in range(count):
                rows, position = vint(index, position)
                length, position = vint(index, position)
                row, byte = row + rows, byte + length
                if byte > size:
                    break
                if rows * _BEGIN_BYTES > _most_raw(length, compressor):
                    raise DamagedSplitError(f"has a block of {length} bytes that claims {rows} documents")
                row_ends.append(row)
                byte_ends.append(byte)
    except (IndexError, OverflowError) as error:
        raise DamagedSplitError("has a doc store whose index is cut") from error
    if position != end or byte != size:
        raise DamagedSplitError("has a doc store whose blocks are not where its index says")
    return row_ends, byte_ends


def _lowest_layer(index: bytes) -> tuple[int, int]:
    """Where the last layer of the skip index begins and ends. Only that layer lists every block."""
    count, position = vint(index, 0)
    begin = end = 0
    for _ in range(count):
        begin = end
        end, position = vint(index, position)
    if not begin <= end <= len(index) - position:
        raise DamagedSplitError("has a doc store whose index does not fit its bytes")
    return position + begin, position + end


def _raw(packed: memoryview, compressor: int) -> bytes:
    """The unpacked bytes of a block. A compressed block begins with their number."""
    if compressor == _NONE:
        return bytes(packed)
    if len(packed) < 4:
        raise DamagedSplitError("has a block that is too short to begin with its length")
    (size,) = struct.unpack_from("<I", packed)
    payload = packed[4:]
    if not size:
        return b""  # which is no frame, and for Arrow no LZ4 block either
    if size > _most_raw(len(payload), compressor):
        raise DamagedSplitError(f"has a block that claims {size} bytes")
    try:
        raw: bytes = _CODECS[compressor].decompress(payload, decompressed_size=size, asbytes=True)
    except (pa.ArrowException, OSError) as error:
        raise DamagedSplitError("has a block that cannot be decompressed") from error
    return raw


def _most_raw(packed_bytes: int, compressor: int) -> int:
    """The most bytes to which a block of so many bytes can unpack."""
    ratios = {_NONE: 1, _LZ4: _MOST_LZ4_RATIO}
    return min(_MOST_RAW_BYTES, packed_bytes * ratios.get(compressor, _MOST_RAW_BYTES))


_CODECS = {_LZ4: pa.Codec("lz4_raw"), _ZSTD: pa.Codec("zstd")}


def _document_ends(block: bytes, count: int) -> tuple[list[int], int]:
    """Where each of the `count` documents of a block ends, and where the list of their begins follows the last."""
    base = len(block) - 4 * (count + 1)
    if base < 0 or block[-4:] != struct.pack("<I", count):
        raise DamagedSplitError("has a block whose number of documents differs from the index")
    begins = struct.unpack_from(f"<{count}I", block, base)
    ends = [*begins[1:], base]
    if not count or begins[0] or ends != sorted(ends):
        raise DamagedSplitError("has a block whose documents do not follow each other")
    return ends, base
