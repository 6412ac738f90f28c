"""Parses and writes the log's texts of partition values (PROTOCOL.md, "Partition Value Serialization").

A value has the Python type that pyarrow accepts for the column's Arrow type: int for integers, dates (days since
1970-01-01) and timestamps (microseconds since then), float, Decimal, bool, str, bytes. So dates can be outside Python's
years 1 to 9999, as in Spark. A value of a column of 32-bit floats is rounded to 32 bits. None is null.
"""

from __future__ import annotations

import ctypes
import datetime
import decimal
import re
from collections.abc import Callable, Mapping
from typing import Any

from tablefeed.errors import TablefeedError
from tablefeed.model.schema import DataType, Decimal, Primitive, type_name
from tablefeed.model.spark_texts import (
    DAY_US,
    date_text,
    exact_decimal,
    java_double,
    java_float,
    names_zone,
    read_date,
    read_timestamp,
    read_timestamp_ntz,
    time_text,
    timestamp_text,
)

PartitionValue = bool | int | float | decimal.Decimal | str | bytes
"""A value that is not null."""

Refusal = Callable[[str], TablefeedError]
"""Makes the error for a reason: the caller knows the table, the log file or the data file to name."""


def parse(text: str | None, data_type: DataType, *, refuse: Refusal) -> PartitionValue | None:
    """The value of `text` in a partition column of `data_type`. '' is null for every type, strings too.

    Accepts the protocol's forms and those of known writers: timestamps with a space or `T`, with or without a zone,
    `inf` and `Infinity`, bytes as text or as one backslash-u escape for each byte. A timestamp without a zone is in
    UTC, as delta-rs and this package write it. (Old versions of Spark wrote it in the session's zone, which the log
    does not say.) Raises the error that `refuse` makes where `text` is not a value of the type.
    """
    if text is None or text == "":
        return None
    try:
        return _parser(data_type)(text)
    except (ValueError, ArithmeticError) as error:
        detail = f": {error}" if error.args else ""
        raise refuse(f"the partition value {text!r:.80} is not of type {type_name(data_type)}{detail}") from error


def serialise(value: PartitionValue | None, data_type: DataType) -> str | None:
    """The text of `value` as Delta-Spark writes it; None for null, '' and no bytes. `parse` gives the value back.

    Timestamps are UTC in ISO 8601 with six digits after the second. Timestamps without zone and dates are as in SQL,
    floats as in Java. Bytes are their UTF-8 text, as Spark's readers expect. Where they are not UTF-8, or look like
    escapes, they are backslash-u escapes, as in the protocol's example. `value` must have the Python type that `parse`
    returns for the type.
    """
    if value is None or value in ("", b""):
        return None
    match data_type:
        case Decimal() if isinstance(value, decimal.Decimal):
            return format(exact_decimal(value, data_type.precision, data_type.scale), "f")
        case Primitive(name=name):
            return _WRITERS.get(name, str)(value)
        case _:
            raise TypeError(f"{value!r:.80} is not a partition value of {data_type}")


def directory_text(value: PartitionValue | None, data_type: DataType) -> str | None:
    """The text of `value` in a directory's name, which no reader parses: as `serialise`, except for timestamps.

    Delta-Spark writes timestamps there as in SQL, in the session's zone; here they are in UTC.
    """
    if data_type == Primitive("timestamp") and isinstance(value, int):
        return timestamp_text(value)
    return serialise(value, data_type)


def _parser(data_type: DataType) -> Callable[[str], PartitionValue]:
    match data_type:
        case Decimal():
            return lambda text: _parse_decimal(text, data_type)
        case Primitive(name=name) if name in _PARSERS:
            return _PARSERS[name]
        case _:
            return _no_value


def _no_value(_: str) -> PartitionValue:
    raise ValueError("a partition column cannot have that type")


# --- numbers -------------------------------------------------------------------------------------------------------

_INTEGER = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_WORD = re.compile(r"nan|[+-]?inf(?:inity)?", re.IGNORECASE)  # Java writes NaN and Infinity, Rust NaN and inf


def _integer(bits: int) -> Callable[[str], int]:
    def parse_integer(text: str) -> int:
        if not _INTEGER.fullmatch(text):
            raise ValueError
        return _within(int(text), bits)

    return parse_integer


def _within(value: int, bits: int) -> int:
    if not -(1 << bits - 1) <= value < 1 << bits - 1:
        raise ValueError("it is out of range")
    return value


def _parse_float(text: str) -> float:
    if not (_NUMBER.fullmatch(text) or _WORD.fullmatch(text)):
        raise ValueError
    return float(text)


def _parse_short_float(text: str) -> float:
    return ctypes.c_float(_parse_float(text)).value


def _parse_decimal(text: str, data_type: Decimal) -> decimal.Decimal:
    if not _NUMBER.fullmatch(text):
        raise ValueError
    return exact_decimal(decimal.Decimal(text), data_type.precision, data_type.scale)


# --- days and instants ---------------------------------------------------------------------------------------------

# The usual form: Python's own parser reads it three times as fast.
_USUAL_INSTANT = re.compile(
    r"([1-9][0-9]{3}-[0-9]{2}-[0-9]{2}[ T](?:[01][0-9]|2[0-3]):[0-9]{2}:[0-9]{2}(?:\.[0-9]{3}(?:[0-9]{3})?)?)Z?"
)

_EPOCH_START = datetime.datetime(1970, 1, 1)  # noqa: DTZ001 - in the zone of what is counted from it


def _parse_timestamp(text: str) -> int:
    if "/" in text:
        raise ValueError("its zone is a region, which changes its offset")
    return _usual_instant(text) or read_timestamp(text, datetime.UTC)


def _parse_timestamp_ntz(text: str) -> int:
    if text.endswith("Z") or names_zone(text):
        raise ValueError("it has a zone")
    return _usual_instant(text) or read_timestamp_ntz(text)


def _usual_instant(text: str) -> int | None:
    usual = _USUAL_INSTANT.fullmatch(text)
    if usual is None:
        return None
    since = datetime.datetime.fromisoformat(usual[1]) - _EPOCH_START
    return since.days * DAY_US + since.seconds * 1_000_000 + since.microseconds


def _timestamp_text(micros: int) -> str:
    days, of_day_us = divmod(micros, DAY_US)
    return f"{date_text(days)}T{time_text(of_day_us)}.{of_day_us % 1_000_000:06d}Z"


# --- the rest ------------------------------------------------------------------------------------------------------

_ESCAPES = re.compile(r"(?:\\u00[0-9A-Fa-f]{2})+")


def _parse_boolean(text: str) -> bool:
    match text.lower():
        case "true":
            return True
        case "false":
            return False
        case _:
            raise ValueError


def _boolean_text(value: bool) -> str:  # noqa: FBT001 - the value itself
    return "true" if value else "false"


def _parse_binary(text: str) -> bytes:
    if _ESCAPES.fullmatch(text):
        return bytes(int(code, 16) for code in text.split(r"\u")[1:])
    return text.encode()


def _binary_text(value: bytes) -> str:
    try:
        text = value.decode()
    except UnicodeDecodeError:
        text = ""
    if text and not _ESCAPES.fullmatch(text):
        return text
    return "".join(rf"\u{byte:04X}" for byte in value)


_PARSERS: Mapping[str, Callable[[str], PartitionValue]] = {
    "string": str,
    "long": _integer(64),
    "integer": _integer(32),
    "short": _integer(16),
    "byte": _integer(8),
    "float": _parse_short_float,
    "double": _parse_float,
    "boolean": _parse_boolean,
    "binary": _parse_binary,
    "date": read_date,
    "timestamp": _parse_timestamp,
    "timestamp_ntz": _parse_timestamp_ntz,
}
_WRITERS: Mapping[str, Callable[[Any], str]] = {  # Any: each takes its own type's value
    "float": java_float,
    "double": java_double,
    "boolean": _boolean_text,
    "binary": _binary_text,
    "date": date_text,
    "timestamp": _timestamp_text,
    "timestamp_ntz": timestamp_text,
}
