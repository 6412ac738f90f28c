"""The fields of each action, one table per action (PROTOCOL.md, "Actions"): wire name, attribute, type, need.

A table is used for reading and writing; its order is the order in which Delta-Spark writes. Fields that the protocol
names are checked strictly, other fields are ignored. A fault raises `BadActionError` with its reason; the caller
(codec.py) adds the file and the line.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar

import orjson

from tablefeed.delta import names
from tablefeed.delta.paths import decode_path
from tablefeed.model.action_fields import (
    PROTOCOL,
    TXN,
    BadActionError,
    Field,
    JsonObject,
    read_boolean,
    read_fields,
    read_integer,
    read_long,
    read_object,
    read_partition_values,
    read_text,
    read_text_map,
    read_texts,
    write_fields,
)
from tablefeed.model.actions import (
    AddFile,
    CdcFile,
    DeletionVector,
    DomainMetadata,
    FileAction,
    Metadata,
    Protocol,
    RemoveFile,
    Txn,
)
from tablefeed.model.shown import shown

EMPTY_SCHEMA = '{"type":"struct","fields":[]}'
"""The schema of a metaData without `schemaString`: Delta-Spark writes none for a table without columns."""

STORAGE_TYPES = ("u", "i", "p")
"""Where a deletion vector may be ("Deletion Vector Descriptor Schema")."""


def _storage_type(value: object) -> str:
    if value in STORAGE_TYPES:
        return str(value)
    raise BadActionError(f"is {shown(value)}, not u, i or p")


# "Deletion Vector Descriptor Schema"
_DELETION_VECTOR = (
    Field(wire="storageType", attribute="storage_type", read=_storage_type, required=True),
    Field(wire="pathOrInlineDv", attribute="path_or_inline", read=read_text, required=True),
    Field(wire="offset", attribute="offset", read=read_integer),
    Field(wire="sizeInBytes", attribute="size_bytes", read=read_integer, required=True),
    Field(wire="cardinality", attribute="cardinality", read=read_long, required=True),
)


def read_deletion_vector(value: object) -> DeletionVector:
    """The deletion vector that `value` spells. Raises BadActionError."""
    return DeletionVector(**{"offset": None, **read_fields(_DELETION_VECTOR, read_object(value))})


_VECTOR_FIELD = Field(
    wire="deletionVector",
    attribute="deletion_vector",
    read=read_deletion_vector,
    write=lambda vector: write_fields(_DELETION_VECTOR, vector),
)
_PATH = Field(wire="path", attribute="log_path", read=read_text, required=True)
_DATA_CHANGE = Field(wire="dataChange", attribute="data_change", read=read_boolean, required=True)
_STATS = Field(wire="stats", attribute="stats", read=read_text)
_TAGS = Field(wire="tags", attribute="tags", read=read_text_map, write=dict)
_BASE_ROW_ID = Field(wire="baseRowId", attribute="base_row_id", read=read_long)
_ROW_COMMIT_VERSION = Field(wire="defaultRowCommitVersion", attribute="default_row_commit_version", read=read_long)


_PARTITION_VALUES = Field(
    wire="partitionValues", attribute="partition_values", read=read_partition_values, write=dict, required=True
)
_SIZE = Field(wire="size", attribute="size_bytes", read=read_long, required=True)


# "Add File and Remove File"
_ADD = (
    _PATH,
    _PARTITION_VALUES,
    _SIZE,
    Field(wire="modificationTime", attribute="modified_ms", read=read_long, required=True),
    _DATA_CHANGE,
    _STATS,
    _TAGS,
    _VECTOR_FIELD,
    _BASE_ROW_ID,
    _ROW_COMMIT_VERSION,
    Field(wire="clusteringProvider", attribute="clustering_provider", read=read_text),
)
_REMOVE = (
    _PATH,
    Field(wire="deletionTimestamp", attribute="deletion_timestamp_ms", read=read_long),
    _DATA_CHANGE,
    Field(wire="extendedFileMetadata", attribute="extended_file_metadata", read=read_boolean),
    replace(_PARTITION_VALUES, required=False),
    replace(_SIZE, required=False),
    _TAGS,
    _VECTOR_FIELD,
    _BASE_ROW_ID,
    _ROW_COMMIT_VERSION,
    _STATS,
)
# "Add CDC File"; its `dataChange` is always false and not in the model.
_CDC = (_PATH, _PARTITION_VALUES, _SIZE, _TAGS)

# "Domain Metadata"
_DOMAIN = (
    Field(wire="domain", attribute="domain", read=read_text, required=True),
    Field(wire="configuration", attribute="configuration", read=read_text, required=True),
    Field(wire="removed", attribute="removed", read=read_boolean, required=True),
)

# "Sidecar File Information", "Checkpoint Metadata"
_SIDECAR = (
    Field(wire="path", attribute="path", read=read_text, required=True),
    Field(wire="sizeInBytes", attribute="size_bytes", read=read_long, required=True),
    Field(wire="modificationTime", attribute="modified_ms", read=read_long, required=True),
)
_CHECKPOINT_METADATA = (Field(wire="version", attribute="version", read=read_long, required=True),)

# "Format Specification": in the model these are attributes of the metadata itself.
_FORMAT = (
    Field(wire="provider", attribute="format_provider", read=read_text, required=True),
    Field(wire="options", attribute="format_options", read=read_text_map, write=dict),
)

# "Change Metadata"; `format` is written between the two.
_METADATA_HEAD = (
    Field(wire="id", attribute="table_id", read=read_text, required=True),
    Field(wire="name", attribute="name", read=read_text),
    Field(wire="description", attribute="description", read=read_text),
)
_METADATA_FORMAT = Field(
    wire="format", attribute="format", read=lambda value: read_fields(_FORMAT, read_object(value)), required=True
)
_METADATA_TAIL = (
    Field(wire="schemaString", attribute="schema_string", read=read_text),
    Field(wire="partitionColumns", attribute="partition_columns", read=read_texts, write=list, required=True),
    Field(wire="configuration", attribute="configuration", read=read_text_map, write=dict),
    Field(wire="createdTime", attribute="created_ms", read=read_long),
)
_METADATA = (*_METADATA_HEAD, _METADATA_FORMAT, *_METADATA_TAIL)
_METADATA_NAMES = frozenset(field.wire for field in _METADATA)


FILE_FIELDS: Mapping[str, str] = {field.attribute: field.wire for field in _ADD}
"""The wire name of each attribute of an AddFile."""

REMOVE_FIELDS: Mapping[str, str] = {field.attribute: field.wire for field in _REMOVE}
"""The wire name of each attribute of a RemoveFile."""

DELETION_VECTOR_FIELDS: Mapping[str, str] = {field.attribute: field.wire for field in _DELETION_VECTOR}
"""The wire name of each attribute of a DeletionVector."""


_Fact = TypeVar("_Fact", Protocol, Txn, DomainMetadata)

_TABLES: Mapping[type, tuple[str, tuple[Field, ...]]] = {
    AddFile: (names.ADD, _ADD),
    RemoveFile: (names.REMOVE, _REMOVE),
    CdcFile: (names.CDC, _CDC),
    Protocol: (names.PROTOCOL, PROTOCOL),
    Txn: (names.TXN, TXN),
    DomainMetadata: (names.DOMAIN_METADATA, _DOMAIN),
}
_FILES: Mapping[str, type[AddFile] | type[RemoveFile] | type[CdcFile]] = {
    names.ADD: AddFile,
    names.REMOVE: RemoveFile,
    names.CDC: CdcFile,
}


def read_file(action: str, values: JsonObject) -> FileAction:
    """The add, remove or cdc with the fields `values`; `action` is its key. Raises BadActionError."""
    kind = _FILES[action]
    attributes = read_fields(_TABLES[kind][1], values)
    return kind(path=decode_path(attributes["log_path"]), **attributes)


def read_fact(kind: type[_Fact], values: JsonObject) -> _Fact:
    """The protocol, txn or domainMetadata with the fields `values`. Raises BadActionError."""
    return kind(**read_fields(_TABLES[kind][1], values))


def read_metadata(values: JsonObject) -> Metadata:
    """The metaData with the fields `values`; unknown fields are kept in `extra`. Raises BadActionError."""
    attributes = {"schema_string": EMPTY_SCHEMA, **read_fields(_METADATA, values)}
    attributes |= attributes.pop(_METADATA_FORMAT.attribute)
    extra = {name: values[name] for name in values if name not in _METADATA_NAMES}
    if extra:
        _check_writable(extra)
    return Metadata(**attributes, extra=extra)


def _check_writable(extra: JsonObject) -> None:
    """Raises BadActionError for what can be parsed but is nested too deep to be written again."""
    try:
        orjson.dumps({names.METADATA: extra}, default=str)
    except TypeError:
        raise BadActionError(f"has unknown fields that are nested too deep to be kept: {shown([*extra])}") from None


def write_action(action: FileAction | Metadata | Protocol | Txn | DomainMetadata) -> dict[str, dict[str, object]]:
    """The line of `action`: its key and its fields. Features are sorted; unknown fields of a metaData come last."""
    if isinstance(action, Metadata):
        head, tail = write_fields(_METADATA_HEAD, action), write_fields(_METADATA_TAIL, action)
        return {names.METADATA: {**head, _METADATA_FORMAT.wire: write_fields(_FORMAT, action), **tail, **action.extra}}
    key, table = _TABLES[type(action)]
    fixed = {_DATA_CHANGE.wire: False} if isinstance(action, CdcFile) else {}
    return {key: {**write_fields(table, action), **fixed}}


def read_sidecar(values: JsonObject) -> str:
    """The path of the sidecar that `values` spell, as logged. Raises BadActionError."""
    return str(read_fields(_SIDECAR, values)["path"])


def read_checkpoint_version(values: JsonObject) -> int:
    """The version in the checkpointMetadata that `values` spell. Raises BadActionError."""
    return int(read_fields(_CHECKPOINT_METADATA, values)["version"])


def read_in_commit_timestamp(info: JsonObject) -> int | None:
    """The in-commit timestamp of a commitInfo, None where it has none. Raises BadActionError."""
    field = Field(wire=names.IN_COMMIT_TIMESTAMP, attribute=names.IN_COMMIT_TIMESTAMP, read=read_long)
    return read_fields((field,), info).get(names.IN_COMMIT_TIMESTAMP)
