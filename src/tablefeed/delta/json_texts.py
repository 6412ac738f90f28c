"""Writes Arrow columns as columns of JSON texts, where there are too many rows to build a Python object for each.

A null value is a null text. The texts mean the same as what orjson would write for the same values.
"""

from __future__ import annotations

from collections.abc import Mapping

import orjson
import pyarrow as pa
import pyarrow.compute as pc

_ESCAPED = r'["\\\x00-\x1f]'
"""The characters that must be escaped in a JSON string (RFC 8259, section 7)."""


def string_texts(values: pa.StringArray) -> pa.StringArray:
    """JSON strings. Only strings with characters to escape are written one by one."""
    texts = pc.binary_join_element_wise('"', values, '"', "")
    escaped = pc.fill_null(pc.match_substring_regex(values, _ESCAPED), fill_value=False)
    if not pc.any(escaped).as_py():
        return texts
    written = [orjson.dumps(text).decode() for text in values.filter(escaped).to_pylist()]
    return pc.replace_with_mask(texts, escaped, pa.array(written, pa.string()))


def object_texts(members: Mapping[str, pa.StringArray | str | None], count: int) -> pa.StringArray:
    """`count` JSON objects with `members`, in their order. A null value is left out of its object.

    A text instead of a column is in every object, None in none.
    """
    parts = [
        pc.binary_join_element_wise(
            f",{orjson.dumps(name).decode()}:", pa.repeat(text, count) if isinstance(text, str) else text, ""
        )
        for name, text in members.items()
        if text is not None and (isinstance(text, str) or text.null_count < count)
    ]
    # Not joined by commas: Arrow's join that skips nulls drops the rows where all members are null.
    joined = pc.binary_join_element_wise(pa.repeat("", count), *(pc.coalesce(part, "") for part in parts), "")
    return pc.binary_join_element_wise("{", pc.utf8_slice_codeunits(joined, 1), "}", "")


def texts_of_map(values: pa.MapArray, *, null_values: bool = True) -> pa.StringArray:
    """JSON objects of maps from text to text. Without `null_values`, keys with a null value are left out."""
    if values.null_count == len(values):
        return pa.nulls(len(values), pa.string())
    # Not flattened: in a slice, the offsets still count from the begin of the whole children.
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


def text_of(strings: pa.StringArray) -> pa.Buffer:
    """The bytes of all strings, one after the other. Nothing is copied."""
    _, offsets, text = strings.buffers()
    if text is None or not len(strings):
        return pa.py_buffer(b"")
    ends = pa.Array.from_buffers(pa.int32(), len(strings) + 1, [None, offsets], offset=strings.offset)
    return text.slice(ends[0].as_py(), ends[-1].as_py() - ends[0].as_py())
