"""Reads safe bounds from file statistics into Arrow columns (PROTOCOL.md, "Per-file Statistics").

The statistics may come from any writer. So each bound is loosened by the precision that writers are known to lose, and
is dropped where it is not certain:

- Writers cut texts at different lengths. Not all of them make the cut maximum larger than the full text.
- Writers cut timestamps to milliseconds, and a zone's offset to minutes.
- A 32-bit float may be written with just enough digits to differ from other floats, and be kept so when its column
  becomes a double. A decimal may have been converted to a double, and a whole one to 64 bits, which may overflow.
- Some writers include NaN in bounds and some do not: the bounds returned here never include it.
- delta-rs up to 1.6.1 may write the nulls among the elements of a list, or the keys or values of a map, as those of the
  column that is called like these parts are in the file: `item`, `key`, `value`.
- Days before the Gregorian calendar may be counted in the Julian one. Instants before 1900 may be computed with the
  offset that their zone has had since.

A value of another JSON type than its column's, or a key that comes twice, gives no bound. Nothing here raises.
"""

from __future__ import annotations

import decimal
import json
import math
import re
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from tablefeed.delta import partition_values
from tablefeed.delta.schema.arrow_schema import arrow_type
from tablefeed.delta.stats.stats_columns import GREGORIAN_DAY, STANDARD_TIME_US
from tablefeed.errors import TablefeedError
from tablefeed.model.schema import DataType, Decimal, Primitive
from tablefeed.model.spark_texts import DAY_US
from tablefeed.model.statistics import LeafPath


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """A leaf of primitive type. `path` has the names used in statistics: physical names where columns are mapped.

    `beside_lists`: the table has a list or map, so the null count of a column called like its parts may be theirs.
    """

    path: LeafPath
    type: Primitive | Decimal
    beside_lists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnBounds:
    """What is certain about one leaf in each of many files, one row a file.

    Every value that is neither null nor NaN is at least `low` and at most `high`. Both are of the leaf's Arrow type,
    null where there is no bound. `may_be_null` is false only where no row is null, `may_have_value` only where every
    row is.
    """

    low: pa.Array
    high: pa.Array
    may_be_null: pa.BooleanArray
    may_have_value: pa.BooleanArray


def read_bounds(stats: pa.StringArray, leaves: Sequence[Leaf]) -> list[ColumnBounds]:
    """Returns the bounds of each of `leaves`; `stats` is the log's statistics text of each file, or null."""
    if not leaves:
        return []
    most = {f'"{part}"': 3 for leaf in leaves for part in leaf.path} | {f'"{name}': 1 for name in _GROUPS}
    files = [_parsed(text, most) for text in stats.to_pylist()]
    return [_bounds(files, leaf) for leaf in leaves]


_MINIMA, _MAXIMA, _RECORDS = "minValues", "maxValues", "numRecords"
_NULLS, _NULLS_ELSEWHERE = "nullCount", "nullCounts"  # the second is in one text of the protocol
_GROUPS = (_MINIMA, _MAXIMA, _NULLS, _RECORDS)  # none is a prefix of another

_OF_PARTS = frozenset((name,) for name in ("element", "item", "l", "key", "value", "keys", "values"))
"""Columns called like the parts of lists and maps: `item` is Arrow's usual name, `l` is DuckDB's."""
_File = Mapping[str, Any]  # Any: JSON that is checked here


def _parsed(text: str | None, most: Mapping[str, int]) -> _File:
    """The statistics in `text`, {} where it is no object. `most`: how often a key can occur where none comes twice.

    Beyond that the slow parser is used: of two values for one key, the fast one keeps the last.
    """
    if not text:
        return {}
    try:
        if "\\" in text or any(text.count(key) > times for key, times in most.items()):
            parsed = json.loads(text, object_pairs_hook=_without_doubles, parse_float=decimal.Decimal)
        else:
            parsed = orjson.loads(text)
    except (ValueError, ArithmeticError, RecursionError):
        return {}
    return parsed if isinstance(parsed, dict) else {}


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                values.pop(name, None)
            seen.add(name)
    return values


def _at(file: _File, group: str, path: LeafPath) -> Any:
    value = file.get(group)
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _bounds(files: Sequence[_File], leaf: Leaf) -> ColumnBounds:
    kind = arrow_type(leaf.type)
    as_low, as_high = _readers(leaf.type)
    low = pa.array([as_low(_at(file, _MINIMA, leaf.path)) for file in files], type=kind)
    high = pa.array([as_high(_at(file, _MAXIMA, leaf.path)) for file in files], type=kind)
    if as_low is not _no_bound:
        # Where low exceeds high, neither is used.
        believed = pc.fill_null(pc.less_equal(low, high), fill_value=True)
        low, high = (pc.if_else(believed, bound, pa.scalar(None, kind)) for bound in (low, high))
    counts = [
        (_at(file, _NULLS if _NULLS in file else _NULLS_ELSEWHERE, leaf.path), file.get(_RECORDS)) for file in files
    ]
    if leaf.beside_lists and leaf.path in _OF_PARTS:
        counts = [(None, None)] * len(files)
    bounded = pc.or_(low.is_valid(), high.is_valid())
    # Only "all null" and "no null" are used: counts include the rows that deletion vectors delete.
    all_null = pa.array(
        [type(nulls) is int and nulls == records and nulls > 0 for nulls, records in counts], pa.bool_()
    )
    # For a struct's member, some writers do not count the rows where the struct itself is null.
    no_null = pa.array([type(nulls) is int and nulls == 0 and len(leaf.path) == 1 for nulls, _ in counts], pa.bool_())
    return ColumnBounds(
        low=low, high=high, may_be_null=pc.invert(no_null), may_have_value=pc.or_(pc.invert(all_null), bounded)
    )


_Reader = Callable[[Any], Any]  # from JSON to what pyarrow accepts for the leaf's type; None: no bound


def _readers(kind: Primitive | Decimal) -> tuple[_Reader, _Reader]:
    """The functions that read a minimum and a maximum of `kind`."""
    match kind:
        case Decimal():
            return lambda v: _decimal(v, kind, upwards=False), lambda v: _decimal(v, kind, upwards=True)
        case Primitive(name=name):
            return _READERS.get(name, (_no_bound, _no_bound))


def _no_bound(_: Any) -> None:
    return None


# --- numbers -------------------------------------------------------------------------------------------------------


def integers(bits: int) -> _Reader:
    """Returns a reader of whole JSON numbers of so many bits; it gives None for anything else."""
    limit = 1 << bits - 1
    return lambda value: value if type(value) is int and -limit <= value < limit else None


def _float(value: Any, *, sign: int) -> float | None:
    if type(value) not in (int, float, decimal.Decimal):
        return None
    try:
        number = float(value)
    except (OverflowError, ValueError):
        return None
    if not math.isfinite(number):
        return None
    if number == value and _is_single(number):
        return number
    # Widened by one unit in the last place of a 32-bit float: relative for normal floats, absolute for subnormal ones.
    return number + sign * (abs(number) * 2.0**-23 + 2.0**-149)


def _is_single(number: float) -> bool:
    """Whether a 32-bit float holds `number` exactly: then it is not the shortened text of another float."""
    try:
        return bool(struct.unpack("f", struct.pack("f", number))[0] == number)
    except OverflowError:
        return False


_LOSS_OF_A_DOUBLE = decimal.Decimal(2) ** -50  # lost by the writer, and again by the parser here
_LAST_LONG = 2**63 - 1
_WIDE = decimal.Context(prec=120, traps=[decimal.InvalidOperation, decimal.DivisionByZero, decimal.Overflow])


_DECIMAL = re.compile(r"-?[0-9]{1,38}(?:\.[0-9]{1,38})?")
"""A number as Trino writes it: in quotes."""


def _decimal(value: Any, kind: Decimal, *, upwards: bool) -> decimal.Decimal | None:
    is_text = isinstance(value, str) and _DECIMAL.fullmatch(value) is not None
    if not is_text and type(value) not in (int, float, decimal.Decimal):
        return None
    exact = decimal.Decimal(value)
    if exact == (_LAST_LONG if upwards else -_LAST_LONG - 1):
        return None
    # The outermost value within the loosened bound that the column can hold: all its values have its scale.
    try:
        loss = _WIDE.multiply(abs(exact), _LOSS_OF_A_DOUBLE)
        edge = _WIDE.add(exact, loss) if upwards else _WIDE.subtract(exact, loss)
        rounding = decimal.ROUND_FLOOR if upwards else decimal.ROUND_CEILING
        held = edge.quantize(decimal.Decimal(1).scaleb(-kind.scale), rounding=rounding, context=_WIDE)
    except decimal.DecimalException:
        return None
    return held if held.is_finite() and abs(held) < decimal.Decimal(10) ** (kind.precision - kind.scale) else None


# --- days and instants ---------------------------------------------------------------------------------------------

_GREGORIAN_US = GREGORIAN_DAY * DAY_US
_LAST_US = 2**63 - 1
_MILLISECOND_US = 1_000
_MINUTE_US = 60_000_000
_OFFSET = re.compile(r"[+-][0-9]{2}:?[0-9]{2}\Z")


def _parsed_time(value: Any, kind: DataType) -> int | None:
    if not isinstance(value, str):
        return None
    try:
        parsed = partition_values.parse(value, kind, refuse=TablefeedError)
    except TablefeedError:
        return None
    return parsed if isinstance(parsed, int) else None


def _date(value: Any) -> int | None:
    days = _parsed_time(value, Primitive("date"))
    return days if days is not None and days >= GREGORIAN_DAY else None


def _timestamp(value: Any, *, sign: int) -> int | None:
    if not isinstance(value, str):
        return None
    loss_us = _MILLISECOND_US
    if not value.endswith("Z"):
        if not _OFFSET.search(value):  # the statistics do not say in which zone it was written
            return None
        loss_us += _MINUTE_US  # before standard time, offsets had seconds, which are not written
    micros = _parsed_time(value, Primitive("timestamp"))
    return None if micros is None or micros < STANDARD_TIME_US else _loosened(micros, sign * loss_us)


def _timestamp_ntz(value: Any, *, sign: int) -> int | None:
    # A date alone is valid too: the column held dates when the file was written ("Type Widening").
    return _loosened(_parsed_time(value, Primitive("timestamp_ntz")), sign * _MILLISECOND_US)


def _loosened(micros: int | None, by_us: int) -> int | None:
    if micros is None or micros < _GREGORIAN_US or micros + by_us > _LAST_US:
        return None
    return micros + by_us


# --- texts ---------------------------------------------------------------------------------------------------------

_SHORTEST_CUT_BYTES = 16
"""No known writer cuts shorter texts by default. Iceberg, whose bounds come with a converted table, cuts at 16
characters, Delta-Spark at 32 characters, Parquet at 64 bytes."""
_LOW_TIE_BREAKER = "\ufffd"
"""The end of a maximum that earlier versions of Delta-Spark cut, at any length that a setting says. Characters of four
bytes are greater than it."""


def valid_text(value: Any) -> str | None:
    """Returns a JSON text that Arrow can hold; None for anything else, and for a text with half a surrogate pair."""
    if not isinstance(value, str):
        return None
    try:
        value.encode()
    except UnicodeEncodeError:
        return None
    return value


def _text_maximum(value: Any) -> str | None:
    whole = valid_text(value)
    if whole is None or (len(whole.encode()) < _SHORTEST_CUT_BYTES and not whole.endswith(_LOW_TIE_BREAKER)):
        return whole
    # The text may be cut, and its last character may be one that the writer put there to exceed the rest. Without it,
    # the next larger text of that length exceeds every value that begins so. Java may cut inside a surrogate pair, and
    # writes the lone half as `?`.
    return _after(whole[:-1].rstrip("?"))


def _after(prefix: str) -> str | None:
    """The least text, by code points, above every text that begins with `prefix`; None if there is none."""
    for index in range(len(prefix) - 1, -1, -1):
        following = ord(prefix[index]) + 1
        if following <= 0x10FFFF:
            return prefix[:index] + chr(0xE000 if following == 0xD800 else following)
    return None


def _both(reader: Callable[..., Any]) -> tuple[_Reader, _Reader]:
    return lambda value: reader(value, sign=-1), lambda value: reader(value, sign=1)


_READERS: Mapping[str, tuple[_Reader, _Reader]] = {
    # No booleans, for which Delta-Spark writes no bounds, and no bytes, which have no form in JSON.
    "byte": (integers(8),) * 2,
    "short": (integers(16),) * 2,
    "integer": (integers(32),) * 2,
    "long": (integers(64),) * 2,
    "float": _both(_float),
    "double": _both(_float),
    "date": (_date, _date),
    "timestamp": _both(_timestamp),
    "timestamp_ntz": _both(_timestamp_ntz),
    "string": (valid_text, _text_maximum),
}
