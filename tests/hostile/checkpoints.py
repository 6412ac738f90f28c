"""Classic checkpoints of the logs in `logs.py`, made from the plain replay: Parquet as a careful writer leaves it."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from hostile.logs import Json, replay

STRINGS = pa.map_(pa.string(), pa.string())
VECTOR = pa.struct(
    [
        ("storageType", pa.string()),
        ("pathOrInlineDv", pa.string()),
        ("offset", pa.int32()),
        ("sizeInBytes", pa.int32()),
        ("cardinality", pa.int64()),
    ]
)
ADD = pa.struct(
    [
        ("path", pa.string()),
        ("partitionValues", STRINGS),
        ("size", pa.int64()),
        ("modificationTime", pa.int64()),
        ("dataChange", pa.bool_()),
        ("stats", pa.string()),
        ("deletionVector", VECTOR),
    ]
)
PROTOCOL = pa.struct(
    [
        ("minReaderVersion", pa.int32()),
        ("minWriterVersion", pa.int32()),
        ("readerFeatures", pa.list_(pa.string())),
        ("writerFeatures", pa.list_(pa.string())),
    ]
)
METADATA = pa.struct(
    [
        ("id", pa.string()),
        ("format", pa.struct([("provider", pa.string()), ("options", STRINGS)])),
        ("schemaString", pa.string()),
        ("partitionColumns", pa.list_(pa.string())),
        ("configuration", STRINGS),
    ]
)
TXN = pa.struct([("appId", pa.string()), ("version", pa.int64())])
DOMAIN = pa.struct([("domain", pa.string()), ("configuration", pa.string()), ("removed", pa.bool_())])
SCHEMA = pa.schema(
    [("add", ADD), ("protocol", PROTOCOL), ("metaData", METADATA), ("txn", TXN), ("domainMetadata", DOMAIN)]
)


def checkpoint_rows(commits: Sequence[bytes]) -> list[Json]:
    """The rows of a checkpoint of the version that `commits` end with."""
    return list(_rows(commits))


def checkpoint(rows: Sequence[Json], *, schema: pa.Schema = SCHEMA, **options: object) -> bytes:
    """A checkpoint, or one part of it, whose pages have checksums, as Spark writes them."""
    file = io.BytesIO()
    table = pa.Table.from_pylist(list(rows), schema=schema)
    pq.write_table(table, file, **{"compression": "none", "write_page_checksum": True, **options})
    return file.getvalue()


def checkpoint_path(version: int) -> str:
    return f"_delta_log/{version:020d}.checkpoint.parquet"


def part_paths(version: int, count: int) -> list[str]:
    return [f"_delta_log/{version:020d}.checkpoint.{part:010d}.{count:010d}.parquet" for part in range(1, count + 1)]


def _rows(commits: Sequence[bytes]) -> Iterator[Json]:
    live, newest = replay(commits)
    yield {"protocol": newest["protocol"]}
    yield {"metaData": newest["metaData"]}
    for app_id, version in newest["txn"].items():
        yield {"txn": {"appId": app_id, "version": version}}
    for add in live.values():
        yield {"add": {**add, "dataChange": False}}
