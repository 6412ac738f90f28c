"""Translates what an IndexTables log says of a split's rows to Delta's statistics, as far as it is certain.

The log has extremes as one text per column, spelled and ordered by its writer. Statistics may only rule files out. So
an extreme that is not certain for every writer is left out or widened:

- a text is cut at some length (32 characters by default), also the text of a number: Rust spells 1e300 with all its
  zeros. Java may cut a character between its two surrogates, and writes the remaining half as `?`;
- Java orders texts by UTF-16 units, Rust by bytes. The orders agree on characters below the surrogates;
- extremes are those of the written texts. A split returns a different text where a column is indexed as JSON, as IP
  addresses or as words; its doc mapping says which columns are stored as they were written;
- one writer spells a day as its ISO text, another as a number of microseconds or of days;
- one of the writers escapes partition values and never unescapes them, so a value with `%` may mean any text. It also
  writes the same word for null and for ''.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import orjson

from tablefeed.indextables import names
from tablefeed.model.schema import DataType, Primitive, Struct

Texts = Mapping[str, str]

_Value = int | float | str
_Bounds = tuple[_Value | None, _Value | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What an add action says of its split. `partition_values` are as in the log.

    `plain_texts` says for each column of the index whether it is a text that is stored as written
    (`tablefeed.indextables.log.schema_registry.plain_texts`); None: the log does not say what is in the index.
    """

    row_count: int | None
    lows: Texts
    highs: Texts
    partition_values: Mapping[str, str | None]
    plain_texts: Mapping[str, bool] | None


def statistics(told: Told, schema: Struct) -> str | None:
    """Gives Delta's statistics, as JSON text, with what is certain of a split's rows; None where nothing is certain."""
    found: dict[str, dict[str, _Value]] = {"minValues": {}, "maxValues": {}, "nullCount": {}}
    for field in schema:
        low, high, null_count = _of_column(field.name, field.type, told)
        for group, value in zip(found.values(), (low, high, null_count), strict=True):
            if value is not None:
                group[field.name] = value
    counted = {} if told.row_count is None else {"numRecords": told.row_count}
    words = counted | {group: values for group, values in found.items() if values}
    return orjson.dumps(words).decode() if words else None


def _of_column(name: str, kind: DataType, told: Told) -> tuple[_Value | None, _Value | None, int | None]:
    """The bounds of a column, and how many of its rows are null; None for each that is not certain."""
    if name not in told.partition_values:
        is_plain = (told.plain_texts or {}).get(name, False)
        return *_extremes(told.lows.get(name), told.highs.get(name), kind, is_plain=is_plain), None
    text = told.partition_values[name]
    if kind == _STRING:
        # A column that is not in the index is only in the log, unchanged.
        is_plain = told.plain_texts is not None and told.plain_texts.get(name, True)
        plain = _plain_partition(text) if is_plain else None
        return plain, plain, None if plain is None else 0
    if text is None or text == names.HIVE_DEFAULT_PARTITION:
        return None, None, told.row_count
    value = _read(text, kind, _OF_PARTITIONS)
    if value is None:
        return *_extremes(told.lows.get(name), told.highs.get(name), kind, is_plain=False), None
    return value, value, 0


def _extremes(low: str | None, high: str | None, kind: DataType, *, is_plain: bool) -> _Bounds:
    if kind == _STRING:
        return (_low_text(low), _high_text(high)) if is_plain else (None, None)
    return _read(low, kind, _OF_EXTREMES), _read(high, kind, _OF_EXTREMES)


# --- texts -----------------------------------------------------------------------------------------------------------

_STRING = Primitive("string")
_FIRST_SURROGATE = "\ud800"
_AFTER_ALL = "\U0010ffff" * 16
"""Appended to a text that may have been cut, it gives an upper bound of all texts that begin with that text."""


def _low_text(text: str | None) -> str | None:
    return text if text is not None and all(character < _FIRST_SURROGATE for character in text) else None


def _high_text(text: str | None) -> str | None:
    # A `?` at the end may be half of a surrogate pair, which sorts after all characters below the surrogates.
    return None if text is None or _low_text(text) is None else text.rstrip("?") + _AFTER_ALL


def _plain_partition(text: str | None) -> str | None:
    if not text or text == names.HIVE_DEFAULT_PARTITION or "%" in text:
        return None
    return text if all(not "\ud800" <= character <= "\udfff" for character in text) else None


# --- the rest --------------------------------------------------------------------------------------------------------

_MOST_DIGITS = 24
"""Of a number. Java's longest double has this many; a longer one was written by Rust and may have been cut."""
_INTEGER = re.compile(r"-?[0-9]+", re.ASCII)
_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?", re.ASCII)
_DAY = re.compile(r"[+-]?[0-9]{4,}-[0-9]{2}-[0-9]{2}", re.ASCII)
_WALL_CLOCK = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}", re.ASCII)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_Readers = Mapping[str, Callable[[str], _Value | None]]


def _read(text: str | None, kind: DataType, readers: _Readers) -> _Value | None:
    """The value of `text` as Delta's statistics spell it; None where it is no value of `kind` that can be ordered."""
    reader = readers.get(kind.name) if isinstance(kind, Primitive) else None
    return None if reader is None or text is None or len(text) > _MOST_DIGITS else reader(text)


def _integer(text: str) -> int | None:
    number = int(text) if _INTEGER.fullmatch(text) else None
    return number if number is not None and -(1 << 63) <= number < 1 << 63 else None


def _number(text: str) -> float | None:
    number = float(text) if _NUMBER.fullmatch(text) else math.nan
    return number if math.isfinite(number) else None


def _day(text: str) -> str | None:
    return text if _DAY.fullmatch(text) else None


def _instant(text: str) -> str | None:
    """The ISO text of a number of microseconds since 1970."""
    micros = _integer(text)
    try:
        return None if micros is None else _iso(_EPOCH + timedelta(microseconds=micros))
    except OverflowError:
        return None


def _instant_of_wall_clock(text: str) -> str | None:
    """The ISO text of a partition value, which is in UTC."""
    try:
        return _iso(datetime.fromisoformat(f"{text}+00:00")) if _WALL_CLOCK.fullmatch(text) else None
    except ValueError:
        return None


def _iso(instant: datetime) -> str:
    return instant.isoformat().replace("+00:00", "Z")


_OF_EXTREMES: _Readers = {
    # Bytes, shorts, decimals and times without a zone are indexed as texts, so their extremes are in text order.
    **dict.fromkeys(("integer", "long"), _integer),
    **dict.fromkeys(("float", "double"), _number),
    "date": _day,
    "timestamp": _instant,
}
_OF_PARTITIONS: _Readers = {
    **_OF_EXTREMES,
    **dict.fromkeys(("byte", "short"), _integer),
    "timestamp": _instant_of_wall_clock,
}
