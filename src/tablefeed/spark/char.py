"""CHAR(n) columns, which files and Arrow hold as plain text: pads them in a stream, and marks them in change events.

Spark itself pads the rows of a batch read, because the schema names the type. It does not pad the stream of a Python
source, but Delta-Spark's stream is padded: so it is done here. A CHAR inside a struct, array or map is not padded.

Spark takes 'd' and 'd  ' for equal in a CHAR(3) column, and 'd' and 'D' under some collations. So such columns of
change events are marked in the metadata of their Arrow schema, and SQL that compares them is refused
(feed/rows/incoming.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from tablefeed.errors import TABLE, SchemaMismatchError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructField, StructType

CHAR_TYPE = "__CHAR_VARCHAR_TYPE_STRING"
"""Spark's key in a field's metadata for the declared type of a text column, such as `char(5)`."""

_WITH_BLANKS = re.compile(r"(?<!var)char\((?!1\))")
"""A CHAR that may have blanks at its end. The values of CHAR(1) have none, unless they are empty."""


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


def changes_schema(schema: StructType) -> pa.Schema:
    """Gives the Arrow schema of change events with Spark's `schema`, with times in UTC.

    Raises SchemaMismatchError for a type that Arrow lacks.
    """
    import pyarrow as pa
    from pyspark.errors import PySparkTypeError
    from pyspark.sql.pandas.types import to_arrow_schema

    try:
        # Tasks have the session's time zone. The type in the table is the same.
        found = to_arrow_schema(schema, timezone="UTC")
    except PySparkTypeError as error:
        raise SchemaMismatchError(
            f"The changes for {TABLE} have a column of a type that no table has: {error}. Nothing was committed. Cast "
            "the column, or drop it.",
            error_class="DELTA_UNSUPPORTED_DATA_TYPES",
        ) from error
    return pa.schema([each.with_metadata(_marks(field)) for each, field in zip(found, schema, strict=True)])


def _marks(field: StructField) -> dict[str, str] | None:
    declared = str(field.metadata.get(CHAR_TYPE, ""))
    marks = {CHAR_TYPE: declared} if _WITH_BLANKS.search(declared) else {}
    if " collate " in field.dataType.simpleString():
        marks["__COLLATIONS"] = field.dataType.simpleString()
    return marks or None
