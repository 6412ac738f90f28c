"""Arrow columns as texts of JSON: for lines that are too many to make a value of each. Columns in, columns out.

Null is a null text. What the texts say is what orjson would have written of the same values.
"""

from __future__ import annotations

from collections.abc import Mapping

import orjson
import pyarrow as pa
import pyarrow.compute as pc

_ESCAPED = r'["\\\x00-\x1f]'
"""What may not stand in a string of JSON as it is (RFC 8259, section 7)."""


def string_texts(values: pa.StringArray) -> pa.StringArray:
    """Strings of JSON; only the few that have something to escape are looked at one by one."""
    texts = pc.binary_join_element_wise('"', values, '"', "")
    escaped = pc.fill_null(pc.match_substring_regex(values, _ESCAPED), fill_value=False)
    if not pc.any(escaped).as_py():
        return texts
    written = [orjson.dumps(text).decode() for text in values.filter(escaped).to_pylist()]
    return pc.replace_with_mask(texts, escaped, pa.array(written, pa.string()))


def number_texts(values: pa.Array) -> pa.StringArray:
    """Integers."""
    return pc.cast(values, pa.string())


def object_texts(members: Mapping[str, pa.StringArray | str | None], count: int) -> pa.StringArray:
    """Objects of `members`, in their order, of which those that are null are left out; `count` of them.

    A text instead of a column stands in all, None in none. The names have nothing to escape.
    """
    parts = [
        pc.binary_join_element_wise(f',"{name}":', pa.repeat(text, count) if isinstance(text, str) else text, "")
        for name, text in members.items()
        if text is not None and (isinstance(text, str) or text.null_count < count)
    ]
    # Not joined by commas: of a row that is null in all of them, Arrow's join without nulls makes no row.
    joined = pc.binary_join_element_wise(*(pc.coalesce(part, "") for part in parts), "")
    return pc.binary_join_element_wise("{", pc.utf8_slice_codeunits(joined, 1), "}", "")


def texts_of_map(values: pa.MapArray, *, null_values: bool = True) -> pa.StringArray:
    """Objects of maps of text to text; without `null_values` what is null in one is left out of it."""
    if values.null_count == len(values):
        return pa.nulls(len(values), pa.string())
    # Not by flattening: the offsets count from the begin of the children, whichever part of them this is.
    offsets = values.offsets
    names, texts = values.keys, values.items
    if not null_values:
        present = texts.is_valid()
        before = pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(present.cast(pa.int32()))])
        offsets, names, texts = before.take(offsets), names.filter(present), texts.filter(present)
    begin, end = offsets[0].as_py(), offsets[-1].as_py()
    names, texts = names.slice(begin, end - begin), texts.slice(begin, end - begin)
    entries = pc.binary_join_element_wise(string_texts(names), pc.coalesce(string_texts(texts), "null"), ":")
    joined = pc.binary_join(pa.ListArray.from_arrays(pc.subtract(offsets, begin), entries), ",")
    objects = pc.binary_join_element_wise("{", joined, "}", "")
    return pc.if_else(values.is_valid(), objects, pa.scalar(None, pa.string()))
