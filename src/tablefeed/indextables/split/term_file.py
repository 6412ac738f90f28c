"""Converts the `.term` file of a segment, which has a dictionary of terms for each field, to the form of IndexTables.

The published Tantivy uses one form (fst.py); Quickwit's Tantivy, and so IndexTables, uses the other (sstable.py).
IndexTables can open a split only with the second form, so a file in the first form is converted.
"""

from __future__ import annotations

import struct
from dataclasses import replace

from tablefeed.indextables.split.damage import UnsupportedSplitError
from tablefeed.indextables.split.fst import decode_fst
from tablefeed.indextables.split.sstable import encode_sstable
from tablefeed.indextables.split.tantivy_file import Marked, decode_marked, decode_parts, encode_marked, encode_parts

_KIND = struct.Struct("<I")
_FST, _SSTABLE = 1, 2


def as_sstables(file: bytes) -> bytes:
    """A `.term` file with the same terms, version and fields, with each dictionary as a sorted table of strings.

    Raises DamagedSplitError where the file is not valid, UnsupportedSplitError for an unknown form or version, and
    ValueError as `encode_sstable`, which writes only one block.
    """
    marked = decode_marked(file)
    parts = [replace(part, data=_as_sstable(part.data)) for part in decode_parts(marked.body)]
    return encode_marked(Marked(body=encode_parts(parts), version=marked.version))


def _as_sstable(part: bytes) -> bytes:
    kind = int.from_bytes(part[-_KIND.size :], "little")
    if kind == _SSTABLE:
        return part
    if kind == _FST:
        return encode_sstable(decode_fst(part[: -_KIND.size])) + _KIND.pack(_SSTABLE)
    raise UnsupportedSplitError(f"has a term dictionary of kind {kind}", feature="termDictionaryKind")
