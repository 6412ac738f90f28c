"""What Spark learns about a table when a DataFrame is created: its version and schema, fixed for the DataFrame.

The value goes to every process of a query, so this module imports nothing of the feed. at_load.py makes the value.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tablefeed.spark.char import CHAR_TYPE
from tablefeed.spark.release import RELEASE, Release

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

CHANGE_COLUMNS = {"_change_type": "string", "_commit_version": "long", "_commit_timestamp": "timestamp"}
"""The columns that a change feed adds ("Change Data Files"), in Spark's types."""

_KEPT_FIELD_METADATA = ("comment", CHAR_TYPE)
"""The keys of a column's metadata that Spark gets; the others are the table's own book-keeping."""

_OTHER_NAMES = {"null": "void", "timestamp_ltz": "timestamp"}
"""Names of types that Spark reads in a schema and PySpark does not. Old Spark wrote "null"."""

_TYPES = ("type", "elementType", "keyType", "valueType")
"""Where a schema's JSON has a type ("Schema Serialization Format")."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """The version of a table that a DataFrame is created for, and its schema as the log has it.

    `table_id` is the table's id: another table may be at the same path when the DataFrame is read.
    `change_feed`: whether row changes are read; their rows have the change feed's columns after the table's. `columns`
    are the DataFrame's columns in order; None: all. `tracked`: whether the schema comes from the schema tracking log
    instead of the table. `release` is first, so that another version of tablefeed refuses the value.
    """

    release: Release = field(default=RELEASE, init=False, repr=False)
    version: int
    table_id: str
    schema_string: str
    change_feed: bool = False
    columns: tuple[str, ...] | None = None
    tracked: bool = False


def spark_schema(analysis: Analysis) -> StructType:
    """Gives the DataFrame's schema in Spark's types. The schema text in a log is Spark's own JSON."""
    from pyspark.sql.types import StructType

    schema = StructType.fromJson(json.loads(analysis.schema_string, object_hook=_as_pyspark_reads))
    if analysis.change_feed:
        for name, kind in CHANGE_COLUMNS.items():
            schema = schema.add(name, kind)
    return schema if analysis.columns is None else StructType([schema[name] for name in analysis.columns])


def _as_pyspark_reads(node: dict[str, object]) -> dict[str, object]:
    node |= {
        key: _OTHER_NAMES[kind] for key in _TYPES if isinstance(kind := node.get(key), str) and kind in _OTHER_NAMES
    }
    if isinstance(metadata := node.get("metadata"), dict):
        node["metadata"] = {key: value for key, value in metadata.items() if key in _KEPT_FIELD_METADATA}
    return node
