"""Tables of a few commits for the tests of the command line."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pyarrow as pa
import pytest

import tablefeed

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string()), ("day", pa.date32())])


def rows(*ids: int) -> pa.Table:
    """Rows with these ids."""
    columns = {"id": ids, "name": [f"n{i}" for i in ids], "day": [date(2026, 1, 1 + i % 2) for i in ids]}
    return pa.table(columns, schema=SCHEMA)


@pytest.fixture
def orders(tmp_path: Path) -> Path:
    """Version 0 creates the table, 1 adds the rows 1 to 3, 2 adds 4 and 5, 3 deletes 2."""
    path = tmp_path / "orders"
    tablefeed.create(path, SCHEMA, partition_by=["day"], properties={"delta.enableChangeDataFeed": "true"})
    tablefeed.append(path, rows(1, 2, 3), app_id="loader", txn_version=7, user_metadata="the first")
    tablefeed.append(path, rows(4, 5))
    tablefeed.delete(path, "id = 2")
    return path
