"""The statistics of one data file, as plain values (PROTOCOL.md, "Per-file Statistics").

Both log formats keep them with each file. The dialects decide how they are written and where long texts are cut.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

LeafPath = tuple[str, ...]
"""A column without members, by the names from the top: `("order", "price")`. Lists and maps are leaves as a whole."""

Bound = int | float | Decimal | str | date
"""A smallest or largest value. A timestamp is a `datetime`, so a `date` too: in UTC, timestamp_ntz without zone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnStatistics:
    """The nulls of a leaf and its bounds; a bound is None where there is none, or none that is certain.

    A member of a null struct counts as null. NaN is the largest number: `maximum` is NaN when there is one,
    `minimum` when there is nothing else. Bounds hold under IEEE order and under total order: a zero minimum is -0.0
    where the file has one, a zero maximum is 0.0.
    """

    null_count: int
    minimum: Bound | None = None
    maximum: Bound | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FileStatistics:
    """The number of rows of a file and what is known of its leaves, in schema order."""

    num_records: int
    columns: Mapping[LeafPath, ColumnStatistics]
