"""The Avro files of a state, as either writer of IndexTables would write them ("states").

A state is put in this order: manifests, then `_manifest.avro` where there is none yet, which is the commit of a
state-only table. Each file takes 16 bytes of chance, its sync marker.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import orjson

from tablefeed.indextables import avro_file, avro_schemas, fields, names, schema_registry
from tablefeed.indextables.avro_state import FORMAT_VERSION, Manifest, State
from tablefeed.indextables.version_file import Writer
from tablefeed.model.actions import AddFile, Metadata


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
    """What a manifest's entries say of when they were added. The Scala log writes version 0 in all of them."""

    version: int
    added_ms: int


def encode_manifest(
    adds: Iterable[AddFile], *, writer: Writer, stamp: Stamp, registry: Mapping[str, str], sync: bytes, url: str
) -> bytes:
    """The bytes of a manifest of `adds`.

    The Scala log knows a doc mapping by its hash alone, the native one inline: what is wanting is found in `registry`,
    doc mappings by hash, or made.
    """
    schema = avro_schemas.file_entry(writer)
    codec = avro_file.NULL if writer is Writer.NATIVE else avro_file.ZSTANDARD
    records = (_entry(add, writer, stamp, registry) for add in adds)
    return avro_file.encode_records(records, schema=schema, codec=codec, sync=sync, url=url)


def _entry(add: AddFile, writer: Writer, stamp: Stamp, registry: Mapping[str, str]) -> dict[str, object]:
    record = fields.write_add(_with_mapping(add, writer, registry), native=False)
    return {**record, "addedAtVersion": stamp.version, "addedAtTimestamp": stamp.added_ms}


def _with_mapping(add: AddFile, writer: Writer, registry: Mapping[str, str]) -> AddFile:
    split = add.split
    if split is None:
        return add
    text, key = split.doc_mapping, split.doc_mapping_ref
    if writer is Writer.NATIVE and text is None and key is not None:
        return replace(add, split=replace(split, doc_mapping=registry.get(key)))
    if writer is Writer.SCALA and text is not None and key is None:
        return replace(add, split=replace(split, doc_mapping_ref=schema_registry.doc_mapping_hash(text)))
    return add


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
