"""An Avro container file to and from records (Avro specification, "Object Container Files").

The container is read here, pyarrow decompresses its blocks, and fastavro decodes their records with the schema in the
file. Fields are then found by name, so that unknown fields are ignored and missing ones are absent. fastavro's own
reader would need one more package for each codec.
"""

from __future__ import annotations

import functools
import io
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa

from tablefeed.errors import CorruptLogError, StoreConfigError, TablefeedError, UnsupportedFeatureError

NULL, ZSTANDARD = "null", "zstandard"
"""The codecs that we write."""

_MAGIC = b"Obj\x01"
_SYNC_BYTES = 16
_BLOCK_BYTES = 64 << 10  # before compression: about the block size of Avro's own writers

Record = dict[str, Any]  # Any: what the writer's schema allows


def read_records(data: bytes, *, url: str, log_file: str) -> Iterator[list[Record]]:
    """The records of a container, a list for each of its blocks; all have the same names.

    Raises CorruptLogError for a malformed file, UnsupportedFeatureError for an unknown codec, and
    StoreConfigError where fastavro is not installed.
    """
    source = _Source(data)
    try:
        schema, codec, sync = _read_header(source)
        while not source.at_end:
            count, packed = _read_block(source, sync)
            yield _decode(_decompress(packed, codec, url=url, log_file=log_file), count, schema, url=url)
    except _BadFileError as error:
        raise CorruptLogError(f"it is not a valid Avro file: {error}", url=url, log_file=log_file) from error


def encode_records(
    records: Iterable[Mapping[str, object]], *, schema: Mapping[str, Any], codec: str, sync: bytes, url: str
) -> bytes:
    """The container of `records`; `sync` is 16 random bytes.

    Raises StoreConfigError where fastavro is not installed. The records must fit the schema.
    """
    if len(sync) != _SYNC_BYTES:
        raise ValueError(f"a sync marker has 16 bytes, not {len(sync)}")
    avro, parsed = _fastavro(url), _parsed(json.dumps(schema), url)
    file = io.BytesIO()
    file.write(_MAGIC + _long(2))
    for key, value in (("avro.schema", json.dumps(schema, separators=(",", ":"))), ("avro.codec", codec)):
        file.write(_text(key.encode()) + _text(value.encode()))
    file.write(_long(0) + sync)
    block, count = io.BytesIO(), 0

    def flush() -> None:
        packed = block.getvalue() if codec == NULL else bytes(pa.compress(block.getvalue(), "zstd", asbytes=True))
        file.write(_long(count) + _text(packed) + sync)

    for record in records:
        avro.schemaless_writer(block, parsed, record)
        count += 1
        if block.tell() >= _BLOCK_BYTES:
            flush()
            block, count = io.BytesIO(), 0
    if count:
        flush()
    return file.getvalue()


class _BadFileError(ValueError):
    """The bytes are not a valid container."""


class _Source:
    """Bytes that are read from the front."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = memoryview(data), 0

    @property
    def at_end(self) -> bool:
        return self._at == len(self._data)

    def take(self, count: int) -> bytes:
        taken = self._data[self._at : self._at + max(count, 0)]
        if len(taken) != count:
            raise _BadFileError("it ends too soon")
        self._at += count
        return bytes(taken)

    def long(self) -> int:
        """A zig-zag integer of at most ten bytes ("Binary Encoding")."""
        value = 0
        for shift in range(0, 70, 7):
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return (value >> 1) ^ -(value & 1)
        raise _BadFileError("a number has too many bytes")


def _read_header(source: _Source) -> tuple[str, str, bytes]:
    """The schema, the codec and the sync marker."""
    if source.take(len(_MAGIC)) != _MAGIC:
        raise _BadFileError("it does not begin with Avro's magic bytes")
    metadata: dict[bytes, bytes] = {}
    while (count := source.long()) != 0:
        if count < 0:  # a block of the map that has its size too
            source.long()
        for _ in range(abs(count)):
            key = source.take(source.long())
            metadata[key] = source.take(source.long())
    try:
        return (
            metadata[b"avro.schema"].decode(),
            metadata.get(b"avro.codec", NULL.encode()).decode(),
            source.take(_SYNC_BYTES),
        )
    except (KeyError, UnicodeDecodeError) as error:
        raise _BadFileError("its header has no schema") from error


def _read_block(source: _Source, sync: bytes) -> tuple[int, bytes]:
    """The number of records in the next block, and the block as stored."""
    count, packed = source.long(), source.take(source.long())
    if source.take(_SYNC_BYTES) != sync:
        raise _BadFileError("a block is cut off, or belongs to another file")
    return count, packed


def _decompress(packed: bytes, codec: str, *, url: str, log_file: str) -> bytes:
    try:
        match codec:
            case "null":
                return packed
            case "zstandard":
                with pa.CompressedInputStream(pa.BufferReader(packed), "zstd") as stream:
                    return bytes(stream.read())
            case "snappy":
                return _snappy(packed)
            case "deflate":
                return zlib.decompress(packed, wbits=-zlib.MAX_WBITS)
    except (OSError, zlib.error, pa.ArrowException, ValueError) as error:
        raise _BadFileError(f"a block cannot be decompressed: {error}") from error
    raise UnsupportedFeatureError(
        f"{url} cannot be read: {log_file} is compressed with Avro's codec {codec!r}, but only null, zstandard, snappy "
        "and deflate are supported. Write the table with spark.indextables.state.compression=zstd.",
        url=url,
        features=(f"codec {codec}",),
        error_class="INDEXTABLES_UNSUPPORTED_CODEC",
    )


def _snappy(packed: bytes) -> bytes:
    """Decompresses raw snappy, which begins with the length of the text; the text's checksum follows it."""
    body, checksum, size = packed[:-4], packed[-4:], 0
    for place, byte in enumerate(body[:5]):
        size |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            break
    # a compressed byte becomes at most about 64 bytes
    if size > 64 * len(body):
        raise _BadFileError("a block has an impossible length")
    text = pa.decompress(body, decompressed_size=size, codec="snappy", asbytes=True) if size else b""
    if zlib.crc32(text).to_bytes(4, "big") != checksum:
        raise _BadFileError("a block does not match its checksum")
    return bytes(text)


def _decode(text: bytes, count: int, schema: str, *, url: str) -> list[Record]:
    """The records of one block. They are decoded as one Avro array, in one call: a count, the elements and a zero."""
    if count <= 0:
        if count == 0 and not text:
            return []
        raise _BadFileError("a block has an impossible count of records")
    avro = _fastavro(url)
    stream = io.BytesIO(_long(count) + text + _long(0))
    try:
        items = _parsed(schema, url)
        if not isinstance(items, dict) or items.get("type") != "record":
            raise TypeError("it is of no record")  # noqa: TRY301 - one of the ways in which a schema is none
        records = avro.schemaless_reader(stream, {"type": "array", "items": items}, None)
    except TablefeedError:
        raise
    except Exception as error:  # fastavro can raise anything for a bad schema or bad bytes
        raise _BadFileError(f"a block does not fit the schema: {error or type(error).__name__!r:.200}") from error
    if stream.read(1) or not all(isinstance(record, dict) for record in records):
        raise _BadFileError("a block does not fit the schema")
    return list(records)


@functools.lru_cache(maxsize=64)  # files of one writer all have one schema
def _parsed(schema: str, url: str) -> Any:  # Any: fastavro's own form
    return _fastavro(url).parse_schema(json.loads(schema))


def _fastavro(url: str) -> Any:  # Any: its stubs are not where it is not installed
    try:
        import fastavro  # an extra: a table without states does without it
    except ImportError as error:
        raise StoreConfigError(
            f'{url} keeps its log in Avro, but fastavro is not installed. Run pip install "tablefeed[indextables]" for '
            "the driver's Python.",
            url=url,
        ) from error
    return fastavro


def _long(value: int) -> bytes:
    zigzag = (value << 1) ^ (value >> 63)
    encoded = bytearray()
    while zigzag > 0x7F:
        encoded.append(zigzag & 0x7F | 0x80)
        zigzag >>= 7
    encoded.append(zigzag)
    return bytes(encoded)


def _text(value: bytes) -> bytes:
    return _long(len(value)) + value
