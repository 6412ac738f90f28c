"""How different writers spell the statistics of one column's values: each a true account, and each loses something."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import orjson

Values = Sequence[Any]  # Any: of one column, in Python, null is None
Spelt = tuple[Any, Any]  # Any: what JSON holds; None is left out


def delta_spark(values: Values, kind: str) -> Spelt:
    """NaN is the largest; texts cut to 32 with a tie-breaker; times cut down to milliseconds; floats in few digits."""
    if kind in ("boolean", "binary"):
        return None, None
    low, high = min(values, key=_nan_last), max(values, key=_nan_last)
    if kind == "string":
        return low[:32], high if len(high) <= 32 else high[:32] + "\U0010ffff"
    if kind == "float":
        return _special(low) or _short(low), _special(high) or _short(high)
    return _spelt(low), _spelt(high)


def older_delta_spark(values: Values, kind: str) -> Spelt:
    """Cuts a text between the two halves of a character, too, of which Java spells the first as `?`."""
    low, high = delta_spark(values, kind)
    units = max(values).encode("utf-16-le") if kind == "string" else b""
    if len(units) > 64:
        whole = units[:64].decode("utf-16-le", errors="ignore")
        high = whole + ("?" if len(whole.encode("utf-16-le")) < 64 else "") + "\ufffd"
    return low, high


def delta_rs(values: Values, kind: str) -> Spelt:
    """From Parquet's footer: without NaN, texts cut to 64 bytes, decimals by way of a double, booleans too.

    A decimal without a fraction becomes a 64-bit number, the last one where it exceeds that.
    """
    numbers = [v for v in values if not (isinstance(v, float) and math.isnan(v))]
    if not numbers or kind == "binary":
        return None, None
    low, high = min(numbers), max(numbers)
    if isinstance(low, Decimal):
        return (_in_64_bits(low), _in_64_bits(high)) if kind == "huge" else (float(low), float(high))
    if isinstance(low, float):
        return (low, high) if math.isfinite(low) and math.isfinite(high) else (None, None)
    if kind == "string":
        return _cut(low), _raised(_cut(high)) if _cut(high) != high else high
    if kind == "timestamp_ntz":
        return _spelt(low).replace("T", " "), _spelt(high).replace("T", " ")
    return _spelt(low), _spelt(high)


def of_a_narrower_type(values: Values, kind: str) -> Spelt:
    """As Delta-Spark did when the column was not yet widened, where these values were of the narrower type."""
    if kind == "double" and all(math.isfinite(v) and _is_single(v) for v in values):
        return delta_spark(values, "float")
    if kind == "timestamp_ntz" and all(v == datetime(v.year, v.month, v.day) for v in values):  # noqa: DTZ001
        return tuple(text.partition("T")[0] for text in delta_spark(values, kind))
    if kind in ("small", "large") and all(v == int(v) for v in values):
        return int(min(values)), int(max(values))
    return delta_spark(values, kind)


def careless(values: Values, kind: str) -> Spelt:
    """Cuts a text and puts nothing after it; tells times in a zone of its own."""
    if kind == "string":
        return min(values)[:16], max(values)[:16]
    if kind == "timestamp":
        if min(values).year == 1:
            return None, None
        zone = timedelta(hours=-5, minutes=-30)
        shown = (v.replace(tzinfo=None) + zone for v in (min(values), max(values)))
        low, high = (v.isoformat(timespec="milliseconds") + "-05:30" for v in shown)
        return low, high
    return delta_spark(values, kind)


def confused(values: Values, kind: str) -> Spelt:
    """Spells a bound as something of another type."""
    low, _ = delta_spark(values, kind)
    return ([low], {"a": 1}) if kind == "string" else ("x", False if kind != "boolean" else 3)


WRITERS: Sequence[Callable[[Values, str], Spelt]] = (
    delta_spark,
    older_delta_spark,
    delta_rs,
    of_a_narrower_type,
    careless,
    confused,
)


def text_of(tree: Mapping[str, object]) -> str:
    """The JSON text."""
    return orjson.dumps(tree).decode()


def _in_64_bits(value: Decimal) -> int:
    return min(max(int(float(value)), -(2**63)), 2**63 - 1)


def _nan_last(value: Any) -> Any:
    return (math.isnan(value), value) if isinstance(value, float) else (False, value)


def _is_single(value: float) -> bool:
    return abs(value) < 1e38 and bool(struct.unpack("f", struct.pack("f", value))[0] == value)


def _special(value: float) -> str | None:
    if math.isfinite(value):
        return None
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _short(value: float) -> orjson.Fragment:
    """The fewest digits that tell a 32-bit float from others."""
    texts = (f"{value:.{digits}g}" for digits in range(1, 10))
    return orjson.Fragment(
        next(text for text in texts if struct.unpack("f", struct.pack("f", float(text)))[0] == value)
    )


def _spelt(value: Any) -> Any:
    if isinstance(value, float):
        return _special(value) or value
    if isinstance(value, Decimal):
        return orjson.Fragment(format(value, "f"))
    if isinstance(value, datetime):
        whole = value - timedelta(microseconds=value.microsecond % 1000)
        return whole.replace(tzinfo=None).isoformat(timespec="milliseconds") + ("" if value.tzinfo is None else "Z")
    return value.isoformat() if isinstance(value, date) else value


def _raised(prefix: str) -> str | None:
    """`prefix` with its last character made greater; None where there is none greater."""
    last = ord(prefix[-1]) + 1
    return None if last > 0x10FFFF else prefix[:-1] + chr(last)


def _cut(text: str) -> str:
    return text.encode()[:64].decode(errors="ignore")
