"""The fields of each action, one table per action ("actions"): wire name, attribute, type, need.

A table is used for reading and writing; its order is the order in which the Scala log writes. When reading, null is
absent, the different forms of the two writers are both accepted, and unknown fields are ignored. A fault raises
`BadActionError` with its reason; the caller (version_file.py) adds the file and the line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tablefeed.errors import CorruptLogError
from tablefeed.indextables import names
from tablefeed.model.actions import AddFile, FileAction, Metadata, RemoveFile
from tablefeed.model.split import Split

JsonObject = Mapping[str, Any]  # Any: what JSON or Avro can hold, before a table below has checked it


class BadActionError(ValueError):
    """The field at `path` is not what it should be. Never leaves `indextables`: callers raise CorruptLogError."""

    def __init__(self, reason: str, *path: str) -> None:
        self.reason, self.path = reason, path
        super().__init__(f"{'.'.join(path)} {reason}".lstrip())

    def of(self, action: str) -> str:
        """The fault in words, as one of `action`."""
        return str(BadActionError(self.reason, action, *self.path))


@contextmanager
def corrupt_if_bad(what: str = "", *, url: str, log_file: str) -> Iterator[None]:
    """Raises CorruptLogError in place of BadActionError; `what` begins its reason."""
    try:
        yield
    except BadActionError as bad:
        raise CorruptLogError(f"{what}{bad}", url=url, log_file=log_file) from bad


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One field of an action. `native` says whether the native log writes it, which leaves out more than null."""

    wire: str
    attribute: str
    read: Callable[[Any], object]
    write: Callable[[Any], object] = lambda value: value
    required: bool = False
    native: bool = True


def read_add(values: JsonObject) -> AddFile:
    """The add that `values` spell, from JSON or Avro. Raises BadActionError.

    A path is not decoded: the file on disk has the same name, with any percent signs. `dataChange` is true where it is
    absent.
    """
    attributes = read_values(ADD, values)
    split = Split(**read_values(SPLIT, values))
    return AddFile(path=attributes["log_path"], **{**_ADD_DEFAULTS, **attributes}, split=split)


def write_add(add: AddFile, *, native: bool) -> dict[str, object]:
    """The object in the line of `add`. The Scala log writes null for None; the native log leaves the field out.

    A partition value of null is written as Hive's word for it.
    """
    split = add.split or Split()
    both = {**write_values(ADD, add, native=native), **write_values(SPLIT, split, native=native)}
    if native:
        return both
    both["hasFooterOffsets"] = split.footer_start is not None and split.footer_end is not None
    return {wire: both[wire] for wire in SCALA_ADD}


def read_remove(values: JsonObject) -> RemoveFile:
    """The remove that `values` spell. Raises BadActionError."""
    attributes = read_values(REMOVE, values)
    return RemoveFile(path=attributes["log_path"], **{"data_change": True, **attributes})


def write_file(file: FileAction, *, native: bool) -> tuple[str, dict[str, object]]:
    """The key and the object in the line of `file`."""
    match file:
        case AddFile():
            return names.ADD, write_add(file, native=native)
        case RemoveFile():
            return names.REMOVE, write_values(REMOVE, file, native=native)
        case _:
            raise TypeError(f"{type(file).__name__} is not an action of IndexTables")


def read_metadata(values: JsonObject) -> Metadata:
    """The metaData that `values` spell; fields that are not known are kept. Raises BadActionError."""
    attributes = read_values(METADATA, values)
    encoding = attributes.pop("format", {})
    extra = {name: value for name, value in values.items() if name not in _METADATA_NAMES}
    return Metadata(**attributes, **encoding, extra=extra)


def write_metadata(metadata: Metadata, *, native: bool) -> dict[str, object]:
    """The object in the line of `metadata`, with unknown fields last."""
    encoding = {"provider": metadata.format_provider, "options": dict(metadata.format_options)}
    head, tail = (write_values(table, metadata, native=native) for table in (_METADATA_HEAD, _METADATA_TAIL))
    return {**head, "format": encoding, **tail, **metadata.extra}


def partition_words(values: Mapping[str, str | None]) -> dict[str, str]:
    """Partition values with Hive's word for null: the maps of both writers have none."""
    return {column: names.HIVE_DEFAULT_PARTITION if text is None else text for column, text in values.items()}


def read_long(value: object) -> int:
    """The 64-bit integer that `value` is. Raises BadActionError."""
    # bool is an int to Python; beyond 2**64 the parser hands out floats
    if type(value) is int and -(2**63) <= value < 2**63:
        return value
    raise BadActionError(f"is {value!r:.60}, not a 64-bit integer")


def read_text(value: object) -> str:
    """The string that `value` is. Raises BadActionError."""
    if isinstance(value, str):
        return value
    raise BadActionError(f"is {value!r:.60}, not a string")


def read_values(table: tuple[Field, ...], values: JsonObject) -> dict[str, Any]:
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


def write_values(table: tuple[Field, ...], action: object, *, native: bool) -> dict[str, object]:
    """What is on disk of the attributes of `action`: null for None; `native`: only what the native log writes."""
    values = ((field, getattr(action, field.attribute)) for field in table if field.native or not native)
    written = {field.wire: None if value is None else field.write(value) for field, value in values}
    return {wire: value for wire, value in written.items() if value is not None} if native else written


def _boolean(value: object) -> bool:
    if isinstance(value, bool):
        return value
    raise BadActionError(f"is {value!r:.60}, not a boolean")


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
    return {column: None if text is None else read_text(text) for column, text in values.items()}


def _string_map(value: object) -> dict[str, str]:
    return {key: read_text(text) for key, text in _object(value).items() if text is not None}


def _strings(value: object) -> tuple[str, ...]:
    if isinstance(value, list):
        return tuple(read_text(text) for text in value)
    raise BadActionError(f"is {value!r:.60}, not a list of strings")


def _string_set(value: object) -> frozenset[str]:
    return frozenset(_strings(value))


def _time(value: object) -> str:
    # text by one writer, epoch time by another
    return str(read_long(value)) if type(value) is int else read_text(value)


PROTOCOL = (
    Field(wire="minReaderVersion", attribute="min_reader_version", read=_integer, required=True),
    Field(wire="minWriterVersion", attribute="min_writer_version", read=_integer, required=True),
    Field(wire="readerFeatures", attribute="reader_features", read=_string_set, write=sorted),
    Field(wire="writerFeatures", attribute="writer_features", read=_string_set, write=sorted),
)
_FORMAT = (
    Field(wire="provider", attribute="format_provider", read=read_text),
    Field(wire="options", attribute="format_options", read=_string_map),
)
_METADATA_HEAD = (
    Field(wire="id", attribute="table_id", read=read_text, required=True),
    Field(wire="name", attribute="name", read=read_text),
    Field(wire="description", attribute="description", read=read_text),
)
_METADATA_TAIL = (
    Field(wire="schemaString", attribute="schema_string", read=read_text, required=True),
    Field(wire="partitionColumns", attribute="partition_columns", read=_strings, write=list),
    Field(wire="configuration", attribute="configuration", read=_string_map, write=dict),
    Field(wire="createdTime", attribute="created_ms", read=read_long),
)
METADATA = (
    *_METADATA_HEAD,
    Field(wire="format", attribute="format", read=lambda value: read_values(_FORMAT, _object(value))),
    *_METADATA_TAIL,
)
_METADATA_NAMES = frozenset(field.wire for field in METADATA)

_ADD_DEFAULTS = {"data_change": True, "partition_values": {}}
ADD = (
    Field(wire="path", attribute="log_path", read=read_text, required=True),
    Field(wire="partitionValues", attribute="partition_values", read=_partition_values, write=partition_words),
    Field(wire="size", attribute="size_bytes", read=read_long, required=True),
    Field(wire="modificationTime", attribute="modified_ms", read=read_long, required=True),
    Field(wire="dataChange", attribute="data_change", read=_boolean),
    Field(wire="stats", attribute="stats", read=read_text),
    Field(wire="tags", attribute="tags", read=_string_map, write=dict, native=False),
)
SPLIT = (
    Field(wire="minValues", attribute="min_values", read=_string_map, write=dict),
    Field(wire="maxValues", attribute="max_values", read=_string_map, write=dict),
    Field(wire="numRecords", attribute="num_records", read=read_long),
    Field(wire="footerStartOffset", attribute="footer_start", read=read_long),
    Field(wire="footerEndOffset", attribute="footer_end", read=read_long),
    Field(wire="hotcacheStartOffset", attribute="hotcache_start", read=read_long, native=False),
    Field(wire="hotcacheLength", attribute="hotcache_size_bytes", read=read_long, native=False),
    Field(wire="timeRangeStart", attribute="time_range_start", read=_time, native=False),
    Field(wire="timeRangeEnd", attribute="time_range_end", read=_time, native=False),
    Field(wire="splitTags", attribute="tags", read=_strings, write=list),
    Field(wire="deleteOpstamp", attribute="delete_opstamp", read=read_long, native=False),
    Field(wire="numMergeOps", attribute="merge_count", read=_integer, native=False),
    Field(wire="docMappingJson", attribute="doc_mapping", read=read_text),
    Field(wire="docMappingRef", attribute="doc_mapping_ref", read=read_text),
    Field(wire="uncompressedSizeBytes", attribute="uncompressed_size_bytes", read=read_long),
    Field(wire="companionSourceFiles", attribute="companion_source_files", read=_strings, write=list),
    Field(wire="companionDeltaVersion", attribute="companion_delta_version", read=read_long),
    Field(wire="companionFastFieldMode", attribute="companion_fast_field_mode", read=read_text),
)
"""The fields of a split besides those of an add. The Scala log also has `hasFooterOffsets`, which follows from them."""

ADDED_VERSION, ADDED_MS = "addedAtVersion", "addedAtTimestamp"
"""The fields of a manifest's entry besides those of an add."""

_SPLIT_NAMES = [field.wire for field in SPLIT]
_OFFSETS_FLAG = _SPLIT_NAMES.index("timeRangeStart")
SCALA_ADD = (
    *(field.wire for field in ADD),
    *_SPLIT_NAMES[:_OFFSETS_FLAG],
    "hasFooterOffsets",
    *_SPLIT_NAMES[_OFFSETS_FLAG:],
)
NATIVE_ADD = tuple(field.wire for field in (*ADD, *SPLIT) if field.native)
"""The fields in the line of an add: the Scala log writes all of them, the native log only those with a value."""

REMOVE = (
    Field(wire="path", attribute="log_path", read=read_text, required=True),
    Field(wire="deletionTimestamp", attribute="deletion_timestamp_ms", read=read_long),
    Field(wire="dataChange", attribute="data_change", read=_boolean),
    Field(wire="extendedFileMetadata", attribute="extended_file_metadata", read=_boolean, native=False),
    Field(wire="partitionValues", attribute="partition_values", read=_partition_values, write=partition_words),
    Field(wire="size", attribute="size_bytes", read=read_long),
    Field(wire="tags", attribute="tags", read=_string_map, write=dict, native=False),
)
STATE = (
    Field(wire="createdAt", attribute="created_ms", read=read_long, required=True),
    Field(wire="numFiles", attribute="file_count", read=read_long, required=True),
    Field(wire="totalBytes", attribute="total_bytes", read=read_long),
    Field(wire="protocolVersion", attribute="protocol_version", read=read_long),
)
MANIFEST = (
    Field(wire="path", attribute="path", read=read_text, required=True),
    Field(wire="numEntries", attribute="entry_count", read=read_long, required=True),
    Field(wire="minAddedAtVersion", attribute="min_added_version", read=read_long),
    Field(wire="maxAddedAtVersion", attribute="max_added_version", read=read_long),
    Field(wire="tombstoneCount", attribute="tombstone_count", read=read_long),
    Field(wire="liveEntryCount", attribute="live_count", read=read_long),
)
"""The plain fields of a state, and of a manifest that it names. avro_state.py has the others."""

TXN = (
    Field(wire="appId", attribute="app_id", read=read_text, required=True),
    Field(wire="version", attribute="txn_version", read=read_long, required=True),
    Field(wire="lastUpdated", attribute="last_updated_ms", read=read_long),
)
"""A line that only tablefeed writes ("actions": both generations of IndexTables ignore unknown lines)."""

ACTIONS = frozenset(
    {names.PROTOCOL, names.METADATA, names.ADD, names.REMOVE, names.TXN, names.COMMIT_INFO, *names.MERGE_SKIP}
)
"""The keys of lines that are read. `mergeskip` names files that a merge skipped; it does not change the table."""
