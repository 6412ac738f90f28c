"""The least and the greatest value of each column of a split, as texts, where IndexTables cannot misread them.

IndexTables skips splits by these values and orders them as Java does, so values that Arrow orders differently get no
bounds. Long texts are cut, except partition values ("Statistics Truncation"). IndexTables cuts the greatest value like
the least one, and its reader then misses rows above the cut text (`=`, `IN`, `>`). Here the last kept character of the
greatest value is replaced by the next one, so that the bound is above all texts with that beginning.

IndexTables from 0.5.5 on compares two texts as numbers if both look like numbers. So a bound of a column of texts never
looks like a number. IndexTables reads the bound of a timestamp up to `_FIRST_MICROS` as milliseconds or seconds. So a
column with such a bound gets no bounds. IndexTables takes a 32-bit float of a filter as the double of its text, such as
0.1. This double may be less or more than the float. So the bounds of floats enclose it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tablefeed.indextables.log.bounds import may_be_a_number

_MOST_COLUMNS = 32
"""IndexTables' default: the first columns whose type has an order get bounds."""
_MOST_CHARACTERS = 32
"""The most characters of a text bound: the default of `spark.indextables.stats.truncation.maxLength`."""
_FIRST_SURROGATE, _BEFORE_SURROGATES = "\ud800", "\ud7ff"
"""From this character on, Java's order of texts (by UTF-16) differs from the order by characters."""
_FIRST_MICROS = 10**15
"""2001-09-09 01:46:40 UTC, in microseconds."""
_NO_NUMBER = "~"
"""A character that no number has. It is above all characters of numbers."""


def bounds(rows: pa.Table, *, whole: Collection[str] = ()) -> tuple[dict[str, str], dict[str, str]]:
    """The least and the greatest values by column; a column has both or neither, and neither where all values are null.

    Texts of the columns `whole` are not cut.
    """
    least: dict[str, str] = {}
    greatest: dict[str, str] = {}
    ordered = [field for field in rows.schema if field.type in _TEXTS]
    for field in ordered[:_MOST_COLUMNS]:
        column = rows.column(field.name)
        if pa.types.is_timestamp(field.type):
            column = column.cast(pa.int64())
        extremes: Mapping[str, Any] = pc.min_max(column).as_py() if _is_plain(column) else {"min": None, "max": None}
        if extremes["min"] is None:
            continue
        if pa.types.is_float32(field.type):
            extremes = {side: _beyond_its_texts(extremes[side], sign) for side, sign in (("min", -1), ("max", 1))}
        low, high = (_TEXTS[field.type](extremes[side]) for side in ("min", "max"))
        if pa.types.is_string(field.type):
            most = max(len(low), len(high)) + 1 if field.name in whole else _MOST_CHARACTERS
            texts = _bounds_of_texts(low, high, most)
            if texts is None:
                continue
            low, high = texts
        elif pa.types.is_timestamp(field.type) and extremes["min"] <= _FIRST_MICROS:
            continue
        least[field.name], greatest[field.name] = low, high
    return least, greatest


def _bounds_of_texts(low: str, high: str, most: int) -> tuple[str, str] | None:
    """Bounds of `low` and `high` of at most `most` characters, neither like a number; None where there are none."""
    below, above = low[:most], _cut_above(high, most)
    if above is None:
        return None
    if may_be_a_number(below):
        below = below[: most - 1]
        below = f"{below[:-1]}{chr(ord(below[-1]) - 1)}{_NO_NUMBER}"
    if may_be_a_number(above):
        above = f"{_cut_above(above, most - 1)}{_NO_NUMBER}"
    return below, above


def _cut_above(text: str, most: int) -> str | None:
    """A text of at most `most` characters that is not below `text`; None where no kept character has a next one."""
    if len(text) <= most:
        return text
    kept = text[:most].rstrip(_BEFORE_SURROGATES)
    return kept[:-1] + chr(ord(kept[-1]) + 1) if kept else None


def _is_plain(column: pa.ChunkedArray) -> bool:
    kind = column.type
    if pa.types.is_floating(kind):
        # In Java NaN is the greatest value, while Arrow ignores it; Java also orders -0.0 below 0.0.
        return not pc.any(pc.or_(pc.is_nan(column), pc.equal(pc.divide(1.0, column), -math.inf))).as_py()
    if pa.types.is_string(kind):
        texts = column.drop_null()
        others = texts.filter(pc.invert(pc.string_is_ascii(texts)))
        return not any(max(text) >= _FIRST_SURROGATE for text in others.to_pylist())
    return True


def _beyond_its_texts(value: float, sign: int) -> float:
    """The 32-bit float `value`, moved by half its last place towards `sign` where a shorter text stands for it."""
    if math.isinf(value) or float(pa.scalar(value, pa.float32()).cast(pa.string()).as_py()) == value:
        return value
    return value + sign * (abs(value) * 2.0**-24 + 2.0**-150)


def _double(value: float) -> str:
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return repr(value)


_Text = Callable[[Any], str]  # Any: a value of the type
_TEXTS: Mapping[pa.DataType, _Text] = {
    pa.int32(): str,
    pa.int64(): str,
    pa.float32(): _double,
    pa.float64(): _double,
    pa.bool_(): lambda value: str(value).lower(),
    pa.string(): str,
    pa.date32(): str,
    pa.timestamp("us", "UTC"): str,
}
"""How a value is written as text. A timestamp is written as microseconds since 1970."""
