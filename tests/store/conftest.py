"""The stores that can be written, held to one contract."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.memory_store import MemoryStore
from support.s3 import Gateway
from tablefeed.store import LocalStore, Store, open_store


@pytest.fixture(params=["local", "memory", "s3"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """An empty store that can be written."""
    opened: Store
    if request.param == "s3":
        gateway: Gateway = request.getfixturevalue("gateway")
        opened = open_store(f"s3://{gateway.bucket}/table", gateway.options)
    else:
        opened = LocalStore(str(tmp_path / "table")) if request.param == "local" else MemoryStore("test")
    yield opened
    opened.close()
