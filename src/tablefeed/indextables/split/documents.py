"""A segment's documents as columns of what they store: for each field of the index, its values and whose they are.

A document is a count of values, and each value the number of its field, a type code and what the code says. Codes as
they are stored only; what Spark calls a value is columns.py's.
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
"""By the number of the field, in the order in which documents have them; a field that no document has is absent."""


def read_pieces(
    documents: Documents, *, field_count: int, wanted: Mapping[int, Wanted], units_a_us: int = 1000
) -> Pieces:
    """The values of the fields `wanted` in `documents`; the others are stepped over.

    `units_a_us`: how many units of the store's dates are a microsecond; objects in a column of texts are JSON.
    Raises DamagedSplitError where the bytes are no documents of an index with so many fields, and UnsupportedSplitError
    for a type code that is not known.
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
