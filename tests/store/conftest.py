"""The stores that can be written, held to one contract."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tablefeed.store import LocalStore, MemoryStore, Store


@pytest.fixture(params=["local", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """An empty store that can be written."""
    opened: Store = LocalStore(str(tmp_path / "table")) if request.param == "local" else MemoryStore("test")
    yield opened
    opened.close()
