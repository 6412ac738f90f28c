"""An Avro container file to and from records (Avro specification, "Object Container Files").

fastavro decodes and encodes every value: the header and the blocks, which the specification defines as Avro records,
and the records in a block, with the schema in the file. So fields are found by name, unknown fields are ignored, and
missing ones are absent. pyarrow decompresses the blocks. fastavro's own file reader does not check a block's checksum
nor that its bytes are used up: of a damaged file it would return wrong records, or fewer.
"""

from __future__ import annotations

import functools
import io
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa

from tablefeed.errors import CorruptLogError, StoreConfigError, UnsupportedFeatureError

NULL, ZSTANDARD = "null", "zstandard"
"""The codecs that we write."""

_MAGIC = b"Obj\x01"
_SYNC_BYTES = 16
_BLOCK_BYTES = 64 << 10  # before compression: about the block size of Avro's own writers
_SYNC = {"type": "fixed", "name": "Sync", "size": _SYNC_BYTES}
_HEADER = {
    "type": "record",
    "name": "Header",
    "fields": [
        {"name": "magic", "type": {"type": "fixed", "name": "Magic", "size": len(_MAGIC)}},
        {"name": "meta", "type": {"type": "map", "values": "bytes"}},
        {"name": "sync", "type": _SYNC},
    ],
}
_BLOCK = {
    "type": "record",
    "name": "Block",
    "fields": [{"name": "count", "type": "long"}, {"name": "data", "type": "bytes"}, {"name": "sync", "type": _SYNC}],
}
_PRIMITIVES = ("boolean", "int", "long", "float", "double", "bytes", "string")

Record = dict[str, Any]  # Any: what the writer's schema allows


def read_records(data: bytes, *, url: str, log_file: str) -> Iterator[list[Record]]:
    """The records of a container, a list for each of its blocks; all have the same names.

    Raises CorruptLogError for a malformed file, UnsupportedFeatureError for an unknown codec, and
    StoreConfigError where fastavro is not installed.
    """
    avro, source = _fastavro(url), io.BytesIO(data)
    try:
        schema, codec, sync = _read_header(avro, source)
        while source.tell() < len(data):
            count, packed = _read_block(avro, source, sync)
            yield _decode(avro, _decompress(packed, codec, url=url, log_file=log_file), count, schema)
    except _BadFileError as error:
        raise CorruptLogError(f"it is not a valid Avro file: {error}", url=url, log_file=log_file) from error


def encode_records(
    records: Iterable[Mapping[str, object]], *, schema: Mapping[str, Any], codec: str, sync: bytes, url: str
) -> bytes:
    """The container of `records`; `sync` is 16 random bytes.

    Raises StoreConfigError where fastavro is not installed. The records must fit the schema.
    """
    avro, file = _fastavro(url), io.BytesIO()
    text = json.dumps(schema, separators=(",", ":")).encode()
    parsed, meta = _parsed(avro, text), {"avro.schema": text, "avro.codec": codec.encode()}
    avro.schemaless_writer(file, _HEADER, {"magic": _MAGIC, "meta": meta, "sync": sync})
    block, count = io.BytesIO(), 0

    def flush() -> None:
        packed = block.getvalue() if codec == NULL else bytes(pa.compress(block.getvalue(), "zstd", asbytes=True))
        avro.schemaless_writer(file, _BLOCK, {"count": count, "data": packed, "sync": sync})

    for record in records:
        avro.schemaless_writer(block, parsed, record)
        count += 1
        if block.tell() >= _BLOCK_BYTES:
            flush()
            block, count = io.BytesIO(), 0
    if count:
        flush()
    return file.getvalue()


@functools.lru_cache(maxsize=4)  # a log has two schemas, one of states and one of manifests, in each file of a kind
def _parsed(avro: Any, schema: bytes) -> Any:  # Any: the module, and its form of a schema
    return avro.parse_schema(json.loads(schema))


class _BadFileError(ValueError):
    """The bytes are not a valid container."""


def _read(avro: Any, source: io.BytesIO, schema: object, wrong: str) -> Any:  # Any: the module, and a value of `schema`
    try:
        return avro.schemaless_reader(source, schema, None)
    except Exception as error:  # fastavro can raise anything for bad bytes
        raise _BadFileError(f"{wrong}: {error or type(error).__name__!r:.200}") from error


def _read_header(avro: Any, source: io.BytesIO) -> tuple[Any, str, bytes]:  # Any: the module, and its form of a schema
    """The schema of an array of the records, the codec and the sync marker."""
    header = _read(avro, source, _HEADER, "its header cannot be read")
    if header["magic"] != _MAGIC:
        raise _BadFileError("it does not begin with Avro's magic bytes")
    try:
        schema = _parsed(avro, header["meta"]["avro.schema"])
        codec = header["meta"].get("avro.codec", NULL.encode()).decode()
    except Exception as error:  # as above
        raise _BadFileError(f"its header has no valid schema: {error or type(error).__name__!r:.200}") from error
    if not isinstance(schema, dict) or schema.get("type") != "record":
        raise _BadFileError("its schema is not that of a record")
    records = {"type": "array", "items": schema}
    _has_bytes(records)
    return records, codec, header["sync"]


def _has_bytes(schema: Any, within: frozenset[str] = frozenset()) -> bool:  # Any: JSON
    """Whether each value of `schema` has a byte or more. `within` names the records that it is a part of.

    Raises _BadFileError if the items of an array may have none, because the array could claim any number of them. Also
    raises it for a record within itself: fastavro recurses in C for each level, and can end the process.
    """
    match schema:
        case {"type": "array", "items": items}:
            if not _has_bytes(items, within):
                raise _BadFileError("its schema has an array of values without bytes")
        case {"name": name, "fields": fields}:
            of_each = [_has_bytes(field["type"], within | {name}) for field in fields]
            return any(of_each)
        case {"type": "map", "values": values}:
            _has_bytes(values, within)
        case list():
            for each in schema:
                _has_bytes(each, within)
        case {"type": kind}:
            return _has_bytes(kind, within)
        case str() if schema in within:
            raise _BadFileError(f"its schema has a record {schema} within itself")
        case _:
            return schema in _PRIMITIVES
    return True


def _read_block(avro: Any, source: io.BytesIO, sync: bytes) -> tuple[int, bytes]:  # Any: the module
    """The number of records in the next block, and the block as stored."""
    block = _read(avro, source, _BLOCK, "it ends too soon")
    if block["sync"] != sync:
        raise _BadFileError("a block is cut off, or belongs to another file")
    return block["count"], block["data"]


def _decompress(packed: bytes, codec: str, *, url: str, log_file: str) -> bytes:
    try:
        match codec:
            case "null":
                return packed
            case "zstandard":
                return _zstandard(packed)
            case "snappy":
                return _snappy(packed)
            case "deflate":
                return zlib.decompress(packed, wbits=-zlib.MAX_WBITS)  # a byte becomes at most 1032 bytes
    except (OSError, zlib.error, pa.ArrowException, ValueError) as error:
        raise _BadFileError(f"a block cannot be decompressed: {error}") from error
    raise UnsupportedFeatureError(
        f"{url} cannot be read: {log_file} is compressed with Avro's codec {codec!r}, but only null, zstandard, snappy "
        "and deflate are supported. Write the table with spark.indextables.state.compression=zstd.",
        url=url,
        features=(f"codec {codec}",),
        error_class="INDEXTABLES_UNSUPPORTED_CODEC",
    )


_MOST_EXPANSION = 1024
"""About the most of deflate. Zstandard itself has no limit: a run of equal bytes of any length becomes a few bytes."""
_ALWAYS_UNPACKED_BYTES = 1 << 20


def _zstandard(packed: bytes) -> bytes:
    most = max(_MOST_EXPANSION * len(packed), _ALWAYS_UNPACKED_BYTES)
    with pa.CompressedInputStream(pa.BufferReader(packed), "zstd") as stream:
        # Not `read`, which does not free its memory where it fails.
        text: bytes = stream.read_buffer(most + 1).to_pybytes()
    if len(text) > most:
        raise _BadFileError(f"a block of {len(packed)} bytes has more than {most} bytes of records")
    return text


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


def _decode(avro: Any, text: bytes, count: int, schema: object) -> list[Record]:  # Any: the module
    """The records of one block. They are decoded as one Avro array, in one call: a count, the elements and a zero."""
    if not count and not text:
        return []
    if count <= 0:
        raise _BadFileError("a block has an impossible count of records")
    stream = io.BytesIO()
    avro.schemaless_writer(stream, "long", count)
    stream.write(text + b"\0")
    stream.seek(0)
    records: list[Record] = _read(avro, stream, schema, "a block does not fit the schema")
    if stream.read(1):
        raise _BadFileError("a block has more bytes than records")
    return records


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
