"""The `.term` file of a segment, which has a dictionary of terms for each field: reads both forms, converts to one.

The published Tantivy uses one form (fst.py); Quickwit's Tantivy, and so IndexTables, uses the other (sstable.py).
IndexTables can open a split only with the second form, so a file in the first form is converted.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from tablefeed.indextables.split.damage import UnsupportedSplitError
from tablefeed.indextables.split.fst import decode_fst
from tablefeed.indextables.split.sstable import Term, decode_sstable, encode_sstable
from tablefeed.indextables.split.tantivy_file import (
    Marked,
    Part,
    decode_marked,
    decode_parts,
    encode_marked,
    encode_parts,
)

_KIND = struct.Struct("<I")
_FST, _SSTABLE = 1, 2


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldTerms:
    """The terms of the field with the number `field`, sorted by their bytes; `index` as in `Part`."""

    field: int
    index: int
    terms: Sequence[Term]


def decode_terms(file: bytes) -> list[FieldTerms]:
    """The terms of a `.term` file in either form, field by field.

    Raises DamagedSplitError where the file is not valid, UnsupportedSplitError for an unknown form or version.
    """
    return [
        FieldTerms(field=part.field, index=part.index, terms=_decoded(part.data))
        for part in decode_parts(decode_marked(file).body)
    ]


def as_sstables(file: bytes) -> bytes:
    """A `.term` file with the same terms, version and fields, with each dictionary as a sorted table of strings.

    Raises as `decode_terms`, and ValueError as `encode_sstable`, which writes only one block.
    """
    marked = decode_marked(file)
    parts = [
        Part(field=part.field, index=part.index, data=encode_sstable(_decoded(part.data)) + _KIND.pack(_SSTABLE))
        for part in decode_parts(marked.body)
    ]
    return encode_marked(Marked(body=encode_parts(parts), version=marked.version))


def _decoded(part: bytes) -> list[Term]:
    kind = int.from_bytes(part[-_KIND.size :], "little")
    if kind == _FST:
        return decode_fst(part[: -_KIND.size])
    if kind == _SSTABLE:
        return decode_sstable(part[: -_KIND.size])
    raise UnsupportedSplitError(f"has a term dictionary of kind {kind}", feature="termDictionaryKind")
