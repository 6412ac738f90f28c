"""The Avro files of a state, as either writer of IndexTables would write them ("states").

A state is put in this order: manifests, then `_manifest.avro` where there is none yet, which is the commit of a
state-only table. Each file takes 16 bytes of chance, its sync marker.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from tablefeed.indextables import names
from tablefeed.indextables.log import avro_file, avro_schemas, columns, fields, schema_registry
from tablefeed.indextables.log.avro_state import FORMAT_VERSION, Manifest, State
from tablefeed.indextables.log.version_file import Writer
from tablefeed.model.actions import Metadata


def encode_state(state: State, *, writer: Writer, sync: bytes, url: str) -> bytes:
    """The bytes of `_manifest.avro`; `decode_state` gives `state` back. `sync`: 16 bytes of chance."""
    prefix = names.DOC_MAPPING_PREFIX if writer is Writer.NATIVE else ""
    record = {
        "formatVersion": FORMAT_VERSION,
        "stateVersion": state.version,
        "createdAt": state.created_ms,
        "numFiles": state.file_count,
        "totalBytes": state.total_bytes,
        "manifests": [_manifest_record(manifest) for manifest in state.manifests],
        "tombstones": state.tombstones.to_pylist(),
        "schemaRegistry": {prefix + key: text for key, text in state.registry.items()},
        "protocolVersion": state.protocol_version,
        "metadata": None if state.metadata is None else _metadata_text(state.metadata, writer),
    }
    return avro_file.encode_records(
        [record], schema=avro_schemas.STATE_MANIFEST, codec=avro_file.ZSTANDARD, sync=sync, url=url
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamp:
    """What a manifest's entries say of when they were added; with no time, each says when its file was written.

    The Scala log writes version 0 in all of them.
    """

    version: int
    added_ms: int | None


def stamped(rows: pa.Table, stamp: Stamp) -> pa.Table:
    """`rows` with `stamp` where nothing is said of when a file was added; its own time where `stamp` has none."""
    times = rows["modified_ms"] if stamp.added_ms is None else pa.scalar(stamp.added_ms, pa.int64())
    said = {
        "added_version": pc.fill_null(rows["added_version"], stamp.version),
        "added_ms": pc.coalesce(rows["added_ms"], times),
    }
    return pa.table([said.get(name, rows[name]) for name in rows.schema.names], schema=rows.schema)


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

    Doc mappings that `mappings` does not have yet are taken into it where `writer` refers to them by hash.
    """
    words = _native_words if writer is Writer.NATIVE else _scala_words
    records = (words(entry, mappings) for batch in batches for entry in columns.to_entries(batch))
    return avro_file.encode_records(records, schema=avro_schemas.file_entry(writer), codec=codec, sync=sync, url=url)


def _scala_words(entry: dict[str, Any], mappings: schema_registry.DocMappings) -> dict[str, Any]:
    entry["docMappingRef"] = mappings.by_hash(entry["docMappingJson"], entry["docMappingRef"])
    return entry


def _native_words(entry: dict[str, Any], mappings: schema_registry.DocMappings) -> dict[str, Any]:
    text, key = entry["docMappingJson"], entry["docMappingRef"]
    entry["docMappingJson"] = mappings.inline(text, key)
    entry["docMappingRef"] = None if key is None else mappings.by_hash(text, key)
    return entry


def _manifest_record(manifest: Manifest) -> dict[str, object]:
    bounds = manifest.bounds
    return {
        "path": manifest.path,
        "numEntries": manifest.entry_count,
        "minAddedAtVersion": manifest.min_added_version,
        "maxAddedAtVersion": manifest.max_added_version,
        "partitionBounds": None if bounds is None else {c: {"min": b.low, "max": b.high} for c, b in bounds.items()},
        "tombstoneCount": manifest.tombstone_count,
        "liveEntryCount": manifest.live_count,
    }


def _metadata_text(metadata: Metadata, writer: Writer) -> str:
    native = writer is Writer.NATIVE
    return orjson.dumps({names.METADATA: fields.write_metadata(metadata, native=native)}, default=dict).decode()
