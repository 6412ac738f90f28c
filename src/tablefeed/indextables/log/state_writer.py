"""Encodes the Avro files of a state in the form of either writer of IndexTables ("states").

The manifests are put first, then `_manifest.avro`, only where none exists: in a state-only table that is the commit.
Each file has a sync marker of 16 random bytes.
"""

from __future__ import annotations

from collections.abc import Iterable
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
    """The bytes of `_manifest.avro`; `decode_state` gives `state` back. `sync`: 16 random bytes."""
    prefix = names.DOC_MAPPING_PREFIX if writer is Writer.NATIVE else ""
    record = {
        "formatVersion": FORMAT_VERSION,
        "stateVersion": state.version,
        **fields.write_values(fields.STATE, state, native=True),
        "manifests": [_manifest_record(manifest) for manifest in state.manifests],
        "tombstones": state.tombstones.to_pylist(),
        "schemaRegistry": {prefix + key: text for key, text in state.registry.items()},
        "metadata": None if state.metadata is None else _metadata_text(state.metadata, writer),
    }
    return avro_file.encode_records(
        [record], schema=avro_schemas.STATE_MANIFEST, codec=avro_file.ZSTANDARD, sync=sync, url=url
    )


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
    return avro_file.encode_records(records, schema=avro_schemas.file_entry(writer), codec=codec, sync=sync, url=url)


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
        **fields.write_values(fields.MANIFEST, manifest, native=True),
        "partitionBounds": None if bounds is None else {c: {"min": b.low, "max": b.high} for c, b in bounds.items()},
    }


def _metadata_text(metadata: Metadata, writer: Writer) -> str:
    native = writer is Writer.NATIVE
    return orjson.dumps({names.METADATA: fields.write_metadata(metadata, native=native)}, default=dict).decode()
