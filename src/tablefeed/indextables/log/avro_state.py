"""Decodes a state of an IndexTables log: its `_manifest.avro`, and the manifests that it names ("states").

A state lists manifests, each a list of entries, and tombstones. The live files are the entries of all manifests: the
last entry of each path, without the paths that are tombstones. A path with a tombstone is never live again. States
share manifests. Entries come as the columns of columns.py, one manifest at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import orjson
import pyarrow as pa

from tablefeed.errors import CorruptLogError, LogError, UnsupportedFeatureError
from tablefeed.indextables import names
from tablefeed.indextables.log import avro_file, columns, fields, schema_registry
from tablefeed.model import action_fields
from tablefeed.model.action_fields import BadActionError
from tablefeed.model.actions import Facts, Metadata, Protocol, Version

FORMAT_VERSION = 1
"""The newest `formatVersion` of `_manifest.avro` that is read."""

_BATCH_ROWS = 8192


@dataclass(frozen=True, slots=True, kw_only=True)
class TextBounds:
    """The smallest and the greatest text of a partition column in one manifest; None is unknown."""

    low: str | None
    high: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """A manifest as a state names it. `name` is below the log directory, `path` is the text in the state.

    The versions are 0 in everything that the Scala log writes. `bounds` are by partition column; None: not recorded.
    """

    name: str
    path: str
    entry_count: int
    min_added_version: int = 0
    max_added_version: int = 0
    bounds: Mapping[str, TextBounds] | None = None
    tombstone_count: int = 0
    live_count: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """What `_manifest.avro` says. `registry` is doc mappings by hash; `metadata` is None in most of the Scala log's.

    `total_bytes` still counts files that are tombstones.
    """

    version: Version
    created_ms: int
    file_count: int
    total_bytes: int
    manifests: tuple[Manifest, ...]
    tombstones: pa.Array
    registry: Mapping[str, str]
    protocol_version: int = 4
    metadata: Metadata | None = None

    @property
    def facts(self) -> Facts:
        """The table's protocol, and its metadata where the state has it."""
        version = self.protocol_version
        protocol = Protocol(min_reader_version=version, min_writer_version=version)
        return Facts(protocol=protocol, metadata=self.metadata)

    @property
    def newest_first(self) -> tuple[Manifest, ...]:
        """The manifests as `live_files` needs them: newest first, because the last entry of a path counts."""
        return self.manifests[::-1]


def decode_state(data: bytes, *, version: Version, url: str, log_file: str) -> State:
    """The state that `_manifest.avro` holds.

    Raises CorruptLogError for a malformed file or a missing required field, UnsupportedFeatureError for a
    `formatVersion` above 1 or an unknown codec, StoreConfigError where fastavro is not installed.
    """
    records = [record for block in avro_file.read_records(data, url=url, log_file=log_file) for record in block]
    if len(records) != 1:
        raise CorruptLogError(f"it holds {len(records)} records instead of one", url=url, log_file=log_file)
    record = records[0]
    with fields.corrupt_if_bad(url=url, log_file=log_file):
        found = action_fields.read_long(record.get("formatVersion"))
        if found > FORMAT_VERSION:
            raise UnsupportedFeatureError(
                f"{url} cannot be read: {log_file} has format version {found}, but only up to {FORMAT_VERSION} is "
                "supported. Upgrade tablefeed, or use IndexTables itself.",
                url=url,
                features=(f"state format version {found}",),
                error_class="INDEXTABLES_UNSUPPORTED_STATE_FORMAT",
            )
        return _state(record, version)


def decode_manifest(data: bytes, *, entry_count: int, url: str, log_file: str) -> Iterator[pa.RecordBatch]:
    """The entries of a manifest as batches of `columns.FILE_COLUMNS`, in order, all of them adds.

    Raises as `decode_state`, and CorruptLogError at its end unless it has `entry_count` entries.
    """
    seen, waiting = 0, list[avro_file.Record]()
    for block in avro_file.read_records(data, url=url, log_file=log_file):
        waiting += block
        seen += len(block)
        if len(waiting) >= _BATCH_ROWS:
            yield _batch(waiting, url=url, log_file=log_file)
            waiting = []
    if waiting:
        yield _batch(waiting, url=url, log_file=log_file)
    if seen != entry_count:
        raise CorruptLogError(f"it has {seen} entries, but its state says {entry_count}", url=url, log_file=log_file)


def live_files(state: State, manifests: Iterable[tuple[Manifest, bytes]], *, url: str) -> Iterator[pa.RecordBatch]:
    """The live files of `state`, given the bytes of `state.newest_first` in that order; batches may be empty.

    Memory holds one manifest and the keys of those before it. Raises as `decode_manifest`, and LogError at the end
    unless the number of files is that of the state.
    """
    found = 0
    for batch in live_among(state, manifests, url=url):
        found += batch.num_rows
        yield batch
    if found != state.file_count:
        raise inconsistent(state, f"has {found} live files, but says {state.file_count}", url=url)


def live_among(state: State, manifests: Iterable[tuple[Manifest, bytes]], *, url: str) -> Iterator[pa.RecordBatch]:
    """The live files in some manifests of `state`, which are given newest first; other manifests are not considered."""
    dead = pa.chunked_array([state.tombstones], pa.string())
    seen = list[pa.ChunkedArray]()
    for manifest, data in manifests:
        entries = decode_manifest(data, entry_count=manifest.entry_count, url=url, log_file=manifest.name)
        rows = columns.last_of_each_key(pa.Table.from_batches(entries, columns.FILE_COLUMNS))
        known = pa.chunked_array([chunk for keys in seen for chunk in keys.chunks], pa.string())
        for batch in rows.to_batches():
            yield columns.without_keys(columns.without_keys(batch, dead), known)
        seen.append(rows["key"])


def inconsistent(state: State, reason: str, *, url: str) -> LogError:
    """The error of a state that contradicts itself."""
    return LogError(
        f"The state of version {state.version} of {url} {reason}. Run CHECKPOINT INDEXTABLES to have it rewritten, or "
        "restore the log from a copy.",
        url=url,
        error_class="INDEXTABLES_STATE_INCONSISTENT",
    )


def _batch(entries: list[avro_file.Record], *, url: str, log_file: str) -> pa.RecordBatch:
    with fields.corrupt_if_bad("an entry is malformed: ", url=url, log_file=log_file):
        return columns.of_entries(entries)


def _state(record: avro_file.Record, version: Version) -> State:
    manifests = record.get("manifests")
    if not isinstance(manifests, list) or not all(isinstance(each, dict) for each in manifests):
        raise BadActionError("is not a list of manifests", "manifests")
    return State(
        version=version,
        **{"total_bytes": 0, **action_fields.read_fields(fields.STATE, record)},
        manifests=tuple(_manifest(each, version) for each in manifests),
        tombstones=_texts(record.get("tombstones")),
        registry=schema_registry.registry_of(_text_map(record.get("schemaRegistry"))),
        metadata=_metadata(record.get("metadata")),
    )


def _manifest(record: avro_file.Record, version: Version) -> Manifest:
    values = action_fields.read_fields(fields.MANIFEST, record)
    path = values["path"]
    name = names.manifest_name(path, version=version)
    if name is None:
        raise BadActionError(f"leads out of the log: {path!r:.200}", "manifests", "path")
    bounds = record.get("partitionBounds")
    return Manifest(
        name=name,
        bounds=None if not isinstance(bounds, dict) else {column: _bounds(each) for column, each in bounds.items()},
        **values,
    )


def _bounds(record: Any) -> TextBounds:  # Any: as decoded
    values = record if isinstance(record, dict) else {}
    low, high = values.get("min"), values.get("max")
    return TextBounds(low=low if isinstance(low, str) else None, high=high if isinstance(high, str) else None)


def _texts(value: Any) -> pa.Array:  # Any: as decoded
    try:
        return pa.array(value or [], pa.string())
    except (TypeError, ValueError, pa.ArrowException) as error:
        raise BadActionError("is not a list of paths", "tombstones") from error


def _text_map(value: Any) -> Mapping[str, str]:  # Any: as decoded
    entries = value if value is not None else {}
    if isinstance(entries, dict) and all(isinstance(text, str) for text in entries.values()):
        return entries
    raise BadActionError("is not a map of strings", "schemaRegistry")


def _metadata(text: Any) -> Metadata | None:  # Any: as decoded
    """The metadata in a state: a line of the log, or the object under the line's key."""
    if text is None:
        return None
    try:
        values = orjson.loads(action_fields.read_text(text))
        values = values.get(names.METADATA, values)
        return fields.read_metadata(values)
    except BadActionError as bad:
        raise BadActionError(bad.reason, "metadata", *bad.path) from None
    except (ValueError, AttributeError) as error:
        raise BadActionError(f"is not a JSON object: {error}", "metadata") from error
