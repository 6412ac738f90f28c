"""Checkpoints made by hand, action by action: what other writers put, and what none should."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from support.logs import Action, json_lines
from tablefeed.store import Store

UUID = "80a083e8-7026-4e79-81be-64bd76c43a11"

_MAP = pa.map_(pa.string(), pa.string())
TYPES: dict[str, pa.DataType] = {
    "protocol": pa.struct(
        [
            ("minReaderVersion", pa.int32()),
            ("minWriterVersion", pa.int32()),
            ("readerFeatures", pa.list_(pa.string())),
            ("writerFeatures", pa.list_(pa.string())),
        ]
    ),
    "metaData": pa.struct(
        [
            ("id", pa.string()),
            ("format", pa.struct([("provider", pa.string()), ("options", _MAP)])),
            ("schemaString", pa.string()),
            ("partitionColumns", pa.list_(pa.string())),
            ("configuration", _MAP),
        ]
    ),
    "txn": pa.struct([("appId", pa.string()), ("version", pa.int64())]),
    "domainMetadata": pa.struct([("domain", pa.string()), ("configuration", pa.string()), ("removed", pa.bool_())]),
    "add": pa.struct(
        [
            ("path", pa.string()),
            ("partitionValues", _MAP),
            ("size", pa.int64()),
            ("modificationTime", pa.int64()),
            ("dataChange", pa.bool_()),
            ("stats", pa.string()),
        ]
    ),
    "remove": pa.struct([("path", pa.string()), ("deletionTimestamp", pa.int64()), ("dataChange", pa.bool_())]),
    "checkpointMetadata": pa.struct([("version", pa.int64()), ("tags", _MAP)]),
    "sidecar": pa.struct([("path", pa.string()), ("sizeInBytes", pa.int64()), ("modificationTime", pa.int64())]),
}


def classic_name(version: int) -> str:
    return f"{version:020d}.checkpoint.parquet"


def part_name(version: int, part: int, *, of: int) -> str:
    return f"{version:020d}.checkpoint.{part:010d}.{of:010d}.parquet"


def uuid_name(version: int, ending: str, *, uuid: str = UUID) -> str:
    return f"{version:020d}.checkpoint.{uuid}.{ending}"


def of_version(version: int) -> Action:
    """What makes a checkpoint one of the V2 spec."""
    return {"checkpointMetadata": {"version": version}}


def sidecar(path: str) -> Action:
    return {"sidecar": {"path": path, "sizeInBytes": 1, "modificationTime": 1}}


def put_checkpoint(store: Store, name: str, actions: Sequence[Action]) -> None:
    """A file of the log directory, Parquet or JSON as its name says; a sidecar where that is in `_sidecars/`."""
    store.replace(f"_delta_log/{name}", json_lines(*actions) if name.endswith(".json") else in_parquet(actions))


def in_parquet(actions: Sequence[Action], types: Mapping[str, pa.DataType] = TYPES, **options: Any) -> bytes:
    """`types` go before those that are known here; `options` are pyarrow's."""
    kinds = {kind for action in actions for kind in action}
    columns = {
        kind: pa.array([_arrow(action.get(kind), found) for action in actions], found)
        for kind, found in {**types, **{known: TYPES[known] for known in TYPES.keys() - types.keys()}}.items()
        if kind in kinds
    }
    out = io.BytesIO()
    pq.write_table(pa.table(columns), out, **options)
    return out.getvalue()


def damage(data: bytes, column: str, *, row_group: int = 0) -> bytes:
    """The Parquet file with the pages of one column chunk overwritten: its footer tells nothing of that."""
    metadata = pq.read_metadata(io.BytesIO(data)).row_group(row_group)
    for index in range(metadata.num_columns):
        chunk = metadata.column(index)
        if chunk.path_in_schema == column:
            begin: int = min(chunk.data_page_offset, chunk.dictionary_page_offset or chunk.data_page_offset)
            end: int = begin + chunk.total_compressed_size
            return data[:begin] + b"\xff" * (end - begin) + data[end:]
    raise AssertionError(f"there is no {column}")


def _arrow(value: Any, kind: pa.DataType) -> Any:  # Any: JSON
    if value is None:
        return None
    if pa.types.is_map(kind):
        return list(value.items())
    if pa.types.is_struct(kind):
        return {field.name: _arrow(value.get(field.name), field.type) for field in kind}
    return value
