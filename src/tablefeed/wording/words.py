"""Sizes, times, texts and values of a table as people read them: in a terminal, in a page and in JSON."""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any


def printable(text: str) -> str:
    """Gives `text` with escapes instead of characters that a terminal would obey."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "replace").decode() for c in text)


def cut(text: str, characters: int) -> str:
    """Gives at most `characters` of `text`, the last of them an ellipsis where some are left out."""
    return text if len(text) <= characters else f"{text[: characters - 1]}…"


def several(count: int, noun: str) -> str:
    """Gives a number of things, such as "1 file" and "1,234 files"."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def moment(ms: int) -> str:
    """Gives milliseconds since 1970 as a time in UTC."""
    try:
        return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3] + "Z"
    except (ValueError, OverflowError, OSError):
        return f"{ms} ms"


def size(count: int) -> str:
    """Gives a number of bytes for people."""
    number, units = float(count), iter(("B", "KiB", "MiB", "GiB", "TiB"))
    unit = next(units)
    while number >= 1024 and unit != "TiB":
        number, unit = number / 1024, next(units)
    return f"{count} B" if unit == "B" else f"{number:.1f} {unit}"


def seconds(number: float) -> str:
    """Gives a duration for people, in its two largest units."""
    if number < 60:
        return f"{number * 1000:.0f} ms" if number < 1 else f"{number:.1f} s"
    left, parts = round(number), list[str]()
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)):
        count, left = divmod(left, length)
        if count:
            parts.append(f"{count:,} {unit}")
    return " ".join(parts[:2])


TOO_DEEP = "a value that nests too deep to be shown"


def json_value(value: object, *, levels: int = 200) -> Any:  # Any: JSON
    """Gives `value` as JSON can hold it. Decimals and floats that are no number are texts, bytes are base64.

    Half of a surrogate pair is written as its escape. What is nested deeper than `levels` is a text that says so:
    writers of JSON have limits, orjson that of 254 levels.
    """
    match value:
        case float() if not math.isfinite(value):
            return {math.inf: "Infinity", -math.inf: "-Infinity"}.get(value, "NaN")
        case str() if not value.isascii():
            return value.encode(errors="backslashreplace").decode()
        case Decimal():
            return str(value)
        case bytes():
            return base64.b64encode(value).decode()
        case datetime():
            return value.isoformat()
        case Mapping() | list() | tuple() | set() | frozenset() if not levels:
            return TOO_DEEP
        case Mapping():
            return {json_value(key): json_value(each, levels=levels - 1) for key, each in value.items()}
        case list() | tuple() | set() | frozenset():
            return [json_value(each, levels=levels - 1) for each in value]
        case _:
            return value
