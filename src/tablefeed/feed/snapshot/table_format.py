"""The two formats of tables, by name. open_log.py finds out which one a table has."""

from __future__ import annotations

from enum import StrEnum


class TableFormat(StrEnum):
    """The two table formats, as the option `tableFormat` names them."""

    DELTA = "delta"
    INDEXTABLES = "indextables"
