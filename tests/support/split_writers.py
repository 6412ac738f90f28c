"""How the writers of IndexTables spell what they tell of a split: extremes and partition values, as texts.

Each takes the values of one column as they were given to it, none of them null. What a split gives back may be another
value: of JSON and addresses what they mean.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

from tablefeed.data.split_bounds import bounds

Values = Sequence[Any]  # Any: of one column, in Python
Spelt = tuple[str | None, str | None]

HIVE = "__HIVE_DEFAULT_PARTITION__"
EPOCH, DAY_0 = datetime(1970, 1, 1, tzinfo=UTC), date(1970, 1, 1)
US = timedelta(microseconds=1)


def by_rows(values: Values, kind: str) -> Spelt:
    """The Scala writer: Java's order, of texts that of their UTF-16, NaN above all and -0.0 below 0.0."""
    return _java(min(values, key=_java_order), kind), _java(max(values, key=_java_order), kind)


def by_arrow(values: Values, kind: str) -> Spelt:
    """The native writer: texts by their bytes, numbers with all their zeros, no NaN, days in microseconds."""
    numbers = [v for v in values if not (isinstance(v, float) and math.isnan(v))]
    if not numbers or kind in ("json", "ip"):
        return None, None
    low, high = min(numbers, key=_bytes_order), max(numbers, key=_bytes_order)
    return _rust(low, kind), _rust(high, kind)


def by_arrow_with_iso_days(values: Values, kind: str) -> Spelt:
    """An earlier native writer."""
    return by_rows(values, kind) if kind == "date" else by_arrow(values, kind)


def by_ourselves(values: Values, kind: str) -> Spelt:
    """Ours, which tells only what any reader orders alike, and does not write what has a type of its own there."""
    if kind not in _ARROW:
        return None, None
    least, greatest = bounds(pa.table({"c": pa.array(values, _ARROW[kind])}))
    return least.get("c"), greatest.get("c")


def by_a_ceiling(values: Values, kind: str) -> Spelt:
    """The native writer of companions: texts cut by bytes, and the last character of the greatest made the next."""
    low, high = by_arrow(values, kind)
    if kind != "string" or low is None or high is None:
        return low, high
    return _of_bytes(low, 16), high if len(high.encode()) <= 16 else _ceiling(_of_bytes(high, 16))


WRITERS: Sequence[Callable[[Values, str], Spelt]] = (
    by_rows,
    by_arrow,
    by_arrow_with_iso_days,
    by_ourselves,
    by_a_ceiling,
)


def cut(text: str, most: int) -> str:
    """`text` as Java cuts it: by halves of characters, of which one alone is spelt `?`. Numbers are cut as well."""
    units = text.encode("utf-16-le")[: 2 * most]
    whole = units.decode("utf-16-le", errors="ignore")
    return whole + "?" * (len(units) // 2 - len(whole.encode("utf-16-le")) // 2)


def escaped_partition(value: Any, kind: str) -> str:
    """The row writer's: for good, since `%` itself stays."""
    if value is None or value == "":
        return HIVE
    text = f"{_iso(value)}Z" if kind == "timestamp" else _java(value, kind)
    for character in '/\\:*?"<>| ':
        text = text.replace(character, f"%{ord(character):02X}")
    return text


def raw_partition(value: Any, kind: str) -> str:
    """The native writer's: as it is, and instants in whole seconds."""
    if value is None:
        return HIVE
    return value.strftime("%Y-%m-%d %H:%M:%S").rjust(19, "0") if kind == "timestamp" else _rust(value, kind, iso=True)


_ARROW: Mapping[str, pa.DataType] = {
    "long": pa.int64(),
    "integer": pa.int32(),
    "double": pa.float64(),
    "float": pa.float32(),
    "boolean": pa.bool_(),
    "string": pa.string(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
}


def _of_bytes(text: str, most: int) -> str:
    return text.encode()[:most].decode(errors="ignore")


def _ceiling(text: str) -> str:
    last = "\U0010ffff"
    kept = text.rstrip(last)
    if not kept:
        return text
    code = ord(kept[-1]) + 1
    return kept[:-1] + (last if 0xD800 <= code < 0xE000 else chr(code))


def _java_order(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-16-be")
    return (math.isnan(value), value, math.copysign(1, value)) if isinstance(value, float) else value


def _bytes_order(value: Any) -> Any:
    return value.encode() if isinstance(value, str) else value


def _java(value: Any, kind: str) -> str:
    match value:
        case bool():
            return str(value).lower()
        case float():
            return _java_number(value, single=kind == "float")
        case datetime():
            return str((value - EPOCH) // US)
        case date():
            return value.isoformat()
    return str(value)


def _java_number(value: float, *, single: bool) -> str:
    if math.isnan(value) or math.isinf(value):
        return "NaN" if math.isnan(value) else f"{'-' * (value < 0)}Infinity"
    shortest = next(
        text for text in (f"{value:.{digits}g}" for digits in range(1, 18)) if _as(float(text), single=single) == value
    )
    mantissa, _, exponent = f"{Decimal(shortest):E}".partition("E")
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        plain = f"{Decimal(shortest):f}"
        return plain if "." in plain else f"{plain}.0"
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}E{int(exponent)}"


def _as(value: float, *, single: bool) -> float:
    return float(struct.unpack("f", struct.pack("f", value))[0]) if single else value


def _rust(value: Any, kind: str, *, iso: bool = False) -> str:
    match value:
        case float() if math.isinf(value):
            return "inf" if value > 0 else "-inf"
        case float():
            return f"{Decimal(repr(value)):f}".removesuffix(".0")
        case date() if not isinstance(value, datetime) and not iso:
            return str((value - DAY_0).days * 86_400_000_000)
    return _java(value, kind)


def _iso(value: datetime) -> str:
    return value.astimezone(UTC).replace(tzinfo=None).isoformat()
