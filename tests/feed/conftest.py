"""A table on disk and a query over it, for tests of streams that track metadata."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.logs import LONG_ID, a_log, add, metadata, protocol, put
from support.tracking import Checkpoint, mapped
from tablefeed.store import LocalStore


@pytest.fixture
def table(tmp_path: Path) -> LocalStore:
    """A table of two versions: made, and one file added."""
    store = LocalStore(str(tmp_path / "table"))
    a_log(store, v0=[protocol(), metadata(LONG_ID)], v1=[add("a")])
    return store


@pytest.fixture
def query(table: LocalStore, tmp_path: Path) -> Checkpoint:
    return Checkpoint(Path(table.url), tmp_path / "checkpoint")


@pytest.fixture
def mapped_table(table: LocalStore) -> LocalStore:
    put(table, 0, [protocol(2, 5), mapped(id="c1", name="c2")])
    return table
