"""Rows held against the JAR's."""

from __future__ import annotations

import pyarrow as pa


def rows(table: pa.Table) -> list[str]:
    """Rows as text, sorted: whichever order they come in, and in which layout of text."""
    return sorted(repr(row) for row in table.to_pylist())
