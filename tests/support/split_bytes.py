"""Splits from Python values, for what no writer at hand would write: other compressors, odd values, damage.

By the layout as indextables/split/split_file.py and doc_store.py describe it, told here a second time. The skip index
has its lowest layer alone, which is what readers of all rows need.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterable, Mapping, Sequence
from ipaddress import IPv6Address
from itertools import accumulate

import pyarrow as pa

from tablefeed.indextables.split.nested import Instant

NONE, LZ4, ZSTD = 0, 1, 4


class U64(int):
    """An unsigned number, where an int is a signed one."""


class Raw(bytes):
    """A value's bytes as they are, its type code first."""


Document = Sequence[tuple[int, object]]
"""Values with the numbers of their fields."""


def vint(number: int) -> bytes:
    out = bytearray()
    while number >= 128:
        out.append(number & 127)
        number >>= 7
    return bytes([*out, number | 128])


def value(given: object) -> bytes:
    match given:
        case Raw():
            return given
        case None:
            return b"\x0b"
        case bool():
            return bytes([9, given])
        case U64():
            return b"\x01" + struct.pack("<Q", given)
        case int():
            return b"\x02" + struct.pack("<q", given)
        case float():
            (bits,) = struct.unpack("<Q", struct.pack("<d", given))
            ordered = ~bits & (1 << 64) - 1 if bits >> 63 else bits | 1 << 63
            return b"\x06" + struct.pack("<Q", ordered)
        case str():
            return b"\x00" + vint(len(given.encode())) + given.encode()
        case bytes():
            return b"\x04" + vint(len(given)) + given
        case Instant():
            return b"\x05" + struct.pack("<q", given.units)
        case IPv6Address():
            return b"\x0a" + given.packed[::-1]
        case list():
            return b"\x0c" + vint(len(given)) + b"".join(map(value, given))
        case dict():
            members = [value(name) + value(item) for name, item in given.items()]
            return b"\x0d" + vint(2 * len(members)) + b"".join(members)
    raise TypeError(given)


def document(values: Document) -> bytes:
    return vint(len(values)) + b"".join(struct.pack("<I", field) + value(given) for field, given in values)


def block(documents: Sequence[bytes]) -> bytes:
    begins = [0, *accumulate(map(len, documents[:-1]))][: len(documents)]
    return b"".join(documents) + struct.pack(f"<{len(begins) + 1}I", *begins, len(begins))


def packed(raw: bytes, compressor: int) -> bytes:
    if compressor == NONE:
        return raw
    codec = pa.Codec({LZ4: "lz4_raw", ZSTD: "zstd"}.get(compressor, "zstd"))
    payload: bytes = codec.compress(raw, asbytes=True) if raw else b""
    return struct.pack("<I", len(raw)) + payload


def a_store(blocks: Iterable[Sequence[bytes]], *, compressor: int = LZ4, version: int = 2) -> bytes:
    """A doc store of these documents, block by block."""
    body, layer, rows = b"", b"", 0
    for documents in blocks:
        payload = packed(block(documents), compressor)
        layer += vint(1) + vint(rows) + vint(len(body)) + vint(len(documents)) + vint(len(payload))
        body, rows = body + payload, rows + len(documents)
    index = vint(1) + vint(len(layer)) + layer if rows else vint(0)
    body += index + struct.pack("<IQB15x", version, len(body), compressor)
    return body + marks(body)


def marks(body: bytes) -> bytes:
    """What a file of Tantivy's ends with."""
    told = json.dumps({"version": {"index_format_version": 7}, "crc": zlib.crc32(body)}).encode()
    return told + struct.pack("<II", len(told), 1337)


def a_field(name: str, kind: str = "text", *, stored: bool = True) -> dict[str, object]:
    return {"name": name, "type": kind, "options": {"stored": stored}}


def bundle(files: Mapping[str, bytes], *, cached: bytes = b"cached", version: int = 1) -> bytes:
    """A split of these files."""
    body, places = b"", {}
    for name, content in files.items():
        places[name] = {"start": len(body), "end": len(body) + len(content)}
        body += content
    layout = struct.pack("<II", 403881646, version) + json.dumps({"files": places}).encode()
    return body + layout + struct.pack("<I", len(layout)) + cached + struct.pack("<I", len(cached))


def a_split(
    fields: Sequence[str | dict[str, object]],
    segments: Sequence[Sequence[Document]],
    *,
    compressor: int = LZ4,
    version: int = 2,
    block_rows: int = 1000,
) -> bytes:
    """A split with these documents, `block_rows` of them in a block."""
    files: dict[str, bytes] = {}
    told = []
    for number, documents in enumerate(segments):
        name = f"{number:08x}-0000-0000-0000-000000000000"
        encoded = [document(values) for values in documents]
        blocks = [encoded[i : i + block_rows] for i in range(0, len(encoded), block_rows)]
        files[name.replace("-", "") + ".store"] = a_store(blocks, compressor=compressor, version=version)
        told.append({"segment_id": name, "max_doc": len(documents), "deletes": None})
    schema = [a_field(field) if isinstance(field, str) else field for field in fields]
    files["meta.json"] = json.dumps({"segments": told, "schema": schema, "opstamp": 0}).encode()
    return bundle({**files, "split_fields": b""})
