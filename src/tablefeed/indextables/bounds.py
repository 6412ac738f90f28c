"""Which manifests of a state cannot hold a file of a partition that is asked for ("states", partition bounds).

Bounds are texts, and nothing says by which order their writer compared them: 0.5.1 as texts; 0.5.2 and later two that
are numbers as such, and all others as texts. So a manifest is left out only where it holds no such file whichever way
they came about:

- dates order alike either way, and answer every question; so does a number that is the only one;
- numbers answer `=` where both orders say no, and all else where the bounds are not in the order of text;
- texts answer nothing. `4a`, `5` and `10` go in a circle, so that any may be outside of the bounds; a value may stand
  there escaped, and what a split gives back of an address or of JSON is another text.
"""

from __future__ import annotations

import datetime
import math
import re
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
    parse = _PARSERS.get(kind.name) if isinstance(kind, Primitive) else None
    if parse is None:
        return True
    try:  # null has a word that is none of these, and is above them in either order
        values = parse(low), parse(high), parse(asked.value)
    except (ValueError, ArithmeticError):
        return True
    if values[0] > values[1]:
        return True
    if low >= high or kind == Primitive("date"):
        return _overlaps(*values, asked.operator)
    if asked.operator != "=" or kind == Primitive("double"):  # which has more than one text
        return True
    return low <= asked.value <= high or _overlaps(*values, "=")


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


def _integer(text: str) -> int:
    if not _INTEGER.fullmatch(text):
        raise ValueError(f"{text!r} is no whole number")
    return int(text)


def _double(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text!r} has no place in an order")
    return number


_INTEGER = re.compile(r"-?[0-9]+", re.ASCII)
_PARSERS: Mapping[str, Callable[[str], Any]] = {
    **dict.fromkeys(("long", "integer", "short", "byte"), _integer),
    "double": _double,
    "date": _date,
}
