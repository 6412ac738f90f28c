"""Converts struct, array, map, JSON and IP columns to the plain values that documents store: typed.py inverted.

The forms are those of IndexTables' older writer (`Style.ROWS`): an array is in an object of its own, dates are
milliseconds and timestamps microseconds since 1970, bytes are Base64, keys are texts, NaN and infinities are names.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from ipaddress import ip_address
from typing import Any

import pyarrow as pa

from tablefeed.indextables.split.damage import UnfitValueError
from tablefeed.indextables.split.shapes import WRAPPED
from tablefeed.indextables.split.typed import RAW, json_object

_DAY_MS = 86_400_000
_EPOCH, _EPOCH_DAY = datetime(1970, 1, 1, tzinfo=UTC), date(1970, 1, 1)

_Plain = Callable[[Any], object]  # Any: the Python value that pyarrow gives depends on its type


def objects(column: pa.Array) -> list[dict[str, Any] | None]:
    """The object as which each value of `column`, of structs, arrays or maps, is stored; None for null.

    Raises UnfitValueError where a map has a key twice, or where Python cannot represent a date or time.
    """
    make = _maker(column.type)
    try:
        plain: list[Any] = [None if value is None else make(value) for value in column.to_pylist()]
    except (ValueError, OverflowError, pa.ArrowException) as error:
        raise UnfitValueError(str(error)) from error
    return [{WRAPPED: value} if isinstance(value, list) else value for value in plain]


def json_objects(column: pa.Array) -> list[dict[str, Any] | None]:
    """The object as which each text of a JSON column is stored: {"_raw": text} for a text that is not a JSON object."""
    texts = column.to_pylist()
    found = [None if text is None else json_object(text) for text in texts]
    return [{RAW: text} if each is None and text is not None else each for each, text in zip(found, texts, strict=True)]


def addresses(column: pa.Array) -> list[str | None]:
    """The texts of an IP column. Raises UnfitValueError for a text that a reader would get back in another spelling."""
    for text in column.unique().drop_null().to_pylist():
        try:
            ip = ip_address(text)
        except ValueError as error:
            raise UnfitValueError(f"{text!r:.80} is not an IP address") from error
        if (spelled := str(getattr(ip, "ipv4_mapped", None) or ip)) != text or "%" in text:
            raise UnfitValueError(f"{text!r} is stored as the address {spelled}")
    return list(column.to_pylist())


def _maker(kind: pa.DataType) -> _Plain:
    is_a = pa.types
    if is_a.is_struct(kind):
        members = {field.name: _nullable(_maker(field.type)) for field in kind}
        return lambda value: {name: make(value[name]) for name, make in members.items()}
    if is_a.is_list(kind):
        to_element = _nullable(_maker(kind.value_type))
        return lambda value: [to_element(element) for element in value]
    if is_a.is_map(kind):
        return _map(_key(_maker(kind.key_type)), _nullable(_maker(kind.item_type)))
    if is_a.is_date(kind):
        return lambda value: (value - _EPOCH_DAY).days * _DAY_MS
    if is_a.is_timestamp(kind):
        return lambda value: (value - _EPOCH) // timedelta(microseconds=1)
    if is_a.is_floating(kind):
        return _finite_or_name
    if is_a.is_binary(kind):
        return lambda value: base64.b64encode(value).decode()
    return lambda value: value


def _nullable(make: _Plain) -> _Plain:
    return lambda value: None if value is None else make(value)


def _map(to_key: Callable[[Any], str], to_value: _Plain) -> _Plain:
    def make(entries: Any) -> object:
        found = {to_key(key): to_value(value) for key, value in entries}
        if len(found) != len(entries):
            raise UnfitValueError("a map has the same key twice")
        return found

    return make


def _key(make: _Plain) -> Callable[[Any], str]:
    def text(key: Any) -> str:
        plain = make(key)
        return str(plain).lower() if isinstance(plain, bool) else str(plain)

    return text


def _finite_or_name(value: float) -> float | str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return value
