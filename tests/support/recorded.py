"""Tables on disk that record their changes, with logs and files written by hand: what no writer at hand writes."""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyroaring import BitMap64

import tablefeed
from support.logs import LONG_ID, Action, metadata, protocol, put
from tablefeed.store import LocalStore

RECORDED = {"delta.enableChangeDataFeed": "true"}
VECTORS = protocol(3, 7, readerFeatures=["deletionVectors"], writerFeatures=["deletionVectors", "changeDataFeed"])
NO_PARTITION: Mapping[str, str | None] = {}

_B85 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"


def schema(*columns: tuple[str, object], nullable: bool = True) -> str:
    fields = [{"name": name, "type": kind, "nullable": nullable, "metadata": {}} for name, kind in columns]
    return json.dumps({"type": "struct", "fields": fields})


def recorded(schema: str = LONG_ID, **more: Any) -> Action:
    """The metadata of a table that records its changes; `configuration` adds to that."""
    return metadata(schema, **more | {"configuration": RECORDED | more.get("configuration", {})})


def log(path: Path, **versions: Sequence[Action]) -> Path:
    """`log(path, v0=[...], v1=[...])`: these commits, as another writer's."""
    store = LocalStore(str(path))
    for name, actions in versions.items():
        put(store, int(name.removeprefix("v")), actions)
    return path


def data_file(path: Path, name: str, **columns: Any) -> str:
    (path / name).parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path / name)
    return name


def cdc(name: str, *, partition_values: Mapping[str, str | None] = NO_PARTITION) -> Action:
    values = {"path": name, "partitionValues": dict(partition_values), "size": 1, "dataChange": False}
    return {"cdc": values}


def removed(name: str, **more: Any) -> Action:
    """A remove with extended file metadata, of an unpartitioned file unless told otherwise."""
    values = {"path": name, "dataChange": True, "deletionTimestamp": 1, "extendedFileMetadata": True}
    return {"remove": {**values, "partitionValues": {}, "size": 1, **more}}


def vector(*positions: int) -> dict[str, object]:
    """A deletion vector kept in the log itself ("Deletion Vector Format", storage type `i`)."""
    data = struct.pack("<I", 1681511377) + BitMap64(positions).serialize()
    text = base64.b85encode(data + bytes(-len(data) % 4)).decode().translate(str.maketrans(_B85, _Z85))
    return {"storageType": "i", "pathOrInlineDv": text, "sizeInBytes": len(data), "cardinality": len(positions)}


def changed_ids(path: Path, **arguments: Any) -> list[tuple[int, str, Any]]:
    """Version, change and id of each changed row, sorted."""
    rows = tablefeed.changes(path, **arguments).read_all()
    columns = (rows[name].to_pylist() for name in ("_commit_version", "_change_type", "id"))
    return sorted(zip(*columns, strict=True), key=repr)
