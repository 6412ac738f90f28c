"""The least and the greatest value of each column of a split, as texts, where IndexTables cannot take them wrongly.

It leaves out splits by them, and orders values as Java does: what Arrow orders otherwise is not told. A long text is
cut, but for a partition's value ("Statistics Truncation"). IndexTables cuts the greatest as it cuts the least, and its
reader then passes over rows beyond what is left (`=`, `IN`, `>`); here the last character kept is made the next one,
which is above all texts that begin so, to every reader.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

_MOST_COLUMNS = 32
"""Those of IndexTables' default, the first ones that have an order."""
_MOST_CHARACTERS = 32
"""Of a text: the default of `spark.indextables.stats.truncation.maxLength`."""
_FIRST_SURROGATE, _BEFORE_SURROGATES = "\ud800", "\ud7ff"
"""From here on Java orders texts by their UTF-16, which is not the order of their characters."""


def bounds(rows: pa.Table, *, whole: Collection[str] = ()) -> tuple[dict[str, str], dict[str, str]]:
    """The least and the greatest values by column; neither where one is not told or all are null.

    Texts of the columns `whole` are not cut.
    """
    least: dict[str, str] = {}
    greatest: dict[str, str] = {}
    ordered = [field for field in rows.schema if field.type in _TEXTS]
    for field in ordered[:_MOST_COLUMNS]:
        column = rows.column(field.name)
        if pa.types.is_timestamp(field.type):
            column = column.cast(pa.int64())
        extremes = pc.min_max(column).as_py() if _is_plain(column) else {"min": None, "max": None}
        if extremes["min"] is None:
            continue
        low, high = (_TEXTS[field.type](extremes[side]) for side in ("min", "max"))
        is_cut = pa.types.is_string(field.type) and field.name not in whole
        above = _cut_above(high) if is_cut else high
        if above is not None:
            least[field.name], greatest[field.name] = low[:_MOST_CHARACTERS] if is_cut else low, above
    return least, greatest


def _cut_above(text: str) -> str | None:
    """A text of at most `_MOST_CHARACTERS` that is not below `text`; None where every character is the last one."""
    if len(text) <= _MOST_CHARACTERS:
        return text
    kept = text[:_MOST_CHARACTERS].rstrip(_BEFORE_SURROGATES)
    return kept[:-1] + chr(ord(kept[-1]) + 1) if kept else None


def _is_plain(column: pa.ChunkedArray) -> bool:
    kind = column.type
    if pa.types.is_floating(kind):
        # NaN is Java's greatest and Arrow's none, and of the two zeros each has its own least.
        return not pc.any(pc.or_(pc.is_nan(column), pc.equal(pc.divide(1.0, column), -math.inf))).as_py()
    if pa.types.is_string(kind):
        texts = column.drop_null()
        others = texts.filter(pc.invert(pc.string_is_ascii(texts)))
        return not any(max(text) >= _FIRST_SURROGATE for text in others.to_pylist())
    return True


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
"""Of a timestamp: its microseconds since 1970."""
