"""Converts the plain values of documents to values that pyarrow accepts for structs, arrays, maps and JSON texts.

The two writers of IndexTables4Spark differ. One stores dates and timestamps inside other values as numbers, bytes as
Base64, and an array as {"_values": [...]} without its nulls. The other keeps the types of dates, timestamps and bytes,
stores an array as {"<column>": [...]}, and leaves null members out. Both store the keys of maps as text.
"""

from __future__ import annotations

import base64
import decimal
import math
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import pyarrow as pa

from tablefeed.indextables.split.damage import DamagedSplitError, UnfitValueError
from tablefeed.indextables.split.nested import Instant
from tablefeed.model.spark_texts import DAY_US, exact_decimal

Typed = Callable[[object], object]
"""Converts a plain value to what pyarrow accepts for a type; None to None.

Raises UnfitValueError, or another ValueError, TypeError or ArithmeticError, where the value does not fit the type.
"""

RAW = "_raw"
"""The name under which an object holds a text of a JSON column that is not a JSON object."""
_DAY_MS = 86_400_000


def typed(kind: pa.DataType, units_a_us: int) -> Typed:
    """The conversion of plain values to values of `kind`, at any depth."""
    make = _maker(kind, units_a_us)
    return lambda value: None if value is None else make(value)


def json_text(value: object, units_a_us: int) -> bytes:
    """The JSON text of a value: without spaces, its members in the order of the index, not of the writer.

    Raises DamagedSplitError for a value that JSON cannot hold, such as bytes.
    """
    try:
        return orjson.dumps(value, default=lambda inner: _json_leaf(inner, units_a_us))
    except (orjson.JSONEncodeError, OverflowError) as error:
        raise DamagedSplitError(f"has a value that JSON cannot hold: {error}") from error


def document_json(value: object, units_a_us: int) -> bytes:
    """The text that was written to a JSON column: one that is not a JSON object is stored as {"_raw": text}.

    Raises as `json_text`.
    """
    if isinstance(value, dict) and list(value) == [RAW]:
        raw = value[RAW]
        if isinstance(raw, str) and json_object(raw) is None:
            return raw.encode()
    return json_text(value, units_a_us)


def json_object(text: str) -> dict[str, Any] | None:  # Any: JSON
    """The JSON object that `text` is; None where it is none."""
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    return found if isinstance(found, dict) else None


def typed_key(kind: pa.DataType, units_a_us: int) -> Callable[[str], object]:
    """The conversion of a map key's text to a key of `kind`; the text of a date or timestamp is its number."""
    to_key = typed(kind, units_a_us)
    if pa.types.is_temporal(kind):
        return lambda text: to_key(_integer(text))
    return to_key


def _maker(kind: pa.DataType, units_a_us: int) -> Callable[[Any], object]:  # Any: a value that is checked here
    is_a = pa.types
    if is_a.is_struct(kind):
        return _struct([(field.name, typed(field.type, units_a_us)) for field in kind])
    if is_a.is_map(kind):
        return _map(typed_key(kind.key_type, units_a_us), typed(kind.item_type, units_a_us))
    if is_a.is_list(kind):
        to_element = typed(kind.value_type, units_a_us)
        return lambda value: [to_element(element) for element in _of(list, value)]
    if is_a.is_date(kind):
        return lambda value: _day(value, units_a_us)
    if is_a.is_timestamp(kind):
        return lambda value: _micros(value, units_a_us)
    if is_a.is_string(kind):
        return lambda value: _text(value, units_a_us)
    if is_a.is_integer(kind):
        return _integer
    if is_a.is_floating(kind):
        return _single if is_a.is_float32(kind) else _double
    if is_a.is_decimal(kind):
        return lambda value: exact_decimal(decimal.Decimal(_of(str, value)), kind.precision, kind.scale)
    if is_a.is_boolean(kind):
        return _boolean
    if is_a.is_binary(kind):
        return _bytes
    raise UnfitValueError("no column of that type is stored")


def _struct(members: list[tuple[str, Typed]]) -> Callable[[Any], object]:
    def make(value: Any) -> object:
        members_of = _of(dict, value)
        return {name: to_member(members_of.get(name)) for name, to_member in members}

    return make


def _map(to_key: Callable[[str], object], to_value: Typed) -> Callable[[Any], object]:
    return lambda value: [(to_key(name), to_value(item)) for name, item in _of(dict, value).items()]


def _of(kind: type, value: Any) -> Any:
    if not isinstance(value, kind):
        raise UnfitValueError(f"it is stored as {type(value).__name__}, not {kind.__name__}")
    return value


_INTEGER = re.compile(r"[+-]?[0-9]{1,20}", re.ASCII)
_MOMENT = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})(?:[T ][0-9:.]+)?(?:Z|[+-][0-9:]+)?", re.ASCII)


def _integer(value: Any) -> int:
    if isinstance(value, str) and _INTEGER.fullmatch(value):
        return int(value)
    if isinstance(value, bool):
        raise UnfitValueError("it is stored as a boolean")
    number: int = _of(int, value)
    return number


def _double(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise UnfitValueError(f"it is stored as {type(value).__name__}")
    number = float(value)
    if isinstance(value, int) and int(number) != value:
        raise UnfitValueError(f"{value} has more digits than a double")
    return number


def _single(value: Any) -> float:
    """Gives the double to round to a float. One writer stores the shortest text of a float, which is another double."""
    number = _double(value)
    if math.isinf(pa.scalar(number, pa.float32()).as_py()) and not math.isinf(number):
        raise UnfitValueError(f"{number} does not fit in a float")
    return number


def _boolean(value: Any) -> bool:
    if value in ("true", "false"):
        return bool(value == "true")
    flag: bool = _of(bool, value)
    return flag


def _bytes(value: Any) -> bytes:
    if isinstance(value, str):
        return base64.b64decode(value, validate=True)
    plain: bytes = _of(bytes, value)
    return plain


def _text(value: Any, units_a_us: int) -> str:
    if isinstance(value, Instant):
        return _rfc3339(value, units_a_us)
    text: str = _of(str, value)
    return text


def _day(value: Any, units_a_us: int) -> int:
    """Days since 1970; a plain number is milliseconds."""
    if isinstance(value, Instant):
        return value.units // units_a_us // DAY_US
    return _integer(value) // _DAY_MS


def _micros(value: Any, units_a_us: int) -> int:
    """Microseconds since 1970; a plain number is microseconds already."""
    if isinstance(value, Instant):
        micros, rest = divmod(value.units, units_a_us)
        if rest:
            raise UnfitValueError("it has nanoseconds")
        return micros
    return _integer(value)


def _json_leaf(value: object, units_a_us: int) -> object:
    if isinstance(value, Instant):
        return _rfc3339(value, units_a_us)
    raise UnfitValueError(f"JSON has no {type(value).__name__}")


def _rfc3339(instant: Instant, units_a_us: int) -> str:
    """The text of a moment as Tantivy writes it: in UTC, with as many digits of a second as needed."""
    nanos = instant.units * (1000 // units_a_us)
    seconds, rest = divmod(nanos, 1_000_000_000)
    whole = (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%S")
    fraction = f".{rest:09}".rstrip("0") if rest else ""
    return f"{whole}{fraction}Z"
