"""The folder that hostile logs are put in, and the bound on the memory that reading one may take."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hostile.logs import Folder
from support.bounds import at_most

MOST_BYTES = 512 << 20
"""More than any log of a few lines may take, whatever it says. A module may set its own."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    return Folder(tmp_path_factory.mktemp("hostile") / "orders")


@pytest.fixture(scope="module", autouse=True)
def _within_bounds(request: pytest.FixtureRequest) -> Iterator[None]:
    with at_most(getattr(request.module, "MOST_BYTES", MOST_BYTES)):
        yield
