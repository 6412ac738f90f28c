"""Rows of the tables that the tests of the command line look at."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pyarrow as pa

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string()), ("day", pa.date32())])


def rows(*ids: int) -> pa.Table:
    """Rows with these ids."""
    columns = {"id": ids, "name": [f"n{i}" for i in ids], "day": [date(2026, 1, 1 + i % 2) for i in ids]}
    return pa.table(columns, schema=SCHEMA)


QUERY_ID = "11111111-1111-1111-1111-111111111111"


def a_checkpoint(folder: Path, *ends: str | tuple[str, ...], unfinished: int = 0) -> Path:
    """Makes the checkpoint of a query whose batches end at the given offsets; the last `unfinished` are not done."""
    for name in ("offsets", "commits"):
        (folder / name).mkdir(parents=True)
    (folder / "metadata").write_text(f'{{"id":"{QUERY_ID}"}}')
    for batch, end in enumerate(ends):
        lines = ["v1", '{"batchWatermarkMs":0,"conf":{}}', *([end] if isinstance(end, str) else end)]
        (folder / "offsets" / str(batch)).write_text("\n".join(lines))
        (folder / "offsets" / f".{batch}.crc").write_bytes(b"crc")
        if batch < len(ends) - unfinished:
            (folder / "commits" / str(batch)).write_text('v1\n{"nextBatchWatermarkMs":0}')
    return folder
