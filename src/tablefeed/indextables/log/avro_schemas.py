"""The Avro schemas of IndexTables' states, as its two writers write them ("states").

Readers resolve by name with the schema in the file; these are for what we write, so that each writer's readers find
what they look for. The numbers are the field ids on disk, not those of the protocol's text.
"""

from __future__ import annotations

from typing import Any

from tablefeed.indextables.log.version_file import Writer

Schema = dict[str, Any]  # Any: Avro's schemas are JSON

_NAMESPACE = "io.indextables.state"
_STRINGS = {"type": "array", "items": "string"}
_STRING_MAP = {"type": "map", "values": "string"}


def _optional(name: str, kind: object, field_id: int) -> Schema:
    return {"name": name, "type": ["null", kind], "default": None, "field-id": field_id}


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
    return {"type": "record", "name": "FileEntry", "namespace": _NAMESPACE, "fields": [*_FILE, *own, *_COMPANION]}


_BOUNDS = {
    "type": "record",
    "name": "PartitionBoundsItem",
    "namespace": _NAMESPACE,
    "fields": [
        {"name": "min", "type": ["null", "string"], "default": None},
        {"name": "max", "type": ["null", "string"], "default": None},
    ],
}
_MANIFEST_INFO = {
    "type": "record",
    "name": "ManifestInfoItem",
    "namespace": _NAMESPACE,
    "fields": [
        {"name": "path", "type": "string"},
        {"name": "numEntries", "type": "long"},
        {"name": "minAddedAtVersion", "type": "long"},
        {"name": "maxAddedAtVersion", "type": "long"},
        {"name": "partitionBounds", "type": ["null", {"type": "map", "values": _BOUNDS}], "default": None},
        {"name": "tombstoneCount", "type": "long", "default": 0},
        {"name": "liveEntryCount", "type": "long", "default": -1},
    ],
}
STATE_MANIFEST: Schema = {
    "type": "record",
    "name": "StateManifest",
    "namespace": _NAMESPACE,
    "fields": [
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
    ],
}
"""The schema of the one record of `_manifest.avro`, the same by both writers."""
