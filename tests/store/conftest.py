"""The stores that can be written, held to one contract."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.gateway import Gateway
from support.object_stores import EACH_OBJECT_STORE
from tablefeed.store import LocalStore, Store, open_store
from tablefeed.store.memory import MemoryStore


@pytest.fixture(params=["local", "memory", *EACH_OBJECT_STORE])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """An empty store that can be written."""
    opened: Store
    if request.param not in ("local", "memory"):
        gateway: Gateway = request.getfixturevalue(request.param)
        gateway.begin()
        opened = open_store(gateway.url("table"), gateway.options)
    else:
        opened = LocalStore(str(tmp_path / "table")) if request.param == "local" else MemoryStore("test")
    yield opened
    opened.close()
