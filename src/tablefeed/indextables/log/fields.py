"""The fields of each action, one table per action ("actions"): wire name, attribute, type, need.

A table is used for reading and writing; its order is the order in which the Scala log writes. When reading, null is
absent, the different forms of the two writers are both accepted, and unknown fields are ignored. A fault raises
`BadActionError` with its reason; the caller (version_file.py) adds the file and the line.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

from tablefeed.errors import CorruptLogError
from tablefeed.indextables import names
from tablefeed.model.action_fields import (
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
from tablefeed.model.actions import AddFile, FileAction, Metadata, RemoveFile
from tablefeed.model.split import Split


@contextmanager
def corrupt_if_bad(what: str = "", *, url: str, log_file: str) -> Iterator[None]:
    """Raises CorruptLogError in place of BadActionError; `what` begins its reason."""
    try:
        yield
    except BadActionError as bad:
        raise CorruptLogError(f"{what}{bad}", url=url, log_file=log_file) from bad


def read_add(values: JsonObject) -> AddFile:
    """The add that `values` spell, from JSON or Avro. Raises BadActionError.

    A path is not decoded: the file on disk has the same name, with any percent signs. `dataChange` is true where it is
    absent.
    """
    attributes = read_fields(ADD, values)
    split = Split(**read_fields(SPLIT, values))
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
    attributes = read_fields(REMOVE, values)
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
    attributes = read_fields(METADATA, values)
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


def write_values(table: Iterable[Field], action: object, *, native: bool) -> dict[str, object]:
    """What is on disk of the attributes of `action`: null for None; `native`: only what the native log writes."""
    if native:
        return write_fields((field for field in table if field.native), action)
    values = ((field, getattr(action, field.attribute)) for field in table)
    return {field.wire: None if value is None else field.write(value) for field, value in values}


def _time(value: object) -> str:
    # text by one writer, epoch time by another
    return str(read_long(value)) if type(value) is int else read_text(value)


_FORMAT = (
    Field(wire="provider", attribute="format_provider", read=read_text),
    Field(wire="options", attribute="format_options", read=read_text_map),
)
_METADATA_HEAD = (
    Field(wire="id", attribute="table_id", read=read_text, required=True),
    Field(wire="name", attribute="name", read=read_text),
    Field(wire="description", attribute="description", read=read_text),
)
_METADATA_TAIL = (
    Field(wire="schemaString", attribute="schema_string", read=read_text, required=True),
    Field(wire="partitionColumns", attribute="partition_columns", read=read_texts, write=list),
    Field(wire="configuration", attribute="configuration", read=read_text_map, write=dict),
    Field(wire="createdTime", attribute="created_ms", read=read_long),
)
METADATA = (
    *_METADATA_HEAD,
    Field(wire="format", attribute="format", read=lambda value: read_fields(_FORMAT, read_object(value))),
    *_METADATA_TAIL,
)
_METADATA_NAMES = frozenset(field.wire for field in METADATA)

_ADD_DEFAULTS = {"data_change": True, "partition_values": {}}
ADD = (
    Field(wire="path", attribute="log_path", read=read_text, required=True),
    Field(wire="partitionValues", attribute="partition_values", read=read_partition_values, write=partition_words),
    Field(wire="size", attribute="size_bytes", read=read_long, required=True),
    Field(wire="modificationTime", attribute="modified_ms", read=read_long, required=True),
    Field(wire="dataChange", attribute="data_change", read=read_boolean),
    Field(wire="stats", attribute="stats", read=read_text),
    Field(wire="tags", attribute="tags", read=read_text_map, write=dict, native=False),
)
SPLIT = (
    Field(wire="minValues", attribute="min_values", read=read_text_map, write=dict),
    Field(wire="maxValues", attribute="max_values", read=read_text_map, write=dict),
    Field(wire="numRecords", attribute="num_records", read=read_long),
    Field(wire="footerStartOffset", attribute="footer_start", read=read_long),
    Field(wire="footerEndOffset", attribute="footer_end", read=read_long),
    Field(wire="hotcacheStartOffset", attribute="hotcache_start", read=read_long, native=False),
    Field(wire="hotcacheLength", attribute="hotcache_size_bytes", read=read_long, native=False),
    Field(wire="timeRangeStart", attribute="time_range_start", read=_time, native=False),
    Field(wire="timeRangeEnd", attribute="time_range_end", read=_time, native=False),
    Field(wire="splitTags", attribute="tags", read=read_texts, write=list),
    Field(wire="deleteOpstamp", attribute="delete_opstamp", read=read_long, native=False),
    Field(wire="numMergeOps", attribute="merge_count", read=read_integer, native=False),
    Field(wire="docMappingJson", attribute="doc_mapping", read=read_text),
    Field(wire="docMappingRef", attribute="doc_mapping_ref", read=read_text),
    Field(wire="uncompressedSizeBytes", attribute="uncompressed_size_bytes", read=read_long),
    Field(wire="companionSourceFiles", attribute="companion_source_files", read=read_texts, write=list),
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
    Field(wire="dataChange", attribute="data_change", read=read_boolean),
    Field(wire="extendedFileMetadata", attribute="extended_file_metadata", read=read_boolean, native=False),
    Field(wire="partitionValues", attribute="partition_values", read=read_partition_values, write=partition_words),
    Field(wire="size", attribute="size_bytes", read=read_long),
    Field(wire="tags", attribute="tags", read=read_text_map, write=dict, native=False),
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

ACTIONS = frozenset(
    {names.PROTOCOL, names.METADATA, names.ADD, names.REMOVE, names.TXN, names.COMMIT_INFO, *names.MERGE_SKIP}
)
"""The keys of lines that are read. `mergeskip` names files that a merge skipped; it does not change the table."""
