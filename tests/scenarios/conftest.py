"""What the stories of tables are told of: columns mapped either way, rows and their changes."""

from __future__ import annotations

import pytest


@pytest.fixture(params=["name", "id"])
def mapping(request: pytest.FixtureRequest) -> str:
    mode: str = request.param
    return mode


@pytest.fixture(params=[pytest.param({}, id="rows"), pytest.param({"readChangeFeed": "true"}, id="changes")])
def feed(request: pytest.FixtureRequest) -> dict[str, str]:
    options: dict[str, str] = request.param
    return options
