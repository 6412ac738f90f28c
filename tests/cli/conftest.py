"""Tables of a few commits for the tests of the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

import tablefeed
from cli.tables import SCHEMA, rows


@pytest.fixture
def orders(tmp_path: Path) -> Path:
    """Version 0 creates the table, 1 adds the rows 1 to 3, 2 adds 4 and 5, 3 deletes 2."""
    path = tmp_path / "orders"
    tablefeed.create(path, SCHEMA, partition_by=["day"], properties={"delta.enableChangeDataFeed": "true"})
    tablefeed.append(path, rows(1, 2, 3), app_id="loader", txn_version=7, user_metadata="the first")
    tablefeed.append(path, rows(4, 5))
    tablefeed.delete(path, "id = 2")
    return path
