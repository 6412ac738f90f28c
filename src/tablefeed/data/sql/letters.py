"""UPPER and LOWER as in Spark: Unicode's full mappings, for no particular language (UTF8String by ICU).

Python has the same mappings, in the version of Unicode that it was built with. A text with a character that this
version does not know gives null here.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc


def upper(texts: pa.ChunkedArray) -> pa.Array:
    """Each text in capitals; null for one with a character that is not known here."""
    return _mapped(texts, str.upper, pc.ascii_upper)


def lower(texts: pa.ChunkedArray) -> pa.Array:
    """Each text in small letters; null for one with a character that is not known here."""
    return _mapped(texts, str.lower, pc.ascii_lower)


def _mapped(texts: pa.ChunkedArray, one: Callable[[str], str], ascii_only: Callable[[pa.Array], pa.Array]) -> pa.Array:
    column = texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts
    if pc.all(pc.string_is_ascii(column), min_count=0).as_py():
        return ascii_only(column)
    return pa.array([None if t is None or not _is_known(t) else one(t) for t in column.to_pylist()], pa.string())


_LATE = frozenset("\u019b\u0264\ua7d3\ua7d5")
"""Old small letters whose capitals came only with Unicode 16: versions of Python and of Spark differ for them."""


def _is_known(text: str) -> bool:
    return text.isascii() or (
        _LATE.isdisjoint(text) and all(unicodedata.category(c) != "Cn" or _is_never_one(ord(c)) for c in text)
    )


def _is_never_one(code: int) -> bool:
    """Whether Unicode promises that a code is and stays no character."""
    return 0xFDD0 <= code <= 0xFDEF or code & 0xFFFE == 0xFFFE
