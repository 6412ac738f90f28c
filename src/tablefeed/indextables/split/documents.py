"""Decodes a segment's documents to columns: for each field of the index its values, and to which document each belongs.

A document is stored as the number of its values, then for each value the number of its field, a type code and the
bytes of the value. Values keep their stored types here; row_columns.py converts them to Spark's types.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from tablefeed.indextables.split.damage import DamagedSplitError
from tablefeed.indextables.split.doc_store import Documents
from tablefeed.indextables.split.gather import counting
from tablefeed.indextables.split.shapes import Documents as DocumentShape
from tablefeed.indextables.split.shapes import Key, Wanted
from tablefeed.indextables.split.walk import Piece, Walk

Pieces = Mapping[Key, list[Piece]]
"""The values of each field, by the field's number. A field without a value in any document is absent."""


def read_pieces(
    documents: Documents, *, field_count: int, wanted: Mapping[int, Wanted], units_a_us: int = 1000
) -> Pieces:
    """The values of the fields `wanted` in `documents`; other fields are skipped.

    `units_a_us`: how many units of the store's dates make a microsecond. An object in a string column becomes JSON
    text. Raises DamagedSplitError where the bytes are not documents of an index with `field_count` fields, and
    UnsupportedSplitError for an unknown type code.
    """
    count = len(documents.ends)
    if not count:
        return {}
    walk = Walk(documents.data, units_a_us=units_a_us)
    limits = pa.Array.from_buffers(pa.int64(), count, [None, pa.py_buffer(documents.ends)])
    begins = pa.concat_arrays([pa.array([0], pa.int64()), limits.slice(0, count - 1)])
    shape = DocumentShape(field_count, wanted)
    pieces, ends = walk.counted(shape, begins, limits, counting(count))
    if pc.any(pc.not_equal(ends, limits)).as_py():
        raise DamagedSplitError("has a document that ends before its place")
    return pieces
