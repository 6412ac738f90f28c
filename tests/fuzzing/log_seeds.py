"""The valid logs and data files that fuzzing begins with: small, made by the package and by tests/support."""

from __future__ import annotations

import gzip
import io
import json
import struct
import zlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import fastavro
import pyarrow as pa
from pyroaring import BitMap64

from hostile import checkpoints, logs
from support import actions, index_log
from support.checkpoints import TYPES, in_parquet, of_version, sidecar
from support.logs import TABLE_ID, Action, add, col, info, json_lines, meta, metadata, protocol, remove, txn
from support.split_bytes import NONE, U64, ZSTD, a_field, a_split
from tablefeed.delta.checkpoint.last_checkpoint import WrittenCheckpoint, encode_last_checkpoint
from tablefeed.delta.tracked import TrackedMetadata, encode_entry
from tablefeed.feed.rows import state
from tablefeed.indextables.log import avro_file, state_writer, version_file
from tablefeed.indextables.split.nested import Instant
from tablefeed.model.actions import Metadata, Protocol, Version
from tablefeed.model.split import Split


def as_json(*values: object) -> list[bytes]:
    """Gives each of `values` as JSON."""
    return [json.dumps(value, separators=(",", ":")).encode() for value in values]


# --- Delta's log ----------------------------------------------------------------------------------------------------

_SCHEMA = json.dumps(
    {
        "type": "struct",
        "fields": [
            {"name": "id", "type": "long", "nullable": False, "metadata": {"delta.columnMapping.id": 1}},
            {"name": "p", "type": "decimal(10,2)", "nullable": True, "metadata": {}},
            {
                "name": "deep",
                "type": {
                    "type": "array",
                    "elementType": {
                        "type": "map",
                        "keyType": "string",
                        "valueType": {"type": "struct", "fields": []},
                        "valueContainsNull": True,
                    },
                    "containsNull": True,
                },
                "nullable": True,
                "metadata": {"comment": "é"},
            },
        ],
    }
)
_VECTOR = logs.vector(next(iter(logs.VECTORS)))
_STATS = (
    '{"numRecords":3,"minValues":{"id":1,"s":{"x":1}},"maxValues":{"id":3},"nullCount":{"id":0},"tightBounds":true}'
)
_ADD = add("p=1/a%20b.parquet", stats=_STATS, tags={"t": "x"}, deletionVector=_VECTOR, baseRowId=0)
_ACTIONS: tuple[Action, ...] = (
    protocol(3, 7, readerFeatures=["deletionVectors"], writerFeatures=["deletionVectors", "domainMetadata"]),
    metadata(_SCHEMA, partition_columns=["p"], configuration={"delta.appendOnly": "true"}),
    txn("app", 7),
    _ADD,
    add("b.parquet"),
    remove("c.parquet", deletionTimestamp=5, size=3),
    {"domainMetadata": {"domain": "d", "configuration": "{}", "removed": False}},
)


def commits() -> list[bytes]:
    cdc = {"cdc": {"path": "c", "partitionValues": {}, "size": 1, "dataChange": False}}
    first = info(operation="WRITE", operationParameters={"mode": "Append"}, inCommitTimestamp=9, isBlindAppend=True)
    return [json_lines(first, *_ACTIONS, cdc), json_lines(_ADD, add("b")), b'{"commitInfo":{"x":1e400}}\n\n{}']


def tables() -> list[bytes]:
    mapped = {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "3"}
    ruled = {"delta.invariants": '{"expression":{"expression":"id > 0"}}', "delta.generationExpression": "1"}
    columns = [
        col("id", id=1, physicalName="col-1"),
        col("s", "string", id=2, physicalName="é", notes={"comment": "c"}),
    ]
    properties = {
        "delta.constraints.c": "id > 0",
        "delta.logRetentionDuration": "interval 2 days",
        "delta.dataSkippingNumIndexedCols": "3",
        "delta.dataSkippingStatsColumns": "id,`s.x`",
        "delta.checkpointInterval": "10",
        "delta.targetFileSize": "10mb",
    }
    return [
        json_lines(*_ACTIONS),
        json_lines(protocol(2, 5), meta(*columns, configuration=mapped)),
        json_lines(protocol(1, 3), meta(col("id", notes=ruled), configuration=properties), add("a")),
    ]


def compactions() -> list[bytes]:
    return [json_lines(*_ACTIONS), json_lines(*_ACTIONS, txn("app", 8)), json_lines(*_ACTIONS, _ADD)]


def json_checkpoints() -> list[bytes]:
    return [
        json_lines(of_version(3), *_ACTIONS),
        json_lines(of_version(3), *_ACTIONS[:3], sidecar("a.parquet"), sidecar("_delta_log/_sidecars/b.parquet")),
    ]


def parquet_checkpoints() -> list[bytes]:
    lines = [json_lines(*_ACTIONS[:3], add("a.parquet"), add("b"))]
    rows = checkpoints.checkpoint_rows(lines)
    struct_stats = {**TYPES, "add": pa.struct([*TYPES["add"], ("stats_parsed", _parsed_stats())])}
    parsed = {"add": {**add("a")["add"], "stats": None, "stats_parsed": {"numRecords": 3, "minValues": {"id": 1}}}}
    return [
        checkpoints.checkpoint(rows, write_page_checksum=False),
        checkpoints.checkpoint(rows, compression="zstd"),
        in_parquet([of_version(3), *_ACTIONS[:2], sidecar("a.parquet")], compression="snappy"),
        in_parquet([add("a"), add("b"), remove("c")], compression="none", use_dictionary=False),
        in_parquet([add("a"), add("b")], compression="gzip"),
        in_parquet([parsed, {"add": {**add("b")["add"]}}], struct_stats, compression="none"),
    ]


def _parsed_stats() -> pa.DataType:
    values = pa.struct({"id": pa.int64(), "at": pa.timestamp("us", "UTC"), "f": pa.float64(), "n": pa.decimal128(9, 2)})
    return pa.struct({"numRecords": pa.int64(), "minValues": values, "maxValues": values})


def last_checkpoints() -> list[bytes]:
    v2 = {"path": "3.checkpoint.a.parquet", "sizeInBytes": 9, "sidecarFiles": []}
    written = WrittenCheckpoint(version=Version(3), action_count=9, add_count=2, size_bytes=900, schema=[{"a": 1.5}])
    whole = [encode_last_checkpoint(each) for each in (written, replace(written, schema=None, part_count=2, v2=v2))]
    return [*whole, b'{"version":3,"size":-1}']


def checksums() -> list[bytes]:
    counts: dict[str, object] = {"numFiles": 2, "tableSizeBytes": 20, "numMetadata": 1, "numProtocol": 1}
    known = {"metadata": metadata(_SCHEMA)["metaData"], "protocol": _ACTIONS[0]["protocol"]}
    more = {
        "txnId": "t",
        "inCommitTimestampOpt": 5,
        "setTransactions": [{"appId": "a", "version": 1}],
        "domainMetadata": [{"domain": "d", "configuration": "{}", "removed": False}],
        "histogramOpt": {"sortedBinBoundaries": [0, 8192], "fileCounts": [2, 0], "totalBytes": [20, 0]},
        "allFiles": [_ADD["add"], add("b")["add"]],
        "numDeletedRecordsOpt": 1,
        "numDeletionVectorsOpt": 1,
        "deletedRecordCountsHistogramOpt": {"deletedRecordCounts": [1, 1, 0, 0, 0, 0, 0, 0, 0, 0]},
    }
    return as_json({**counts, **known, **more}, {**counts, "metadata": {"id": TABLE_ID}}, counts)


def vectors_in_log() -> list[bytes]:
    stored = {"storageType": "u", "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^", "offset": 4, "sizeInBytes": 40}
    absolute = {"storageType": "p", "pathOrInlineDv": "s3://b/dv.bin", "offset": 1, "sizeInBytes": 3}
    all_of_them = [logs.vector(each) for each in logs.VECTORS]
    return as_json(*all_of_them, {**stored, "cardinality": 6}, {**absolute, "cardinality": 1})


_BITMAPS = (
    BitMap64([0, 2, 7]),
    BitMap64(range(10, 900)),
    BitMap64(range(0, 20_000, 2)),
    BitMap64([1, 1 << 33, (1 << 40) + 5, (1 << 63) - 1]),
)


def vectors_in_file() -> list[bytes]:
    found: list[bytes] = []
    for bitmap in _BITMAPS:
        runs = bitmap.copy()
        runs.run_optimize()
        found += (struct.pack("<QI", len(bitmap), 1681511377) + each.serialize() for each in (bitmap, runs))
    portable = BitMap64([3, 4]).serialize()[12:]
    for order in "<>":
        native = struct.pack(f"{order}III", 1681511376, 1, len(portable)) + portable
        found.append(struct.pack("<Q", 2) + native)
    return found


def partition_values() -> list[bytes]:
    texts = "string é|long -12|short 7|byte 127|float 1.5e3|double -Infinity|double NaN|boolean TRUE|binary \\u00FF"
    times = "date 2024-02-29|date -0044-03-15|timestamp 2024-01-31 12:00:00.123456|timestamp 2024-01-31T12:00:00Z"
    rest = "timestamp 2024-01-31 12:00:00+01:30|timestamp_ntz 2024-01-31 12:00:00|decimal 12.345|array [1]"
    return [text.encode() for text in "|".join((texts, times, rest)).split("|")]


def schemas() -> list[bytes]:
    return [_SCHEMA.encode(), logs.SCHEMA.encode(), b'{"type":"struct","fields":[]}']


def statistics() -> list[bytes]:
    values = {
        "long": 5,
        "integer": -5,
        "string": "a text that is long enough to be cut",
        "double": 1.5,
        "float": 0.1,
        "decimal": 12.345,
        "date": "2024-02-29",
        "timestamp": "2024-01-31T12:00:00.123Z",
        "timestamp_ntz": "2024-01-31T12:00:00.123",
        "s": {"x": 7},
    }
    whole = {"numRecords": 3, "minValues": values, "maxValues": values, "nullCount": dict.fromkeys(values, 0)}
    return [*as_json(whole, {"numRecords": 3, "nullCounts": {"long": 3}}), _STATS.encode()]


def domains() -> list[bytes]:
    at = pa.scalar(5, pa.int64())
    files = (state.StateFile(path="_tablefeed/apply_changes/a.parquet", row_count=3),)
    known = state.as_domain(state.State(how={"keys": ["id"]}, files=files, truncated_at=at, forgotten_at=at))
    clustering = {"clusteringColumns": [["id"], ["deep", "x"]], "domainName": "delta.clustering"}
    return [known.configuration.encode(), *as_json(clustering, {"rowIdHighWaterMark": 12})]


def tracked_schemas() -> list[bytes]:
    of_table = Metadata(table_id=TABLE_ID, schema_string=_SCHEMA, partition_columns=("p",), configuration={"a": "b"})
    spoken = Protocol(min_reader_version=3, min_writer_version=7, reader_features=frozenset({"deletionVectors"}))
    entry = TrackedMetadata.of(Version(3), of_table, spoken, table_id=TABLE_ID, source_path="file:/c/sources/0")
    return [encode_entry(entry), encode_entry(replace(entry, configuration=None, protocol=None, previous=1))]


# --- IndexTables ----------------------------------------------------------------------------------------------------


def index_hints() -> list[bytes]:
    hint = {"version": 3, "size": 9, "sizeInBytes": 90, "numFiles": 2, "createdTime": 5, "parts": 2}
    return as_json({**hint, "checkpointId": "a", "format": "avro-state", "stateDir": "state-v3"}, hint, {"version": 3})


_SPLIT = Split(num_records=3, footer_start=5, footer_end=9, min_values={"id": "1"}, max_values={"id": "3"})
_ADDS = [
    replace(index_log.add("a.split"), split=replace(_SPLIT, doc_mapping='[{"name":"id","type":"i64"}]', tags=("x",))),
    replace(index_log.add("d=1/b.split"), split=_SPLIT, partition_values={"d": "1"}),
]


def _index_lines() -> bytes:
    written = actions.commit(0, *_ADDS, index_log.remove("c.split"))
    whole = replace(written, protocol=index_log.PROTOCOL, metadata=index_log.METADATA)
    return gzip.decompress(version_file.encode_commit(whole, writer=version_file.Writer.NATIVE))


def index_commits() -> list[bytes]:
    lines = _index_lines()
    skip = b'{"mergeskip":{"path":"a","skipTimestamp":1,"reason":"r","operation":"merge"}}\n'
    scala = version_file.compress(lines, writer=version_file.Writer.SCALA)
    return [lines, lines + skip, scala, version_file.compress(lines, writer=version_file.Writer.NATIVE)]


def index_checkpoints() -> list[bytes]:
    lines = _index_lines()
    parts = {"checkpointId": "abc", "parts": ["00000000000000000003.checkpoint.abc.00001.json"], "numParts": 1}
    return [lines, gzip.compress(lines, mtime=0), *as_json(parts, {"checkpoint": {**parts, "parts": [1, 2]}})]


def index_states() -> list[bytes]:
    manifests = [index_log.manifest(name, _ADDS)[0] for name in ("1", "2")]
    whole = replace(
        index_log.a_state(3, manifests, file_count=2, dead=["x.split"]),
        registry={"h": '[{"name":"id","type":"i64"}]'},
        metadata=index_log.METADATA,
    )
    packed = state_writer.encode_state(whole, writer=version_file.Writer.NATIVE, sync=index_log.SYNC, url="t")
    return [packed, *(_repacked(packed, codec) for codec in _CODECS)]


def index_manifests() -> list[bytes]:
    native, scala = version_file.Writer.NATIVE, version_file.Writer.SCALA
    return [index_log.manifest_bytes(_ADDS, writer=writer) for writer in (native, scala)]


_CODECS: dict[str, Callable[[bytes], bytes]] = {
    "null": lambda text: text,
    "deflate": lambda text: zlib.compress(text, wbits=-15),
    "snappy": lambda text: pa.compress(text, "snappy", asbytes=True) + zlib.crc32(text).to_bytes(4, "big"),
}


def _repacked(container: bytes, codec: str) -> bytes:
    """A container of one block of zstandard with another codec."""
    source, file = io.BytesIO(container), io.BytesIO()
    header: Any = fastavro.schemaless_reader(source, avro_file._HEADER, None)  # Any: Avro records
    block: Any = fastavro.schemaless_reader(source, avro_file._BLOCK, None)
    text = pa.CompressedInputStream(pa.BufferReader(block["data"]), "zstd").read()
    header["meta"]["avro.codec"] = codec.encode()
    fastavro.schemaless_writer(file, avro_file._HEADER, header)
    fastavro.schemaless_writer(file, avro_file._BLOCK, {**block, "data": _CODECS[codec](text)})
    return file.getvalue()


def splits() -> list[bytes]:
    nested = {"x": 5, "l": ["a", "b"]}
    rows: list[list[tuple[int, Any]]] = [
        [(0, 1), (1, "a"), (2, 0.5), (3, True), (4, Instant(5_000)), (5, Instant(0)), (6, b"raw"), (7, nested)],
        [(0, U64(2)), (1, "é"), (7, {"x": None, "l": []})],
        [],
    ]
    kinds = {
        "id": "i64",
        "s": "text",
        "f": "f64",
        "b": "bool",
        "at": "date",
        "d": "date",
        "raw": "bytes",
        "deep": "json_object",
    }
    names: list[str | dict[str, object]] = [a_field(name, kind) for name, kind in kinds.items()]
    plain = [a_split(names, [rows, rows[:1]], compressor=c, block_rows=2) for c in (NONE, ZSTD)]
    return [*plain, a_split(names, [rows]), a_split(names, [])]


def doc_mappings() -> list[bytes]:
    of_field = {"name": "s", "type": "text", "tokenizer": "raw", "stored": True, "fast": True}
    return as_json([of_field, {"name": "id", "type": "i64"}], {"field_mappings": [of_field], "mode": "lenient"})
