"""Which manifests of a state cannot hold a file of a partition that is asked for ("states", partition bounds).

Bounds are texts, and nothing says by which order their writer compared them, nor whether it escaped what it wrote. So a
manifest is left out only where it holds no such file whichever way they came about: dates order as text and as dates
alike and answer every question; numbers answer `=` where both orders say no; what has one value answers as itself. All
else is kept.
"""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from tablefeed.indextables import names
from tablefeed.indextables.avro_state import Bounds, Manifest
from tablefeed.model.schema import DataType, Primitive

Operator = Literal["=", "<", "<=", ">", ">="]


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A partition column beside a value that is not null, as text: decimal digits, a date in ISO 8601."""

    column: str
    operator: Operator
    value: str


def manifests_that_may_hold(
    manifests: Iterable[Manifest], all_of: Iterable[Comparison], *, types: Mapping[str, DataType]
) -> tuple[Manifest, ...]:
    """The manifests that may hold a file of a partition for which `all_of` are true, in order."""
    asked = tuple(all_of)
    return tuple(each for each in manifests if all(_may_hold(each, one, types.get(one.column)) for one in asked))


def bounds_of(
    partitions: Iterable[Mapping[str, str | None]], types: Mapping[str, DataType]
) -> Mapping[str, Bounds] | None:
    """The bounds to write for a manifest of these partitions, of columns with these types; None: none can be told.

    Told are text and dates in their order, and of other types what has one value: IndexTables' readers may order
    numbers as numbers or as text. Null has Hive's word.
    """
    rows, found = tuple(partitions), dict[str, Bounds]()
    for column, kind in types.items():
        texts = {row.get(column) or names.HIVE_DEFAULT_PARTITION for row in rows}
        if not texts or (len(texts) > 1 and kind not in _ORDERED_AS_TEXT):
            return None
        found[column] = Bounds(low=min(texts), high=max(texts))
    return found or None


_ORDERED_AS_TEXT = (Primitive("string"), Primitive("date"))


def _may_hold(manifest: Manifest, asked: Comparison, kind: DataType | None) -> bool:
    bounds = (manifest.bounds or {}).get(asked.column)
    if bounds is None or bounds.low is None or bounds.high is None or kind is None:
        return True
    low, high = bounds.low, bounds.high
    if names.HIVE_DEFAULT_PARTITION in (low, high) or "%" in f"{low}{high}{asked.value}":
        return True
    parse = _PARSERS.get(kind.name) if isinstance(kind, Primitive) else None
    if parse is None:
        return True
    try:
        values = parse(low), parse(high), parse(asked.value)
    except (ValueError, ArithmeticError):
        return True
    if low == high or kind == Primitive("date"):
        return values[0] > values[1] or _overlaps(*values, asked.operator)
    if asked.operator != "=":
        return True
    # the order of text, and of what escapes would have made of it: only plain characters are compared
    plain = all(
        text.isascii() and text.replace("-", "").replace("_", "").isalnum() for text in (low, high, asked.value)
    )
    by_text = not plain or low <= asked.value <= high
    return by_text or values[0] > values[1] or _overlaps(*values, "=")


def _overlaps(low: Any, high: Any, value: Any, operator: Operator) -> bool:  # Any: three of one type that has an order
    match operator:
        case "=":
            return bool(low <= value <= high)
        case "<":
            return bool(low < value)
        case "<=":
            return bool(low <= value)
        case ">":
            return bool(high > value)
        case ">=":
            return bool(high >= value)


def _date(text: str) -> datetime.date:
    if len(text) != len("2024-01-01"):
        raise ValueError(f"{text!r} is no date")
    return datetime.date.fromisoformat(text)


def _number(text: str) -> decimal.Decimal:
    number = decimal.Decimal(text)
    if not number.is_finite():
        raise ValueError(f"{text!r} has no place in an order")
    return number


def _string(text: str) -> str:
    if not text:
        raise ValueError("'' is written as null is")
    return text


_NUMBERS = ("long", "integer", "short", "byte", "double")
_PARSERS: Mapping[str, Callable[[str], Any]] = {
    **dict.fromkeys(_NUMBERS, _number),
    "date": _date,
    "string": _string,
}
