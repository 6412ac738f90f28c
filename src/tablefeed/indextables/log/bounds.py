"""Skips the manifests of a state that cannot hold a file of a wanted partition ("states", partition bounds).

TextBounds are texts, and nothing says in which order their writer compared them. 0.5.1 compares texts; 0.5.2 and later
compare two numbers as numbers and everything else as texts. So a manifest is skipped only where it holds no such file
in either order:

- Dates have the same order either way, so bounds can be used for every operator. So can bounds of one single number.
- For numbers, `=` is decided where both orders agree; other operators only where the bounds are not in text order.
- Texts decide nothing. `4a`, `5` and `10` order in a circle, so any of them may be outside the bounds. A value may
  also be escaped there, and what a split returns for an address or for JSON is another text.
"""

from __future__ import annotations

import datetime
import decimal
import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Literal

from tablefeed.indextables import names
from tablefeed.indextables.log.avro_state import TextBounds
from tablefeed.model.schema import DataType, Primitive

Operator = Literal["=", "<", "<=", ">", ">="]


def bounds_of(partitions: Iterable[Mapping[str, str | None]]) -> Mapping[str, TextBounds] | None:
    """The bounds to write for a manifest of these partitions; None where no column has safe bounds.

    TextBounds are safe where they hold for readers that order everything as text and for readers that order numbers as
    numbers. They are the extremes where both orders agree; for natural numbers otherwise values that enclose them in
    both. A column without safe bounds is left out: readers then treat it as unbounded. Null is Hive's word for it.
    """
    found = dict[str, set[str]]()
    for row in partitions:
        for column, text in row.items():
            found.setdefault(column, set()).add(text or names.HIVE_DEFAULT_PARTITION)
    enclosing = {column: _enclosing(texts) for column, texts in sorted(found.items())}
    return {column: bounds for column, bounds in enclosing.items() if bounds is not None} or None


def _enclosing(texts: Collection[str]) -> TextBounds | None:
    low, high = min(texts), max(texts)
    if low == high:
        return TextBounds(low=low, high=high)
    if any(may_be_a_number(text) and not _PLAIN_NUMBER.fullmatch(text) for text in texts):
        return None
    if any(character >= _FIRST_SURROGATE for text in texts for character in text):  # Java orders these otherwise
        return None
    if not _is_below_all(low, texts):
        low = "0"
    if not _is_above_all(high, texts):
        high = "9" * max(len(text) for text in texts)
    return TextBounds(low=low, high=high) if _is_below_all(low, texts) and _is_above_all(high, texts) else None


def _is_below_all(low: str, texts: Iterable[str]) -> bool:
    return all(low <= text and _numbers_in_order(low, text) for text in texts)


def _is_above_all(high: str, texts: Iterable[str]) -> bool:
    return all(text <= high and _numbers_in_order(text, high) for text in texts)


def _numbers_in_order(first: str, second: str) -> bool:
    """Whether `first` is not above `second` as numbers; true where one of them is not a number."""
    if _PLAIN_NUMBER.fullmatch(first) and _PLAIN_NUMBER.fullmatch(second):
        return decimal.Decimal(first) <= decimal.Decimal(second)
    return True


_PLAIN_NUMBER = re.compile(r"-?[0-9]{1,18}(\.[0-9]{1,15})?")
"""Texts that Java and Rust parse as the same number. As doubles two of them may become equal, but keep their order."""

_MAY_BE_A_NUMBER = re.compile(
    r"\s*[+-]?(nan|inf|infinity|0x[0-9a-f.p+-]*|\d+\.?\d*(e[+-]?\d+)?|\.\d+(e[+-]?\d+)?)[df]?\s*",
    re.IGNORECASE,
)


def may_be_a_number(text: str) -> bool:
    """Whether Java or Rust may parse `text` as a number."""
    return _MAY_BE_A_NUMBER.fullmatch(text) is not None


_FIRST_SURROGATE = "\ud800"


def may_hold(bounds: TextBounds | None, operator: Operator, value: str, *, kind: DataType | None) -> bool:
    """Says whether a manifest may hold a file for which `operator` and `value` are true of a partition column.

    `bounds` are those of the column, of type `kind`; None: they are unknown, or the type is. `value` is not null: the
    text of decimal digits, or a date in ISO 8601.
    """
    if bounds is None or bounds.low is None or bounds.high is None or kind is None:
        return True
    low, high = bounds.low, bounds.high
    parse = _PARSERS.get(kind.name) if isinstance(kind, Primitive) else None
    if parse is None:
        return True
    try:  # the word for null is not of these types, and is above all values in both orders
        values = parse(low), parse(high), parse(value)
    except (ValueError, ArithmeticError):
        return True
    if values[0] > values[1]:
        return True
    if low >= high or kind == Primitive("date"):
        return _overlaps(*values, operator)
    if operator != "=" or kind == Primitive("double"):  # which has more than one text
        return True
    return low <= value <= high or _overlaps(*values, "=")


def _overlaps(low: Any, high: Any, value: Any, operator: Operator) -> bool:  # Any: three of one type that has an order
    found = {"<": low < value, "<=": low <= value, "=": low <= value <= high, ">=": high >= value, ">": high > value}
    return bool(found[operator])


def _date(text: str) -> datetime.date:
    if len(text) != len("2024-01-01"):
        raise ValueError(f"{text!r} is not a date")
    return datetime.date.fromisoformat(text)


def _integer(text: str) -> int:
    if not _INTEGER.fullmatch(text):
        raise ValueError(f"{text!r} is not a whole number")
    return int(text)


def _double(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text!r} is not a finite number")
    return number


_INTEGER = re.compile(r"-?[0-9]+", re.ASCII)
_PARSERS: Mapping[str, Callable[[str], Any]] = {
    **dict.fromkeys(("long", "integer", "short", "byte"), _integer),
    "double": _double,
    "date": _date,
}
