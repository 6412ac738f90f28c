"""Tables of many commits of one small file each, written as a writer leaves them but without one: that takes too long.

The log and the files are of fixed content; the checkpoints are made by delta-rs. Where only the log's length is asked
about, the commits before some version name files that do not exist: they are never read.
"""

from __future__ import annotations

import json
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable

CHECKPOINT_EVERY = 1_000
"""Commits between checkpoints: with one that is never far, a table opens as fast as its reader can."""

_TYPES = {pa.int64(): "long", pa.float64(): "double", pa.string(): "string"}


def make(table: Path, rows: pa.Table, *, commits: int, first_with_data: int = 1) -> None:
    """Makes a table of version `commits`, each version after 0 with one file; all files with data hold `rows`.

    A checkpoint is at each `CHECKPOINT_EVERY` commits.
    """
    begin(table, rows.schema)
    data = small_file(rows)
    for version in range(1, commits + 1):
        append(table, version, rows.num_rows, data if version >= first_with_data else None)
        if version % CHECKPOINT_EVERY == 0:
            DeltaTable(str(table)).create_checkpoint()


def begin(table: Path, schema: pa.Schema) -> None:
    """Makes an empty table, of version 0."""
    (table / "_delta_log").mkdir(parents=True)
    _commit(table, 0, _facts(schema))


def append(table: Path, version: int, row_count: int, data: bytes | None) -> int:
    """Makes the commit of `version` with one file, which exists where there is `data` of it; gives when, as `add`."""
    name = f"part-00000-{version:08x}-52a4-4c3e-8d3f-{version:012x}.c000.snappy.parquet"
    if data is not None:
        (table / name).write_bytes(data)
    return add(table, version, name, size_bytes=10_000 if data is None else len(data), row_count=row_count)


def add(table: Path, version: int, name: str, *, size_bytes: int, row_count: int) -> int:
    """Makes the commit of `version`, which adds the file `name`; gives the monotonic nanosecond before it was there."""
    action = {
        "path": name,
        "partitionValues": {},
        "size": size_bytes,
        "modificationTime": 1_700_000_000_000 + version,
        "dataChange": True,
        "stats": json.dumps({"numRecords": row_count}),
    }
    return _commit(table, version, [{"add": action}])


def cut_off(table: Path, version: int) -> None:
    """Removes all commits after `version`, so that the next run finds the same table."""
    for log_file in (table / "_delta_log").glob("*.json"):
        if log_file.stem.isdigit() and int(log_file.stem) > version:
            log_file.unlink()


def small_file(rows: pa.Table) -> bytes:
    """Gives the bytes of a Parquet file of `rows`."""
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink)
    return bytes(sink.getvalue())


def _commit(table: Path, version: int, actions: list[dict[str, object]]) -> int:
    """A commit appears whole, as a link to a file that is written."""
    info = {"commitInfo": {"timestamp": 1_700_000_000_000 + version, "operation": "WRITE"}}
    lines = [json.dumps(action, separators=(",", ":")) + "\n" for action in (info, *actions)]
    log = table / "_delta_log"
    written = log / f".{version:020d}.json.tmp"
    written.write_text("".join(lines))
    at_ns = time.monotonic_ns()
    (log / f"{version:020d}.json").hardlink_to(written)
    written.unlink()
    return at_ns


def _facts(schema: pa.Schema) -> list[dict[str, object]]:
    fields = [{"name": f.name, "type": _TYPES[f.type], "nullable": True, "metadata": {}} for f in schema]
    metadata = {
        "id": "5fba94ed-9794-4965-ba6e-6ee3c0d22af9",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": fields}),
        "partitionColumns": [],
        "configuration": {},
        "createdTime": 1_700_000_000_000,
    }
    return [{"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}, {"metaData": metadata}]
