"""The fields of each action, one table per action (PROTOCOL.md, "Actions"): wire name, attribute, type, need.

A table is used for reading and writing; its order is the order in which Delta-Spark writes. Fields that the protocol
names are checked strictly, other fields are ignored. A fault raises `BadActionError` with its reason; the caller
(codec.py) adds the file and the line.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from tablefeed.delta import names
from tablefeed.delta.paths import decode_path
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

EMPTY_SCHEMA = '{"type":"struct","fields":[]}'
"""The schema of a metaData without `schemaString`: Delta-Spark writes none for a table without columns."""

STORAGE_TYPES = ("u", "i", "p")
"""Where a deletion vector may be ("Deletion Vector Descriptor Schema")."""

JsonObject = Mapping[str, Any]  # Any: what JSON can hold, before a table below has checked it


class BadActionError(ValueError):
    """The field at `path` is not what the protocol says. Never leaves `delta`: callers raise CorruptLogError."""

    def __init__(self, reason: str, *path: str) -> None:
        self.reason, self.path = reason, path
        super().__init__(f"{'.'.join(path)} {reason}")

    def of(self, action: str) -> str:
        """The text of the fault, with `action` before the path."""
        return str(BadActionError(self.reason, action, *self.path))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Field:
    wire: str
    attribute: str
    read: Callable[[Any], object]
    write: Callable[[Any], object] = lambda value: value
    required: bool = False


def _read(table: tuple[_Field, ...], values: JsonObject) -> dict[str, Any]:
    """The attributes that `values` gives; what is absent or null is left to the model's defaults."""
    attributes: dict[str, Any] = {}
    for field in table:
        value = values.get(field.wire)
        if value is not None:
            try:
                attributes[field.attribute] = field.read(value)
            except BadActionError as bad:
                raise BadActionError(bad.reason, field.wire, *bad.path) from None
        elif field.required:
            raise BadActionError("is missing", field.wire)
    return attributes


def _write(table: tuple[_Field, ...], action: object) -> dict[str, object]:
    values = ((field, getattr(action, field.attribute)) for field in table)
    return {field.wire: field.write(value) for field, value in values if value is not None}


def _string(value: object) -> str:
    if isinstance(value, str):
        return value
    raise BadActionError(f"is {value!r:.60}, not a string")


def _boolean(value: object) -> bool:
    if isinstance(value, bool):
        return value
    raise BadActionError(f"is {value!r:.60}, not a boolean")


def _long(value: object) -> int:
    # In Python bool is an int; for numbers beyond 64 bits the parser returns floats.
    if type(value) is int and -(2**63) <= value < 2**63:
        return value
    raise BadActionError(f"is {value!r:.60}, not a 64-bit integer")


def _integer(value: object) -> int:
    if type(value) is int and -(2**31) <= value < 2**31:
        return value
    raise BadActionError(f"is {value!r:.60}, not a 32-bit integer")


def _object(value: object) -> dict[str, Any]:
    if isinstance(value, dict):
        return value
    raise BadActionError(f"is {value!r:.60}, not an object")


def _partition_values(value: object) -> dict[str, str | None]:
    values = _object(value)
    return {column: None if text is None else _string(text) for column, text in values.items()}


def _string_map(value: object) -> dict[str, str]:
    # A null value means the same as an absent key. The protocol allows no null here.
    return {key: _string(text) for key, text in _object(value).items() if text is not None}


def _strings(value: object) -> tuple[str, ...]:
    if isinstance(value, list):
        return tuple(_string(text) for text in value)
    raise BadActionError(f"is {value!r:.60}, not a list of strings")


def _string_set(value: object) -> frozenset[str]:
    return frozenset(_strings(value))


def _storage_type(value: object) -> str:
    if value in STORAGE_TYPES:
        return str(value)
    raise BadActionError(f"is {value!r:.60}, not u, i or p")


# "Deletion Vector Descriptor Schema"
_DELETION_VECTOR = (
    _Field(wire="storageType", attribute="storage_type", read=_storage_type, required=True),
    _Field(wire="pathOrInlineDv", attribute="path_or_inline", read=_string, required=True),
    _Field(wire="offset", attribute="offset", read=_integer),
    _Field(wire="sizeInBytes", attribute="size_bytes", read=_integer, required=True),
    _Field(wire="cardinality", attribute="cardinality", read=_long, required=True),
)


def read_deletion_vector(value: object) -> DeletionVector:
    """The deletion vector that `value` spells. Raises BadActionError."""
    return DeletionVector(**{"offset": None, **_read(_DELETION_VECTOR, _object(value))})


_VECTOR_FIELD = _Field(
    wire="deletionVector",
    attribute="deletion_vector",
    read=read_deletion_vector,
    write=lambda vector: _write(_DELETION_VECTOR, vector),
)
_PATH = _Field(wire="path", attribute="log_path", read=_string, required=True)
_DATA_CHANGE = _Field(wire="dataChange", attribute="data_change", read=_boolean, required=True)
_STATS = _Field(wire="stats", attribute="stats", read=_string)
_TAGS = _Field(wire="tags", attribute="tags", read=_string_map, write=dict)
_BASE_ROW_ID = _Field(wire="baseRowId", attribute="base_row_id", read=_long)
_ROW_COMMIT_VERSION = _Field(wire="defaultRowCommitVersion", attribute="default_row_commit_version", read=_long)


_PARTITION_VALUES = _Field(
    wire="partitionValues", attribute="partition_values", read=_partition_values, write=dict, required=True
)
_SIZE = _Field(wire="size", attribute="size_bytes", read=_long, required=True)


# "Add File and Remove File"
_ADD = (
    _PATH,
    _PARTITION_VALUES,
    _SIZE,
    _Field(wire="modificationTime", attribute="modified_ms", read=_long, required=True),
    _DATA_CHANGE,
    _STATS,
    _TAGS,
    _VECTOR_FIELD,
    _BASE_ROW_ID,
    _ROW_COMMIT_VERSION,
    _Field(wire="clusteringProvider", attribute="clustering_provider", read=_string),
)
_REMOVE = (
    _PATH,
    _Field(wire="deletionTimestamp", attribute="deletion_timestamp_ms", read=_long),
    _DATA_CHANGE,
    _Field(wire="extendedFileMetadata", attribute="extended_file_metadata", read=_boolean),
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

# "Transaction Identifiers"
_TXN = (
    _Field(wire="appId", attribute="app_id", read=_string, required=True),
    _Field(wire="version", attribute="txn_version", read=_long, required=True),
    _Field(wire="lastUpdated", attribute="last_updated_ms", read=_long),
)

# "Protocol Evolution"
_PROTOCOL = (
    _Field(wire="minReaderVersion", attribute="min_reader_version", read=_integer, required=True),
    _Field(wire="minWriterVersion", attribute="min_writer_version", read=_integer, required=True),
    _Field(wire="readerFeatures", attribute="reader_features", read=_string_set, write=sorted),
    _Field(wire="writerFeatures", attribute="writer_features", read=_string_set, write=sorted),
)

# "Domain Metadata"
_DOMAIN = (
    _Field(wire="domain", attribute="domain", read=_string, required=True),
    _Field(wire="configuration", attribute="configuration", read=_string, required=True),
    _Field(wire="removed", attribute="removed", read=_boolean, required=True),
)

# "Sidecar File Information", "Checkpoint Metadata"
_SIDECAR = (
    _Field(wire="path", attribute="path", read=_string, required=True),
    _Field(wire="sizeInBytes", attribute="size_bytes", read=_long, required=True),
    _Field(wire="modificationTime", attribute="modified_ms", read=_long, required=True),
)
_CHECKPOINT_METADATA = (_Field(wire="version", attribute="version", read=_long, required=True),)

# "Format Specification": in the model these are attributes of the metadata itself.
_FORMAT = (
    _Field(wire="provider", attribute="format_provider", read=_string, required=True),
    _Field(wire="options", attribute="format_options", read=_string_map, write=dict),
)

# "Change Metadata"; `format` is written between the two.
_METADATA_HEAD = (
    _Field(wire="id", attribute="table_id", read=_string, required=True),
    _Field(wire="name", attribute="name", read=_string),
    _Field(wire="description", attribute="description", read=_string),
)
_METADATA_FORMAT = _Field(
    wire="format", attribute="format", read=lambda value: _read(_FORMAT, _object(value)), required=True
)
_METADATA_TAIL = (
    _Field(wire="schemaString", attribute="schema_string", read=_string),
    _Field(wire="partitionColumns", attribute="partition_columns", read=_strings, write=list, required=True),
    _Field(wire="configuration", attribute="configuration", read=_string_map, write=dict),
    _Field(wire="createdTime", attribute="created_ms", read=_long),
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

_TABLES: Mapping[type, tuple[str, tuple[_Field, ...]]] = {
    AddFile: (names.ADD, _ADD),
    RemoveFile: (names.REMOVE, _REMOVE),
    CdcFile: (names.CDC, _CDC),
    Protocol: (names.PROTOCOL, _PROTOCOL),
    Txn: (names.TXN, _TXN),
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
    attributes = _read(_TABLES[kind][1], values)
    return kind(path=decode_path(attributes["log_path"]), **attributes)


def read_fact(kind: type[_Fact], values: JsonObject) -> _Fact:
    """The protocol, txn or domainMetadata with the fields `values`. Raises BadActionError."""
    return kind(**_read(_TABLES[kind][1], values))


def read_metadata(values: JsonObject) -> Metadata:
    """The metaData with the fields `values`; unknown fields are kept in `extra`. Raises BadActionError."""
    attributes = {"schema_string": EMPTY_SCHEMA, **_read(_METADATA, values)}
    attributes |= attributes.pop(_METADATA_FORMAT.attribute)
    return Metadata(**attributes, extra={name: values[name] for name in values if name not in _METADATA_NAMES})


def write_action(action: FileAction | Metadata | Protocol | Txn | DomainMetadata) -> dict[str, dict[str, object]]:
    """The line of `action`: its key and its fields. Features are sorted; unknown fields of a metaData come last."""
    if isinstance(action, Metadata):
        head, tail = _write(_METADATA_HEAD, action), _write(_METADATA_TAIL, action)
        return {names.METADATA: {**head, _METADATA_FORMAT.wire: _write(_FORMAT, action), **tail, **action.extra}}
    key, table = _TABLES[type(action)]
    fixed = {_DATA_CHANGE.wire: False} if isinstance(action, CdcFile) else {}
    return {key: {**_write(table, action), **fixed}}


def read_sidecar(values: JsonObject) -> str:
    """The path of the sidecar that `values` spell, as logged. Raises BadActionError."""
    return str(_read(_SIDECAR, values)["path"])


def read_checkpoint_version(values: JsonObject) -> int:
    """The version in the checkpointMetadata that `values` spell. Raises BadActionError."""
    return int(_read(_CHECKPOINT_METADATA, values)["version"])


def read_in_commit_timestamp(info: JsonObject) -> int | None:
    """The in-commit timestamp of a commitInfo, None where it has none. Raises BadActionError."""
    field = _Field(wire=names.IN_COMMIT_TIMESTAMP, attribute=names.IN_COMMIT_TIMESTAMP, read=_long)
    return _read((field,), info).get(names.IN_COMMIT_TIMESTAMP)
