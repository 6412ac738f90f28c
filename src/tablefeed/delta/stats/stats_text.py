"""The JSON text of a file's statistics (PROTOCOL.md, "Per-file Statistics"), as Delta-Spark writes it.

Texts are cut to a prefix and timestamps to milliseconds. Both still bound all values.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import orjson

from tablefeed.model.statistics import Bound, FileStatistics, LeafPath

PREFIX_LENGTH = 32
"""Characters of a text that are kept: Delta-Spark's default for `delta.dataSkippingStringPrefixLength`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatisticsShape:
    """Which statistics a file has, by physical names. Small; sent to every task.

    `leaves` have a null count, `bounded` are those with bounds too. `tells_tightness`: the table supports deletion
    vectors, so that statistics say whether the bounds are tight after deletes.
    """

    leaves: tuple[LeafPath, ...]
    bounded: tuple[LeafPath, ...]
    prefix_length: int = PREFIX_LENGTH
    tells_tightness: bool = False


_ASCII_TIE_BREAKER, _TIE_BREAKER = "\x7f", "\U0010ffff"


def encode_stats(statistics: FileStatistics, shape: StatisticsShape) -> str:
    """The text for `add.stats`: numRecords, minValues, maxValues and nullCount, nested as the schema is.

    The structs of `shape` are there even where they hold no bound. A group without a column is left out, and so is a
    bound that is None or cannot be written. Two departures from Delta-Spark make bounds safe for more readers. The
    maximum of a timestamp is rounded up to a millisecond: Delta-Spark truncates it, so a reader that does not add a
    millisecond loses rows. A 32-bit float is written with all digits of its value, so that it also bounds the file for
    a reader that reads it as a double.
    """
    lows: dict[str, object] = {}
    highs: dict[str, object] = {}
    null_counts: dict[str, object] = {}
    for path in shape.leaves:
        _put(null_counts, path, statistics.columns[path].null_count)
    for path in shape.bounded:
        _put(lows, path, _spelt_minimum(statistics.columns[path].minimum, shape.prefix_length))
        _put(highs, path, _spelt_maximum(statistics.columns[path].maximum, shape.prefix_length))
    text: dict[str, object] = {"numRecords": statistics.num_records}
    if shape.bounded:
        text |= {"minValues": lows, "maxValues": highs}
    if shape.leaves:
        text["nullCount"] = null_counts
    if shape.tells_tightness:
        text["tightBounds"] = True  # no row of a new file is deleted
    return orjson.dumps(text).decode()


def num_records(stats: str | None) -> int | None:
    """The numRecords of `stats`, a text from the log; None without a text, or where it is malformed."""
    if not stats:
        return None
    try:
        parsed = orjson.loads(stats)
    except orjson.JSONDecodeError:
        return None
    count = parsed.get("numRecords") if isinstance(parsed, dict) else None
    return count if type(count) is int and 0 <= count < 2**63 else None  # in Python bool is an int


def loose(stats: str | None) -> str | None:
    """Returns `stats`, which have a row count, for their file without some of its rows; None for None.

    Numbers keep their digits: a decimal is no float. If the text is nested too deep to be written again, only the row
    count is kept.
    """
    if stats is None:
        return None
    try:
        fields = json.loads(stats, parse_float=orjson.Fragment, parse_int=orjson.Fragment)
        return orjson.dumps({**fields, "tightBounds": False}).decode()
    except (TypeError, ValueError, RecursionError):
        return orjson.dumps({"numRecords": num_records(stats), "tightBounds": False}).decode()


def long_bounds(stats: str, column: str) -> tuple[int, int]:
    """The minimum and maximum of a top-level column of longs in `stats`, a text of `encode_stats` that has both."""
    parsed = orjson.loads(stats)
    return parsed["minValues"][column], parsed["maxValues"][column]


def _put(tree: dict[str, object], path: LeafPath, value: object) -> None:
    for name in path[:-1]:
        tree = tree.setdefault(name, {})  # type: ignore[assignment]  # a struct's name never is a leaf's too
    if value is not None:
        tree[path[-1]] = value


def _spelt_minimum(bound: Bound | None, prefix_length: int) -> object:
    if isinstance(bound, str):
        return bound[:prefix_length]
    if isinstance(bound, datetime):
        return _milliseconds(bound)
    return _spelt(bound)


def _spelt_maximum(bound: Bound | None, prefix_length: int) -> object:
    if isinstance(bound, str):
        return _cut_maximum(bound, prefix_length)
    if isinstance(bound, datetime):
        try:
            return _milliseconds(bound + timedelta(microseconds=-bound.microsecond % 1000))
        except OverflowError:
            return None
    return _spelt(bound)


def _spelt(bound: Bound | None) -> object:
    if isinstance(bound, Decimal):
        return orjson.Fragment(format(bound, "f"))
    if isinstance(bound, float) and not math.isfinite(bound):
        return "NaN" if math.isnan(bound) else "Infinity" if bound > 0 else "-Infinity"
    return bound.isoformat() if isinstance(bound, date) else bound


def _milliseconds(moment: datetime) -> str:
    zone = "" if moment.tzinfo is None else "Z"
    local = moment if moment.tzinfo is None else moment.astimezone(UTC)
    return local.replace(tzinfo=None).isoformat(timespec="milliseconds") + zone


def _cut_maximum(text: str, prefix_length: int) -> str | None:
    """`text`, or where it is longer a prefix and a tie-breaker that are not less than `text`; None where none are.

    Lengths are in UTF-16 units, as in the JVM; a surrogate pair is never split. The tie-breaker must be greater than
    the character that it replaces. Nothing is greater than U+10FFFF, so that character is kept and the cut moves on,
    up to twice the length.
    """
    if prefix_length == 0 and text:
        return None
    units = 0
    for index, character in enumerate(text):
        if units > 2 * prefix_length:
            return None
        if units >= prefix_length and character != _TIE_BREAKER:
            return text[:index] + (_ASCII_TIE_BREAKER if character < _ASCII_TIE_BREAKER else _TIE_BREAKER)
        units += 2 if character > "\uffff" else 1
    return text if units <= 2 * prefix_length else None
