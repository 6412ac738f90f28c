"""Reads a split, the data file of an IndexTables table: a bundle of the files of an index. A few of them hold its rows.

    [files][u32 magic, u32 version, JSON: where each file is][u32 its length][hotcache][u32 its length]

The file `meta.json` lists the segments and fields, and the `.store` file of each segment has its documents. The layout
of a split is Quickwit's; the files are Tantivy's. bundle.py documents the hotcache.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from tablefeed.indextables.split.damage import DamagedSplitError, UnsupportedSplitError
from tablefeed.indextables.split.doc_store import DocStore, Read, exactly, read_store
from tablefeed.model.shown import shown

_TAIL_BYTES = 64 << 10  # holds the footer of most splits: one read instead of three
_LARGE_FOOTER_BYTES = 4 << 20  # most of it is the hotcache, which is not used: then three reads are cheaper
_LAYOUT = struct.Struct("<II")
LAYOUT_MAGIC, LAYOUT_VERSION = 403881646, 1
_META = "meta.json"
_COMPANION_FILE = "_parquet_manifest.json"
_COMPANION_FIELDS = "__pq_"


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexField:
    """A field of the index; its place in `SplitStores.fields` is its number in documents."""

    name: str
    is_stored: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitStores:
    """The stores that hold the rows of a split. Rows are in the order of the segments, then of each store."""

    fields: Sequence[IndexField]
    stores: Sequence[DocStore]

    @property
    def row_count(self) -> int:
        """How many rows there are."""
        return sum(store.row_count for store in self.stores)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """Neighbouring blocks of one store: the least that one task reads, and the most that one step of reading holds.

    Blocks and rows are numbered through the whole split: blocks `first_block` to before `first_block + block_count`
    hold the `row_count` rows from `first_row` on, in `size_bytes` bytes.
    """

    first_block: int
    block_count: int
    first_row: int
    row_count: int
    size_bytes: int


def read_split(read: Read, *, size_bytes: int, footer: tuple[int, int] | None) -> SplitStores:
    """Where the rows of a split of `size_bytes` are. `footer`: the first byte of its footer and its end, if known.

    Raises DamagedSplitError where the bytes are no split, are cut, or have two different numbers of rows. Raises
    UnsupportedSplitError for deleted documents, for a split that refers to Parquet files instead of holding rows (a
    companion), and for an unknown version or compressor.
    """
    files = _layout(read, size_bytes, footer)
    meta = _meta(read, files)
    fields = tuple(_fields(meta))
    if len({field.name for field in fields}) != len(fields):
        raise DamagedSplitError("has two fields with the same name")
    if _COMPANION_FILE in files or any(field.name.startswith(_COMPANION_FIELDS) for field in fields):
        raise UnsupportedSplitError("refers to Parquet files instead of holding rows", feature="companion")
    stores = []
    for name, row_count in _segments(meta):
        begin, end = _range(files, f"{name}.store")
        store = read_store(read, begin, end)
        if store.row_count != row_count:
            raise DamagedSplitError(f"has a segment of {row_count} rows whose doc store has {store.row_count}")
        stores.append(store)
    return SplitStores(fields=fields, stores=tuple(stores))


def read_index(read: Read, *, size_bytes: int, footer: tuple[int, int] | None) -> list[dict[str, Any]]:
    """The fields of a split's index in index order: name, type and options of each. Raises as `read_split`."""
    meta = _meta(read, _layout(read, size_bytes, footer))
    list(_fields(meta))
    return list(meta["schema"])


def chunks(split: SplitStores, *, most_rows: int, most_bytes: int, rows: range | None = None) -> Iterator[Chunk]:
    """Yield the split in chunks of at most so many rows and bytes; a single larger block is a chunk of its own.

    With `rows`, only the blocks whose first row is in that range. So adjacent ranges together give each block once.
    """
    rows = range(split.row_count) if rows is None else rows
    block = row = 0
    for store in split.stores:
        begin, stop = (_first_block_from(store, edge - row) for edge in (rows.start, rows.stop))
        while begin < stop:
            end = _chunk_end(store, range(begin, stop), most_rows, most_bytes)
            yield Chunk(
                first_block=block + begin,
                block_count=end - begin,
                first_row=row + store.rows_before(begin),
                row_count=store.row_ends[end - 1] - store.rows_before(begin),
                size_bytes=store.byte_ends[end - 1] - store.bytes_before(begin),
            )
            begin = end
        block, row = block + store.block_count, row + store.row_count


def blocks_of(split: SplitStores, chunk: Chunk) -> tuple[DocStore, range]:
    """The store that `chunk` is in, and the range of its blocks. Raises DamagedSplitError where no store has them."""
    first = chunk.first_block
    for store in split.stores:
        if first < store.block_count:
            blocks = range(first, first + chunk.block_count)
            if not blocks or blocks.stop > store.block_count:
                break
            return store, blocks
        first -= store.block_count
    raise DamagedSplitError(
        f"has no {chunk.block_count} blocks from {chunk.first_block} on: it is not the split that was planned"
    )


def _first_block_from(store: DocStore, row: int) -> int:
    """The first block that begins at `row` or later; `block_count` where none does."""
    return 0 if row <= 0 else min(bisect_left(store.row_ends, row) + 1, store.block_count)


def _chunk_end(store: DocStore, blocks: range, most_rows: int, most_bytes: int) -> int:
    begin = blocks.start
    rows, size = store.rows_before(begin) + most_rows, store.bytes_before(begin) + most_bytes
    end = begin + 1
    while end < blocks.stop and store.row_ends[end] <= rows and store.byte_ends[end] <= size:
        end += 1
    return end


# --- where the files are ---------------------------------------------------------------------------------------------

_Files = Mapping[str, tuple[int, int]]


def _layout(read: Read, size_bytes: int, footer: tuple[int, int] | None) -> _Files:
    begin, end = footer or (max(0, size_bytes - _TAIL_BYTES), size_bytes)
    if not 0 <= begin <= end <= size_bytes:
        raise DamagedSplitError(f"has a footer from {begin} to {end}, in {size_bytes} bytes")
    if end - begin > _LARGE_FOOTER_BYTES:
        begin = end - _TAIL_BYTES
    held = exactly(read, begin, end - begin)

    def at(offset: int, length: int) -> bytes:
        if offset < 0:
            raise DamagedSplitError("has a footer that is longer than the split")
        return held[offset - begin :][:length] if offset >= begin else exactly(read, offset, length)

    layout_end = end - 8 - _u32(at(end - 4, 4))
    length = _u32(at(layout_end, 4))
    layout = at(layout_end - length, length)
    if len(layout) < _LAYOUT.size or _LAYOUT.unpack_from(layout)[0] != LAYOUT_MAGIC:
        raise DamagedSplitError("has no footer of a split")
    if (version := _LAYOUT.unpack_from(layout)[1]) != LAYOUT_VERSION:
        raise UnsupportedSplitError(f"has a footer of version {version}", feature="splitVersion")
    files = _object(layout[_LAYOUT.size :], "list of files").get("files")
    if not isinstance(files, dict):
        raise DamagedSplitError("has a footer without a list of files")
    return {name: _file_range(name, where, size_bytes) for name, where in files.items()}


def _u32(four: bytes) -> int:
    if len(four) != 4:
        raise DamagedSplitError("has a footer that is cut")
    return int.from_bytes(four, "little")


def _file_range(name: str, where: Any, size_bytes: int) -> tuple[int, int]:  # Any: JSON that is checked here
    match where:
        case {"start": int(begin), "end": int(end)} if 0 <= begin <= end <= size_bytes:
            return begin, end
    raise DamagedSplitError(f"has a footer that gives the place of {name!r:.60} as {shown(where)}")


def _range(files: _Files, name: str) -> tuple[int, int]:
    if name not in files:
        raise DamagedSplitError(f"has no file {name}")
    return files[name]


# --- what is in them -------------------------------------------------------------------------------------------------


def _meta(read: Read, files: _Files) -> dict[str, Any]:  # Any: JSON, as above
    begin, end = _range(files, _META)
    return _object(exactly(read, begin, end - begin), "list of segments")


def _object(text: bytes, what: str) -> dict[str, Any]:  # Any: JSON, as above
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise DamagedSplitError(f"has a {what} that is not JSON") from error
    if not isinstance(found, dict):
        raise DamagedSplitError(f"has a {what} that is not a JSON object")
    return found


def _fields(meta: dict[str, Any]) -> Iterator[IndexField]:
    for field in _objects(meta, "schema"):
        match field:
            case {"name": str(name), "type": str(), "options": dict(options)}:
                yield IndexField(name=name, is_stored=options.get("stored") is True)
            case _:
                raise DamagedSplitError(f"has a field that is {shown(field)}")


def _segments(meta: dict[str, Any]) -> Iterator[tuple[str, int]]:
    """Of each segment, the name of its files without their suffix, and its number of rows."""
    for segment in _objects(meta, "segments"):
        match segment:
            case {"segment_id": str(name), "max_doc": int(rows), **rest} if rows >= 0:
                if rest.get("deletes") is not None:
                    raise UnsupportedSplitError("has deleted documents", feature="deletes")
                yield name.replace("-", ""), rows
            case _:
                raise DamagedSplitError(f"has a segment that is {shown(segment)}")


def _objects(meta: dict[str, Any], name: str) -> Sequence[object]:
    found = meta.get(name)
    if not isinstance(found, list):
        raise DamagedSplitError(f"has no {name} in its list of segments")
    return found
