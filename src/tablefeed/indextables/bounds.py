"""Which manifests of a state cannot hold a file of a partition that is asked for ("states", partition bounds).

Bounds are texts, and nothing says by which order their writer compared them, nor whether it escaped what it wrote. So a
manifest is left out only where it holds no such file whichever way they came about: dates order as text and as dates
alike and answer every question; numbers answer `=` where both orders say no; what has one value answers as itself. All
else is kept.
"""

from __future__ import annotations

import datetime
import decimal
import re
from collections.abc import Callable, Collection, Iterable, Mapping
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


def bounds_of(partitions: Iterable[Mapping[str, str | None]]) -> Mapping[str, Bounds] | None:
    """The bounds to write for a manifest of these partitions; None: none can be told.

    Told is what no reader of IndexTables errs by, whether it orders all as text or what look like numbers as numbers:
    the extremes where both orders agree, of natural numbers else what encloses them by both. A column of which neither
    can be had is left out, which its readers take for unbounded. Null has Hive's word.
    """
    found = dict[str, set[str]]()
    for row in partitions:
        for column, text in row.items():
            found.setdefault(column, set()).add(text or names.HIVE_DEFAULT_PARTITION)
    told = {column: _enclosing(texts) for column, texts in sorted(found.items())}
    return {column: bounds for column, bounds in told.items() if bounds is not None} or None


def _enclosing(texts: Collection[str]) -> Bounds | None:
    low, high = min(texts), max(texts)
    if low == high:
        return Bounds(low=low, high=high)
    if any(_MAY_BE_A_NUMBER.fullmatch(text) and not _PLAIN_NUMBER.fullmatch(text) for text in texts):
        return None
    if any(character >= _FIRST_SURROGATE for text in texts for character in text):  # Java orders these otherwise
        return None
    if not _is_below_all(low, texts):
        low = "0"
    if not _is_above_all(high, texts):
        high = "9" * max(len(text) for text in texts)
    return Bounds(low=low, high=high) if _is_below_all(low, texts) and _is_above_all(high, texts) else None


def _is_below_all(low: str, texts: Iterable[str]) -> bool:
    return all(low <= text and _numbers_in_order(low, text) for text in texts)


def _is_above_all(high: str, texts: Iterable[str]) -> bool:
    return all(text <= high and _numbers_in_order(text, high) for text in texts)


def _numbers_in_order(first: str, second: str) -> bool:
    """Whether the one is not above the other as numbers; true where one of them is none."""
    if _PLAIN_NUMBER.fullmatch(first) and _PLAIN_NUMBER.fullmatch(second):
        return decimal.Decimal(first) <= decimal.Decimal(second)
    return True


_PLAIN_NUMBER = re.compile(r"-?[0-9]{1,18}(\.[0-9]{1,15})?")
"""What Java and Rust take for the same number; in doubles two of them may meet, and never change places."""

_MAY_BE_A_NUMBER = re.compile(
    r"\s*[+-]?(nan|inf|infinity|0x[0-9a-f.p+-]*|\d+\.?\d*(e[+-]?\d+)?|\.\d+(e[+-]?\d+)?)[df]?\s*",
    re.IGNORECASE,
)
"""What Java or Rust may take for a number."""

_FIRST_SURROGATE = "\ud800"


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
