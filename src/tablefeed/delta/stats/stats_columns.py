"""The statistics of many files at once: texts from structs, and counts from texts, without a Python object per file.

PROTOCOL.md, "Per-file Statistics". Texts are written as in stats_text.py.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from tablefeed.delta.json_texts import object_texts, string_texts
from tablefeed.delta.stats.stats_text import num_records


def texts_of(parsed: pa.StructArray) -> pa.Array:
    """The statistics of `stats_parsed` as the JSON that `stats` would hold; null where the struct is null.

    Names are kept: they are physical. A bound that cannot be written is left out: of a binary or variant column, or a
    date or timestamp after the year 9999. So is a date before 1582-10-15 or an instant before 1900, which Spark may
    have counted in the Julian calendar (`datetimeRebaseModeInWrite`). Minima are rounded down and maxima up to a
    millisecond, as in our own files. Arrow's errors pass through.
    """
    present = {field.name for field in parsed.type}
    return _object(parsed, {name: end for name, end in _MEMBERS.items() if name in present})


def record_counts(stats: pa.Array) -> pa.Array:
    """The numRecords of each text as int64, null where it is not known (`stats.num_records`).

    Most writers put numRecords first, where it is found without parsing; other texts are parsed.
    """
    found = pc.struct_field(pc.extract_regex(stats, _COUNT_FIRST), "count")
    # A text that does not end with a brace is not an object: it was cut off.
    counts = pc.if_else(pc.ends_with(stats, "}"), found, pa.scalar(None, found.type)).cast(pa.int64())
    others = pc.and_(counts.is_null(), stats.is_valid())
    parsed = [num_records(text) for text in stats.filter(others).to_pylist()]
    return pc.replace_with_mask(counts, others, pa.array(parsed, pa.int64())) if parsed else counts


# Up to 18 digits always fit into 64 bits; JSON allows no leading zero.
_COUNT_FIRST = r'^\{"numRecords":(?P<count>0|[1-9][0-9]{0,17})[,}]'

_End = Literal["low", "high"] | None
"""The direction in which a bound may be rounded: low down, high up; None: not a bound."""

_MEMBERS: Mapping[str, _End] = {
    "numRecords": None,
    "minValues": "low",
    "maxValues": "high",
    "nullCount": None,
    "tightBounds": None,
}


def _object(values: pa.StructArray, members: Mapping[str, _End]) -> pa.Array:
    """JSON objects of the `members` of structs; null where the struct is null."""
    texts = {name: _text(pc.struct_field(values, name), end) for name, end in members.items()}
    return pc.if_else(values.is_valid(), object_texts(texts, len(values)), pa.scalar(None, pa.string()))


def _text(values: pa.Array, end: _End) -> pa.Array:
    """The JSON of each value, null where it is null or has no spelling."""
    kind = values.type
    if pa.types.is_dictionary(kind):
        return _text(values.cast(kind.value_type), end)
    if pa.types.is_struct(kind):
        return _object(values, {field.name: end for field in kind if _has_spelling(field.type)})
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return values.cast(pa.string())
    if pa.types.is_floating(kind):
        return _floats(values.cast(pa.float64()))
    if pa.types.is_decimal(kind):
        return _decimals(values)
    if pa.types.is_date(kind):
        days = values.cast(pa.date32())
        days = _since(days, pa.scalar(GREGORIAN_DAY, pa.date32()))
        return _quoted(_of_the_calendar(days.cast(pa.string())))
    if pa.types.is_timestamp(kind):
        return _timestamps(values, end)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return string_texts(values.cast(pa.string()))
    return pa.nulls(len(values), pa.string())


def _has_spelling(kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind):
        return any(_has_spelling(field.type) for field in kind)
    return not (pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def _floats(values: pa.Array) -> pa.Array:
    texts = pc.replace_substring_regex(values.cast(pa.string()), r"^(-?[0-9]+)$", r"\1.0")
    for number, name in ((math.nan, '"NaN"'), (math.inf, '"Infinity"'), (-math.inf, '"-Infinity"')):
        this = pc.is_nan(values) if math.isnan(number) else pc.equal(values, number)
        texts = pc.if_else(this, name, texts)
    return texts


def _decimals(values: pa.Array) -> pa.Array:
    texts = values.cast(pa.string())
    small = pc.fill_null(pc.match_substring(texts, "E"), fill_value=False)  # Arrow's exponents, close to zero
    spelt = [format(value, "f") for value in values.filter(small).to_pylist()]
    return pc.replace_with_mask(texts, small, pa.array(spelt, pa.string())) if spelt else texts


_MILLISECOND = 1_000_000  # in the finest unit


def _timestamps(values: pa.Array, end: _End) -> pa.Array:
    zone = "" if values.type.tz is None else "Z"
    if values.type.tz is not None:
        values = _since(values, pa.scalar(STANDARD_TIME_US, pa.timestamp("us", "UTC")))
    instants = values.cast(pa.timestamp(values.type.unit))
    # The first and last moments of 64 bits, which some programs write for "ever", cannot be rounded.
    counts = instants.cast(pa.int64())
    can_be_cut = pc.and_(pc.greater(counts, _MILLISECOND - 2**63), pc.less(counts, 2**63 - _MILLISECOND))
    instants = pc.if_else(can_be_cut, instants, pa.scalar(None, instants.type))
    cut = pc.ceil_temporal if end == "high" else pc.floor_temporal
    texts = cut(instants, unit="millisecond").cast(pa.timestamp("ms")).cast(pa.string())
    texts = pc.replace_substring(_of_the_calendar(texts), " ", "T")
    return _quoted(pc.binary_join_element_wise(texts, pa.scalar(zone), ""))


GREGORIAN_DAY = -141_427  # 1582-10-15
STANDARD_TIME_US = -2_208_988_800_000_000  # 1900-01-01: Spark's calendars agree from here on


def _since(values: pa.Array, first: pa.Scalar) -> pa.Array:
    """The values from `first` on; null for those before."""
    return pc.if_else(pc.less(values, first.cast(values.type)), pa.scalar(None, values.type), values)


def _of_the_calendar(texts: pa.Array) -> pa.Array:
    """The texts whose year has four digits; null for others, which few readers accept."""
    return pc.if_else(pc.match_substring_regex(texts, r"^[0-9]{4}-"), texts, pa.scalar(None, pa.string()))


def _quoted(texts: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise(pa.scalar('"'), texts, pa.scalar('"'), "")
