"""What an IndexTables log tells of the rows of a split, as far as it is certain, in the words of Delta's statistics.

Extremes are texts by column, as their writers spell and order them. Statistics bound rows and never decide, so that
whatever may be otherwise for one of the writers is left out:

- a text is cut at some length (32 characters, where nobody set another), one of a number too: Rust spells 1e300 with
  all its zeros. Java cuts between the halves of a character, and spells the one that is left `?`;
- Java orders texts by their UTF-16, Rust by their bytes: the two agree on what is below the surrogates;
- extremes are of what was written. A split gives back something else for texts that are read as JSON, as addresses, or
  cut into words: its doc mapping tells which are stored as they are;
- a day is its ISO text with one writer, and a number of microseconds or of days with another;
- a partition value is escaped by one of the writers, for good, so that one with `%` is any. Its word for null is its
  word for '' as well.
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
    """What an add tells of its split. `partition_values` are as in the log.

    `plain_texts` says of the columns of its index whether they are texts that are stored as they are written
    (`tablefeed.indextables.log.schema_registry.plain_texts`); None: the log does not tell what is in the index.
    """

    row_count: int | None
    lows: Texts
    highs: Texts
    partition_values: Mapping[str, str | None]
    plain_texts: Mapping[str, bool] | None


def statistics(told: Told, schema: Struct) -> str | None:
    """Gives as the text of Delta's statistics what is certain of a split's rows; None where nothing is."""
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
    """The bounds of a column, and how many of its rows are null."""
    if name not in told.partition_values:
        is_plain = (told.plain_texts or {}).get(name, False)
        return *_extremes(told.lows.get(name), told.highs.get(name), kind, is_plain=is_plain), None
    text = told.partition_values[name]
    if kind == _STRING:
        # A column that the index has not is nowhere but in the log, as it is.
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
"""Behind a text that may have been cut, however short, it is above all that begin with that."""


def _low_text(text: str | None) -> str | None:
    return text if text is not None and all(character < _FIRST_SURROGATE for character in text) else None


def _high_text(text: str | None) -> str | None:
    # A `?` at the end may be half of a character, and above all that is below the surrogates.
    return None if text is None or _low_text(text) is None else text.rstrip("?") + _AFTER_ALL


def _plain_partition(text: str | None) -> str | None:
    if not text or text == names.HIVE_DEFAULT_PARTITION or "%" in text:
        return None
    return text if all(not "\ud800" <= character <= "\udfff" for character in text) else None


# --- the rest --------------------------------------------------------------------------------------------------------

_MOST_DIGITS = 24
"""Of a number. Java's longest double has as many; a longer one is Rust's, and may have been cut."""
_INTEGER = re.compile(r"-?[0-9]+", re.ASCII)
_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?", re.ASCII)
_DAY = re.compile(r"[+-]?[0-9]{4,}-[0-9]{2}-[0-9]{2}", re.ASCII)
_WALL_CLOCK = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}", re.ASCII)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_Readers = Mapping[str, Callable[[str], _Value | None]]


def _read(text: str | None, kind: DataType, readers: _Readers) -> _Value | None:
    """What `text` spells in the words of Delta's statistics; None where it spells nothing that has an order."""
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
    """Of microseconds since 1970."""
    micros = _integer(text)
    try:
        return None if micros is None else _iso(_EPOCH + timedelta(microseconds=micros))
    except OverflowError:
        return None


def _instant_of_wall_clock(text: str) -> str | None:
    """Of a partition value, which is in UTC."""
    try:
        return _iso(datetime.fromisoformat(f"{text}+00:00")) if _WALL_CLOCK.fullmatch(text) else None
    except ValueError:
        return None


def _iso(instant: datetime) -> str:
    return instant.isoformat().replace("+00:00", "Z")


_OF_EXTREMES: _Readers = {
    # Short numbers, decimals and times without a zone are texts to the index, whose extremes are those of texts.
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
