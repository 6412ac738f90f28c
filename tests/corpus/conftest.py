"""The corpus's own measure of rows, taken from its folder so that there is one of it."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from corpus.verdict import Digest


@pytest.fixture(scope="session")
def digest(corpus: Path) -> Digest:
    """Gives the number of a table's rows and their digest, whatever their order (table_digest.py)."""
    spec = importlib.util.spec_from_file_location("table_digest", corpus / "table_digest.py")
    if spec is None or spec.loader is None:
        pytest.fail(f"{corpus} has no table_digest.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found: Digest = module.table_digest
    return found
