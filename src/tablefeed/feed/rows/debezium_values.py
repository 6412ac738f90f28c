"""Values of Debezium's JSON as values of a table's columns: exactly, or not at all.

Kafka Connect's JSON may describe its values (`schemas.enable`): the type and the name of each field say what a number
or a text means ("Data type mappings" in Debezium's pages on its connectors). Without a description only what has one
meaning under every setting of a connector is read.
"""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, NamedTuple

import pyarrow as pa

Read = Callable[[Any], Any]
"""Gives what `pyarrow.array` takes as a value of the column. Raises TypeError, ValueError and ArithmeticError."""

_TIME, _CONNECT, _DATA = "io.debezium.time.", "org.apache.kafka.connect.data.", "io.debezium.data."
_DATES = (f"{_TIME}Date", f"{_CONNECT}Date")
_UNITS_IN_NS = {
    f"{_TIME}Timestamp": 10**6,
    f"{_CONNECT}Timestamp": 10**6,
    f"{_TIME}MicroTimestamp": 10**3,
    f"{_TIME}NanoTimestamp": 1,
}
_NOT_FINITE = ("NaN", "Infinity", "-Infinity")
_MOST_DIGITS_OF_A_FLOAT = 9
"""A float is written with the fewest digits that tell it from all others; these are enough for each."""
_MOST_EXACT_IN_A_DOUBLE = 2**53
_MOMENT = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,6})0*)?(Z|[+-]\d\d:\d\d)")


class Declared(NamedTuple):
    """What the JSON says of a field: Kafka Connect's type, the name of what it means, and the scale of a decimal."""

    type: str | None = None
    name: str | None = None
    scale: str | None = None

    @staticmethod
    def of(field: Mapping[str, Any]) -> Declared:
        """Reads an entry of `fields`."""
        parameters = field.get("parameters") or {}
        return Declared(field.get("type"), field.get("name"), parameters.get("scale"))


def reader(kind: pa.DataType, declared: Declared | None) -> Read | None:
    """Gives how a column of the type `kind` is read from a field; None where that is not known to be exact.

    `declared` is None where the JSON does not describe its values.
    """
    said = declared or Declared()
    is_a = pa.types
    if is_a.is_boolean(kind):
        return _bool
    if is_a.is_integer(kind):
        return _int
    if is_a.is_floating(kind):
        if said.name is not None:
            return None
        if kind == pa.float64():
            return _float
        return None if said.type == "double" else _short_float
    if is_a.is_decimal(kind):
        return _decimal(declared)
    if is_a.is_string(kind) and said.type in (None, "string"):
        return _text
    if is_a.is_binary(kind) and said.type == "bytes" and said.name is None:
        return _bytes
    if is_a.is_date(kind) and (declared is None or said.name in _DATES):
        return _int
    if is_a.is_timestamp(kind):
        if kind.tz is None:
            return _local(_UNITS_IN_NS[said.name]) if said.name in _UNITS_IN_NS else None
        return _moment if said.name in (None, f"{_TIME}ZonedTimestamp") and said.type in (None, "string") else None
    return None


def _bool(value: Any) -> bool:
    if type(value) is not bool:
        raise TypeError
    return value


def _int(value: Any) -> int:
    if type(value) is not int:
        raise TypeError
    return value


def _float(value: Any) -> float:
    if type(value) is str and value not in _NOT_FINITE:
        raise TypeError
    if type(value) is int and abs(value) > _MOST_EXACT_IN_A_DOUBLE:
        raise ValueError
    if type(value) not in (int, float, Decimal, str):
        raise TypeError
    found = float(value)
    if type(value) is Decimal and math.isinf(found):
        raise ValueError
    return found


def _short_float(value: Any) -> float:
    found = _float(value)
    if type(value) in (int, Decimal) and len(Decimal(value).normalize().as_tuple().digits) > _MOST_DIGITS_OF_A_FLOAT:
        raise ValueError
    return found


def _text(value: Any) -> str:
    if type(value) is not str:
        raise TypeError
    return value


def _bytes(value: Any) -> bytes:
    return base64.b64decode(_text(value), validate=True)


def _decimal(declared: Declared | None) -> Read | None:
    said = declared or Declared()

    def of_number(value: Any) -> Decimal:
        if type(value) not in (int, Decimal):
            raise TypeError
        return Decimal(value)

    def unscaled(value: Any, scale: int) -> Decimal:
        digits = Decimal(int.from_bytes(_bytes(value), "big", signed=True)).as_tuple()
        return Decimal((digits.sign, digits.digits, -scale))

    if said.name == f"{_CONNECT}Decimal" and said.scale is not None:
        scale = int(said.scale)
        return lambda value: unscaled(value, scale) if type(value) is str else of_number(value)
    if said.name == f"{_DATA}VariableScaleDecimal":
        return lambda value: unscaled(value["value"], _int(value["scale"]))
    if said.name is not None or said.type == "bytes":
        return None
    return _decimal_text if said.type == "string" else of_number


def _decimal_text(value: Any) -> Decimal:
    found = Decimal(_text(value))
    if not found.is_finite():
        raise ValueError
    return found


def _local(unit_in_ns: int) -> Read:
    def read(value: Any) -> int:
        found, rest = divmod(_int(value) * unit_in_ns, 1000)
        if rest:
            raise ValueError
        return found

    return read


def _moment(value: Any) -> int:
    found = _MOMENT.fullmatch(_text(value))
    if found is None:
        raise ValueError
    second, fraction, zone = found.groups()
    since = datetime.fromisoformat(second + zone) - datetime.fromisoformat("1970-01-01T00:00:00Z")
    return since // timedelta(microseconds=1) + int((fraction or "0").ljust(6, "0"))
