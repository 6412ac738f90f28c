"""Pads CHAR(n) columns of a stream with blanks to n characters. Files hold them as plain text.

Spark itself pads the rows of a batch read, because the schema names the type. It does not pad the stream of a Python
source, but Delta-Spark's stream is padded: so it is done here. A CHAR inside a struct, array or map is not padded.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

CHAR_TYPE = "__CHAR_VARCHAR_TYPE_STRING"
"""Spark's key in a field's metadata for the declared type of a text column, such as `char(5)`."""


def padded(batches: Iterable[pa.RecordBatch], schema: StructType) -> Iterator[pa.RecordBatch]:
    """Gives `batches`, whose columns are those of `schema`, with CHAR columns padded; a longer text stays as it is."""
    declared = {i: re.fullmatch(r"char\((\d+)\)", f.metadata.get(CHAR_TYPE, "")) for i, f in enumerate(schema)}
    widths = {index: int(match[1]) for index, match in declared.items() if match}
    if not widths:
        yield from batches
        return
    import pyarrow.compute as pc

    for batch in batches:
        columns = [pc.utf8_rpad(c, widths[i]) if i in widths else c for i, c in enumerate(batch.columns)]
        yield batch.from_arrays(columns, schema=batch.schema)
