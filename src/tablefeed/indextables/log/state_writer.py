"""Encodes the Avro files of a state in the form of either writer of IndexTables ("states").

The manifests are put first, then `_manifest.avro`, only where none exists: in a state-only table that is the commit.
Each file has a sync marker of 16 random bytes. Readers resolve by name with the schema in the file. The schemas here
are those of the two writers, so that the readers of each find what they look for. Their numbers are the field ids on
disk, not those of the protocol's text.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from tablefeed.indextables import names
from tablefeed.indextables.log import avro_file, columns, fields, schema_registry
from tablefeed.indextables.log.avro_state import FORMAT_VERSION, Manifest, State
from tablefeed.indextables.log.version_file import Writer
from tablefeed.model import action_fields
from tablefeed.model.actions import Metadata


def encode_state(state: State, *, writer: Writer, sync: bytes, url: str) -> bytes:
    """The bytes of `_manifest.avro`; `decode_state` gives `state` back. `sync`: 16 random bytes."""
    prefix = names.DOC_MAPPING_PREFIX if writer is Writer.NATIVE else ""
    record = {
        "formatVersion": FORMAT_VERSION,
        "stateVersion": state.version,
        **action_fields.write_fields(fields.STATE, state),
        "manifests": [_manifest_record(manifest) for manifest in state.manifests],
        "tombstones": state.tombstones.to_pylist(),
        "schemaRegistry": {prefix + key: text for key, text in state.registry.items()},
        "metadata": None if state.metadata is None else _metadata_text(state.metadata, writer),
    }
    return avro_file.encode_records([record], schema=STATE_MANIFEST, codec=avro_file.ZSTANDARD, sync=sync, url=url)


def stamped(rows: pa.Table, *, version: int, added_ms: int | None) -> pa.Table:
    """`rows` with `version` and `added_ms` where they lack when a file was added; None: the time it was written."""
    times = rows["modified_ms"] if added_ms is None else pa.scalar(added_ms, pa.int64())
    filled = {
        "added_version": pc.fill_null(rows["added_version"], version),
        "added_ms": pc.coalesce(rows["added_ms"], times),
    }
    return pa.table([filled.get(name, rows[name]) for name in rows.schema.names], schema=rows.schema)


def encode_entries(
    batches: Iterable[pa.RecordBatch],
    *,
    writer: Writer,
    mappings: schema_registry.DocMappings,
    codec: str,
    sync: bytes,
    url: str,
) -> bytes:
    """The bytes of a manifest of the adds in `batches` (`columns.FILE_COLUMNS`, `stamped`); memory is that of a batch.

    Where `writer` refers to doc mappings by hash, those that `mappings` lacks are added to it.
    """
    to_record = _native_entry if writer is Writer.NATIVE else _scala_entry
    records = (to_record(entry, mappings) for batch in batches for entry in columns.to_entries(batch))
    return avro_file.encode_records(records, schema=file_entry(writer), codec=codec, sync=sync, url=url)


def _scala_entry(entry: dict[str, Any], mappings: schema_registry.DocMappings) -> dict[str, Any]:
    entry["docMappingRef"] = mappings.by_hash(entry["docMappingJson"], entry["docMappingRef"])
    return entry


def _native_entry(entry: dict[str, Any], mappings: schema_registry.DocMappings) -> dict[str, Any]:
    text, key = entry["docMappingJson"], entry["docMappingRef"]
    entry["docMappingJson"] = mappings.inline(text, key)
    entry["docMappingRef"] = None if key is None else mappings.by_hash(text, key)
    return entry


def _manifest_record(manifest: Manifest) -> dict[str, object]:
    bounds = manifest.bounds
    return {
        **action_fields.write_fields(fields.MANIFEST, manifest),
        "partitionBounds": None if bounds is None else {c: {"min": b.low, "max": b.high} for c, b in bounds.items()},
    }


def _metadata_text(metadata: Metadata, writer: Writer) -> str:
    native = writer is Writer.NATIVE
    return orjson.dumps({names.METADATA: fields.write_metadata(metadata, native=native)}, default=dict).decode()


# --- the schemas ----------------------------------------------------------------------------------------------------

Schema = dict[str, Any]  # Any: Avro's schemas are JSON

_NAMESPACE = "io.indextables.state"
_STRINGS = {"type": "array", "items": "string"}
_STRING_MAP = {"type": "map", "values": "string"}


def _optional(name: str, kind: object, field_id: int) -> Schema:
    return {"name": name, "type": ["null", kind], "default": None, "field-id": field_id}


def _record(name: str, *fields: Schema) -> Schema:
    return {"type": "record", "name": name, "namespace": _NAMESPACE, "fields": list(fields)}


def _required(name: str, kind: object, field_id: int, **default: object) -> Schema:
    return {"name": name, "type": kind, **default, "field-id": field_id}


_FILE = (
    _required("path", "string", 100),
    _required("partitionValues", _STRING_MAP, 101),
    _required("size", "long", 102),
    _required("modificationTime", "long", 103),
    _required("dataChange", "boolean", 104),
    _optional("stats", "string", 110),
    _optional("minValues", _STRING_MAP, 111),
    _optional("maxValues", _STRING_MAP, 112),
    _optional("numRecords", "long", 113),
    _optional("footerStartOffset", "long", 120),
    _optional("footerEndOffset", "long", 121),
    _required("hasFooterOffsets", "boolean", 124, default=False),
)
_COMPANION = (
    _optional("companionSourceFiles", _STRINGS, 150),
    _optional("companionDeltaVersion", "long", 151),
    _optional("companionFastFieldMode", "string", 152),
)
_SPLIT = (
    _optional("deleteOpstamp", "long", 123),
    _optional("splitTags", _STRINGS, 132),
    _optional("numMergeOps", "int", 134),
    _optional("docMappingJson", "string", 133),
    _optional("docMappingRef", "string", 135),
    _optional("uncompressedSizeBytes", "long", 136),
    _optional("timeRangeStart", "string", 137),
    _optional("timeRangeEnd", "string", 138),
)
_ONLY_NATIVE = frozenset({"deleteOpstamp", "docMappingJson", "timeRangeStart", "timeRangeEnd"})
_ADDED = (("addedAtVersion", 140), ("addedAtTimestamp", 141))


def file_entry(writer: Writer) -> Schema:
    """The schema of a manifest's records."""
    if writer is Writer.NATIVE:
        own = [*_SPLIT, *(_required(name, "long", field_id, default=0) for name, field_id in _ADDED)]
    else:
        own = [field for field in _SPLIT if field["name"] not in _ONLY_NATIVE]
        own += (_required(name, "long", field_id) for name, field_id in _ADDED)
    return _record("FileEntry", *_FILE, *own, *_COMPANION)


_BOUNDS = _record(
    "PartitionBoundsItem",
    {"name": "min", "type": ["null", "string"], "default": None},
    {"name": "max", "type": ["null", "string"], "default": None},
)
_MANIFEST_INFO = _record(
    "ManifestInfoItem",
    {"name": "path", "type": "string"},
    {"name": "numEntries", "type": "long"},
    {"name": "minAddedAtVersion", "type": "long"},
    {"name": "maxAddedAtVersion", "type": "long"},
    {"name": "partitionBounds", "type": ["null", {"type": "map", "values": _BOUNDS}], "default": None},
    {"name": "tombstoneCount", "type": "long", "default": 0},
    {"name": "liveEntryCount", "type": "long", "default": -1},
)
STATE_MANIFEST: Schema = _record(
    "StateManifest",
    {"name": "formatVersion", "type": "int"},
    {"name": "stateVersion", "type": "long"},
    {"name": "createdAt", "type": "long"},
    {"name": "numFiles", "type": "long"},
    {"name": "totalBytes", "type": "long"},
    {"name": "manifests", "type": {"type": "array", "items": _MANIFEST_INFO}},
    {"name": "tombstones", "type": _STRINGS, "default": []},
    {"name": "schemaRegistry", "type": _STRING_MAP, "default": {}},
    {"name": "protocolVersion", "type": "int", "default": 4},
    {"name": "metadata", "type": ["null", "string"], "default": None},
)
"""The schema of the one record of `_manifest.avro`, the same by both writers."""
