"""The corpus's own measure of rows, taken from its folder so that there is one of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from support.corpus import corpus_module

if TYPE_CHECKING:
    from corpus.verdict import Digest


@pytest.fixture(scope="session")
def digest(corpus: Path) -> Digest:
    """Gives the number of a table's rows and their digest, whatever their order (table_digest.py)."""
    found: Digest = corpus_module(corpus / "table_digest.py").table_digest
    return found
