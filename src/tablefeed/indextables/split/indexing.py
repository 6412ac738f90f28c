"""How a table's splits index its columns: the choices that differ between tables, as a value that tasks get.

The choices are those of IndexTables4Spark: an option for each string column, and which of its two writers is imitated.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Indexed(StrEnum):
    """How a string column is indexed: a value of the option `spark.indextables.indexing.typemap.<column>`."""

    STRING = "string"
    """Each string is one term."""
    TEXT = "text"
    """Each word of a string is a term."""
    JSON = "json"
    """Each string is parsed as JSON and stored as an object: spaces and the order of members are not kept."""
    IP = "ip"
    """Each string is parsed and stored as an IP address."""


class Style(StrEnum):
    """Which of the two writers of IndexTables4Spark made the fields of an index.

    The two give the same field different options. A merge takes the options for all splits from one of them.
    """

    ROWS = "rows"
    """The writer of 0.5.3 and before. Partition columns are in the index like all others."""
    ARROW = "arrow"
    """The writer of 0.5.4 and later. Partition columns are not in the index."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Indexing:
    """How the splits of a table index its columns.

    `strings` has the string columns that are not indexed as one term. `columns` are the columns in the index, in index
    order: a merge of splits identifies a column by that order. None: all columns, in the table's order.
    """

    style: Style = Style.ROWS
    strings: Mapping[str, Indexed] = field(default_factory=dict)
    columns: tuple[str, ...] | None = None

    def of(self, column: str) -> Indexed:
        """How the string column `column` is indexed."""
        return self.strings.get(column, Indexed.STRING)
