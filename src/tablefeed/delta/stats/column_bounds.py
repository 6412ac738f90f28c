"""What the statistics of files let one be sure of, as Arrow columns of bounds (PROTOCOL.md, "Per-file Statistics").

stats.py writes such texts; those read here are by any writer. So a bound is taken for what it must mean whoever wrote
it, is loosened by what writers are known to lose, and is dropped where it cannot be certain:

- texts are cut, by writers at different lengths, and not by all with something after the cut that exceeds the rest;
- timestamps are cut to milliseconds, and a zone's offset to minutes;
- a 32-bit float may be spelt with just the digits that tell it from other floats, and stay so when the column becomes
  a double; a decimal may have gone through a double, and one without a fraction through 64 bits, which end;
- NaN is in the bounds of some writers and not of others: it is never inside those given here;
- days before the Gregorian calendar may be counted in the Julian one, and moments before 1900 by the offset that their
  zone has had since.

A value of another JSON type than its column's, or a name that comes twice, gives no bound. Nothing here raises.
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
from tablefeed.delta.schema.schema_string import to_arrow
from tablefeed.errors import TablefeedError
from tablefeed.model.schema import DataType, Decimal, Field, Primitive, Struct
from tablefeed.model.statistics import LeafPath


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """A leaf of primitive type, by the names that the statistics use: physical ones where columns are mapped."""

    path: LeafPath
    type: Primitive | Decimal

    @property
    def arrow_type(self) -> pa.DataType:
        """The type in Arrow."""
        return to_arrow(Struct((Field("leaf", self.type, nullable=True),))).field(0).type


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnBounds:
    """What is sure of one leaf in each of many files, one value a file.

    Every value that is neither null nor NaN is at least `low` and at most `high`, which are of the leaf's Arrow type;
    null where there is no such bound. `may_be_null` is false where no row is null, `may_have_value` where all are.
    """

    low: pa.Array
    high: pa.Array
    may_be_null: pa.BooleanArray
    may_have_value: pa.BooleanArray


def read_bounds(stats: pa.StringArray, leaves: Sequence[Leaf]) -> list[ColumnBounds]:
    """Gives the bounds of each of `leaves` in the files whose statistics are `stats`, the log's text or null."""
    if not leaves:
        return []
    most = {f'"{part}"': 3 for leaf in leaves for part in leaf.path} | {f'"{name}': 1 for name in _GROUPS}
    files = [_parsed(text, most) for text in stats.to_pylist()]
    return [_bounds(files, leaf) for leaf in leaves]


_MINIMA, _MAXIMA, _RECORDS = "minValues", "maxValues", "numRecords"
_NULLS, _NULLS_ELSEWHERE = "nullCount", "nullCounts"  # the second is in one text of the protocol
_GROUPS = (_MINIMA, _MAXIMA, _NULLS, _RECORDS)  # no one of which begins another, `nullCounts` aside

_File = Mapping[str, Any]  # Any: JSON that is judged here


def _parsed(text: str | None, most: Mapping[str, int]) -> _File:
    """The statistics in `text`, {} where it is no object. `most`: how often a key can stand in it where none doubles.

    The fast parser takes the last of two values for one key.
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
    kind = leaf.arrow_type
    as_low, as_high = _readers(leaf.type)
    low = pa.array([as_low(_at(file, _MINIMA, leaf.path)) for file in files], type=kind)
    high = pa.array([as_high(_at(file, _MAXIMA, leaf.path)) for file in files], type=kind)
    if as_low is not _no_bound:
        # Of two that contradict each other neither is believed.
        believed = pc.fill_null(pc.less_equal(low, high), fill_value=True)
        low, high = (pc.if_else(believed, bound, pa.scalar(None, kind)) for bound in (low, high))
    counts = [
        (_at(file, _NULLS if _NULLS in file else _NULLS_ELSEWHERE, leaf.path), file.get(_RECORDS)) for file in files
    ]
    bounded = pc.or_(low.is_valid(), high.is_valid())
    # With deletion vectors these two are all that the counts say, for they count what is deleted too.
    all_null = pa.array(
        [type(nulls) is int and nulls == records and nulls > 0 for nulls, records in counts], pa.bool_()
    )
    # Of a member, who counted nulls may not have counted those of the structs above.
    no_null = pa.array([type(nulls) is int and nulls == 0 and len(leaf.path) == 1 for nulls, _ in counts], pa.bool_())
    return ColumnBounds(
        low=low, high=high, may_be_null=pc.invert(no_null), may_have_value=pc.or_(pc.invert(all_null), bounded)
    )


_Reader = Callable[[Any], Any]  # from JSON to what pyarrow takes for the leaf's type; None: no bound


def _readers(kind: Primitive | Decimal) -> tuple[_Reader, _Reader]:
    """How a minimum and a maximum of `kind` are read."""
    match kind:
        case Decimal():
            return lambda v: _decimal(v, kind, upwards=False), lambda v: _decimal(v, kind, upwards=True)
        case Primitive(name=name):
            return _READERS.get(name, (_no_bound, _no_bound))


def _no_bound(_: Any) -> None:
    return None


# --- numbers -------------------------------------------------------------------------------------------------------


def _integer(bits: int) -> _Reader:
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
    # By a unit in the last place of a 32-bit float, where such floats are dense and where they end.
    return number + sign * (abs(number) * 2.0**-23 + 2.0**-149)


def _is_single(number: float) -> bool:
    """Whether a 32-bit float holds `number`: then it is no shortened spelling of another."""
    try:
        return bool(struct.unpack("f", struct.pack("f", number))[0] == number)
    except OverflowError:
        return False


_LOSS_OF_A_DOUBLE = decimal.Decimal(2) ** -50  # its writer's, and once more of the parser here
_LAST_LONG = 2**63 - 1
_WIDE = decimal.Context(prec=120, traps=[decimal.InvalidOperation, decimal.DivisionByZero, decimal.Overflow])


def _decimal(value: Any, kind: Decimal, *, upwards: bool) -> decimal.Decimal | None:
    if type(value) not in (int, float, decimal.Decimal):
        return None
    exact = decimal.Decimal(value)
    if exact == (_LAST_LONG if upwards else -_LAST_LONG - 1):
        return None
    # Of what the loosened bound lets through, the outermost that the column can hold: all its values have its scale.
    try:
        loss = _WIDE.multiply(abs(exact), _LOSS_OF_A_DOUBLE)
        edge = _WIDE.add(exact, loss) if upwards else _WIDE.subtract(exact, loss)
        rounding = decimal.ROUND_FLOOR if upwards else decimal.ROUND_CEILING
        held = edge.quantize(decimal.Decimal(1).scaleb(-kind.scale), rounding=rounding, context=_WIDE)
    except decimal.DecimalException:
        return None
    return held if held.is_finite() and abs(held) < decimal.Decimal(10) ** (kind.precision - kind.scale) else None


# --- days and instants ---------------------------------------------------------------------------------------------

_GREGORIAN_DAY = -141_427  # 1582-10-15
_GREGORIAN_US = _GREGORIAN_DAY * 86_400_000_000
_STANDARD_TIME_US = -2_208_988_800_000_000  # 1900-01-01: Spark's calendars agree from here on
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
    return days if days is not None and days >= _GREGORIAN_DAY else None


def _timestamp(value: Any, *, sign: int) -> int | None:
    if not isinstance(value, str):
        return None
    loss_us = _MILLISECOND_US
    if not value.endswith("Z"):
        if not _OFFSET.search(value):  # in which zone it was written, the statistics do not say
            return None
        loss_us += _MINUTE_US  # before time was standard, offsets had seconds, which are not written
    micros = _parsed_time(value, Primitive("timestamp"))
    return None if micros is None or micros < _STANDARD_TIME_US else _loosened(micros, sign * loss_us)


def _timestamp_ntz(value: Any, *, sign: int) -> int | None:
    # A date alone is one too: the column was one of dates when the file was written ("Type Widening").
    return _loosened(_parsed_time(value, Primitive("timestamp_ntz")), sign * _MILLISECOND_US)


def _loosened(micros: int | None, by_us: int) -> int | None:
    if micros is None or micros < _GREGORIAN_US or micros + by_us > _LAST_US:
        return None
    return micros + by_us


# --- texts ---------------------------------------------------------------------------------------------------------

_SHORTEST_CUT_BYTES = 16
"""Texts of fewer bytes are whole: no writer is known to cut them so short (Iceberg, whose bounds come with a converted
table, cuts at 16 characters, Delta-Spark at 32, Parquet at 64 bytes)."""


def _text(value: Any) -> str | None:
    if not isinstance(value, str):
        return None
    try:
        value.encode()
    except UnicodeEncodeError:  # half a surrogate pair
        return None
    return value


def _text_maximum(value: Any) -> str | None:
    text = _text(value)
    if text is None or len(text.encode()) < _SHORTEST_CUT_BYTES:
        return text
    # Cut there or not, with or without a last character that exceeds the rest: no value that begins as it does, but
    # for that character, exceeds the next text of that length. Java cuts between the two halves of a character and
    # spells the first one `?`.
    return _after(text[:-1].rstrip("?"))


def _after(prefix: str) -> str | None:
    """The least text, by code points, that exceeds every text that begins with `prefix`; None where there is none."""
    for index in range(len(prefix) - 1, -1, -1):
        following = ord(prefix[index]) + 1
        if following <= 0x10FFFF:
            return prefix[:index] + chr(0xE000 if following == 0xD800 else following)
    return None


def _both(reader: Callable[..., Any]) -> tuple[_Reader, _Reader]:
    return lambda value: reader(value, sign=-1), lambda value: reader(value, sign=1)


_READERS: Mapping[str, tuple[_Reader, _Reader]] = {
    # None of booleans, which Delta-Spark has no bounds of, and of bytes, which have no JSON.
    "byte": (_integer(8), _integer(8)),
    "short": (_integer(16), _integer(16)),
    "integer": (_integer(32), _integer(32)),
    "long": (_integer(64), _integer(64)),
    "float": _both(_float),
    "double": _both(_float),
    "date": (_date, _date),
    "timestamp": _both(_timestamp),
    "timestamp_ntz": _both(_timestamp_ntz),
    "string": (_text, _text_maximum),
}
