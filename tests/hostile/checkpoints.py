"""Classic checkpoints of the logs in `logs.py`, made from the plain replay: Parquet as a careful writer leaves it."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from hostile.logs import Json, replay

TEXT, INT, LONG, BOOL = pa.string(), pa.int32(), pa.int64(), pa.bool_()
STRINGS = pa.map_(TEXT, TEXT)
IN_FILE = {"storageType": TEXT, "pathOrInlineDv": TEXT, "offset": INT, "sizeInBytes": INT, "cardinality": LONG}
FILE = {"path": TEXT, "partitionValues": STRINGS, "size": LONG, "modificationTime": LONG, "dataChange": BOOL}
ADD = pa.struct(FILE | {"stats": TEXT, "deletionVector": pa.struct(IN_FILE)})
FEATURES = {"readerFeatures": pa.list_(TEXT), "writerFeatures": pa.list_(TEXT)}
FORMAT = pa.struct({"provider": TEXT, "options": STRINGS})
OF_TABLE = {"schemaString": TEXT, "partitionColumns": pa.list_(TEXT), "configuration": STRINGS}
SCHEMA = pa.schema(
    {
        "add": ADD,
        "protocol": pa.struct({"minReaderVersion": INT, "minWriterVersion": INT} | FEATURES),
        "metaData": pa.struct({"id": TEXT, "format": FORMAT} | OF_TABLE),
        "txn": pa.struct({"appId": TEXT, "version": LONG}),
        "domainMetadata": pa.struct({"domain": TEXT, "configuration": TEXT, "removed": BOOL}),
    }
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
