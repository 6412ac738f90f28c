"""Reads and writes an action in JSON by a table of its fields. Both dialects have such tables.

A fault raises `BadActionError` with its reason and the path of the field; the caller adds the file and the line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tablefeed.model.shown import shown

JsonObject = Mapping[str, Any]  # Any: what JSON or Avro can hold, before a table has checked it


class BadActionError(ValueError):
    """The field at `path` is not what it should be. Never leaves a dialect: callers raise CorruptLogError."""

    def __init__(self, reason: str, *path: str) -> None:
        self.reason, self.path = reason, path
        super().__init__(f"{'.'.join(path)} {reason}".lstrip())

    def of(self, action: str) -> str:
        """The text of the fault, with `action` before the path."""
        return str(BadActionError(self.reason, action, *self.path))


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One field of an action. `native` says whether the native writer of IndexTables writes it."""

    wire: str
    attribute: str
    read: Callable[[Any], object]
    write: Callable[[Any], object] = lambda value: value
    required: bool = False
    native: bool = True


def read_fields(table: Iterable[Field], values: JsonObject) -> dict[str, Any]:
    """The attributes that `values` gives; what is absent or null is left to the model's defaults."""
    attributes: dict[str, Any] = {}
    for field in table:
        value = values.get(field.wire)
        if value is not None:
            try:
                attributes[field.attribute] = field.read(value)
            except BadActionError as bad:
                raise BadActionError(bad.reason, field.wire, *bad.path) from None
        elif field.required:
            raise BadActionError("is missing", field.wire)
    return attributes


def write_fields(table: Iterable[Field], action: object) -> dict[str, object]:
    """The JSON object for `action`; a field that is None is left out."""
    values = ((field, getattr(action, field.attribute)) for field in table)
    return {field.wire: field.write(value) for field, value in values if value is not None}


def read_text(value: object) -> str:
    """The string that `value` is. Raises BadActionError, as all functions below do for another type."""
    if isinstance(value, str):
        return value
    raise BadActionError(f"is {shown(value)}, not a string")


def read_boolean(value: object) -> bool:
    """The boolean that `value` is."""
    if isinstance(value, bool):
        return value
    raise BadActionError(f"is {shown(value)}, not a boolean")


def read_long(value: object) -> int:
    """The 64-bit integer that `value` is."""
    # In Python bool is an int; for numbers beyond 64 bits the parser returns floats.
    if type(value) is int and -(2**63) <= value < 2**63:
        return value
    raise BadActionError(f"is {shown(value)}, not a 64-bit integer")


def read_integer(value: object) -> int:
    """The 32-bit integer that `value` is."""
    if type(value) is int and -(2**31) <= value < 2**31:
        return value
    raise BadActionError(f"is {shown(value)}, not a 32-bit integer")


def read_object(value: object) -> dict[str, Any]:
    """The object that `value` is."""
    if isinstance(value, dict):
        return value
    raise BadActionError(f"is {shown(value)}, not an object")


def read_partition_values(value: object) -> dict[str, str | None]:
    """The texts of partition values; a null stays a null."""
    return {column: None if text is None else read_text(text) for column, text in read_object(value).items()}


def read_text_map(value: object) -> dict[str, str]:
    """The map of texts that `value` is. A null value, which the protocols do not allow, means an absent key."""
    return {key: read_text(text) for key, text in read_object(value).items() if text is not None}


def read_texts(value: object) -> tuple[str, ...]:
    """The list of strings that `value` is."""
    if isinstance(value, list):
        return tuple(read_text(text) for text in value)
    raise BadActionError(f"is {shown(value)}, not a list of strings")


def _text_set(value: object) -> frozenset[str]:
    return frozenset(read_texts(value))


PROTOCOL = (
    Field(wire="minReaderVersion", attribute="min_reader_version", read=read_integer, required=True),
    Field(wire="minWriterVersion", attribute="min_writer_version", read=read_integer, required=True),
    Field(wire="readerFeatures", attribute="reader_features", read=_text_set, write=sorted),
    Field(wire="writerFeatures", attribute="writer_features", read=_text_set, write=sorted),
)
TXN = (
    Field(wire="appId", attribute="app_id", read=read_text, required=True),
    Field(wire="version", attribute="txn_version", read=read_long, required=True),
    Field(wire="lastUpdated", attribute="last_updated_ms", read=read_long),
)
"""The protocol and the txn, which both dialects write alike."""
