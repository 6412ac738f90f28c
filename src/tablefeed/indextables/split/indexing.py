"""How a table's splits index its columns: what is the table's own choice, in a value that crosses to whoever writes.

The choices are those of IndexTables4Spark: an option for each column of strings, and which of its two writers it was.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Indexed(StrEnum):
    """How a column of strings is indexed, in the words of the options `spark.indextables.indexing.typemap.<column>`."""

    STRING = "string"
    """As one term."""
    TEXT = "text"
    """As the words in it."""
    JSON = "json"
    """As the object that it is the text of, and stored as that: spaces and the order of its members are not kept."""
    IP = "ip"
    """As an address, and stored as that."""


class Style(StrEnum):
    """By which of the two writers of IndexTables4Spark the fields of an index are.

    They give the same fields other options, which a merge of splits takes from one of them for all.
    """

    ROWS = "rows"
    """Of 0.5.3 and before, which has partition columns in the index like the others."""
    ARROW = "arrow"
    """Of 0.5.4 on, which leaves them out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Indexing:
    """How the splits of a table index its columns.

    `strings` are the columns of strings that are not indexed as one term. `columns` are those in the index in its
    order, by which IndexTables tells them apart when it merges splits; None: all, as the table has them.
    """

    style: Style = Style.ROWS
    strings: Mapping[str, Indexed] = field(default_factory=dict)
    columns: tuple[str, ...] | None = None

    def of(self, column: str) -> Indexed:
        """How a column of strings is indexed."""
        return self.strings.get(column, Indexed.STRING)
