"""The `.term` file of a segment: a dictionary of terms for each field, in one of two forms, and the one in the other.

The published Tantivy writes and reads the one (fst.py), Quickwit's, and so IndexTables, the other (sstable.py): a
split is opened by the second alone, so what was written in the first is written anew.
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
    """The terms of the field with the number `field`, sorted by their bytes."""

    field: int
    index: int
    terms: Sequence[Term]


def decode_terms(file: bytes) -> list[FieldTerms]:
    """The terms of a `.term` file in either form, field by field.

    Raises DamagedSplitError where it is none, UnsupportedSplitError for a form or a version that is not known.
    """
    return [
        FieldTerms(field=part.field, index=part.index, terms=_decoded(part.data))
        for part in decode_parts(decode_marked(file).body)
    ]


def as_sstables(file: bytes) -> bytes:
    """A `.term` file of the same terms, versions and fields with each dictionary as a sorted table of strings.

    Raises as `decode_terms`, and ValueError for more terms than the one block has place for that is written.
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
