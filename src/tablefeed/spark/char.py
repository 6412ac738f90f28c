"""CHAR(n) columns: text in files, padded with blanks to n characters when Spark reads them.

Spark pads what a batch reads, since the schema names the type; a stream of a Python source it leaves as it is, where
Delta-Spark's is padded. So a stream is padded here. A CHAR inside a struct, array or map stays as the file has it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

CHAR_TYPE = "__CHAR_VARCHAR_TYPE_STRING"
"""Spark's key in a field's metadata for what a column of text was declared as."""


def padded(batches: Iterable[pa.RecordBatch], schema: StructType) -> Iterator[pa.RecordBatch]:
    """Gives `batches`, which are of `schema`, with their CHAR columns padded; a longer text stays as it is."""
    import pyarrow.compute as pc

    declared = {i: re.fullmatch(r"char\((\d+)\)", f.metadata.get(CHAR_TYPE, "")) for i, f in enumerate(schema)}
    widths = {index: int(match[1]) for index, match in declared.items() if match}
    for batch in batches:
        columns = [pc.utf8_rpad(c, widths[i]) if i in widths else c for i, c in enumerate(batch.columns)]
        yield batch.from_arrays(columns, schema=batch.schema) if widths else batch
