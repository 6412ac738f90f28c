"""Packages that are too old for right rows are refused by name, also where pip did not install them."""

from __future__ import annotations

import importlib
import re
import tomllib
from collections.abc import Callable
from pathlib import Path

import duckdb
import pyarrow as pa
import pyroaring
import pytest
import sqlglot

from tablefeed.data import conform, read
from tablefeed.data.oldest import OLDEST, why_too_old
from tablefeed.data.sql.engine import Engine
from tablefeed.data.sql.parse import parse
from tablefeed.feed.scan.where import check_where

NO_COLUMNS = '{"type":"struct","fields":[]}'


def test_pip_knows_the_same_versions() -> None:
    asked = (Path(__file__).parents[2] / "pyproject.toml").read_text()
    extras = tomllib.loads(asked)["project"]["optional-dependencies"]
    named = [*tomllib.loads(asked)["project"]["dependencies"], *(text for texts in extras.values() for text in texts)]
    for package, version in OLDEST.items():
        assert {text for text in named if re.match(rf"{package}\b", text)} == {f"{package}>={version}"}


@pytest.mark.parametrize(
    ("version", "is_old"),
    [("30.23.1", True), ("29.99", True), ("30.24.0", False), ("30.24.dev1", False), ("31", False)],
)
def test_versions_are_compared_by_their_numbers(version: str, *, is_old: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlglot, "__version__", version)
    assert (why_too_old(sqlglot) is not None) == is_old


@pytest.mark.parametrize(
    ("package", "version", "use"),
    [
        (pa, "23.0.1", lambda: importlib.reload(conform)),
        (pyroaring, "1.0.4", lambda: importlib.reload(read)),
        (sqlglot, "30.0.3", lambda: parse("a > 1")),
        (sqlglot, "30.0.3", lambda: check_where("a > 1", NO_COLUMNS, url="/t")),
        (duckdb, "1.4.2", Engine),
    ],
    ids=["pyarrow", "pyroaring", "sqlglot in rules", "sqlglot in where", "duckdb"],
)
def test_a_package_that_is_too_old_is_named_where_it_is_used(
    package: object, version: str, use: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    name = package.__name__  # type: ignore[attr-defined] # a module
    monkeypatch.setattr(package, "__version__", version)
    with pytest.raises(Exception, match=rf"needs {name} .* or newer, and this Python has {name} {re.escape(version)}"):
        use()
